"""Find nodes on the local network by zeroconf. Needs the extra ``meshlock[discovery]``.

Every node announces its name and address. In a large network nobody needs a link to
everybody, so each node dials those that come 1, 2, 4 and 8 places after it in the circle of
all names it has received: that keeps the network connected and the ways short. A node
that is found must still prove itself by secret or certificate.
"""

from __future__ import annotations

import asyncio
import socket
from logging import INFO

from meshlock.errors import Refused
from meshlock.live.interfaces.node import Node
from meshlock.live.links.dialler import split
from meshlock.live.machine.logs import log_event

try:
    from zeroconf import ServiceStateChange, Zeroconf
    from zeroconf.asyncio import AsyncServiceBrowser, AsyncServiceInfo, AsyncZeroconf
except ImportError:
    raise Refused(
        "Finding peers needs the package 'zeroconf': pip install 'meshlock[discovery]'."
    ) from None


SERVICE = "_meshlock._tcp.local."
PLACES = (1, 2, 4, 8)


class Discovery:
    """Announces a node and dials those it finds, for as long as the ``async with`` lasts."""

    def __init__(self, node: Node, interfaces: list[str] | None = None) -> None:
        self.node = node._local
        self.node.discovering = True
        self.interfaces = interfaces
        self.found: dict[str, str] = {node.name: ""}  # name: address
        self.tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Discovery:
        host, port = split(self.node.mesh.address)
        here = [host] if host not in ("0.0.0.0", "::") else own_addresses()
        self.zeroconf = (
            AsyncZeroconf(interfaces=self.interfaces) if self.interfaces else AsyncZeroconf()
        )
        self.info = AsyncServiceInfo(
            SERVICE, f"{self.node.name}.{SERVICE}", port=port, parsed_addresses=here
        )
        await self.zeroconf.async_register_service(self.info)
        self.browser = AsyncServiceBrowser(self.zeroconf.zeroconf, SERVICE, handlers=[self.changed])
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self.tasks:
            task.cancel()
        await self.browser.async_cancel()
        await self.zeroconf.async_unregister_service(self.info)
        await self.zeroconf.async_close()

    def changed(
        self, zeroconf: Zeroconf, service_type: str, name: str, state_change: ServiceStateChange
    ) -> None:
        if state_change is not ServiceStateChange.Removed:
            task = asyncio.get_running_loop().create_task(self.resolve(name))
            self.node.mesh.failures.mind("discovery", task)
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    async def resolve(self, service: str) -> None:
        info = AsyncServiceInfo(SERVICE, service)
        if not await info.async_request(self.zeroconf.zeroconf, 3000):
            return
        name, addresses = service.removesuffix(f".{SERVICE}"), info.parsed_addresses()
        if name == self.node.name or not addresses or info.port is None:
            return
        log_event(INFO, "found", peer=name, address=f"{addresses[0]}:{info.port}")
        self.found[name] = f"{addresses[0]}:{info.port}"
        circle = sorted(self.found)
        mine = circle.index(self.node.name)
        for places in PLACES:
            other = circle[(mine + places) % len(circle)]
            if other != self.node.name:
                self.node.connect(self.found[other])


def own_addresses() -> list[str]:
    found = socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)
    return sorted({str(entry[4][0]) for entry in found})
