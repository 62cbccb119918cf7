"""Live nodes in virtual time: one process, one seed, one run.

The loop's clock stands still while anything can be done, and jumps to the next timer when nothing
can. Connections are queues in memory with delays from a seeded random number generator. Nodes,
meshes, sessions and pools are the real ones; not here are sockets, TLS and admission. Where nodes
have certificates, connections tell whose they are, as if TLS had proved it.

::

    def test_something():
        async def story(network):
            async with Node("a") as a, Node("b", peers=[a.address]) as b: ...

        virtual.run(story, seed=1)

Iteration over sets of names depends on the process (PYTHONHASHSEED), so a seed gives the same run
again within one process, and in others that have the same hash seed.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import selectors
import socket
import sys
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any, TypeVar
from unittest import mock

from meshlock.live.links.link import LinkConnection
from meshlock.live.links.mesh import Mesh
from meshlock.live.machine import clock
from meshlock.live.pools.members import WRITERS

T = TypeVar("T")
FIRST_MOMENT = 1000.0
WALL = 1_800_000_000.0
"""What clocks on walls show, less what the loop's clock does."""

HOST = "127.0.0.1"


class Skipping(selectors.BaseSelector):
    """Never waits: what it would have waited for has passed."""

    def __init__(self, now: float) -> None:
        self.real = selectors.DefaultSelector()
        self.now = now

    def select(self, timeout: float | None = None) -> list[Any]:
        events = self.real.select(0)
        if not events:
            if timeout is None:
                raise RuntimeError("nothing can happen any more")
            self.now += timeout
        return events

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self.real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self.real.unregister(fileobj)

    def get_map(self) -> Any:
        return self.real.get_map()

    def close(self) -> None:
        self.real.close()


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self, network: Network, began: float) -> None:
        self.skipping = Skipping(began)
        self.network = network
        network.loop = self
        super().__init__(self.skipping)

    def time(self) -> float:
        return self.skipping.now

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:
        """There are no threads. Work takes no time, but that of a disk may: it is done when that
        is over, unless its node is gone by then."""
        future = self.create_future()
        takes = self.network.disk() if executor is WRITERS else 0.0
        if takes > 0:
            self.call_later(takes, self.work, future, func, args)
        else:
            self.work(future, func, args)
        return future

    def work(self, future: Any, func: Any, args: Any) -> None:
        if not future.cancelled():
            try:
                future.set_result(func(*args))
            except BaseException as error:
                future.set_exception(error)

    def remove_reader(self, fd: Any) -> bool:
        return False if isinstance(fd, Listener) else super().remove_reader(fd)

    async def getaddrinfo(self, host: Any, port: Any, **_: Any) -> Any:
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (host, port))]

    async def create_connection(  # type: ignore[override]
        self, factory: Callable[[], asyncio.Protocol], host: str, port: int, **_: Any
    ) -> Any:
        return await self.network.connect(factory, port)


class End(asyncio.Transport):
    """One end of a connection."""

    def __init__(self, wire: Wire, protocol: asyncio.Protocol, address: tuple[str, int]) -> None:
        super().__init__()
        self.wire = wire
        self.protocol = protocol
        self.address = address
        self.other: End = self
        self.closing = self.over = False
        self.flying: deque[bytes | None] = deque()  # written by the other end; None is the end
        self.arrived = 0  # of these; more only if a cut holds them up
        self.last = 0.0  # nothing arrives before what was written earlier

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name == "socket":
            return SimpleNamespace(setsockopt=lambda *_: None)
        if name == "peercert":  # what TLS would have proved
            return {
                "subject": ((("commonName", getattr(keeper(self.other.protocol), "name", "")),),),
                "notBefore": "Jan  1 00:00:00 1970 GMT",
                "notAfter": "Dec 31 23:59:59 9999 GMT",
            }
        return self.address if name == "peername" else default

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """What is written is under way at once."""

    def is_closing(self) -> bool:
        return self.closing

    def write(self, data: Any) -> None:
        if not self.closing:
            self.put(bytes(data))

    def put(self, data: bytes | None) -> None:
        network = self.wire.network
        delay = network.delay() + self.wire.delay
        self.last = max(self.last, network.loop.time() + delay)
        self.other.flying.append(data)
        network.loop.call_at(self.last, self.other.arrive)

    def arrive(self) -> None:
        self.arrived += 1
        self.read()

    def read(self) -> None:
        while self.arrived and self.wire.passes(self):
            self.arrived -= 1
            data = self.flying.popleft()
            if self.over:
                continue
            if data is None:
                self.closing = True
                self.end()
            elif not self.closing:
                self.protocol.data_received(data)

    def close(self) -> None:
        if not self.closing:
            self.closing = True
            self.put(None)
            self.wire.network.loop.call_soon(self.end)

    def abort(self) -> None:
        self.close()

    def end(self) -> None:
        if not self.over:
            self.over = True
            self.wire.ends.discard(self)
            self.protocol.connection_lost(None)

    def vanish(self) -> None:
        """The process is gone, and nobody is told."""
        self.closing = self.over = True
        self.wire.ends.discard(self)


class Wire:
    """What leads to one port: all connections over it are cut and healed together. The same
    words as those of :class:`~meshlock.live.chaos.relay.Relay`."""

    def __init__(self, network: Network, port: int) -> None:
        self.network = network
        self.port = port
        self.ends: set[End] = set()
        self.whole = True
        self.deaf = False  # does the node that dialled receive nothing?
        self.delay = 0.0  # on top of the network's
        self.refuses = lambda: (
            False
        )  # does TLS refuse every node that dials, as with a wrong secret?

    @property
    def address(self) -> str:
        return f"{HOST}:{self.network.opened(self)}"

    def passes(self, end: End) -> bool:
        return self.whole and not (self.deaf and end.address[1] == self.port)

    def cut(self) -> None:
        self.whole = False

    def deafen(self) -> None:
        self.deaf = True

    def heal(self) -> None:
        self.whole, self.deaf = True, False
        for end in sorted(self.ends, key=lambda end: end.address):
            end.read()

    def reset(self) -> None:
        for end in sorted(self.ends, key=lambda end: end.address):
            end.closing = True
            self.network.loop.call_soon(end.end)


class Listener:
    """Stands in for the socket, which is closed when the mesh is."""

    def __init__(self, network: Network, port: int) -> None:
        self.network = network
        self.port = port

    def close(self) -> None:
        self.network.listening.pop(self.port, None)


class Network:
    """Who listens where, and the wires between them."""

    def __init__(self, seed: int, slowest: float = 0.002) -> None:
        self.random = random.Random(seed)
        self.slowest = slowest
        self.disk: Callable[[], float] = lambda: 0.0  # how long the next write takes
        self.loop: VirtualLoop
        self.listening: dict[int, Mesh] = {}
        self.dead: list[Mesh] = []  # whose machines are switched off: they dial nobody either
        self.wires: dict[int, Wire] = {}  # dialled port: leads to another
        self.ports = 7000

    def delay(self) -> float:
        return self.random.uniform(0.0001, self.slowest)

    def wire(self, address: str) -> Wire:
        """A wire of its own to the node at this address; it has another one."""
        return Wire(self, int(address.rpartition(":")[2]))

    def opened(self, wire: Wire) -> int:
        for port, other in self.wires.items():
            if other is wire:
                return port
        self.ports += 1
        self.wires[self.ports] = wire
        return self.ports

    async def listen(self, mesh: Mesh, host: str, port: int) -> None:
        if not port:
            self.ports += 1
            port = self.ports
        self.listening[port] = mesh
        self.wires[port] = Wire(self, port)
        mesh.admission.listener = Listener(self, port)  # type: ignore[assignment]
        mesh.address = f"{HOST}:{port}"

    async def connect(self, factory: Callable[[], asyncio.Protocol], port: int) -> Any:
        await asyncio.sleep(self.delay())
        wire = self.wires.get(port)
        while wire is not None and not wire.whole:
            await asyncio.sleep(0.1)
        mesh = self.listening.get(wire.port) if wire is not None else None
        if wire is None or mesh is None:
            raise ConnectionRefusedError
        if wire.refuses():
            raise ConnectionResetError
        protocol = factory()
        if keeper(protocol) in self.dead:
            raise ConnectionResetError
        self.ports += 1
        dialler = End(wire, protocol, (HOST, wire.port))
        dialled = End(wire, LinkConnection(mesh, dialled=False), (HOST, self.ports))
        dialler.other, dialled.other = dialled, dialler
        wire.ends |= {dialler, dialled}
        dialler.protocol.connection_made(dialler)
        dialled.protocol.connection_made(dialled)
        return dialler, dialler.protocol

    def kill(self, mesh: Mesh) -> None:
        """As if its machine were switched off: its connections are silent for ever."""
        self.dead.append(mesh)
        for port in [port for port, other in self.listening.items() if other is mesh]:
            del self.listening[port]
        for wire in self.wires.values():
            for end in [end for end in wire.ends if keeper(end.protocol) is mesh]:
                end.vanish()


def keeper(protocol: object) -> object:
    assert isinstance(protocol, LinkConnection)
    return protocol.keeper


def run(
    story: Callable[[Network], Awaitable[T]],
    seed: int = 0,
    slowest: float = 0.002,
    began: float = FIRST_MOMENT,
) -> T:
    """The story, in virtual time."""
    network = Network(seed, slowest)
    loop = VirtualLoop(network, began)
    with ExitStack() as stack:
        for module, name, instead in stand_ins(loop, seed):
            stack.enter_context(mock.patch.object(module, name, instead))
        assert clock.seconds() == began
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            return runner.run(told(story, network))


async def told(story: Callable[[Network], Awaitable[T]], network: Network) -> T:
    return await story(network)


class VirtualTime:
    """Stands in for the module ``time``."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.monotonic = loop.time

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    def time(self) -> float:
        return WALL + self.monotonic()

    def clock_gettime(self, _: int) -> float:
        return self.monotonic()

    def clock_gettime_ns(self, _: int) -> int:
        return int(self.monotonic() * 1e9)


def stand_ins(loop: VirtualLoop, seed: int) -> list[tuple[Any, str, Any]]:
    """For clocks, chance and sockets, wherever live nodes use them."""

    async def listen(mesh: Mesh, host: str, port: int) -> None:
        await loop.network.listen(mesh, host, port)

    clocks, chance = VirtualTime(loop), random.Random(seed)
    instead = {
        id(time): clocks,
        id(time.clock_gettime_ns): clocks.clock_gettime_ns,
        id(time.monotonic): loop.time,
        id(time.time): clocks.time,
        id(random): chance,
        id(random.random): chance.random,
        id(random.randrange): chance.randrange,
        id(secrets): SimpleNamespace(
            randbits=chance.getrandbits, token_urlsafe=lambda size: chance.randbytes(size).hex()
        ),
        id(secrets.randbits): chance.getrandbits,
    }
    found: list[tuple[Any, str, Any]] = [(Mesh, "listen", listen)]
    for name, module in list(sys.modules.items()):
        if name.startswith("meshlock.live."):
            for word, value in list(vars(module).items()):
                if id(value) in instead:
                    found.append((module, word, instead[id(value)]))
    return found
