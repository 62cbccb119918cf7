"""What must be true of a run, and the sentences that report a violation.

May import: algorithms, topology.
Must not know: what runs it.
"""
