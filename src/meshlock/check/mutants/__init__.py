"""Algorithms with one plausible mistake each: what the checker must be able to find."""
