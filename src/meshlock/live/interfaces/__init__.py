"""What people and programs talk to: nodes, agents, clients, HTTP, metrics.

May import: machine, links, pools.
Must not know: how an algorithm decides.

:mod:`.node` is one participant of the mesh, for asyncio, and :mod:`.local_node` what it is made of;
:mod:`.blocking` is the same for threads. :mod:`.http` has what can be asked of an agent, each thing
declared once (:mod:`.operations`, :mod:`.messages`); :mod:`.server` serves it on a socket and at a
port. :mod:`.client` and :mod:`.async_client` are the other end (:mod:`.agent_client`).
"""
