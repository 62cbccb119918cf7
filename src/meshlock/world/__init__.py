"""What nodes live in: lives, disks, clocks, clients, and the one interpreter of their effects.

May import: algorithms, topology, properties, trace.
Must not know: who lets things happen: a schedule, a search or a script.
"""
