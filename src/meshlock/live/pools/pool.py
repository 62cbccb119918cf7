"""A pool on this node: the algorithm on one side, clients and links on the other.

The algorithm is the same object that is simulated and checked. This adapter calls its
handlers, one at a time, and carries out their effects: messages go to the mesh, clients
get their grants.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from heapq import heappop, heappush
from logging import ERROR, INFO
from pathlib import Path
from time import monotonic
from typing import Any

import msgspec

from meshlock.algorithms.interface import Algorithm, Effect, Enter, Message, Node
from meshlock.algorithms.registry import find
from meshlock.errors import Refused
from meshlock.live.links.frames import BadFrame, Carry
from meshlock.live.links.mesh import Mesh
from meshlock.live.machine import limits
from meshlock.live.machine.logs import tell
from meshlock.live.pools.fields import Shape, shapes
from meshlock.live.pools.grants import Acquire, Grant, Waiter
from meshlock.live.pools.leases import Leases
from meshlock.live.pools.measures import Measures
from meshlock.live.pools.pool_configuration import Charter, born, refuse_incredible
from meshlock.live.pools.recording import Recording
from meshlock.topology.graphs import Graph

CHARTER, PULL = "charter", "pull"
"""Words between adapters; the kinds of the algorithms' messages are in capitals."""

NOTHING: dict[str, Any] = {}

LAST_SERIAL = int(limits.COUNT.most)
MOST_WAITING = 10_000
MOST_STASHED = 10_000
BREATH = 16
"""So many permits are had at once, then the loop gets a turn: a client that asks again and
again without waiting for anything else would hear of nobody and starve all other nodes."""

PATIENCE = 16
"""Where clients must queue at their node: one step of priority is worth so many places."""


class Pool:
    """A named set of k permits, shared by all nodes that have heard of it.

    Do not make one yourself: ask :meth:`meshlock.Node.pool` for it.
    """

    def __init__(
        self,
        name: str,
        me: str,
        mesh: Mesh,
        recording: Recording | None,
        state: Path | None = None,
    ) -> None:
        self.name = name
        self.me = me
        self.mesh = mesh
        self.recording = recording
        self.state = state
        self.charter: Charter | None = None
        self.asked_permits: int | None = None  # what our own user thinks k is
        self.conflict = ""
        self.founding = False
        self.ready = asyncio.Event()

        self.out: list[Effect] = []
        self.core: Node | Leases | None = None
        self.leases: Leases | None = None
        self.algorithm: Algorithm | None = None
        self.kinds: dict[str, Shape] = {}
        self.choosing = False
        self.names: dict[int, str] = {}  # nodes by number ...
        self.numbers: dict[str, int] = {}  # ... and by name
        self.routes: Graph | None = None  # of a fixed network
        self.serial = 0

        self.near: set[str] = set()  # peers in this pool, with a link
        self.told: set[str] = set()  # peers that know our charter, in this generation
        self.stash: list[tuple[str, Carry, int]] = []  # came before the charter

        self.clients: dict[int, Waiter] = {}
        self.last_client = 0
        self.serving: Waiter | None = None  # of an algorithm that takes one client at a time
        self.line: list[tuple[float, int, Waiter]] = []  # those behind it
        self.returning: list[int] = []  # granted to nobody
        self.closed = False
        self.measures = Measures()

    # -- for clients -------------------------------------------------------------------

    @property
    def permits(self) -> int | None:
        """k, once the pool is known here."""
        return self.charter.permits if self.charter else None

    def acquire(self, want: int = 1, *, priority: int = 0, timeout: float | None = None) -> Acquire:
        """Ask for ``want`` of the permits; a larger ``priority`` is more urgent.

        ``async with pool.acquire(2) as grant:`` gives them back at the end of the block;
        ``grant = await pool.acquire(2)`` leaves that to you. After ``timeout`` seconds
        without permits it raises :class:`TimeoutError`. A request that times out or is
        cancelled leaves nothing behind.

        >>> import asyncio, meshlock
        >>> async def share():
        ...     async with meshlock.Node("here") as node:
        ...         docks = node.pool("docks", permits=3)
        ...         grant = await docks.acquire(2)
        ...         try:
        ...             await docks.acquire(2, timeout=0.1)
        ...         except TimeoutError:
        ...             print("two of three are taken")
        ...         grant.release()
        ...         async with docks.acquire(3, priority=9) as later:
        ...             print(later.want, "now; fences grow:", later.fence > grant.fence)
        >>> asyncio.run(share())
        two of three are taken
        3 now; fences grow: True
        """
        return Acquire(self, want, priority, limits.timeout(timeout))

    def try_acquire(self, want: int = 1, *, priority: int = 0) -> Grant | None:
        """The permits if they lie free at this node, at once and without a message; else None.

        Free permits lie with the token, which may be elsewhere: to look further, use
        ``acquire`` with a short timeout.

        >>> import asyncio, meshlock
        >>> async def look():
        ...     async with meshlock.Node("here") as node:
        ...         docks = node.pool("docks", permits=3)
        ...         with docks.try_acquire(2):
        ...             print(docks.try_acquire(2))
        >>> asyncio.run(look())
        None
        """
        self.refuse_impossible(want, priority)
        core = self.core
        if core is None or self.serving is not None or not core.tokens():
            return None
        if core.free_permits() < want:
            return None
        waiter = self.new_waiter(want, priority)
        grant = self.ask(waiter)
        if grant is None:
            self.abandon(waiter)
        return grant

    async def wait_for(self, want: int, priority: int, timeout: float | None) -> Grant:
        timeout = limits.timeout(timeout)
        self.refuse_impossible(want, priority)
        if self.core is None:
            async with asyncio.timeout(timeout) as limit:
                await self.ready.wait()
            if timeout is not None:
                timeout = max(0.0, (limit.when() or 0.0) - asyncio.get_running_loop().time())
            self.refuse_impossible(want, priority)  # now that it is known what is possible
        waiter = self.new_waiter(want, priority)
        grant = self.ask(waiter)
        if grant is not None:
            if waiter.number % BREATH == 0:
                await self.breathe(waiter)
            return grant
        future: asyncio.Future[Grant] = self.mesh.loop.create_future()
        waiter.future = future
        try:
            if timeout is None:
                return await future
            async with asyncio.timeout(timeout):
                return await future
        except BaseException:
            self.abandon(waiter)
            raise

    async def breathe(self, waiter: Waiter) -> None:
        try:
            await asyncio.sleep(0)
        except BaseException:
            self.abandon(waiter)
            raise

    def refuse_impossible(self, want: int, priority: int) -> None:
        if self.closed:
            raise Refused(f"The node of pool {self.name} is closed.")
        limits.want(want)
        limits.priority(priority)
        if self.conflict and self.leases is None:  # with leases the majority goes on
            raise Refused(self.conflict)
        if self.charter is None:
            return
        k = self.charter.permits
        if self.asked_permits not in (None, k):
            raise Refused(
                f"Pool {self.name} has {k} permits, not {self.asked_permits}: its founder "
                f"{self.charter.founder} says so."
            )
        if want > k:
            raise Refused(f"Pool {self.name} has {k} permits; {want} can never be granted.")
        if want > 1 and self.algorithm is not None and self.algorithm.problem != "h-of-k":
            raise Refused(f"{self.algorithm.name} grants one permit at a time: want 1.")

    # -- clients and the algorithm -----------------------------------------------------

    def new_waiter(self, want: int, priority: int) -> Waiter:
        if len(self.clients) >= MOST_WAITING:
            raise Refused(f"{MOST_WAITING} requests of this node wait for {self.name} already.")
        self.last_client = number = self.last_client + 1
        want, priority = int(want), int(priority)  # of whatever class they were
        waiter = self.clients[number] = Waiter(number, want, priority, monotonic())
        return waiter

    def ask(self, waiter: Waiter) -> Grant | None:
        """Hand the request in; the grant, if there is one at once."""
        assert self.algorithm is not None
        if self.algorithm.many_clients:
            self.hand_in(waiter)
        elif self.serving is None:
            self.serving = waiter
            self.hand_in(waiter)
        else:
            place = waiter.number - PATIENCE * waiter.priority
            heappush(self.line, (place, waiter.number, waiter))
        self.mesh.flush()
        if waiter.failure is not None:
            raise waiter.failure
        return waiter.grant

    def hand_in(self, waiter: Waiter) -> None:
        """What cannot be carried out fails alone: only whoever asked for it is told."""
        core = self.before()
        cause = {"client": waiter.number, "want": waiter.want, "priority": waiter.priority}
        try:
            core.request(waiter.number, waiter.want, waiter.priority)
            self.carry_out("request", cause)
        except Exception as error:
            self.mesh.mishaps.note("request")
            self.mesh.mishaps.run("request", self.fail, waiter, error)

    def fail(self, waiter: Waiter, error: Exception) -> None:
        waiter.failure = error
        if waiter.future is not None and not waiter.future.done():
            waiter.future.set_exception(error)
        self.abandon(waiter)

    def abandon(self, waiter: Waiter) -> None:
        """Nobody waits for this any more."""
        waiter.abandoned = True
        if waiter.grant is not None:
            waiter.grant.release()
        elif self.algorithm is not None and self.algorithm.many_clients:
            self.take_back(waiter)

    def take_back(self, waiter: Waiter) -> None:
        """Withdraw the request, if the algorithm can; else what comes goes straight back."""
        core = self.before()
        if core.withdraw(waiter.number):
            del self.clients[waiter.number]
            self.carry_out("withdraw", {"client": waiter.number})
            self.mesh.flush()

    def give_back(self, number: int) -> None:
        self.leave(number)
        self.mesh.flush()

    def leave(self, number: int) -> None:
        del self.clients[number]
        core = self.before()
        core.release(number)
        self.carry_out("leave", {"client": number})
        if self.serving is not None and self.serving.number == number:
            self.serving = None
            self.next_in_line()

    def next_in_line(self) -> None:
        while self.line and self.serving is None:
            waiter = heappop(self.line)[2]
            if waiter.abandoned:
                del self.clients[waiter.number]
            else:
                self.serving = waiter
                self.hand_in(waiter)

    def before(self) -> Node | Leases:
        core = self.core
        assert core is not None
        if self.choosing:
            core.choose(random.randrange(core.choices()))
        return core

    def carry_out(self, event: str, cause: dict[str, Any]) -> None:
        """Do what the handler asked for, in order; an effect that fails does not stop the rest."""
        effects = self.out[:]
        self.out.clear()
        failure: Exception | None = None
        for effect in effects:
            try:
                if isinstance(effect, Message):
                    self.carry(effect)
                elif isinstance(effect, Enter):
                    self.enters(effect)
            except Exception as error:
                failure = failure or error
        if self.recording is not None and isinstance(self.core, Node):
            self.recording.step(event, self.core, cause, effects)
        elif self.recording is not None and self.leases is not None:
            self.leases.record(self.recording, event, cause, effects)
        while self.returning:
            self.leave(self.returning.pop())
        if failure is not None:
            raise failure

    def enters(self, enter: Enter) -> None:
        waiter = self.clients[enter.client]
        self.measures.enters(waiter.priority, monotonic() - waiter.asked)
        if waiter.abandoned:
            self.returning.append(enter.client)
            return
        grant = Grant(self, enter.client, waiter.want, waiter.priority, enter.fence)
        waiter.grant = grant
        if waiter.future is not None and not waiter.future.done():
            waiter.future.set_result(grant)

    async def change_members(
        self, *, add: str | None = None, remove: str | None = None, timeout: float | None = None
    ) -> list[str]:
        """Make another node a member, or a member none; the result are the members then.

        One at a time, by a majority of the members before and after. Call it on a member.
        """
        if self.leases is None:
            raise Refused(f"The pool {self.name} has no members: only pools with leases have.")
        if (add is None) == (remove is None):
            raise Refused("Members come and go one at a time: say one to add or one to remove.")
        name = limits.name(add if remove is None else remove, "node")
        async with asyncio.timeout(limits.timeout(timeout)):
            return await self.leases.change(name, add is not None)

    def take_away(self, number: int) -> None:
        """The lease of this grant ran out: the client must have stopped by now."""
        waiter = self.clients.pop(number)
        if self.recording is not None and self.leases is not None:
            self.recording.leased("lease-lost", self.leases.me, client=number)
        if waiter.grant is not None:
            self.measures.lost += 1
            waiter.grant.taken_away()

    def pull(self) -> None:
        """Have the token come here, for a neighbour that wants to be rid of it."""
        waiter = self.new_waiter(1, int(limits.PRIORITY.least))
        waiter.abandoned = True
        self.ask(waiter)

    # -- the algorithm and the links ---------------------------------------------------

    def carry(self, message: Message) -> None:
        kind = message.kind
        self.measures.sends(kind)
        fields = tuple([getattr(message, name) for name in message.fields])
        if self.routes is not None:
            self.serial += 1
            message.serial = self.serial
            args = (message.sender, message.receiver, message.serial, *fields)
            self.forward(message.receiver, kind, args)
            return
        custody = message.tokens() > 0 or message.permits() > 0
        peer = self.names[message.receiver]
        if custody or peer in self.near:
            self.mesh.send(peer, self.name, kind, fields, custody, message.urgent)
            if self.recording is not None:
                message.serial = self.mesh.sessions[peer].last(custody)

    def forward(self, target: int, kind: str, args: tuple[Any, ...]) -> None:
        """One step towards a member of a fixed network, which may not be our neighbour."""
        assert self.routes is not None and self.core is not None
        step = target
        if not self.routes.linked(self.core.me, target):
            step = self.routes.search(target)[0][self.core.me]
        self.mesh.send(self.names[step], self.name, kind, args, custody=True)

    def receive(self, peer: str, frame: Carry, serial: int) -> None:
        kind = self.kinds.get(frame.kind)
        if kind is not None:
            self.deliver(peer, frame, kind, serial)
        elif frame.kind == CHARTER:
            self.hear_charter(peer, frame.args)
        elif self.leases is not None:
            if peer in self.near:  # who has another idea of the pool is not listened to
                self.leases.hear(peer, frame)
            self.carry_out("deliver", NOTHING)
        elif self.core is None:
            if len(self.stash) >= MOST_STASHED:
                raise BadFrame(f"too many messages of {self.name[:64]!r} before its charter")
            self.stash.append((peer, frame, serial))
        elif frame.kind == PULL:
            self.pull()
        else:
            raise BadFrame(f"a message {frame.kind[:64]!r}, which its algorithm does not have")

    def deliver(self, peer: str, frame: Carry, kind: Shape, serial: int) -> None:
        core = self.before()
        assert not isinstance(core, Leases)
        args: Sequence[Any] = frame.args
        if self.routes is not None:
            if list(map(type, args[:3])) != [int, int, int] or not (
                args[0] in self.names and args[1] in self.names and 0 <= args[2] <= LAST_SERIAL
            ):
                raise BadFrame(f"a {frame.kind} from nobody or to nobody")
            if args[1] != core.me:
                self.forward(args[1], frame.kind, tuple(args))
                return
            sender, serial, args = args[0], args[2], args[3:]
        else:
            sender = self.numbers.get(peer) or self.number(peer)
        message = kind.message(core.me, args)
        message.sender, message.serial = sender, serial
        self.measures.received += 1
        core.receive(message)
        self.carry_out("deliver", self.recording.delivery(message) if self.recording else NOTHING)

    # -- peers in and out --------------------------------------------------------------

    def adopt(self, charter: Charter, founding: bool = False) -> None:
        """The pool is this; take part in it."""
        algorithm = find(charter.algorithm, members=charter.lease > 0)
        if charter.lease:
            self.core = self.leases = Leases(self, charter, self.state)
        else:
            core = born(charter, self.me, founding, self.out)
            self.kinds = shapes(algorithm)
            self.core = core
            self.names = dict(enumerate(charter.members))
            self.routes = Graph(len(charter.members), charter.links) if charter.members else None
        self.algorithm = algorithm
        self.charter = charter
        self.founding = founding
        self.choosing = self.core.choices() > 1
        self.numbers.clear()
        if self.recording is not None and isinstance(self.core, Node):
            self.recording.begin(charter, self.algorithm, self.core)
        elif self.recording is not None and self.leases is not None:
            members = [charter.number(name) for name in charter.members]
            self.recording.begin_leased(charter, self.algorithm, self.leases.me, members)
        if self.algorithm.restless:
            self.core.start()
            self.carry_out("start", {})
        self.ready.set()
        for peer in self.mesh.linked:
            self.tell(peer)
        stash, self.stash = self.stash, []
        for peer, frame, serial in stash:
            try:
                self.receive(peer, frame, serial)
            except BadFrame as error:  # of whoever sent it, not of whoever told us the charter
                self.mesh.accuse(peer, error)
        self.mesh.flush()

    def number(self, peer: str) -> int:
        number = self.numbers.get(peer)
        if number is None:
            assert self.charter is not None
            number = self.numbers[peer] = self.charter.number(peer)
            self.names[number] = peer
        return number

    def tell(self, peer: str) -> None:
        """Our charter, and whether permits were ever granted under it as far as we know."""
        assert self.charter is not None
        self.told.add(peer)
        args = (msgspec.to_builtins(self.charter), not self.unused())
        self.mesh.send(peer, self.name, CHARTER, args)

    def unused(self) -> bool:
        """We founded the pool, and nobody has had anything of it yet."""
        return self.founding and not self.near and not self.clients and self.measures.entries == 0

    def up(self, peer: str) -> None:
        if self.charter is not None:
            self.tell(peer)

    def down(self, peer: str) -> None:
        self.told.discard(peer)
        if peer in self.near:
            self.near.discard(peer)
            number = self.number(peer)
            self.before().link_down(number)
            self.carry_out("link-down", {"peer": number})

    def map_changed(self) -> None:
        """The mesh is another one; algorithms that know only neighbours do not care."""
        if self.leases is not None:
            self.leases.map_changed()

    def hear_charter(self, peer: str, args: tuple[Any, ...]) -> None:
        try:
            charter = msgspec.convert(args[0], Charter)
            used = bool(args[1])
            refuse_incredible(charter, self.name)
            charter.number(peer)
            if self.charter is None:
                self.adopt(charter)
        except (IndexError, msgspec.ValidationError, Refused) as error:
            raise BadFrame(f"a charter that cannot be: {error}") from None
        assert self.charter is not None
        if charter.stamp != self.charter.stamp:
            self.two_foundings(peer, charter, used)
            return
        if peer not in self.told:
            self.tell(peer)
        if peer not in self.near:
            self.conflict = ""
            self.near.add(peer)
            number = self.number(peer)
            self.before().link_up(number)
            self.carry_out("link-up", {"peer": number})

    def two_foundings(self, peer: str, charter: Charter, used: bool) -> None:
        """Two tokens must never meet; a founding that nobody has used yet gives way."""
        assert self.charter is not None
        if self.leases is not None or charter.lease:
            self.conflict = (
                f"{peer} has another idea of the pool {self.name} ({terms(charter)}) than we have "
                f"({terms(self.charter)}): say the same permits, lease and members everywhere."
            )
            tell(ERROR, "two ideas of a pool", pool=self.name, peer=peer)
            return
        unused = self.unused()
        if unused and (used or self.charter.stamp > charter.stamp):
            tell(INFO, "founding withdrawn", pool=self.name, founder=charter.founder)
            self.told.clear()
            self.adopt(charter)
            self.hear_charter(peer, (msgspec.to_builtins(charter), used))
            return
        if not unused:
            self.tell(peer)
            if used:
                self.conflict = (
                    f"Pool {self.name} was founded twice, by {self.charter.founder} and by "
                    f"{charter.founder}: close all nodes of one and let them join the other."
                )
                tell(ERROR, "two foundings", pool=self.name, peer=peer)

    def describe(self) -> dict[str, Any]:
        charter, core = self.charter, self.core
        if charter is None or core is None:
            return {"known": False, "why": "no neighbour has told us of it yet"}
        waiting = [waiter for waiter in self.clients.values() if waiter.grant is None]
        now = monotonic()
        return {
            "known": True,
            "algorithm": charter.algorithm,
            "permits": charter.permits,
            "founder": charter.founder,
            "neighbours": sorted(self.near),
            "token_here": core.tokens() > 0,
            "free_here": core.free_permits(),
            "holding": [
                {
                    "want": w.want,
                    "priority": w.priority,
                    "fence": w.grant.fence,
                    "lease": w.grant.lease,
                }
                for w in self.clients.values()
                if w.grant is not None
            ],
            "waiting": [
                {"want": w.want, "priority": w.priority, "seconds": round(now - w.asked, 3)}
                for w in waiting
                if not w.abandoned
            ],
            "entries": self.measures.entries,
            "sent": dict(self.measures.sent),
            "received": self.measures.received,
            "conflict": self.conflict,
            **(self.leases.describe() if self.leases is not None else {}),
        }

    # -- the end -----------------------------------------------------------------------

    def close(self) -> None:
        """Give back what clients of this node hold; whoever waits is told.

        Under a lease nothing is given back: a client hears that its grant is lost when it can,
        and may use it until the lease it knows of ends. The others wait for that."""
        self.closed = True
        for waiter in list(self.clients.values()):
            if waiter.grant is not None:
                waiter.grant.taken_away()
                if self.leases is None:
                    self.leave(waiter.number)
            else:
                waiter.abandoned = True
                if waiter.future is not None and not waiter.future.done():
                    waiter.future.set_exception(Refused(f"The node of {self.name} was closed."))
        self.mesh.flush()


def terms(charter: Charter) -> str:
    if charter.lease:
        return f"{charter.permits} permits under leases of {charter.lease / 1e6:g} s"
    return f"{charter.permits} permits without leases, founded by {charter.founder}"
