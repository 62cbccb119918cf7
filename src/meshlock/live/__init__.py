"""Real nodes: links over the network, pools, clients.

:mod:`.frames`, :mod:`.session` and :mod:`.charter` are pure; :mod:`.link` and :mod:`.mesh`
speak TCP and TLS; :mod:`.pool` runs an algorithm between clients and links; :mod:`.node` is
what people use.
"""
