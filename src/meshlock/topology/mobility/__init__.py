"""How links come and go: flips, moving nodes with a radio range, recorded traces.

May import: algorithms, topology.
Must not know: the workload.
"""
