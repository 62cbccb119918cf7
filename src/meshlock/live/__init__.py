"""Real nodes, in rooms; each imports only those named before it.

:mod:`.machine` is what a process has of its machine, :mod:`.links` join nodes, :mod:`.pools`
run an algorithm between links and clients, :mod:`.interfaces` are what people and programs use.
:mod:`.demo` and :mod:`.chaos` start many nodes and watch them; neither knows the other.
"""
