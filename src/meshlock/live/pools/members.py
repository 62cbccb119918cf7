"""What a pool with members has around its node: a clock, a disk, and the map of the mesh.

The node is a :class:`~meshlock.algorithms.recovery.layer.Layer` around a node of the pool's
algorithm. Nothing here decides anything: the node is told the time, woken when it wants to be,
told whom the mesh reaches, and what it must not forget is written to a file. Nothing behind a
promise is said or done before it is written (:class:`Disk`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from logging import INFO
from random import random
from time import time
from typing import TYPE_CHECKING, Any

from meshlock.algorithms.actor import NIL, WAKE, Algorithm, Effect, Enter, Lost, Message, Save
from meshlock.algorithms.recovery.layer import Layer
from meshlock.algorithms.recovery.messages import Conflict, Hello, Inner, Suggest
from meshlock.algorithms.recovery.records import NO_EPOCH, Durable, Epoch, Life, majority
from meshlock.algorithms.recovery.terms import Rules, Terms
from meshlock.algorithms.steps import in_grants
from meshlock.errors import Refused
from meshlock.live.links.mesh import DRIFT
from meshlock.live.machine.logs import log_event
from meshlock.live.pools.pool_configuration import ERA
from meshlock.live.pools.promises import Promised, Promises
from meshlock.live.pools.proofs import NONE_YET, Proofs
from meshlock.live.pools.validation import Validation

if TYPE_CHECKING:
    from meshlock.live.pools.adapter import Adapter

WRITERS = ThreadPoolExecutor(8, "promises")
"""For all nodes of this process; a pool writes one thing at a time."""

RETRY = 0.3  # seconds until it is tried again what the disk did not take
MOST_WAITING = 10_000  # messages; what comes then is lost, as on a network
Waiting = deque[tuple[Effect | Promised, int]]
"""Effects, and the mesh's clock when they were asked for: a token's lease goes on running. Those
behind a promise wait until it is written."""

STALLED = 10.0  # seconds: a change of epoch takes less


class Disk:
    """Without ``promises`` nothing is kept, and nothing waits."""

    def __init__(self, members: LayerRunner, promises: Promises | None) -> None:
        self.members = members
        self.mesh = members.mesh
        self.promises = promises
        self.writing: asyncio.Future[bool] | None = None
        self.written: Promised | None = None  # what is being written, or has to be tried again
        self.waiting: Waiting = deque()  # for that, or for what has to be written next
        self.on_disk = NO_EPOCH
        if promises is not None:
            promises.open()

    def read(self) -> Promised | None:
        """What is known there of this very pool. Where members are by name, users may have changed
        what they were given since."""
        pool, ours = self.members.adapter.name, self.members.configuration
        found = self.promises.read(pool, Promised) if self.promises is not None else None
        if found is None:
            return None
        if found.pool.identity != ours.identity and not (found.pool.by_name and ours.by_name):
            return None
        self.on_disk = found.promised
        return found

    def is_behind(self) -> bool:
        """Is there anything that it has not taken yet?"""
        return self.written is not None or len(self.waiting) > 0

    # -- what the node says ------------------------------------------------------------------

    def pass_on(self, effects: list[Effect]) -> list[Effect]:
        """What can be done at once."""
        if not self.is_behind():
            for effect in effects:
                if isinstance(effect, Save):
                    break
            else:
                return effects
        if self.promises is None:
            return [effect for effect in effects if not isinstance(effect, Save)]
        at_once: list[Effect] = []
        for effect in effects:
            if isinstance(effect, Save):
                self.waiting.append((self.recorded(effect.record), 0))
            elif not self.is_behind() or self.may_pass(effect):
                at_once.append(effect)
                if isinstance(effect, Lost):
                    self.forget(effect.client)
            elif len(self.waiting) < MOST_WAITING or not isinstance(effect, Message):
                self.waiting.append((effect, self.members.clock))
        if self.written is None:
            self.write_next()
        return at_once

    def recorded(self, kept: object) -> Promised:
        assert isinstance(kept, Durable)
        names = {number: self.members.name(number) for number in kept.config.members}
        return Promised(kept.promised, kept.config, names, self.members.configuration)

    def may_pass(self, effect: Effect) -> bool:
        """A lease that has ended is told at once."""
        if isinstance(effect, Message):
            return not self.members.member.rests_on_disk(effect, self.on_disk)
        return isinstance(effect, Lost)

    def refuses(self) -> str:
        """Why nobody is served here; empty unless it does not take what has to be written."""
        failure = self.promises.failure if self.promises is not None else ""
        return f"the disk refuses: {failure}" if failure and self.is_behind() else ""

    def forget(self, client: int) -> bool:
        """It must not be let in any more: its lease has ended, or it gave up, before it could be
        told of it. False if it was let in already, or waits for something else."""
        for one in self.waiting:
            if isinstance(one[0], Enter) and one[0].client == client:
                self.waiting.remove(one)
                return True
        return False

    def write_next(self) -> None:
        """The latest promise stands for all before it."""
        unsaved = [one for one, _ in self.waiting if isinstance(one, Promised)]
        if unsaved:
            self.written = unsaved[-1]
            self.waiting = deque([one for one in self.waiting if not isinstance(one[0], Promised)])
        if self.written is not None and self.promises is not None:
            self.writing = self.mesh.loop.run_in_executor(
                WRITERS, self.promises.write, self.written
            )
            self.writing.add_done_callback(self.done)

    def done(self, writing: asyncio.Future[bool]) -> None:
        if self.members.closed or writing.cancelled():
            return
        self.mesh.failures.run("disk", self.go_on, writing)

    def go_on(self, writing: asyncio.Future[bool]) -> None:
        if writing.exception() is not None or not writing.result():
            self.waiting = deque([one for one in self.waiting if not is_repeated(one[0])])
            self.mesh.failures.later(RETRY, "disk", self.write_next)
            return
        assert self.written is not None
        self.on_disk = self.written.promised
        while self.waiting and not isinstance(effect := self.waiting[0][0], Promised):
            _, self.members.clock = self.waiting.popleft()
            left: list[Effect] = [effect]
            self.mesh.failures.run("disk", self.members.adapter.perform, "timer", {}, left)
        self.written = None
        self.write_next()
        self.mesh.flush()

    def close(self) -> None:
        if self.writing is not None:
            self.writing.cancel()


def is_repeated(effect: Effect | Promised) -> bool:
    """What recovery says itself is said again anyway."""
    return isinstance(effect, Message) and not isinstance(effect, Hello | Inner)


class LayerRunner:
    def __init__(
        self,
        adapter: Adapter,
        algorithm: Algorithm,
        promises: Promises | None,
        founding: bool,
        floor: int,
        willing: bool,
    ) -> None:
        configuration = adapter.configuration
        assert configuration is not None
        self.adapter = adapter
        self.mesh = adapter.mesh
        self.founding = founding
        self.configuration = configuration
        self.clock = 0  # of the mesh, when the node was called last
        self.disk = Disk(self, promises)
        self.closed = False
        self.lends = any(kind.lends is not Message.lends for kind in algorithm.kinds)
        self.adopted = self.promised = NO_EPOCH  # after the last call of the node
        self.recovering_since: float | None = None
        self.quorum_at = self.mesh.time()  # when there was one last, or our life began
        self.served_at = self.mesh.time()  # when anybody could be last, or our life began
        self.stalled_at = -STALLED  # when nobody could be
        members = tuple([adapter.meet(name) for name in configuration.members])
        self.terms = Terms(
            members,
            members,
            configuration.permits,
            int(configuration.lease * (1 - DRIFT)),
            int(configuration.lease * (1 + DRIFT)) + 1,
            algorithm,
            in_grants(configuration.options),
            self.near,
            slots=bool(configuration.names),
            rules=None if configuration.by_name else Rules(*configuration.rules),
            names=configuration.names,
        )
        self.node = Layer(adapter.meet(adapter.me), adapter.out, self.terms)
        self.member = self.node.member
        self.node.timers.autopilot.willing = willing
        self.node.timers.second = 1_000_000
        self.node.timers.called = self.name
        self.node.notes.label = self.label
        self.proofs = Proofs(self.node)
        self.node.notes.minted = self.proofs.minted
        self.node.notes.handed = self.proofs.handed
        self.validation = Validation(
            adapter.name, adapter.mesh, adapter.names, self.node, self.proofs
        )
        self.start(founding, floor)
        self.config = self.member.config
        self.waking_at = self.member.now
        self.waking = self.mesh.failures.later(0.0, "leases", self.wake)
        self.map_changed()

    def start(self, founding: bool, above: int) -> None:
        """A life of the node begins; that of the pool as well, if it was made just now. If that is
        in place of another, its epochs are ``above`` all of which was known."""
        self.set_time()
        floor = max(0, int(time()) - ERA, above)
        remembered = self.disk.read()
        life = Life(self.mesh.boot, None, floor, founding, founding and above == 0)
        if remembered is not None and not founding:
            for name in remembered.names.values():
                self.adapter.meet(name)
            life = Life(self.mesh.boot, Durable(remembered.promised, remembered.config))
        self.node.start(life)

    # -- time --------------------------------------------------------------------------

    def set_time(self) -> None:
        """The node counts in microseconds."""
        self.clock = self.mesh.clock()
        self.node.tell_time(self.clock // 1000)

    def wake(self) -> None:
        """Whatever becomes of this time, there is another."""
        node = self.node
        try:
            self.adapter.before()
            node.timer(WAKE, random())
            self.adapter.carry_out("timer", {})
            self.mesh.flush()
            self.note_service()
        finally:
            self.waking_at = max(node.timer_at(), node.timers.rests_until())
            self.sleep()

    def note_service(self) -> None:
        """After a quorum was lost a token is believed when it stays: an epoch that begins then is
        often the first of several."""
        now, a_while = self.mesh.time(), self.terms.lease / 3_000_000
        if self.stalls():
            self.stalled_at = now
            if self.node.timers.quorum_lost():
                self.served_at = -STALLED  # a quorum that returns has no token yet
        elif now - self.served_at < STALLED or now - self.stalled_at > a_while:
            self.served_at = now

    def sleep_until_due(self) -> None:
        """After every call of the node: it may want to be woken earlier, and k may be another, or
        be known now."""
        node = self.node
        if self.member.config is not self.config:
            before, self.config = self.config, self.member.config
            if before.permits != self.member.config.permits or before.epoch == NO_EPOCH:
                self.adapter.resized()
        if self.member.promised is not self.promised:
            self.promised = self.member.promised
            if self.adopted != NO_EPOCH and self.recovering_since is None:
                self.recovering_since = self.mesh.time()
        self.adopted = self.member.adopted
        if self.recovering_since is not None and self.member.holding.holder_hop >= 0:
            self.log_epoch(self.recovering_since)
        due = node.timer_at()
        if due < self.waking_at:
            self.waking.cancel()
            self.waking_at = due
            self.sleep()

    def log_epoch(self, since: float) -> None:
        """One that came after another, when it has a token."""
        epoch, first = self.member.adopted, self.member.first
        if epoch != self.promised or first is None:
            return
        self.recovering_since = None
        log_event(
            INFO,
            "new epoch",
            pool=self.adapter.name,
            node=self.adapter.me,
            epoch=epoch.counter,
            proposer=self.name(epoch.proposer),
            token="new" if first.before == NO_EPOCH else "kept",
            seconds=round(self.mesh.time() - since, 2),
        )

    def sleep(self) -> None:
        if self.closed:
            return
        seconds = max(0, self.waking_at - self.mesh.clock() // 1000) / 1e6
        self.waking = self.mesh.failures.later(seconds, "leases", self.wake)

    def close(self) -> None:
        self.closed = True
        self.node.epoch.early = []
        self.validation.clear()
        self.waking.cancel()
        self.disk.close()

    # -- the mesh ----------------------------------------------------------------------

    def map_changed(self) -> None:
        """Who can be reached, as the mesh sees it now."""
        adapter, node, link_map = self.adapter, self.node, self.mesh.link_map
        if self.has_quorum():
            self.quorum_at = self.mesh.time()
        names = adapter.names
        known = [names[number] for number in self.member.members if number in names]
        adapter.forget()
        for name in (adapter.me, *known, *adapter.near, *link_map.links):
            adapter.meet(name)
        here = {number for number, name in adapter.names.items() if self.reaches(name)}
        self.terms.nodes = tuple(sorted(here.union(self.member.members)))
        node.cannot_reach(adapter.names.keys() - here)
        self.set_time()
        self.sleep_until_due()

    def reaches(self, name: str) -> bool:
        return name == self.adapter.me or self.mesh.link_map.reaches(name)

    def near(self, number: int) -> list[int]:
        """To whom that node is linked, as the map says."""
        links = self.mesh.link_map.links.get(self.name(number), ())
        return [self.adapter.meet(name) for name in links]

    def conflict(self, conflict: Conflict) -> str:
        """They ignore each other until somebody mends a configuration."""
        _, members, permits, lease, *_ = conflict.config
        names = ", ".join(sorted(self.name(number) for number in members))
        other = f"{permits} permits, leases of {lease / (1 - DRIFT) / 1e6:.3g} s, members {names}"
        return (
            f"{self.name(conflict.node)} has a conflicting configuration of the pool "
            f"{self.adapter.name} ({other}): use the same at all nodes."
        )

    # -- members -----------------------------------------------------------------------

    def slot_names(self) -> tuple[str, ...]:
        """By slot: what permits are called, and were."""
        return self.member.config.names or self.configuration.names

    def named(self) -> tuple[str, ...]:
        """What permits are called now."""
        config = self.member.config
        return self.adapter.slot_names(config.slots) or self.slot_names()[: config.permits]

    def has_quorum(self, lost: Collection[str] = ()) -> bool:
        """Are enough members reachable, other than those?"""
        reached = [one for one in self.node.timers.reached() if self.name(one) not in lost]
        return bool(self.member.members) and len(reached) >= majority(self.member.members)

    def unready(self) -> str:
        """Why nobody can be served here, and not only until an epoch has begun; else nothing."""
        lost = self.disk.refuses() or self.quorum_lost()
        recent = self.mesh.time() - self.served_at < STALLED
        if lost or recent or not self.stalls():
            return lost
        if found := self.obstacle():
            return found
        if self.disk.is_behind():
            return "the disk has not taken the latest epoch yet"
        return "the holder of the token is not known"

    def stalls(self) -> bool:
        """What a token here grants is said when the disk knows the epoch, and not before."""
        return self.disk.is_behind() or self.node.timers.stalls(self.member.now)

    def quorum_lost(self) -> str:
        """With the reasons why peers cannot be linked to."""
        lost, addresses = self.node.timers.quorum_lost(), self.mesh.dialler.no_link
        if not lost or not addresses:
            return lost
        return f"{lost}; no link to {self.mesh.dialler.in_vain(addresses)}"

    def has_no_quorum(self, lost: Collection[str]) -> bool:
        """Nor had one a lease ago."""
        seconds = self.mesh.time() - self.quorum_at
        return not self.has_quorum(lost) and seconds >= self.configuration.lease / 1e6

    def is_back(self, lost: Collection[str]) -> bool:
        """Did this life begin from the disk, has nobody been granted anything in it, and would we
        without those be the quorum alone? Then an operator may have decided while we were down."""
        token = self.member.holding.token
        if self.member.remembered == NO_EPOCH or self.has_quorum({*lost, self.adapter.me}):
            return False
        unused = token is not None and (token.hop, token.grants, token.ledger) == (0, 0, ())
        return self.member.adopted == NO_EPOCH or unused

    def refuse_if_quorum(self) -> None:
        if self.has_quorum():
            reached, all_members = len(self.node.timers.reached()), len(self.member.members)
            raise Refused(
                f"Cannot reset {self.adapter.name}: {reached} of {all_members} members are "
                "reachable and have a vote, which is a quorum. The pool recovers by itself."
            )

    def names(self) -> list[str]:
        return sorted(map(self.name, self.member.members))

    def name(self, number: int) -> str:
        return self.adapter.names.get(number, "?")

    def label(self, client: int) -> str:
        """What the ledger says of a grant that is made now; nothing if nobody waits any more. Of
        one that is lent, its owner will say who has it."""
        if client == NIL:
            return note(0, "")
        waiter = self.adapter.clients.get(client)
        return "" if waiter is None else note(client, waiter.label)

    # -- what people ask ---------------------------------------------------------------

    def until(self, client: int) -> float | None:
        """When this client's lease ends unless it is renewed: seconds of CLOCK_BOOTTIME."""
        for grant in list(self.member.grants.values()):  # a copy: other threads ask, too
            if grant.client == client:
                return grant.until / 1e6 / self.mesh.clock_rate
        return None

    def knows_permits(self) -> bool:
        """What a pool was made with may have been changed since, if we come to it later."""
        by_name, made_here = self.configuration.by_name, self.founding
        return by_name or made_here or self.member.config.epoch > NO_EPOCH

    def used(self) -> bool:
        """May anything of this pool have been granted, as far as we know?"""
        token = self.member.holding.token
        if self.configuration.by_name or len(self.member.members) > 1:
            return True
        if not self.founding:
            return False  # nobody has told us
        return token is None or token.grants > 0 or token.hop > 0

    def rise_above(self, counter: int) -> None:
        """Of another pool of this name that stops: what we grant has higher fences from now on."""
        epoch = Epoch(counter, NIL, 0)
        if self.member.is_member() and not self.validation.is_beyond(epoch):
            self.member.highest = max(self.member.highest, epoch)
            self.node.timers.above = max(self.node.timers.above, counter)

    def has_token(self) -> bool:
        return self.member.holding.token is not None

    def obstacle(self) -> str:
        """Why no client here can be served for now; the empty text if that is not known."""
        self.set_time()
        lost = self.disk.refuses() or self.quorum_lost()
        return lost or self.node.timers.obstacle(self.member.now)

    def needed(self) -> bool:
        """Has this node anything that others need: the token, permits, or an answer?"""
        holding, keeper = self.member.holding, self.node.epoch.keeper
        held = holding.token or holding.unaccepted or self.member.grants or keeper.returning
        return bool(held or keeper.receipts or keeper.struck or self.disk.waiting)

    def surrender(self) -> None:
        """We leave, and the token here does not move while permits are out: have another member
        begin an epoch, which takes it over with all grants."""
        member, token = self.member, self.member.holding.token
        stuck = token is not None and len(token.ledger) > 0
        if token is None or not (stuck and self.lends) or member.config.permits == 1:
            return
        gone = {*map(self.adapter.meet, self.adapter.leaving), self.node.me}
        for other in member.members:
            if other not in gone and other not in member.unreachable:
                self.node.send(Suggest(other, member.promised, token.hop, True))
        self.adapter.carry_out("timer", {})
        self.mesh.flush()

    def describe(self) -> dict[str, Any]:
        member, timers = self.member, self.node.timers
        self.set_time()
        epoch = member.adopted if member.adopted != NO_EPOCH else None
        waits_for = timers.why(member.now)
        reachable = [one for one in member.members if one not in member.unreachable]
        return {
            "lease": self.configuration.lease / 1e6,
            "members": self.names(),
            "members_reachable": len(reachable),
            "members_without_vote": sorted(map(self.name, timers.voteless())),
            "quorum": majority(member.members),
            "unready": self.unready(),
            "disk": self.disk.refuses(),
            "epoch": epoch.counter if epoch is not None else None,
            "proposer": self.name(epoch.proposer) if epoch is not None else None,
            "unreachable": sorted(map(self.name, member.unreachable)),
            "why": self.disk.refuses() or (waits_for and self.quorum_lost()) or waits_for,
            "recovery": self.survives(),
        }

    def survives(self) -> str:
        """What the pool survives, in a sentence."""
        members = self.names()
        if len(members) == 0:
            return "the members are not known yet"
        if len(members) == 1:
            more = "the next two nodes become members" if self.terms.rules else "add two more"
            return f"one member ({members[0]}): the pool stops while it is down; {more}"
        lost = len(members) - majority(self.member.members)
        return f"{lost} of the {len(members)} members may crash at a time"


def note(client: int, label: str) -> str:
    """Of a grant that is made now; its commitment follows when the token leaves."""
    return f"{client} {int(time() * 1000)} {NONE_YET} {label}"
