"""Pools: an algorithm run between clients and links, with what it keeps, records and counts.

:mod:`.pool` carries out the effects of a node, :mod:`.leases` those of one that recovers from
crashes. Nothing here knows how a user reaches it, nor whether links are TCP.
"""
