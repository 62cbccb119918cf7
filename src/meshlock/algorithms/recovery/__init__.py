"""Recovery from crashes, as a layer over any token algorithm.

May import: algorithms.
Must not know: the clock (time is handed in), or how the algorithm inside works.

Read :mod:`.layer` first. :mod:`.member` and :mod:`.proposal` agree on epochs, :mod:`.epoch` serves
in one with :mod:`.gate` and :mod:`.keeper`, :mod:`.timers` says when to do what.
"""
