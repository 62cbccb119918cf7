"""Pools: an algorithm run between clients and links, with what it keeps, records and counts.

:mod:`.pool` carries out the effects of a node, and :mod:`.members` gives one that recovers from
crashes its clock and its disk. Nothing here knows how a user reaches it, nor whether links are TCP.
"""
