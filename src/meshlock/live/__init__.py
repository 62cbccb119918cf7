"""Real nodes on real networks, in rooms.

May import: algorithms, topology, properties, trace.
Must not know: the simulator and the checker.

:mod:`.machine` is what a process has of its machine, :mod:`.links` join nodes, :mod:`.pools`
run an algorithm between links and clients, :mod:`.interfaces` are what people and programs use.
:mod:`.demo` and :mod:`.chaos` start many nodes and watch them; neither knows the other.
"""
