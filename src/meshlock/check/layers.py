"""Nodes that recover, one by one: their states as numbers, and what each of their handlers does."""

from __future__ import annotations

from typing import Final

from meshlock.algorithms.actor import Actor, Enter, Frozen, Message, Save
from meshlock.algorithms.amounts import fits, in_all
from meshlock.algorithms.recovery.layer import Layer, layer
from meshlock.algorithms.recovery.messages import Inner
from meshlock.algorithms.recovery.records import NO_EPOCH, Durable, Epoch, Fence, Life, TokenState
from meshlock.algorithms.recovery.terms import Terms
from meshlock.check import kinds
from meshlock.check.faults import Faults
from meshlock.check.handlers import Handlers
from meshlock.check.mail import Mail, make_relative
from meshlock.check.model import Act
from meshlock.check.setup import SetUp
from meshlock.check.standings import NO_SHIFTS, Standings
from meshlock.check.world import Disk, Running
from meshlock.properties import sentences
from meshlock.world.effects import NOTHING

NO_KEEP: Final = -1
NO_BOOT: Final = 0  # of a node that stopped for good
Key = tuple[bool, Frozen, Disk, int]


class Place:
    """A node, up or not, with its disk, and what observers need of it."""

    __slots__ = (
        "adopted",
        "balanced",
        "boot",
        "disagrees",
        "disk",
        "held",
        "holder_hop",
        "hop_seen",
        "inside",
        "members",
        "outcomes",
        "parts",
        "permits",
        "promised",
        "proposing",
        "returning",
        "running",
        "seeking",
        "sought",
        "state",
        "steps",
        "takes_part",
        "token",
        "unaccepted",
        "up",
        "waiting",
    )

    def __init__(self, key: Key) -> None:
        self.up, self.state, self.disk, self.boot = key
        self.promised = NO_EPOCH if self.disk is None else self.disk[0]
        self.members: tuple[int, ...] = ()
        self.permits = 0
        self.running: list[Running] = []
        self.held: TokenState | None = None  # the token here, if it can be used
        self.token: TokenState | None = None  # the token here
        self.balanced = True  # do its free and used permits make k?
        self.hop_seen: tuple[Epoch, int] = (NO_EPOCH, -1)
        self.adopted = NO_EPOCH
        self.takes_part = False  # in that epoch
        self.disagrees = False  # the token here and the node inside, about what is free
        self.holder_hop = 0
        self.steps: list[tuple[int, int]] = []  # what the node itself could do, and with what
        self.proposing = NO_EPOCH  # the epoch for which reports are collected
        self.seeking = NO_EPOCH  # the one for which a token may be reported late, and ...
        self.sought = NO_EPOCH  # ... of which epoch that is
        self.unaccepted: tuple[Epoch, int] = (NO_EPOCH, -1)
        self.returning: dict[Fence, int] = {}
        self.inside: list[int] = []  # clients
        self.parts: dict[int, int] = {}  # and what they hold
        self.waiting: list[int] = []
        self.outcomes: dict[int, Outcome] = {}  # of its handlers so far, by label


TIMERS: Final = {
    kinds.RENEW: "renew",
    kinds.PROPOSE: "propose",
    kinds.CLOSE: "close",
    kinds.RESEND: "repeat",
}


class Outcome:
    """What one handler did in one state of a node: it never needs to run again."""

    __slots__ = ("behind", "failure", "granted", "permits", "place", "rare", "sends")

    def __init__(
        self,
        place: int,
        sends: list[int],
        granted: list[Fence],
        failure: str,
        permits: int = 0,
        behind: int = NO_KEEP,
    ) -> None:
        self.place = place
        self.sends = sends
        self.behind = behind  # this number of these is sent before it writes to disk
        self.granted = granted  # by this node, to clients of whichever
        self.failure = failure
        self.permits = permits  # k of the epoch, where a client enters
        self.rare = len(granted) > 0 or permits > 0 or failure != ""


class Layers(Handlers):
    def __init__(self, setup: SetUp, standings: Standings, faults: Faults) -> None:
        super().__init__(setup, standings, False)
        self.faults = faults
        everybody = tuple(range(self.size))
        self.terms = Terms(
            everybody,
            faults.members,
            setup.permits,
            faults.lease,
            faults.wait,
            setup.algorithm,
            setup.options,
            setup.network.neighbours,
            faults.slots,
            faults.rules,
            tuple(map(str, range(in_all(setup.permits)))),
        )
        self.nodes = [self.make(i) for i in everybody]
        self.mail = Mail(faults.lease)
        self.places: list[list[Place]] = [[] for _ in everybody]
        self.numbers: list[dict[Key, int]] = [{} for _ in everybody]
        self.current = [-1] * self.size  # the place in which each of the nodes is, if any
        # of the run at hand
        self.expected: list[int] = []  # clients that may enter
        self.disk: Disk = None
        self.granted: list[Fence] = []
        self.permits = 0
        self.behind = NO_KEEP

    def make(self, i: int) -> Layer:
        return layer(i, self.out, self.terms)

    def birth(self, i: int) -> int:
        """The place of a node that has just started for the first time."""
        node = self.nodes[i] = self.make(i)
        disk: Disk = None
        if self.faults.rules is not None and i == 0:
            node.start(Life(1, alone=True, founds=True))
            disk = (node.member.promised, node.member.config)
        else:
            node.start(Life(1))
        self.out.clear()
        return self.number(i, (True, node.freeze(), disk, 1))

    def down(self, i: int, place: int) -> int:
        """All that is left of a node that crashes."""
        before = self.places[i][place]
        return self.number(i, (False, (), before.disk, before.boot))

    def dead(self, i: int) -> int:
        """Of one that stops for good, nothing."""
        return self.number(i, (False, (), None, NO_BOOT))

    def with_disk(self, i: int, place: int, disk: Disk) -> int:
        """The same, but for what its disk knows."""
        known = self.places[i][place]
        return self.find(i, (known.up, known.state, disk, known.boot))

    # -- states as numbers ---------------------------------------------------------------------

    def number(self, i: int, key: Key) -> int:
        numbers = self.numbers[i]
        known = numbers.get(key, -1)
        if known < 0:
            known = len(numbers)
            numbers[key] = known
            place = Place(key)
            if place.up:
                node = self.nodes[i]
                if node.member.now != 0:
                    node.thaw(place.state)
                self.look(place, node)
            self.places[i].append(place)
        return known

    def find(self, i: int, key: Key) -> int:
        """The number of a place that another process has reached."""
        known = self.numbers[i].get(key, -1)
        if known < 0:
            if key[0]:
                self.nodes[i].thaw(key[1])
            self.current[i] = -1
            known = self.number(i, key)
        return known

    def look(self, place: Place, node: Layer) -> None:
        """Fill in what others see of this node, and what it could do."""
        grants = sorted(node.member.grants.items())
        place.promised = node.member.promised
        place.members = node.member.members
        place.permits = node.member.config.permits
        place.running = [
            (fence, grant.permits, grant.until, grant.slots) for fence, grant in grants
        ]
        if node.member.holding.token is not None:
            place.token = node.member.holding.token.state()
            place.balanced = balanced(place.token, node.member.config.permits, node.member.paused())
            if node.member.usable():
                place.held = place.token
        inner = node.epoch.inner
        if place.held is not None and inner is not None and can_agree(node):
            place.disagrees = inner.tokens() == 0 or inner.free_permits() != place.held.free
        place.inside = [grant.client for _, grant in grants]
        place.parts = {grant.client: grant.permits for _, grant in grants}
        place.waiting = list(node.clients.waiting)
        place.hop_seen = node.member.hop_seen
        place.adopted = node.member.adopted
        place.takes_part = node.epoch.inner is not None
        place.holder_hop = node.member.holding.holder_hop
        place.returning = dict(node.epoch.keeper.returning)
        if node.member.holding.unaccepted is not None:
            place.unaccepted = (
                node.member.holding.unaccepted.state.epoch,
                node.member.holding.unaccepted.state.hop,
            )
        if node.member.proposal is not None and not node.member.proposal.closed:
            place.proposing = node.member.proposal.epoch
        elif node.member.proposal is not None and node.member.proposal.usable is None:
            place.seeking, place.sought = node.member.proposal.epoch, node.member.proposal.top
        place.steps = self.own_steps(place, node)

    def own_steps(self, place: Place, node: Layer) -> list[tuple[int, int]]:
        """What this node could do of itself, as far as it is wanted at all."""
        me, faults = node.me, self.faults
        steps: list[tuple[int, int]] = []
        for client in self.clients[me]:
            if client in place.waiting:
                if self.setup.withdrawals:
                    steps.append((kinds.WITHDRAW, client))
                if client in self.standings.raises:
                    steps.append((kinds.PRIORITY, client))
            elif client in place.inside:
                if not self.setup.requests[client - 1].stays:
                    steps.append((kinds.LEAVE, client))
                standing = self.standings.inside.get((client, place.parts[client]), 0)
                for shift in self.standings.parts.get(standing, NO_SHIFTS):
                    steps.append((kinds.GIVE_BACK, shift))
            elif len(place.inside) + len(place.waiting) < self.setup.clients:
                steps.append((kinds.REQUEST, client))
        if node.member.promised == node.member.adopted and node.member.running_leases():
            steps.append((kinds.RENEW, me))
        if me in faults.proposers and node.member.votes():
            steps.append((kinds.PROPOSE, me))
            for number, change in enumerate(faults.changes):
                if not change.is_made(node.member.config):
                    steps.append((kinds.CHANGE, me * len(faults.changes) + number))
        if node.member.proposal is not None and node.member.proposal.may_close():
            steps.append((kinds.CLOSE, me))
        if place.waiting or place.returning or node.member.holding.unaccepted is not None:
            steps.append((kinds.RESEND, me))
        return steps

    # -- running a handler ---------------------------------------------------------------------

    def outcome(self, i: int, place: int, kind: int, subject: int) -> Outcome:
        """Run a handler that is not among the place's outcomes yet."""
        outcome = self.run(i, place, kind, subject)
        self.places[i][place].outcomes[(kind << kinds.SHIFT) + subject] = outcome
        return outcome

    def run(self, i: int, number: int, kind: int, subject: int) -> Outcome:
        place = self.places[i][number]
        node = self.ready(i, number, kind)
        had = set(node.member.grants)
        self.expected = list(node.clients.waiting)
        if kind == kinds.REQUEST:
            self.expected.append(subject)
        self.disk = None if kind == kinds.FORGET else place.disk
        self.sends, self.granted, self.permits, self.behind = [], [], 0, NO_KEEP
        self.failure = self.handle(node, place, kind, subject)
        self.done(node, kinds.NAMES[kind], NOTHING, 0, 0)
        if self.failure:
            return Outcome(number, [], [], sentences.failed(i, self.failure))
        lent = self.mail.carried[subject].inner if kind == kinds.DELIVER else None
        if lent is not None and lent.lent is not None:
            had.add(lent.lent.fence)  # its maker was judged for it
        granted = self.granted + [fence for fence in node.member.grants if fence not in had]
        granted.sort()
        after = self.number(i, (True, node.freeze(), self.disk, node.member.boot))
        if node.member.now == 0:
            self.current[i] = after
        return Outcome(after, self.sends, granted, "", self.permits, self.behind)

    # -- what its effects come to --------------------------------------------------------------

    def transmit(self, message: Message) -> None:
        if isinstance(message, Inner) and message.lent is not None:
            self.granted.append(message.lent.fence)
        self.sends.append(self.mail.number(message, self.nodes[message.sender].member.now))

    def admits(self, node: Actor, enter: Enter) -> int:
        self.permits = enter.permits
        if enter.client not in self.expected:
            self.failure = self.failure or sentences.uninvited(node.me, enter.client)
        return 0

    def keeps(self, node: Actor, save: Save) -> None:
        assert isinstance(save.record, Durable)
        self.disk = save.record
        self.behind = len(self.sends) if self.behind == NO_KEEP else self.behind

    def ready(self, i: int, number: int, kind: int) -> Layer:
        """The node as it is before a handler runs."""
        if kind in (kinds.RESTART, kinds.FORGET):
            self.nodes[i] = self.make(i)
        elif number != self.current[i]:
            self.nodes[i].thaw(self.places[i][number].state)
        self.current[i] = -1
        return self.nodes[i]

    def fresh(self, message: int) -> Message:
        return self.mail.fresh(message)

    def handle(self, node: Layer, place: Place, kind: int, subject: int) -> str:
        """Run one handler; the empty text, or what went wrong."""
        try:
            if kind == kinds.TICK:
                node.tell_time(1)
                node.timer("expire")
            elif kind in TIMERS:
                node.timer(TIMERS[kind])
            elif kind == kinds.CHANGE:
                changes = self.faults.changes
                node.propose(changes[subject % len(changes)])
            elif kind in (kinds.RESTART, kinds.FORGET):
                kept = place.disk if kind == kinds.RESTART else None
                node.start(Life(place.boot + 1, kept and Durable(*kept), subject))
            else:
                self.take(node, kind, subject)
        except Exception as error:
            self.nodes[node.me] = self.make(node.me)  # this one may have stopped half-way
            return sentences.raised(error)
        return ""

    def act(self, i: int, number: int, kind: int, subject: int) -> Act:
        place = self.places[i][number]
        node = self.ready(i, number, kind)
        act = self.cause(node, kind, subject)
        act.before = place.state if place.up else node.freeze()
        act.failure = self.handle(node, place, kind, subject)
        for effect in self.out:
            if isinstance(effect, Message):
                make_relative(effect, node.member.now)
            elif isinstance(effect, Enter):
                effect.until -= node.member.now
        return self.came_of(act, node)


def balanced(token: TokenState, permits: int, paused: bool) -> bool:
    out = sum([one.permits for one in token.ledger])
    return (fits(0, token.free) or paused) and token.free + out == permits


def can_agree(node: Layer) -> bool:
    """Does the node inside know all that its layer has done?"""
    return len(node.epoch.gate.withheld) == 0 and not node.member.paused()
