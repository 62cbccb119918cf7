"""Runs in virtual time: workloads, delays, mobility, faults, scenarios, measures.

May import: algorithms, topology, properties, trace, world.
Must not know: sockets and the time of the machine.
"""
