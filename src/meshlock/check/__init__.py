"""Every interleaving of a small set-up, breadth first, with counterexamples.

May import: algorithms, topology, properties, trace, world, simulate.
Must not know: time; only the order of steps counts.
"""
