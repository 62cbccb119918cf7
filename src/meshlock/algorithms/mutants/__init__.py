"""Algorithms with one plausible mistake each: what the checker must be able to find.

Each has a name, ``algorithm/mistake``, by which the registry finds it like any other
algorithm, so that it can be checked, simulated, played, replayed and shown.
:mod:`.jiang_without` undoes the numbered repairs of jiang, one by one or several at once.
"""
