"""What people and programs talk to: nodes, agents, clients, HTTP, metrics.

May import: machine, links, pools.
Must not know: how an algorithm decides.

:mod:`.node` is one participant of the mesh, for asyncio; :mod:`.blocking` is the same for threads.
:mod:`.http` says what can be asked of an agent (:mod:`.messages`, :mod:`.openapi`), and
:mod:`.server` serves it on a socket and at a port; :mod:`.client` and :mod:`.async_client` are the
other end (:mod:`.agent_connection`).
"""
