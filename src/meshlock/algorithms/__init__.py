"""The papers, one file each, as pure state machines.

Nothing in this folder imports anything else of meshlock but the errors that it raises
(:mod:`meshlock.errors`), and nothing here knows a clock, a random number, a thread or a
socket. :mod:`.interface` says what a node is, :mod:`.registry` what each algorithm solves
and assumes.
"""
