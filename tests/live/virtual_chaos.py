"""Chaos in virtual time: real nodes, meshes, sessions and pools; one seed, one run.

What happens to them is in :mod:`virtual_faults` and :mod:`virtual_stages`, what must not happen in
:mod:`virtual_judge`. The pool is born while many links are late, one way, or lead to somebody else.
One client of each node is a program with a session at the agent.
Clients ask for some of the permits, more or less urgently and patiently, some by a deadline, change
their minds, give back a part, and cling to what they have to the very end of its lease. After the
last fault all of them crowd, so that order is judged; then everybody must be served, and members
must be as they should.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import virtual
from virtual import HOST, Network, Wire
from virtual_faults import Faults
from virtual_judge import Judge

from meshlock import Node
from meshlock.errors import NodeClosed, Refused
from meshlock.live.chaos.readiness import Readiness
from meshlock.live.interfaces.http import Interface, Session
from meshlock.live.interfaces.messages import AcquireRequest as Body
from meshlock.live.links.mesh import DRIFT
from meshlock.live.machine import clock
from meshlock.live.pools.grants import Acquire, Grant, Pool
from meshlock.live.pools.pool import LocalPool

NAMES = ["a", "b", "c", "d", "e"]
INSIDE = ["jiang", "direct", "naimi-trehel", "raymond"]
"""The last two share one permit, and know no priorities."""
LEASE = 3.0
PATIENCE = 30.0
"""Of clients, in virtual seconds."""
SERVED_WITHIN = 12 * LEASE
"""After the last fault, for each node in turn."""
SETTLED_WITHIN = 30 * LEASE
"""So soon members have chosen themselves."""
MOMENT = 1e-3
HURRY = 0.02
"""Seconds between a client's requests, in a hurry."""

Log = list[tuple[float, str, object]]


class Chaos:
    def __init__(self, network: Network, state: Path, seed: int) -> None:
        self.network = network
        self.state = state
        self.seed = seed
        self.random = random = Random(seed)
        self.permits = random.choice([1, 2, 2, 3])
        self.algorithm = random.choice(INSIDE if self.permits == 1 else INSIDE[:2])
        rest = Random(f"{seed}:rest").choice(
            ["2", "3", "7", "61"]
        )  # so often direct's token moves on
        self.options = {"rest": rest} if self.algorithm == "direct" else {}
        names = tuple(f"dock-{place}" for place in range(self.permits))
        self.names = names if random.random() < 0.3 else ()
        self.auto = random.random() < 0.4  # do members choose themselves?
        self.most = random.choice([3, 5, 5])  # if they do
        self.members = NAMES[: random.choice([3, 3, 4, 5, 5])]
        self.rates = {name: 1 + random.choice([-DRIFT, -DRIFT, 0, DRIFT, DRIFT]) for name in NAMES}
        self.clinging = random.choice([0.1, 0.1, 0.5])
        self.moods = Random(f"{seed}:moods")
        self.think = 1.0
        self.keeping: set[str] = set()  # nodes whose clients use a grant until it is lost
        self.dying: set[str] = set()  # nodes where the next program that has permits dies
        self.hurry = False  # all ask without a pause, with two priorities
        self.resetting = False  # then grants of the former pool are lost before they would be
        self.links = Random(f"{seed}:links")
        self.mutual = self.links.random() < 0.5  # does each name all others?
        self.agents: dict[str, Interface] = {}
        self.request: Any = None  # what is asked of all needs none
        self.nodes: dict[str, Node] = {}
        self.clients: dict[str, list[asyncio.Task[None]]] = {}
        self.wires: dict[tuple[str, str], Wire] = {}
        self.log: Log = []
        self.ports = {name: 5001 + place for place, name in enumerate(NAMES)}
        self.wrong: asyncio.Future[None] = network.loop.create_future()
        self.wanted: dict[str, list[int]] = {name: [] for name in NAMES}  # by who waits
        self.readiness = Readiness(NAMES, LEASE, clock.seconds())
        self.judge = Judge(self.wrong, self.permits, self.names, self.readiness)
        self.faults = Faults(self)  # who comes to an epoch writes a few times
        self.judge.set_order(self.algorithm, 2 * LEASE + 4 * max(self.faults.disks))

    def note(self, what: str, of: object) -> None:
        self.log.append((clock.seconds(), what, of))

    # -- nodes ---------------------------------------------------------------------------------

    async def start(self, name: str) -> None:
        self.note("start", name)
        self.judge.disturbed()
        peers = []
        others = NAMES if self.mutual else NAMES[: NAMES.index(name)]
        for other in [one for one in others if one != name]:
            if (name, other) not in self.wires:
                self.wires[name, other] = self.network.wire(f"{HOST}:{self.ports[other]}")
            peers.append(self.wires[name, other].address)
        node = self.nodes[name] = Node(
            name,
            listen=f"{HOST}:{self.ports[name]}",
            peers=peers,
            state=self.state / name,
            clock_rate=self.rates[name],
            min_links=0,
        )
        await node.start()
        node.pool(
            "docks",
            list(self.names) or self.permits,
            algorithm=self.algorithm,
            options=self.options,
            members="auto" if self.auto else self.members,
            lease=LEASE,
            most_members=self.most,
            promote_after=LEASE,
            replace_after=3 * LEASE,
        )
        self.agents[name] = Interface(node)
        programs = [None, Program(self.agents[name])]
        self.clients[name] = [asyncio.create_task(self.work(node, one)) for one in programs]
        for task in self.clients[name]:
            task.add_done_callback(self.ended)
        self.readiness.can_be_served(clock.seconds(), [name])

    def ended(self, program: asyncio.Task[None]) -> None:
        """A program that fails ends the run with its error."""
        if not program.cancelled() and not self.wrong.done():
            error = program.exception()
            if error is not None:
                self.wrong.set_exception(error)

    def loses(self, name: str) -> Node:
        """Its clients know it no more."""
        self.judge.disturbed()
        for task in self.clients.pop(name):
            task.cancel()
        self.judge.crashed(NAMES.index(name))
        self.judge.abandoned(name)
        return self.nodes.pop(name)

    async def kill(self, name: str) -> None:
        self.note("kill", name)
        node = self.loses(name)
        self.network.kill(node._local.mesh)
        self.judge_errors(node)
        await node._local.vanish()

    async def leave(self, name: str) -> None:
        """In good order; but its clients hear of it late."""
        self.note("leave", name)
        node = self.loses(name)
        await node.close()
        self.judge_errors(node)

    def judge_errors(self, node: Node) -> None:
        counts = node._local.mesh.failures.counts
        if counts:
            self.judge.blame("errors", f"{node.name} failed at {counts}")

    def pool(self, name: str) -> LocalPool | None:
        """If its node is up, and knows it."""
        pool = self.nodes[name]._local.pools["docks"] if name in self.nodes else None
        return pool if pool is not None and pool.adapter.members is not None else None

    def chosen(self) -> list[str]:
        """The members, as a node that is up knows them; the latest epoch counts."""
        found = [pool.adapter.members for name in NAMES if (pool := self.pool(name)) is not None]
        if not found:
            return []
        latest = max(found, key=lambda members: members.node.member.config.epoch)
        return latest.names()

    def reached(self, name: str) -> list[int]:
        """Nodes that are up, and that wires join to this one; nobody while a wire is slow, and none
        whose disk is full: it cannot take part in a new epoch."""
        if any(wire.delay for wire in self.wires.values()):
            return []
        found = [name]
        for one in found:
            for pair, wire in self.wires.items():
                if one in pair and wire.whole and not wire.deaf:
                    other = pair[0] if pair[1] == one else pair[1]
                    if other not in found and other in self.nodes:
                        found.append(other)
        return [NAMES.index(one) for one in found if one not in self.faults.full]

    # -- clients -------------------------------------------------------------------------------

    async def work(self, node: Node, program: Program | None) -> None:
        pool, random, judge = node._local.pools["docks"], self.random, self.judge
        while True:
            await asyncio.sleep(random.expovariate(1 / (HURRY if self.hurry else self.think)))
            highest, asked = max(judge.fences, default=0), clock.seconds()
            want = random.randint(1, min(self.permits, pool.permits or 1))
            patience, priority = random.uniform(0.1, PATIENCE), random.randint(0, 9)
            deadline = self.moods.uniform(0.0, PATIENCE) if self.moods.random() < 0.2 else None
            if self.hurry:
                patience, priority, deadline = PATIENCE, priority % 2, None
            priority = priority if deadline is None else 0  # as urgent as any of that priority
            request = judge.asks(NAMES.index(node.name), priority, deadline is not None)
            asking = Pool(pool).acquire(
                want, priority=priority, deadline=deadline, timeout=patience
            )
            mind = asyncio.create_task(
                self.change_mind(asking, request, deadline is None and not self.hurry)
            )
            self.wanted[node.name].append(want)
            try:
                grant = await asking
            except (TimeoutError, Refused, NodeClosed) as error:
                judge.gives_up(request)
                self.note("timeout" if isinstance(error, TimeoutError) else "refused", node.name)
                continue
            finally:
                mind.cancel()
                self.wanted[node.name].remove(want)
            if program is not None:
                program.reads(grant)
            self.readiness.can_be_served(
                clock.seconds(), [NAMES[one] for one in self.reached(node.name)] or [node.name]
            )
            self.note("enter", (node.name, grant.want, grant.fence))
            judge.entered(grant, request, highest, asked, lambda: self.reached(node.name))
            clings = random.random() < self.clinging and not self.faults.over
            if program is not None and node.name in self.dying:
                self.dying.discard(node.name)
                self.note("die", node.name)
                judge.is_over(grant)
                program.dies()
                program = Program(self.agents[node.name])
                continue
            await self.use(grant, 4 * LEASE if clings else random.expovariate(5.0))
            judge.is_over(grant)
            if program is not None and not await program.is_told(grant):
                judge.blame("told", f"the program that had {grant} of {node.name} was not")

    async def change_mind(self, asking: Acquire, request: int, may: bool) -> None:
        """While it waits, some become more or less urgent."""
        while may and self.moods.random() < 0.3:
            await asyncio.sleep(self.moods.expovariate(1.0))
            priority = self.moods.randint(0, 9)
            asking.priority = priority
            self.judge.changes(request, priority)
            self.note("changed mind", priority)

    async def use(self, grant: Grant, seconds: float) -> None:
        """Until we have had enough, or it is lost; it must not outlive its deadline."""
        end = clock.seconds() + seconds
        if grant.want > 1 and self.random.random() < 0.3:
            grant.release(self.random.randint(1, grant.want - 1))
        while not grant.lost:
            now, until = clock.seconds(), self.judge.seen(grant)
            keeps = grant._source.me in self.keeping and not self.faults.over
            if now >= end and not keeps:
                grant.release()
                return
            if now > until + MOMENT:
                sentence = f"{grant} of {grant._source.me} outlived its deadline {until:.3f}"
                self.judge.blame("told", sentence)
                return
            try:
                soon = now + LEASE / 20 if keeps else end
                async with asyncio.timeout(max(MOMENT, min(until + 2 * MOMENT, soon) - now)):
                    await grant.wait_lost()
            except TimeoutError:
                pass
        self.note("lost", grant.fence)
        early = clock.seconds() < self.judge.valid.get(grant, 0.0) - 10 * MOMENT
        if early and not self.resetting:
            self.judge.blame("told", f"{grant} of {grant._source.me} ended before its deadline")

    async def watch_health(self) -> None:
        """What all nodes say of themselves, three times per lease."""
        judge, readiness, before = self.judge, self.readiness, clock.seconds()
        while True:
            await asyncio.sleep(LEASE / 3)
            now = clock.seconds()
            for claim in readiness.wrong(now):
                said = f"{claim.node} said that it is, unserved for {claim.unserved:.0f} s"
                judge.blame("ready", said)
            free = min(judge.permits) - judge.held()
            most = max((want for wants in self.wanted.values() for want in wants), default=0)
            waiting = [name for name, wants in self.wanted.items() if wants and most <= free]
            readiness.waits(now, before, waiting)
            before = now
            for name in self.nodes:
                if self.agents[name].ready(self.request).status == 200:
                    readiness.says_ready(now, name)

    # -- the end -------------------------------------------------------------------------------

    async def end_well(self) -> None:
        """All are there, nothing is cut: order is kept, and everybody is served."""
        await self.faults.end()
        for _ in range(2):
            for wire in self.wires.values():
                wire.heal()
                wire.delay = 0.0
            await asyncio.sleep(4 * LEASE)
        self.hurry = True
        await asyncio.sleep(8 * LEASE)
        self.hurry = False
        self.dying = set(NAMES)
        await asyncio.sleep(4 * LEASE)
        if self.auto:
            await self.choose_well()
        for name in NAMES:
            await self.is_served(name)
            self.judge_errors(self.nodes[name])

    async def is_served(self, name: str) -> None:
        pool = self.pool(name)
        why = "it knows no pool"
        if pool is not None:
            try:
                async with Pool(pool).acquire(
                    pool.permits or 1, priority=99, timeout=SERVED_WITHIN
                ):
                    self.note("served", name)
                    return
            except TimeoutError:
                why = str(pool.describe()["why"])
        self.judge.blame("served", f"{name} was not: {why}")

    async def choose_well(self) -> None:
        """As many as there should be; and if one stays away, another takes its place."""
        await self.settles(lambda: len(self.chosen()) == self.most, "are to be", self.most)
        away = self.random.choice(self.chosen())
        before = self.chosen()
        await self.kill(away)
        if self.most < len(NAMES):
            await self.settles(
                lambda: away not in self.chosen() and len(self.chosen()) == self.most,
                "are to be without",
                away,
            )
        else:
            await asyncio.sleep(6 * LEASE)
            if self.chosen() != before:
                self.judge.blame("members", f"{away} is away, and nobody could replace it")
        await self.start(away)
        await asyncio.sleep(4 * LEASE)

    async def settles(self, condition: Callable[[], bool], what: str, of: object) -> None:
        end = clock.seconds() + SETTLED_WITHIN
        while not condition():
            if clock.seconds() > end:
                self.judge.blame("members", f"{self.chosen()} are members, {what} {of}")
                return
            await asyncio.sleep(LEASE / 3)
        self.note("members", tuple(self.chosen()))

    # -- the run -------------------------------------------------------------------------------

    async def run(self, seconds: float) -> None:
        for name in NAMES:
            await self.start(name)
            self.trouble_links(name)
        story = asyncio.ensure_future(self.story(seconds))
        health = asyncio.ensure_future(self.watch_health())
        try:
            await asyncio.wait([story, self.wrong], return_when=asyncio.FIRST_COMPLETED)
            if self.wrong.done():
                self.wrong.result()
            await story
        finally:
            self.faults.stop()
            story.cancel()
            health.cancel()
            for name in list(self.nodes):
                await self.kill(name)
            if self.wrong.done():
                self.wrong.exception()

    def trouble_links(self, name: str) -> None:
        """From the first moment on many are late, one way, or lead to somebody else."""
        later = self.network.loop.call_later
        for pair, wire in self.wires.items():
            if pair[0] != name or self.links.random() < 0.4:
                continue
            right, wrong = wire.port, self.ports[self.links.choice(NAMES)]
            trouble = self.links.choice(["cut", "deafen", "wrong"])
            if trouble == "wrong":
                wire.port = wrong
            else:
                getattr(wire, trouble)()
            later(self.links.uniform(0.1, 4 * LEASE), mend, wire, right)

    async def is_born(self) -> None:
        """All know the pool when links have been right for long enough."""
        end = clock.seconds() + 4 * LEASE + SERVED_WITHIN
        while not all(self.pool(name) for name in NAMES):
            if clock.seconds() > end:
                self.judge.blame("served", "the pool was not made, or not all know it")
            await asyncio.sleep(LEASE / 10)

    async def story(self, seconds: float) -> None:
        await self.is_born()
        await self.faults.go_on(seconds)
        await self.end_well()


def mend(wire: Wire, port: int) -> None:
    if wire.port != port:
        wire.port = port
        wire.reset()
    wire.heal()


class Program:
    """One that has its permits from an agent, over a connection that is closed when it dies."""

    def __init__(self, agent: Interface) -> None:
        self.agent = agent
        self.request: Any = SimpleNamespace(connection=SimpleNamespace(owned=[], unread=None))
        agent.open_session(self.request)
        self.session: Session = self.request.connection.owned[0]
        self.name = ""

    def reads(self, grant: Grant) -> None:
        """What the agent answers; and it is used again, so that the agent knows that."""
        body = Body(grant.want)
        said = self.agent.granted(self.request, body, self.session, grant)
        self.name = said.grant
        self.request.connection.unread = None

    def dies(self) -> None:
        for one in self.request.connection.owned:
            one.release()

    async def is_told(self, grant: Grant) -> bool:
        """If the grant was lost, does the agent say so within a lease?"""
        end = clock.seconds() + LEASE
        lost = grant.lost
        while lost and not self.heard():
            if clock.seconds() > end:
                return False
            await asyncio.sleep(LEASE / 30)
        self.session.events.clear()  # as its stream has told them
        return True

    def heard(self) -> bool:
        return any(one.event == "lost" and one.grant == self.name for one in self.session.events)


def chaos(state: Path, seed: int, seconds: float) -> Log:
    """What happened; raises Wrong if it should not have."""

    async def story(network: Network) -> Log:
        run = Chaos(network, state, seed)
        with run.faults.watching():
            await run.run(seconds)
        return run.log

    return virtual.run(story, seed, slowest=Random(f"{seed}:network").choice([0.002, 0.01, 0.05]))
