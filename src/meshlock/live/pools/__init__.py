"""Run an algorithm between clients and links; keep, record and count what it does.

May import: machine, links.
Must not know: how a user reaches it, or whether links are TCP.

:mod:`.pool` carries out the effects of a node, and :mod:`.members` gives one that recovers from
crashes its clock and its disk.
"""
