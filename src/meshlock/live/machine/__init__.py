"""What a process has of its machine: a clock, an event loop, a log, words for its errors, a count
of what failed (:mod:`.failures`), and the ranges of what it takes in (:mod:`.limits`).
"""
