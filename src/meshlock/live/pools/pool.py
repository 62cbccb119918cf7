"""A pool on this node: what users ask of it, how it begins, changes and ends.

The way of a message, from a link to the algorithm and back, is in :mod:`.adapter`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from logging import ERROR, WARNING
from time import monotonic
from typing import Any

from meshlock.algorithms.actor import choices_of
from meshlock.algorithms.registry import find, refuse_impossible
from meshlock.algorithms.steps import step
from meshlock.errors import NodeClosed, NoSuchPool, NotInTime, Refused
from meshlock.live.links.frames import BadFrame, Carry, Content, RoutedFrame
from meshlock.live.links.mesh import Mesh
from meshlock.live.machine import clock, labels, limits
from meshlock.live.machine.logs import log_event
from meshlock.live.pools.adapter import Adapter, shapes
from meshlock.live.pools.birth import BIRTH, Birth
from meshlock.live.pools.change_requests import CHANGE, CHANGED, ChangeRequests
from meshlock.live.pools.grants import Acquire, Grant, Source, Waiter
from meshlock.live.pools.holder_query import LOOK, PATIENCE, SEEN, WITHIN, HolderQuery
from meshlock.live.pools.members import Members
from meshlock.live.pools.peers import CONFIGURATION, Peers
from meshlock.live.pools.picture import ahead, picture
from meshlock.live.pools.pool_configuration import (
    PoolConfiguration,
    made,
    refuse_too_many,
    reset,
)
from meshlock.live.pools.promises import Promises
from meshlock.live.pools.recording import Recording
from meshlock.live.pools.status import Picture
from meshlock.live.pools.urgency import Rises, urgency
from meshlock.live.pools.views import View, Views

PULL = "pull"
"""Between adapters: have the token come to you, its holder wants to leave."""

LEAVING = "leaving"
"""Between adapters: whatever you have to hand over, do not give it to me."""

MOST_WAITING = 100_000
MOST_LISTED = 1000
"""Of those that wait, the first, in a status; all are counted."""

BREATH = 16
"""So many permits are had at once, then the loop gets a turn: a client that asks again and
again without waiting for anything else would receive nothing and starve all other nodes."""

LOST_AFTER = 10.0
"""Seconds after which a token that nobody has seen is said to be lost; without leases only."""

SILENT = "the holder of the token does not answer"

PICTURED_FOR = 0.1
"""Seconds in which one picture of the mesh is enough."""

FAREWELL = 3.0
"""Seconds that a pool takes to hand over what others need when its node leaves."""


class LocalPool(Adapter, Source):
    """What a node has of a pool; users see it as :class:`.grants.Pool`."""

    def __init__(
        self,
        name: str,
        me: str,
        mesh: Mesh,
        views: Views,
        recording: Recording | None,
        promises: Promises | None = None,
        willing: bool = True,
    ) -> None:
        super().__init__(self, name, me, mesh, recording)
        self.views = views
        self.promises = promises
        self.willing = willing  # to be a member
        self.label = labels.default()  # of requests without one of their own
        self.asked_permits: int | None = None  # what our own user thinks k is
        self.founding = False
        self.ready = asyncio.Event()
        # why there is no pool of this name, where that can be told
        self.unknown: Callable[[str], NoSuchPool | None] = lambda name: None
        # for how many seconds nobody within reach has had the token, where that can be told
        self.everywhere: Callable[[LocalPool], float | None] = lambda pool: None
        self.unseen = 0.0
        self.since = 0.0  # when the pool became known here
        self.watching: asyncio.TimerHandle | None = None  # the token of a pool without leases
        self.peers = Peers(self)
        self.birth = Birth(self)
        self.holder_query = HolderQuery(self)
        self.change_requests = ChangeRequests(self)
        self.rises = Rises(self)
        self.pictured: asyncio.Future[dict[str, View]]
        self.pictured_at = -PICTURED_FOR
        self.pulling = 0  # of our clients: who has the token come for nobody
        self.closed = False

    # -- for clients -------------------------------------------------------------------

    @property
    def permits(self) -> int | None:
        """k, once the pool is known here; it may change where there are leases."""
        if self.members is not None:
            return self.members.node.member.config.permits
        return self.configuration.permits if self.configuration else None

    @property
    def conflict(self) -> str:
        """A neighbour has a conflicting configuration of this pool, or our user has: what to do
        about it."""
        conflicts = self.peers.conflicts
        return next(iter(conflicts.values())) if conflicts else self.disagreement

    @property
    def disagreement(self) -> str:
        """Our user thinks of another number of permits, and it is not that somebody changed it."""
        asked, configuration = self.asked_permits, self.configuration
        if asked is None or configuration is None or configuration.replaces:
            return ""
        made = configuration.permits
        if asked == made or self.permits != made or not self.knows_permits():
            return ""
        return (
            f"Pool {self.name} has {made} permits, not {asked}: its founder "
            f"{configuration.founder} decided. Use {made}, or leave permits out."
        )

    async def served(self, request: Acquire) -> Grant:
        """Wait for its permits."""
        want, label = request.want, request.label
        timeout = None if request.timeout is None else limits.timeout(request.timeout)
        self.refuse_impossible(want, request.priority)
        name = self.label if label is None else labels.fitting(limits.label(label))
        if timeout == 0:
            return await self.try_for(request, name)
        waiter: Waiter | None = None
        try:
            if self.ready.is_set():
                if self.heard and self.token_rests_here():
                    self.heard = False
                    await asyncio.sleep(0)
                waiter = request.waiter = self.new_waiter(request, name)
                grant = self.ask(waiter)
                if grant is not None:
                    if waiter.number % BREATH == 0:
                        await asyncio.sleep(0)
                    return grant
                if timeout is None:
                    if waiter.deadline is not None:
                        self.rises.add(waiter)
                    return await self.granted(waiter)
            async with asyncio.timeout(timeout):
                if waiter is None:
                    await self.introduced()
                    self.refuse_impossible(want, request.priority)  # now that that is known
                    waiter = request.waiter = self.new_waiter(request, name)
                    self.ask(waiter)
                self.rises.add(waiter)
                return await self.granted(waiter)
        except BaseException as error:
            if waiter is not None:
                self.abandon(waiter)
            if isinstance(error, TimeoutError) and timeout is not None:
                raise NotInTime(await self.why(want, waiter, timeout)) from None
            raise

    def token_rests_here(self) -> bool:
        """Then a client that asks without end would be served before requests that came first, and
        that nobody has read: one turn of the loop reads what is there. The only permit of a pool
        takes the token along."""
        return self.permits != 1 and self.core is not None and self.core.tokens() > 0

    def granted(self, waiter: Waiter) -> asyncio.Future[Grant]:
        """Done when the request is granted."""
        future = waiter.future = self.mesh.loop.create_future()
        if waiter.grant is not None:
            future.set_result(waiter.grant)
        return future

    def at_once(self, request: Acquire) -> Grant | None:
        """What can be granted here without a message."""
        want, label = request.want, request.label
        self.refuse_impossible(want, request.priority)
        core = self.core
        if core is None or not self.ready.is_set() or self.serving is not None:
            return None
        self.before()
        if not core.tokens() or core.free_permits() < want:
            return None
        name = self.label if label is None else labels.fitting(limits.label(label))
        waiter = self.new_waiter(request, name)
        grant = self.ask(waiter)
        if grant is None:
            waiter.deadline = None  # it is asked for again, and judged then
            self.abandon(waiter)
        return grant

    async def try_for(self, request: Acquire, label: str) -> Grant:
        """Whoever has the token says whether the permits can be had; if so they are asked for,
        and it is asked again until they are here, or somebody else was faster."""
        if not self.ready.is_set():
            unknown = self.unknown(self.name)
            if unknown is not None:
                raise unknown
            if self.birth.wanted is not None:
                raise NotInTime(f"No permits of {self.name} at once: {self.birth.why()}.")
            cut_off = self.birth.cut_off()
            raise NotInTime(f"No node has announced a pool '{self.name}' yet{cut_off}.")
        waiter: Waiter | None = None
        want, end = request.want, self.mesh.loop.time() + WITHIN
        try:
            while True:
                counts = urgency(request.priority, request.deadline, self.step)
                refusal = await self.refusal(want, counts)
                if waiter is not None and self.mesh.loop.time() > end:
                    refusal = refusal or "other requests were first"
                if refusal:
                    raise NotInTime(f"No permits of {self.name} at once: {refusal}.")
                if waiter is None:
                    waiter = self.new_waiter(request, label)
                    self.ask(waiter)
                if waiter.grant is None:
                    await asyncio.wait([self.granted(waiter)], timeout=PATIENCE)
                if waiter.grant is not None:
                    return waiter.grant
        except BaseException:
            if waiter is not None:
                self.abandon(waiter)
            raise

    def unseen_here(self) -> float:
        """Seconds since the token was here last, or since the pool is known here."""
        if self.core is None or self.core.tokens() > 0:
            return 0.0
        return monotonic() - max(self.measures.token_seen or 0.0, self.since)

    def watch_token(self) -> None:
        """Without leases nobody replaces a token that is lost: at least it is told."""
        self.watching = self.mesh.failures.later(LOST_AFTER / 5, "pool", self.watch_token)
        self.unseen = 0.0
        if self.unseen_here() > LOST_AFTER / 2:
            self.unseen = self.everywhere(self) or 0.0

    def lost(self) -> str:
        """That the token is lost, as far as can be told; else nothing."""
        if self.unseen < LOST_AFTER:
            return ""
        return (
            f"The token of {self.name} was not seen for {self.unseen:.0f} s: the node "
            "that had it crashed or is unreachable. If it does not return, reset the "
            "pool."
        )

    async def introduced(self) -> None:
        """Until somebody has told us what the pool is; raises if nobody can."""
        while not self.ready.is_set():
            unknown = self.unknown(self.name)
            if unknown is not None:
                raise unknown
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.mesh.heartbeat):
                    await self.ready.wait()

    async def refusal(self, want: int, counts: int) -> str:
        """Why so many permits cannot be had at once, as far as is known; else the empty text."""
        algorithm = self.algorithm
        if algorithm is None or not algorithm.serves.token or algorithm.serves.restless:
            return ""  # there is no place where one could ask
        seen = self.holder_query.here()
        refuses = self.members.disk.refuses() if self.members is not None else ""
        if refuses or not seen.here:
            obstacle = refuses or self.obstacle()
            if obstacle:
                return obstacle
            found = await self.holder_query.find()
            if found is None:
                return self.obstacle() or SILENT
            seen = found
        return seen.refuses(want, counts)

    def obstacle(self) -> str:
        """What keeps everybody here from being served; the empty text if nothing is known."""
        if self.members is None:
            return self.lost().rstrip(".")
        return self.members.obstacle()

    async def why(self, want: int, waiter: Waiter | None, timeout: float) -> str:
        """In a sentence, why a request was not served in time."""
        waited = f"No permits of {self.name} within {timeout:g} s"
        if waiter is None and self.birth.wanted is not None:
            return f"{waited}: {self.birth.why()}."
        if waiter is None:
            cut_off = self.birth.cut_off()
            return f"No node announced a pool '{self.name}' within {timeout:g} s{cut_off}."
        obstacle = self.obstacle()
        if obstacle:
            return f"{waited}: {obstacle}."
        found = await self.picture()
        if found["free"] is None:
            return f"{waited}: {SILENT}."
        others = ahead(found, waiter.priority, seconds_left(waiter), monotonic() - waiter.asked)
        return f"{waited}: {found['free']} free, {want} wanted{others}."

    async def picture(self) -> Picture:
        """Who holds the permits of this pool and who waits for them, in the whole mesh."""
        now = self.mesh.time()
        if now - self.pictured_at > PICTURED_FOR:
            self.pictured_at = now
            self.pictured = asyncio.ensure_future(self.views.collect(self.name))
        return self.composed(await asyncio.shield(self.pictured))

    def composed(self, views: Mapping[str, View]) -> Picture:
        """The picture that these give, and why not where they do not."""
        found = picture(views)
        if found["held"] is None:
            found["why"] = self.obstacle() or SILENT
        return found

    def refuse_impossible(self, want: int, priority: int) -> None:
        if self.closed:
            raise NodeClosed(f"The node of pool {self.name} is closed.")
        if want != 1 or type(want) is not int:
            limits.want(want)
        if priority != 0 or type(priority) is not int:
            limits.priority(priority)
        configuration = self.configuration
        if configuration is None:
            return
        if self.peers.conflicts and not self.goes_on():
            raise Refused(self.conflict)
        if self.disagreement:
            raise Refused(self.disagreement)
        if want > 1:
            self.refuse_more(want)
            if self.algorithm is not None and self.algorithm.problem != "h-of-k":
                raise Refused(f"{self.algorithm.name} grants one permit at a time: use want 1.")

    def goes_on(self) -> bool:
        """Whatever others say of another pool of this name: a quorum of several does, or one of
        more members than that pool has."""
        members = self.members
        if members is None or self.configuration is None:
            return False
        several = len(members.node.member.members) > 1
        if self.configuration.by_name or (several and members.has_quorum(self.peers.conflicts)):
            return True
        rivals = self.peers.rivals
        return rivals.keys() == self.peers.conflicts.keys() and all(
            self.peers.is_weaker(rival) for rival in rivals.values()
        )

    def knows_permits(self) -> bool:
        return self.members is None or self.members.knows_permits()

    def refuse_more(self, want: int) -> None:
        k = self.permits
        if k is not None and want > k and self.knows_permits():
            raise Refused(self.too_many(want))

    def too_many(self, want: int) -> str:
        k = self.permits
        return f"Cannot grant {want} permits: pool {self.name} has {k}. Use want {k} or less."

    def resized(self) -> None:
        """There may be other permits than before: who waits for more than that waits in vain."""
        why, k = self.disagreement, self.permits or 0
        for waiter in list(self.clients.values()):
            if (why or waiter.want > k) and waiter.grant is None and not waiter.abandoned:
                self.fail(waiter, Refused(why or self.too_many(waiter.want)))

    async def perform(self, what: str, **asked: Any) -> Any:
        if what == "who":
            return await self.picture()
        if what == "permits":
            return {"permits": await self.resize(**asked)}
        if what == "members":
            return {"members": await self.change_members(**asked)}
        assert what == "reset"
        return {"permits": await self.reset()}

    async def resize(
        self, permits: int | list[str] | tuple[str, ...], timeout: float | None
    ) -> int:
        permits, names = limits.named_permits(permits)
        await self.introduced()
        if self.members is None or self.algorithm is None:
            raise Refused(f"The permits of {self.name} cannot be changed: the pool has no leases.")
        self.refuse_names(permits, names, self.members.slot_names())
        refuse_too_many(self.name, permits)
        refuse_impossible(
            self.algorithm, permits=permits, want=1, complete=True, fifo=True, changing=False
        )
        async with asyncio.timeout(limits.timeout(timeout)):
            await self.change_requests.have_permits(permits, names)
        return permits

    def refuse_names(self, permits: int, names: tuple[str, ...], known: tuple[str, ...]) -> None:
        """``known``: all names that permits of this pool have or had."""
        if names and not known:
            raise Refused(
                f"The permits of {self.name} have no names: give a number, or make "
                "another pool whose permits have names."
            )
        if known and not names and permits > len(known):
            raise Refused(
                f"Pool {self.name} has {len(known)} named permits, {known[0]} to "
                f"{known[-1]}: give all {permits} names."
            )
        if len({*known, *names}) > limits.MOST_NAMED:
            raise Refused(
                f"Pool {self.name} has had {len(known)} names, and {limits.MOST_NAMED} is "
                "the limit: reuse some of them, or make another pool."
            )

    async def change_members(
        self, add: str | None, remove: str | None, timeout: float | None
    ) -> list[str]:
        await self.introduced()
        if self.members is None:
            raise Refused(f"The pool {self.name} has no members: it was made without leases.")
        if (add is None) == (remove is None):
            raise Refused("Members change one at a time: give one to add or one to remove.")
        name = limits.name(add if remove is None else remove, "node")
        async with asyncio.timeout(limits.timeout(timeout)):
            return await self.change_requests.have_member(name, add is not None)

    # -- requests ----------------------------------------------------------------------

    def new_waiter(self, request: Acquire, label: str) -> Waiter:
        if len(self.clients) >= MOST_WAITING:
            raise Refused(
                f"{MOST_WAITING:,} requests of this node wait for {self.name} already: "
                "try again later."
            )
        want, priority = int(request.want), int(request.priority)  # of whatever class they were
        return self.numbered(Waiter(0, want, priority, monotonic(), label, request.due))

    def change_priority(self, request: Acquire, priority: int) -> None:
        """Of a request, which may wait already; whoever has its permits has no more use for it."""
        self.change_now(request, limits.priority(priority), request.due)

    async def change(self, request: Acquire, priority: int | None, deadline: float | None) -> bool:
        """Its priority, its deadline, or both: was it done?"""
        return self.change_now(
            request,
            request.priority if priority is None else limits.priority(priority),
            request.due if deadline is None else deadline,
        )

    def change_now(self, request: Acquire, priority: int, deadline: float | None) -> bool:
        waiter = request.waiter
        if waiter is not None and (waiter.grant is not None or waiter.abandoned):
            return False
        if waiter is not None:
            before = waiter.priority, waiter.deadline
            waiter.priority, waiter.deadline = priority, deadline
            if not self.rerank(waiter):
                waiter.priority, waiter.deadline = before
                raise Refused(self.unchangeable(before[0]))
            if deadline != before[1]:
                self.rises.add(waiter)
        request.set_urgency(priority, deadline)
        return True

    def unchangeable(self, priority: int) -> str:
        name = self.algorithm.name if self.algorithm is not None else "its algorithm"
        return (
            f"The request keeps priority {priority}: {name} cannot change a request that it has "
            "sent. Withdraw it and request again."
        )

    def rerank(self, waiter: Waiter) -> bool:
        """A request that waits counts for what it is now; False if the algorithm cannot do that."""
        counts, number = self.urgency(waiter), waiter.number
        before, waiter.urgency = waiter.urgency, counts
        if counts == before or self.queue.change(number, counts):
            return True
        if not self.many_clients or not self.before().change_priority(number, waiter.want, counts):
            waiter.urgency = before
            return False
        self.carry_out("priority", {"client": number, **self.recorded(waiter)})
        self.mesh.flush()
        return True

    def pull(self) -> None:
        """Have the token come here, on behalf of nobody: its holder wants to leave."""
        if self.pulling in self.clients:
            return
        least = Acquire(self, 1, int(limits.PRIORITY.least), None, None)
        waiter = self.new_waiter(least, "its node is leaving")
        waiter.abandoned = True
        self.pulling = waiter.number
        self.ask(waiter)

    # -- the pool and the links --------------------------------------------------------

    def adopt(
        self,
        configuration: PoolConfiguration,
        founding: bool = False,
        opened: bool = True,
        floor: int = 0,
    ) -> None:
        """The pool is this; take part in it. Requests wait until it is opened. ``floor``: the
        highest epoch known of the pool in whose place it is made."""
        algorithm = find(configuration.algorithm)
        before, withdrawn = self.configuration, self.members
        self.configuration = configuration
        try:
            self.forget()
            if configuration.lease:
                if withdrawn is not None and self.promises is not None:
                    self.promises.forget(self.name)
                self.members = Members(
                    self, configuration, algorithm, self.promises, founding, floor
                )
                self.core = self.members.node
            else:
                self.members = None
                self.core = made(configuration, self.me, founding, self.out)
                for name in configuration.members:
                    self.meet(name)
        except Refused:
            self.configuration, self.members = before, withdrawn
            raise
        if withdrawn is not None:
            withdrawn.close()
        self.algorithm = algorithm
        self.step = self.queue.unit = step(configuration.options)
        self.identity = configuration.identity
        self.founding = founding
        self.shapes = shapes(algorithm, self.members is not None)
        self.reliable = not algorithm.assumes.changing_links
        self.many_clients = algorithm.serves.many_clients or self.members is not None
        self.chooses = choices_of(self.core) > 1
        if self.recording is not None:
            self.recording.begin(self, configuration, algorithm, self.core)
        if algorithm.serves.restless:
            self.core.start()
            self.carry_out("start", {})
        elif self.members is not None:
            self.carry_out("timer", {})
        if opened:
            self.ready.set()
        self.since = monotonic()
        if self.watching is None and algorithm.serves.token and not configuration.lease:
            self.watch_token()
        self.peers.begin()
        if before is not None:
            self.ask_anew()
        self.mesh.flush()

    def is_empty(self) -> bool:
        """Is nothing known of it but its name?"""
        early = self.peers.custody() or self.birth.matters()
        return self.configuration is None and not early

    def ask_anew(self) -> None:
        """The pool in which they waited was withdrawn; who holds anything of it has lost it."""
        waiting, self.clients = self.clients, {}
        for number, waiter in waiting.items():
            if waiter.grant is not None:
                waiter.grant.revoke()
            elif not waiter.abandoned:
                self.clients[number] = waiter
                self.submit(waiter)

    def remember(self, replaced: int | None = None) -> bool:
        """Take part again in the pool that an earlier life of this node was in; or only if that
        is in place of this one. False if there is no such memory."""
        found = self.promises.read(self.name) if self.promises is not None else None
        if found is None or (replaced is not None and replaced not in found.pool.replaces):
            return False
        self.peers.told_used = True
        self.adopt(found.pool)
        return True

    async def reset(self) -> int:
        await self.introduced()
        before, members = self.configuration, self.members
        assert before is not None and self.permits is not None
        names = members.named() if members is not None else ()
        configuration = reset(before, self.me, self.permits, names)
        floor = 0
        if members is not None:
            members.refuse_if_quorum()
            floor = max(
                1, members.node.member.promised.counter, members.node.member.highest.counter
            )
        elif self.core is not None and self.core.tokens() > 0:
            raise Refused(
                f"Cannot reset {self.name}: its token is at this node, so nothing is lost."
            )
        log_event(WARNING, "pool reset", pool=self.name, node=self.me, replaces=before.identity)
        self.asked_permits = None
        self.peers.reset()
        self.adopt(configuration, founding=True, floor=floor)
        return configuration.permits

    async def join(self, peer: str) -> int:
        """Give up our pool for another one of its name, in which that neighbour is; the result is
        how many permits that has. Who holds anything of ours has lost it."""
        await self.introduced()
        self.asked_permits = None
        self.peers.join(peer)
        return self.permits or 0

    def link_up(self, peer: str) -> None:
        number = self.meet(peer)
        self.before().link_up(number)
        self.carry_out("link-up", {"peer": number})

    def link_down(self, peer: str) -> None:
        number = self.meet(peer)
        self.before().link_down(number)
        self.carry_out("link-down", {"peer": number})

    def map_changed(self) -> None:
        """The mesh is another one; algorithms that know only neighbours do not care."""
        if self.members is not None:
            self.members.map_changed()

    def receive_control(self, sender: str, frame: Carry | RoutedFrame) -> None:
        ours = frame.identity == self.identity
        if frame.kind == CONFIGURATION and isinstance(frame, Carry):
            self.peers.receive(sender, frame.payload)
        elif frame.kind == BIRTH and isinstance(frame, Carry):
            self.birth.receive(sender, frame.payload)
        elif self.core is None:
            self.peers.wait(sender, frame)
        elif frame.kind == PULL:
            if ours:
                self.pull()
        elif frame.kind == LEAVING:
            self.peers.leaving |= {sender} & self.peers.near
        elif frame.kind in (LOOK, SEEN):
            if ours:
                self.holder_query.receive(sender, frame.kind, frame.payload)
        elif frame.kind in (CHANGE, CHANGED):
            if ours:
                self.change_requests.receive(sender, frame.kind, frame.payload)
        else:
            raise BadFrame(f"an unknown message {frame.kind[:64]!r}")

    def describe(self) -> dict[str, Any]:
        configuration, core = self.configuration, self.core
        if configuration is None or core is None:
            return {"known": False, "why": self.birth.why()}
        self.settle()
        recovery = self.members.describe() if self.members is not None else {}
        clients = self.clients.values()
        waiting = [one for one in clients if one.grant is None and not one.abandoned]
        held = [(one, one.grant) for one in self.clients.values() if one.grant is not None]
        now = monotonic()
        return {
            "known": True,
            "algorithm": configuration.algorithm,
            "permits": self.permits,
            "slots": self.members.named() if self.members is not None else (),
            "founder": configuration.founder,
            "neighbours": sorted(self.peers.near),
            "token_here": core.tokens() > 0,
            "free_here": core.free_permits(),
            "holding": [
                {
                    "want": w.want,
                    "priority": w.priority,
                    "met": g.met,
                    "fence": g.fence,
                    "lease": g.lease,
                    "slots": g.slots,
                    "label": w.label,
                    "seconds": round(now - w.since, 3),
                    "client": w.number,
                }
                for w, g in held
            ],
            "waiting": [
                {
                    "want": w.want,
                    "priority": w.priority,
                    "deadline": seconds_left(w),
                    "seconds": round(now - w.asked, 3),
                    "label": w.label,
                    "client": w.number,
                }
                for w in waiting[:MOST_LISTED]
            ],
            "queued": len(waiting),
            "entries": self.measures.entries,
            "deadlines_met": self.measures.met,
            "deadlines_missed": self.measures.missed,
            "sent": dict(self.measures.sent),
            "received": self.measures.received,
            "conflict": self.conflict,
            "recovery": "no crash recovery",
            **(recovery or {"why": self.lost(), "unseen": round(self.unseen, 1)}),
        }

    # -- the end -----------------------------------------------------------------------

    def close(self) -> None:
        """Whoever waits is told; what clients hold is released.

        Under a lease that happens when the lease ends that the client knows of: it is told that
        its grant is lost, but may learn of it late, and use it until then."""
        self.closed = True
        self.peers.taken()
        self.end_all(NodeClosed(f"The node of {self.name} was closed."))

    def give_up(self) -> None:
        """Another pool of this name goes on: nothing of ours is renewed."""
        if not self.stopped:
            self.stopped = True
            self.end_all(Refused(self.conflict))

    def end_all(self, error: Refused) -> None:
        self.settle()
        # those who wait first, so that nobody is granted what would be lost at once
        for waiter in sorted(self.clients.values(), key=lambda waiter: waiter.grant is not None):
            if waiter.grant is None:
                if waiter.future is not None and not waiter.future.done():
                    waiter.future.set_exception(error)
                self.mesh.failures.run("request", self.abandon, waiter)
            else:
                left = waiter.grant.lease or 0.0
                waiter.grant.revoke()
                if self.members is None:
                    self.leave(waiter.number)
                else:
                    self.mesh.failures.later(left, "leases", self.expire, waiter.number)
        self.mesh.flush()

    def expire(self, number: int) -> None:
        if number in self.clients:
            self.release(number)

    def announce_leaving(self) -> None:
        for peer in self.peers.near:
            self.say(peer, LEAVING)

    def say(self, peer: str, word: str) -> None:
        self.mesh.send(peer, Content(self.name, self.identity, word, b""))
        self.mesh.flush()

    async def hand_over(self, heir: str | None) -> None:
        """Have somebody else take the token, and wait until nobody needs us any more, or until
        nobody is left: our heir has gone, or we are the heir of our heir."""
        core = self.core
        if core is None or heir is None or heir not in self.peers.near:
            return
        if self.reliable and self.members is None:
            return
        try:
            async with asyncio.timeout(FAREWELL):
                asked = 0
                while self.members.needed() if self.members is not None else core.tokens():
                    if core.tokens() and asked == 0:  # it may come once more, from one that leaves
                        self.say(heir, PULL)
                    if self.members is not None and asked % 10 == 0:
                        self.members.surrender()
                    asked = asked + 1 if core.tokens() else 0
                    if heir in self.peers.leaving or self.mesh.link_map.left(heir):
                        return
                    await asyncio.sleep(self.mesh.heartbeat / 10)
        except TimeoutError:
            if self.members is not None and not self.members.has_token():
                # what a client may use until its lease ends, or was for somebody who has died
                log_event(WARNING, "left with permits held", node=self.me, pool=self.name)
            else:
                log_event(
                    ERROR, "left without handing over the token", node=self.me, pool=self.name
                )

    def dissolve(self) -> None:
        """With the only node that was ever in it the pool is over."""
        members, promises = self.members, self.promises
        if members is None or promises is None or self.peers.shared or not self.founding:
            return
        if members.all_is_home():
            promises.forget(self.name)

    def stop(self) -> None:
        """Nothing more is done or written, whatever state we are in."""
        self.rises.close()
        if self.watching is not None:
            self.watching.cancel()
        if self.members is not None:
            self.members.close()
        if self.recording is not None:
            self.recording.close()


def seconds_left(waiter: Waiter) -> float | None:
    """Until its deadline, below 0 if it has passed; None without one."""
    return None if waiter.deadline is None else round(waiter.deadline - clock.seconds(), 3)
