"""Show real processes at work while links are cut, and judge the record.

May import: machine, links, pools, interfaces.
Must not know: chaos.
"""
