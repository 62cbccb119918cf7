"""A pool on this node: what users ask of it.

The way of a message, from a link to the algorithm and back, is in :mod:`.adapter`; how a pool
begins and ends here is in :mod:`.participation`, how it is changed in :mod:`.change_requests`. No
message is made or read here.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any

from meshlock.algorithms.steps import urgency
from meshlock.errors import NodeClosed, NoSuchPool, NotInTime, Refused
from meshlock.live.links.mesh import Mesh
from meshlock.live.machine import labels, limits
from meshlock.live.pools.adapter import Adapter
from meshlock.live.pools.birth import Birth
from meshlock.live.pools.change_requests import ChangeRequests
from meshlock.live.pools.grants import Acquire, Grant, Source
from meshlock.live.pools.holder_query import PATIENCE, WITHIN, HolderQuery, Seen, TokenWatch
from meshlock.live.pools.participation import Participation
from meshlock.live.pools.peers import Peers
from meshlock.live.pools.promises import Promises
from meshlock.live.pools.recording import Recording
from meshlock.live.pools.status import Picture
from meshlock.live.pools.views import View, Views, ahead, picture, refusing_disks
from meshlock.live.pools.waiting import Waiter

MOST_WAITING = 100_000
MOST_LISTED = 1000  # of those that wait, the first, in a status; all are counted
BREATH = 16
"""After this number of grants in a row the loop gets a turn: a client that asks again and
again without waiting for anything else would receive nothing and starve all other nodes."""

SILENT = "the holder of the token does not answer"

PICTURED_FOR = 0.1  # seconds in which one picture of the mesh is enough


class LocalPool(Source):
    """What a node has of a pool; users see it as :class:`.grants.Pool`."""

    def __init__(
        self,
        name: str,
        mesh: Mesh,
        views: Views,
        recording: Recording | None,
        promises: Promises | None = None,
        willing: bool = True,
    ) -> None:
        self.name = name
        self.me = mesh.name
        self.mesh = mesh
        self.views = views
        self.promises = promises
        self.willing = willing  # to be a member
        self.label = labels.default()  # of requests without one of their own
        self.asked_permits: int | None = None  # what our own user thinks k is
        self.founding = False
        self.ready = asyncio.Event()
        # why there is no pool of this name, where that can be told
        self.unknown: Callable[[str], NoSuchPool | None] = lambda name: None
        self.adapter = Adapter(name, mesh, recording)
        self.participation = Participation(self)
        self.peers = Peers(self)
        self.adapter.receive_control = self.participation.receive_control
        self.adapter.resized = self.resized
        self.birth = Birth(self)
        self.token_watch = TokenWatch(self.adapter, views)
        self.holder_query = HolderQuery(self)
        self.change_requests = ChangeRequests(self)
        self.pictured: asyncio.Future[dict[str, View]]
        self.pictured_at = -PICTURED_FOR
        self.closed = False

    # -- for clients -------------------------------------------------------------------

    @property
    def permits(self) -> int | None:
        """k, once the pool is known here; it may change where there are leases."""
        adapter = self.adapter
        if adapter.members is not None:
            return adapter.members.member.config.permits
        return adapter.configuration.permits if adapter.configuration else None

    @property
    def conflict(self) -> str:
        """A neighbour has a conflicting configuration of this pool, or our user has: what to do
        about it."""
        return self.peers.in_words() or self.disagreement

    @property
    def disagreement(self) -> str:
        """Our user thinks of another number of permits, and it is not that somebody changed it."""
        asked, configuration = self.asked_permits, self.adapter.configuration
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
        adapter, timeout = self.adapter, request.timeout
        self.refuse_impossible(request.want, request.priority)
        label = self.label_of(request)
        if timeout == 0:
            return await self.try_for(request, label)
        waiter: Waiter | None = None
        try:
            if self.ready.is_set():
                if adapter.heard and self.token_rests_here():
                    adapter.heard = False
                    await asyncio.sleep(0)
                waiter = request.waiter = self.new_waiter(request, label)
                grant = adapter.ask(waiter)
                if grant is not None:
                    if waiter.number % BREATH == 0:
                        await asyncio.sleep(0)
                    return grant
                if timeout is None:
                    if waiter.deadline is not None:
                        adapter.rises.add(waiter)
                    return await self.granted(waiter)
            async with asyncio.timeout(timeout):
                if waiter is None:
                    await self.introduced()
                    self.refuse_impossible(request.want, request.priority)  # now that it is known
                    waiter = request.waiter = self.new_waiter(request, label)
                    adapter.ask(waiter)
                adapter.rises.add(waiter)
                return await self.granted(waiter)
        except BaseException as error:
            if waiter is not None:
                adapter.abandon(waiter)
            if isinstance(error, TimeoutError) and timeout is not None:
                raise NotInTime(await self.why(request.want, waiter, timeout)) from None
            raise

    def label_of(self, request: Acquire) -> str:
        return self.label if request.label is None else labels.fitting(limits.label(request.label))

    def token_rests_here(self) -> bool:
        """Then a client that asks without end would be served before requests that came first, and
        that nobody has read: one turn of the loop reads what is there. The only permit of a pool
        takes the token along."""
        return (
            self.permits != 1 and self.adapter.core is not None and self.adapter.core.tokens() > 0
        )

    def granted(self, waiter: Waiter) -> asyncio.Future[Grant]:
        """Done when the request is granted."""
        future = waiter.future = self.mesh.loop.create_future()
        if waiter.grant is not None:
            future.set_result(waiter.grant)
        return future

    def at_once(self, request: Acquire) -> Grant | None:
        """What can be granted here without a message."""
        adapter, core = self.adapter, self.adapter.core
        self.refuse_impossible(request.want, request.priority)
        busy = adapter.turns is not None and adapter.turns.served
        if core is None or not self.ready.is_set() or busy:
            return None
        adapter.before()
        if not core.tokens() or core.free_permits() < request.want:
            return None
        waiter = self.new_waiter(request, self.label_of(request))
        grant = adapter.ask(waiter)
        if grant is None:
            waiter.deadline = None  # it is asked for again, and judged then
            adapter.abandon(waiter)
        return grant

    async def try_for(self, request: Acquire, label: str) -> Grant:
        """The holder of the token says whether the permits can be had. If so they are asked for,
        and the holder is asked again until they are here or another request was faster."""
        adapter = self.adapter
        if not self.ready.is_set():
            self.refuse_unknown()
            raise NotInTime(f"No permits of {self.name} at once: {self.birth.why()}.")
        waiter: Waiter | None = None
        end = self.mesh.loop.time() + WITHIN
        try:
            while True:
                counts = urgency(request.priority, request.deadline, adapter.step)
                refusal = await self.refusal(request.want, counts)
                if waiter is not None and self.mesh.loop.time() > end:
                    refusal = refusal or "other requests were first"
                if refusal:
                    raise NotInTime(f"No permits of {self.name} at once: {refusal}.")
                if waiter is None:
                    waiter = self.new_waiter(request, label)
                    adapter.ask(waiter)
                if waiter.grant is None:
                    await asyncio.wait([self.granted(waiter)], timeout=PATIENCE)
                if waiter.grant is not None:
                    return waiter.grant
        except BaseException:
            if waiter is not None:
                adapter.abandon(waiter)
            raise

    async def introduced(self) -> None:
        """Until somebody has told us what the pool is; raises if nobody can."""
        while not self.ready.is_set():
            self.refuse_unknown()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.mesh.heartbeat):
                    await self.ready.wait()

    def refuse_unknown(self) -> None:
        if unknown := self.unknown(self.name):
            raise unknown

    async def refusal(self, want: int, counts: int) -> str:
        """Why ``want`` permits cannot be had at once, as far as known; else the empty text."""
        algorithm, members = self.adapter.algorithm, self.adapter.members
        if algorithm is None or not algorithm.serves.token or algorithm.serves.restless:
            return ""  # there is no place where one could ask
        seen: Seen | None = self.holder_query.here()
        refuses = members.disk.refuses() if members is not None else ""
        if refuses or (seen is not None and not seen.here):
            if obstacle := refuses or self.obstacle():
                return obstacle
            seen = await self.holder_query.find()
        return seen.refuses(want, counts) if seen is not None else self.obstacle() or SILENT

    def obstacle(self) -> str:
        """What keeps everybody here from being served; the empty text if nothing is known."""
        if self.adapter.members is None:
            return self.token_watch.lost().rstrip(".")
        return self.adapter.members.obstacle()

    async def why(self, want: int, waiter: Waiter | None, timeout: float) -> str:
        """In a sentence, why a request was not served in time."""
        waited = f"No permits of {self.name} within {timeout:g} s"
        if waiter is None:
            return f"{waited}: {self.birth.why()}."
        found = await self.picture()
        if obstacle := found["why"] or self.obstacle():
            return f"{waited}: {obstacle}."
        others = ahead(found, waiter.priority, waiter.left(), monotonic() - waiter.asked)
        if self.adapter.algorithm is not None and not self.adapter.algorithm.serves.token:
            return f"{waited}: {found['held'] or 0} of {found['permits']} held{others}."
        if found["free"] is None:
            return f"{waited}: {SILENT}."
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
        found["why"] = refusing_disks(views, self.me, found)
        if found["held"] is None:
            found["why"] = found["why"] or self.obstacle() or SILENT
        return found

    def refuse_impossible(self, want: int, priority: int) -> None:
        adapter = self.adapter
        if self.closed:
            raise NodeClosed(f"The node of pool {self.name} is closed.")
        if want != 1 or type(want) is not int:
            limits.WANT.whole(want)
        if priority != 0 or type(priority) is not int:
            limits.PRIORITY.whole(priority)
        if adapter.configuration is None:
            return
        if refused := self.refused():
            raise Refused(refused)
        if want > 1:
            if self.permits is not None and want > self.permits and self.knows_permits():
                raise Refused(self.too_many(want))
            if adapter.algorithm is not None and adapter.algorithm.problem != "h-of-k":
                raise Refused(f"{adapter.algorithm.name} grants one permit at a time: use want 1.")

    def refused(self) -> str:
        """Why every request is refused here."""
        rivals = self.peers.conflicts and not self.peers.goes_on()
        return self.peers.in_words() if rivals else self.disagreement

    def knows_permits(self) -> bool:
        return self.adapter.members is None or self.adapter.members.knows_permits()

    def too_many(self, want: int) -> str:
        k = self.permits
        return f"Cannot grant {want} permits: pool {self.name} has {k}. Use want {k} or less."

    def resized(self) -> None:
        """There may be other permits than before: who waits for more than that waits in vain."""
        why, k = self.disagreement, self.permits or 0
        for waiter in list(self.adapter.clients.values()):
            if (why or waiter.want > k) and waiter.waits():
                self.adapter.fail(waiter, Refused(why or self.too_many(waiter.want)))

    async def perform(self, what: str, **asked: Any) -> Any:
        if what == "who":
            return await self.picture()
        if what == "permits":
            return {"permits": await self.change_requests.resize(**asked)}
        if what == "members":
            return {"members": await self.change_requests.change_members(**asked)}
        assert what == "reset"
        return {"permits": await self.participation.reset()}

    def new_waiter(self, request: Acquire, label: str) -> Waiter:
        if len(self.adapter.clients) >= MOST_WAITING:
            raise Refused(
                f"{MOST_WAITING:,} requests of this node wait for {self.name} already: "
                "try again later."
            )
        want, priority = int(request.want), int(request.priority)  # of whatever class they were
        return self.adapter.numbered(Waiter(want, priority, monotonic(), label, request.due))

    def change_priority(self, request: Acquire, priority: int) -> None:
        self.change_now(request, priority, None)

    async def change(self, request: Acquire, priority: int | None, deadline: float | None) -> bool:
        return self.change_now(request, priority, deadline)

    def change_now(self, request: Acquire, priority: int | None, deadline: float | None) -> bool:
        """Its priority, its deadline, or both; False if it does not wait any more."""
        adapter, waiter = self.adapter, request.waiter
        due = request.due if deadline is None else deadline
        priority = request.priority if priority is None else limits.PRIORITY.whole(priority)
        if waiter is not None:
            if not waiter.waits():
                return False
            before = waiter.priority, waiter.deadline
            waiter.priority, waiter.deadline = priority, due
            if not adapter.rerank(waiter):
                waiter.priority, waiter.deadline = before
                name = adapter.algorithm.name if adapter.algorithm else "its algorithm"
                raise Refused(
                    f"The request keeps priority {before[0]}: {name} cannot change a request that "
                    "it has sent. Withdraw it and request again."
                )
            if due != before[1]:
                adapter.rises.add(waiter)
        request.set_urgency(priority, due)
        return True

    def ask_anew(self) -> None:
        """The pool in which they waited was withdrawn; who holds anything of it has lost it."""
        adapter = self.adapter
        waiting, adapter.clients = adapter.clients, {}
        for number, waiter in waiting.items():
            if waiter.grant is not None:
                waiter.grant._revoke()
            elif not waiter.abandoned:
                adapter.clients[number] = waiter
                adapter.hand_in(waiter)

    def describe(self) -> dict[str, Any]:
        adapter = self.adapter
        configuration, core = adapter.configuration, adapter.core
        if configuration is None or core is None:
            return {"known": False, "why": self.birth.why()}
        adapter.release_pending()
        recovery = adapter.members.describe() if adapter.members is not None else {}
        if recovery:
            recovery["unready"] = self.refused() or recovery["unready"]
        clients = adapter.clients.values()
        waiting = [one for one in clients if one.waits()]
        held = [(one, one.grant) for one in adapter.clients.values() if one.grant is not None]
        now = monotonic()
        return {
            "known": True,
            "algorithm": configuration.algorithm,
            "permits": self.permits,
            "slots": adapter.members.named() if adapter.members is not None else (),
            "founder": configuration.founder,
            "neighbours": sorted(self.peers.near),
            "token_here": core.tokens() > 0,
            "free_here": core.free_permits(),
            "holding": [
                held.shown(now)
                | {"met": grant.met, "fence": grant.fence, "lease": grant.lease}
                | {"slots": grant.slots, "seconds": round(now - held.since, 3)}
                for held, grant in held
            ],
            "waiting": [one.shown(now) | {"deadline": one.left()} for one in waiting[:MOST_LISTED]],
            "queued": len(waiting),
            "entries": adapter.measures.entries,
            "deadlines_met": adapter.measures.met,
            "deadlines_missed": adapter.measures.missed,
            "sent": dict(adapter.measures.sent),
            "received": adapter.measures.received,
            "conflict": self.conflict,
            "recovery": "no crash recovery",
            **(
                recovery
                or {"why": self.token_watch.lost(), "unseen": round(self.token_watch.unseen, 1)}
            ),
        }

    def close(self) -> None:
        """Clients that wait are told; what clients hold is released.

        Under a lease that happens when the lease ends that the client knows of: it is told that
        its grant is lost, but may learn of it late, and use it until then."""
        self.closed = True
        self.peers.taken()
        self.end_all(NodeClosed(f"The node of {self.name} was closed."))

    def end_all(self, error: Refused) -> None:
        adapter = self.adapter
        adapter.release_pending()
        # those who wait first, so that nobody is granted what would be lost at once
        for waiter in sorted(adapter.clients.values(), key=lambda waiter: waiter.grant is not None):
            if waiter.grant is None:
                if waiter.future is not None and not waiter.future.done():
                    waiter.future.set_exception(error)
                self.mesh.failures.run("request", adapter.abandon, waiter)
            else:
                left = waiter.grant.lease or 0.0
                waiter.grant._revoke()
                if adapter.members is None:
                    adapter.leave(waiter.number)
                else:
                    self.mesh.failures.later(left, "leases", self.expire, waiter.number)
        self.mesh.flush()

    def expire(self, number: int) -> None:
        if number in self.adapter.clients:
            self.adapter.release(number)
