"""The papers, one file each, as pure state machines.

May import: nothing.
Must not know: clocks, randomness, threads, sockets, or who calls a handler.

:mod:`.actor` says what a node is, :mod:`.registry` what each algorithm solves and assumes.
"""
