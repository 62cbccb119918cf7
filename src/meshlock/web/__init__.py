"""The page: look at any run in a browser, drive one, watch the mesh of an agent.

May import: algorithms, topology, properties, trace, simulate, check, live.
Must not know: the command line, or any other host.
"""
