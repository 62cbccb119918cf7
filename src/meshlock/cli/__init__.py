"""Flags in, text or JSON and an exit code out; one thin module per command.

May import: algorithms, topology, properties, trace, simulate, sweep, check, live, web.
Must not know: how anything works: it only translates.
"""
