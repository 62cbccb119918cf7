"""What a process has of its machine: clock, event loop, log, limits of input.

May import: nothing.
Must not know: nodes, links and pools.
"""
