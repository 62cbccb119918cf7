"""Algorithms with one plausible mistake each, which the checker must find.

May import: algorithms.
Must not know: the checker; a set-up only has its words.

A mutant is data: a sentence, a patch of the source (:mod:`.patches`), and a small set-up in which
the checker finds the mistake. The files here that end in ``.toml`` have them, one per algorithm.
Each has a name, ``algorithm/mistake``, by which the registry finds it like any other
algorithm, so that it can be checked, simulated, played, replayed and shown.
Those of ``jiang_without.toml`` undo the numbered repairs of jiang, one by one or several at once.
"""
