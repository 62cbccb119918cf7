"""Show real agents at work while links are cut, and judge the traces.

May import: machine, links, pools, interfaces, chaos.
Must not know: what chaos does to agents; of it, it takes their processes.
"""
