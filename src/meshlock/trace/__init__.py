"""The record of a run: write, read, merge, convert, audit.

May import: algorithms, topology, properties.
Must not know: how the run was made.
"""
