"""A pool with members: permits under leases, so that a killed node costs seconds and no more.

The state machine that is checked, :mod:`meshlock.algorithms.recovery`, run on real clocks,
disks and links: its messages are routed, its promises go to a file before they leave,
and :class:`~meshlock.algorithms.recovery.pace.Pace` is told the time. To the pool this looks
like any other algorithm's node.
"""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from meshlock.algorithms.interface import Effect, Enter, Message
from meshlock.algorithms.recovery.messages import (
    NO_EPOCH,
    Got,
    Granted,
    Keep,
    Lost,
    Misfit,
    Request,
    Token,
    fence_number,
)
from meshlock.algorithms.recovery.node import Pool as Agreement
from meshlock.algorithms.recovery.node import RecoveryNode
from meshlock.algorithms.recovery.pace import Pace
from meshlock.algorithms.recovery.state import majority
from meshlock.errors import Refused
from meshlock.live.links.frames import BadFrame, Carry
from meshlock.live.machine.limits import MOST_NODES, NAME
from meshlock.live.pools import routed
from meshlock.live.pools.pool_configuration import Charter
from meshlock.live.pools.promises import Promised, Promises
from meshlock.live.pools.routed import DRIFT
from meshlock.live.pools.waiting_ahead import WaitingAhead

if TYPE_CHECKING:
    from meshlock.live.pools.pool import Pool
    from meshlock.live.pools.recording import Recording

POLLS = 30
"""So often per lease the state machine looks at the time."""

ERA = 1_735_689_600
"""1 January 2025. Seconds since then number the epochs of a node that has no memory."""

DECISIVE = ("PROPOSE", "PROMISE", "HIGHER", "LEDGER")
"""After these there may be something to do at once."""


class Leases:
    def __init__(self, pool: Pool, charter: Charter, state: Path | None) -> None:
        self.pool = pool
        self.mesh = pool.mesh
        self.charter = charter
        self.me = charter.number(pool.me)
        self.out: list[Effect] = []
        self.numbers: dict[str, int] = {}  # the same, the other way round
        self.names = {charter.number(name): name for name in (*charter.members, pool.me)}
        members = tuple([charter.number(name) for name in charter.members])
        lease = int(charter.lease * (1 - DRIFT))
        wait = int(charter.lease * (1 + DRIFT)) + 1
        self.agreement = Agreement(tuple(self.names), members, charter.permits, lease, wait)
        self.node = RecoveryNode(self.me, self.agreement, self.out)
        self.promises = Promises(state, pool.name) if state is not None else None
        remembered = self.promises.read() if self.promises is not None else None
        self.unsaved: Promised | None = None
        self.receipts: dict[int, Got] = {}
        self.waiting_ahead = WaitingAhead(self.node)
        self.pace = Pace(self.node, 1_000_000, self.name)
        self.handled_at = 0
        if remembered is not None:
            self.names.update(remembered.names)
            config = remembered.config
            self.node.start(self.now(), self.mesh.boot, remembered.promised, config)
        else:
            self.pace.floor = max(0, int(time.time()) - ERA)
            self.node.start(self.now(), self.mesh.boot, NO_EPOCH)
        self.map_changed()
        self.timer = self.mesh.mishaps.later(0.0, "leases", self.poll)

    # -- as any algorithm --------------------------------------------------------------

    def now(self) -> int:
        """In microseconds."""
        self.handled_at = self.mesh.clock()
        return self.handled_at // 1000

    def request(self, client: int, want: int, priority: int) -> None:
        self.node.request(client, want, priority, self.now())
        self.carry_out()

    def withdraw(self, client: int) -> bool:
        now = self.now()
        waited = self.node.withdraw(client, now)
        if not self.node.waiting:
            for request in self.waiting_ahead.empty():
                self.node.receive(request, now)
        self.carry_out()
        return waited

    def release(self, client: int) -> None:
        self.node.release(client, self.now())
        self.carry_out()

    def tokens(self) -> int:
        return 1 if self.node.usable(self.now()) else 0

    def free_permits(self) -> int:
        return self.node.token.free if self.node.token is not None and self.tokens() else 0

    def choices(self) -> int:
        return 1

    def choose(self, choice: int) -> None:
        pass

    def start(self) -> None:
        pass

    def link_up(self, peer: int) -> None:
        pass

    def link_down(self, peer: int) -> None:
        pass

    # -- what it says ------------------------------------------------------------------

    def carry_out(self) -> None:
        """Do what the state machine asked for, in order."""
        effects = self.out[:]
        self.out.clear()
        mute = self.unsaved is not None and not self.keep(self.unsaved)
        failure: Exception | None = None
        for effect in effects:
            try:
                if isinstance(effect, Message):
                    if not mute:
                        self.post(effect)
                elif isinstance(effect, Granted):
                    self.pool.out.append(Enter(effect.client, fence_number(effect.fence)))
                elif isinstance(effect, Lost):
                    self.pool.take_away(effect.client)
                elif isinstance(effect, Keep):
                    mute = True  # unless it is kept
                    mute = not self.keep(self.promised(effect))
                elif isinstance(effect, Misfit):
                    self.misfit(effect)
            except Exception as error:  # it fails alone; whoever caused it is told
                failure = failure or error
        if failure is not None:
            raise failure

    def promised(self, keep: Keep) -> Promised:
        names = {number: self.name(number) for number in keep.config[1]}
        return Promised(keep.promised, keep.config, names)

    def misfit(self, misfit: Misfit) -> None:
        """They do not listen to each other until somebody mends a configuration."""
        _, members, permits, lease = misfit.config
        names = ", ".join(sorted(self.name(number) for number in members))
        said = f"{permits} permits, leases of {lease / (1 - DRIFT) / 1e6:.3g} s, members {names}"
        self.pool.conflict = (
            f"{self.name(misfit.node)} goes by another configuration of the pool "
            f"{self.pool.name} ({said}) than we do: say the same everywhere."
        )

    def keep(self, promised: Promised) -> bool:
        """Before it is on disk nothing leaves: a node whose disk is full is silent."""
        if self.promises is None or self.promises.write(promised):
            self.unsaved = None
            return True
        self.unsaved = promised
        return False

    def post(self, message: Message) -> None:
        if isinstance(message, Got):
            self.receipts[message.receiver] = message  # the last one is enough: see poll
            return
        name = self.names.get(message.receiver)
        kind, *fields = routed.CONTENTS[message.kind](message)
        if isinstance(message, Token):
            self.waiting_ahead.leaves(message)
        elif isinstance(message, Request):
            place = self.waiting_ahead.place(message.asked)
            if place is not None:
                name = self.names[place]
                kind, fields[2] = routed.LATER, self.waiting_ahead.hop
        if name is not None:
            self.mail(name, kind, fields)

    def mail(self, name: str, kind: str, fields: Sequence[Any]) -> None:
        self.pool.measures.sends(kind)
        way = (self.pool.me, name)
        routed.post(self.mesh, self.pool.name, kind, way, self.handled_at, fields)

    # -- what it hears -----------------------------------------------------------------

    def hear(self, peer: str, frame: Carry) -> None:
        incoming = routed.read(frame.args)
        if incoming.target != self.pool.me:
            routed.hand_on(self.mesh, self.pool.name, frame.kind, incoming)
            return
        try:
            message = routed.message(frame.kind, incoming, self.me)
            if incoming.origin not in self.numbers and not re.fullmatch(NAME, incoming.origin):
                raise BadFrame("a routed message of somebody who cannot be called so")
        except BadFrame as error:
            if incoming.origin == peer:
                raise
            self.mesh.refusals.note(incoming.origin, f"it wrote {error}")  # the bearer is innocent
            return
        sender = self.numbers.get(incoming.origin)
        if sender is None:
            if len(self.numbers) > 2 * MOST_NODES:
                return  # it will be on the map before it writes again
            sender = self.charter.number(incoming.origin)
            self.meet(sender, incoming.origin)
        message.sender = sender
        now = self.now()
        if isinstance(message, Token):
            under_way = routed.time_under_way(self.mesh, incoming)
            message.travelled = int(under_way * (1 + 2 * DRIFT)) // 1000 + 1
            self.waiting_ahead.joins(message)
        elif (
            isinstance(message, Request)
            and frame.kind == routed.LATER
            and self.waiting_ahead.keep(message)
        ):
            return
        self.pool.measures.received += 1
        self.node.receive(message, now)
        if frame.kind in DECISIVE:
            self.pace.poll(now, random.random())
        self.carry_out()

    def map_changed(self) -> None:
        """Who can be reached, as the mesh sees it now."""
        known = self.names
        self.names, self.numbers = {}, {}
        self.meet(self.me, self.pool.me)
        for number in self.node.members:
            if number in known:
                self.meet(number, known[number])
        for name in self.mesh.link_map.links:
            self.meet(self.charter.number(name), name)
        here = [number for number, name in self.names.items() if self.reaches(name)]
        self.agreement.nodes = tuple(sorted({*here, *self.node.members}))
        self.node.gone = {number for number in self.names if number not in here}

    def meet(self, number: int, name: str) -> None:
        self.names[number] = name
        self.numbers[name] = number

    def reaches(self, name: str) -> bool:
        return name == self.pool.me or self.mesh.link_map.reaches(name)

    # -- time --------------------------------------------------------------------------

    def poll(self) -> None:
        """Whatever becomes of one look at the time, there is another."""
        now = self.now()
        step = self.agreement.lease // POLLS
        try:
            self.pace.poll(now, random.random())
            self.carry_out()
            self.pool.carry_out("poll", {})
            self.acknowledge()
            self.mesh.flush()
            for grant in self.node.grants.values():
                step = min(step, max(0, grant.until - now))
        finally:
            self.timer = self.mesh.mishaps.later(step / 1e6, "leases", self.poll)

    def acknowledge(self) -> None:
        """A token's receipt matters only if nothing else tells that it arrived, so it can wait."""
        if self.receipts and self.unsaved is None:
            for receiver, got in self.receipts.items():
                if receiver in self.names:
                    self.mail(self.names[receiver], got.kind, got.freeze()[1:])
            self.receipts.clear()

    def record(
        self, recording: Recording, event: str, cause: dict[str, Any], effects: list[Effect]
    ) -> None:
        """What clients did and were given, for the trace."""
        enters = [effect for effect in effects if isinstance(effect, Enter)]
        if event in ("request", "leave", "withdraw"):
            recording.leased(event, self.me, **cause)
        elif enters:
            recording.leased("timer", self.me)
        for enter in enters:
            recording.entered(self.me, enter.client, enter.fence, self.until(enter.client))
        if event == "poll":
            for client in [grant.client for grant in self.node.grants.values()]:
                recording.renewed(self.me, client, self.until(client))

    def until(self, client: int) -> float | None:
        """When this client's lease ends unless it is renewed: seconds of CLOCK_BOOTTIME."""
        for grant in self.node.grants.values():
            if grant.client == client:
                return grant.until / 1e6 / self.mesh.clock_rate
        return None

    # -- what people ask ---------------------------------------------------------------

    def name(self, number: int) -> str:
        return self.names.get(number, "?")

    def describe(self) -> dict[str, Any]:
        node, now = self.node, self.now()
        members = node.members
        reached = [number for number in members if number not in node.gone]
        return {
            "lease": self.charter.lease / 1e6,
            "members": self.members(),
            "members_reached": len(reached),
            "majority": majority(members),
            "epoch": node.adopted[0] if node.adopted != NO_EPOCH else None,
            "proposer": self.name(node.adopted[1]) if node.adopted != NO_EPOCH else None,
            "suspected": sorted(self.name(number) for number in self.pace.suspects()),
            "why": self.pace.why(now),
        }

    # -- the end -----------------------------------------------------------------------

    # -- members -----------------------------------------------------------------------

    async def change(self, name: str, added: bool) -> list[str]:
        """Have the members change; done when an epoch goes by the new ones."""
        node, number = self.node, self.charter.number(name)
        if not node.member:
            raise Refused(
                f"{self.pool.me} is no member of {self.pool.name}: ask a member to do it."
            )
        if added and not self.reaches(name):
            raise Refused(f"{name} is not on the map of the mesh: start it, then add it.")
        if not added and node.members == (number,):
            raise Refused(f"{name} is the last member of {self.pool.name}: one must stay.")
        if self.pace.change is not None:
            raise Refused("Another change of members is under way: wait for it.")
        self.names.setdefault(number, name)
        while added != (number in node.members):
            self.pace.change = (added, number)
            try:
                await asyncio.sleep(self.mesh.heartbeat)
            finally:
                self.pace.change = None
        self.map_changed()
        return self.members()

    def members(self) -> list[str]:
        return sorted(self.name(number) for number in self.node.members)

    async def leave(self) -> None:
        """Hand the token on, and wait until all that we held is known to be back."""
        node, members = self.node, self.node.members
        for client in list(node.waiting):
            self.withdraw(client)
        heirs = [number for number in members if number not in node.gone and number != self.me]
        if node.token is not None and self.tokens() and heirs:
            boot = self.mesh.link_map.records[self.names[heirs[0]]].boot
            node.give(node.token, heirs[0], boot, self.now())
            self.carry_out()
        self.mesh.flush()
        while heirs and (node.doubt is not None or node.releasing):
            await asyncio.sleep(self.mesh.heartbeat / 10)

    def close(self) -> None:
        self.timer.cancel()
