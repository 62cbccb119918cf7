"""Which nodes are linked, and when: graphs, their files, and how nodes move.

May import: algorithms.
Must not know: the workload.
"""
