"""Recovery under the checker: crashes, restarts, forgetting, delay, doubling, time.

The nodes are those of :mod:`meshlock.algorithms.recovery.node`, handler for handler. The world
around them may do anything within its *bounds*: deliver any message at any time or never,
deliver it twice, stop a node, start it again with or without its disk, let time pass. A
message that is late for ever is a lost one. A partition is messages between two sides that are
late, and it heals when they arrive, or never do and are said again: both are among the
interleavings without being steps of their own. When to renew, repeat, propose and close is left
open altogether, so whatever :class:`Pace` chooses is among them too; that it chooses well is
tried from states of the search, when faults stop (:meth:`RecoveryModel.rounds_to_serve`).

**Who is gone** is not modelled. The state machine asks for it only where it sends: whoever is
gone loses its place in the queue, as if its REQUEST had been lost, and is not asked, as if the
question had been.

**Time.** A *tick* lets a unit of time pass on all clocks; a lease is ``lease`` ticks, whoever
waits waits ``wait`` ticks, and any number of steps happens between two ticks. Only differences of
times are kept (what is left of a lease, the age of a renewal), so time has no beginning
and the states stay finitely many. With two ticks to a lease two leases can overlap in part,
which is what the rules must withstand; handlers only compare and add times, so what matters is
the order of deadlines, and a deadline can fall before, between or after the others. A *slow*
tick is one that a node's clock misses. With at most one missed, ``wait = lease + 1`` is the margin
for the rates of clocks.

**A client** holds its permits until it leaves or its lease ends by its node's clock. When its
node crashes it runs on as an *orphan* until then, which is the worst it is allowed to do.

**Fewer states, and why nothing is missed.** Of two renewals on the same way only the later is
kept: its answer is given under the same condition and is worth more. Usually a renewal
*meets* a member at once, question and answer in one step. Take a run in which the question
arrives later: the member says yes then, so it would have said yes before, too (with its
disk its promises only rise; without, it is silent until the question is worthless); the
lease has the same end, for it counts from the sending; and the node merely knows it
earlier, which allows more. Only the member refuses lower epochs earlier than it had to. With
``detached`` both travel: mistakes about the time of the answer need it, and small bounds
are explored so. A member that missed the epoch asks WHICH in the same step; the COPY that it gets
travels like any message. Messages that their receiver would refuse for ever are taken away, unless
it may still forget why; so are old REQUESTs whose only effect would be that their sender hears of
an epoch, once it has heard of one.

Properties, judged after every step:

*safety*        permits under valid leases are at most k
*fences*        every grant's fence is above all fences granted before it
*one-token*     at most one token can be used, here or on its way
*ledger*        every grant under a valid lease stands in the ledger of the token that can be used
*conservation*  free permits and ledger make k, and there is no debt
*order*         with no request and no token under way, whoever is let in has the highest priority
                of all who wait (judged where nothing crashes, is lost or changes epoch, and fewer
                grants are made than one step of priority is worth)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from meshlock.algorithms.interface import Effect, Frozen, Message
from meshlock.algorithms.recovery.messages import (
    KINDS,
    NO_EPOCH,
    Asked,
    Change,
    Config,
    Entry,
    Epoch,
    Fence,
    Granted,
    Ledger,
    Papers,
    Renew,
    Still,
    Token,
)
from meshlock.algorithms.recovery.node import Pool, RecoveryNode
from meshlock.algorithms.recovery.pace import Pace
from meshlock.check.model import Act, Fault, Model

ASK, LEAVE, WITHDRAW, RENEW, PROPOSE, CHANGE, CLOSE, REPEAT = range(8)
DELIVER, DOUBLE, LOSE, CRASH, RESTART, FORGET, TICK, SLOW, MEET = range(8, 17)
NAMES = [
    "ask",
    "leave",
    "withdraw",
    "renew",
    "propose",
    "change",
    "close",
    "repeat",
    "deliver",
    "double",
    "lose",
    "crash",
    "restart",
    "forget",
    "tick",
    "slow",
    "meet",
]
SHIFT = 26
MOST_WAVES = 100
MOST_CARRIED = 10_000

Make = Callable[[int, Pool, list[Effect]], RecoveryNode]


class Bounds:
    """What may happen, how often, and to whom. Nodes are named by their numbers."""

    def __init__(
        self,
        members: int = 3,
        others: int = 0,
        permits: int = 1,
        *,
        wants: dict[int, int] | None = None,
        clients: tuple[tuple[int, int, int], ...] | None = None,
        asks: int = 1,
        withdraws: int = 0,
        repeats: int = 0,
        changes: tuple[Change, ...] = (),
        proposals: int = 1,
        proposers: tuple[int, ...] | None = None,
        crashes: int = 0,
        crashing: tuple[int, ...] | None = None,
        forgets: int = 0,
        doubles: int = 0,
        losses: int = 0,
        slow: int = 0,
        lease: int = 2,
        wait: int = 2,
        leaves: bool = True,
        born: bool = False,
        detached: bool = False,
        wall_clock: bool = True,
        stale: bool = False,
    ) -> None:
        size = members + others
        everybody = tuple(range(size))
        self.pool = Pool(everybody, tuple(range(members)), permits, lease, wait)
        self.size = size
        if clients is None:
            wishes = wants if wants is not None else dict.fromkeys(everybody, 1)
            clients = tuple([(node, want, 0) for node, want in wishes.items()])
        self.clients = clients  # node, want, priority; a client's number is its place here
        self.asks = asks  # times that each of these asks, in all
        self.withdraws = withdraws
        self.repeats = repeats
        self.changes = changes  # of the members; each may be proposed instead of a mere epoch
        self.proposals = proposals
        self.proposers = proposers if proposers is not None else self.pool.members
        self.crashes = crashes
        self.crashing = crashing if crashing is not None else everybody
        self.forgets = forgets  # of the restarts so many may be without disk
        self.doubles = doubles
        self.losses = losses
        self.slow = slow
        self.leaves = leaves  # may clients leave, or only lose their leases?
        self.born = born  # begin at the birth of the pool, not in its first epoch
        self.detached = detached  # do renewals and their answers travel, or meet at once?
        self.stale = stale  # keep copies of ledgers for lives that are over
        self.ordered = proposals + crashes + losses == 0 and not born
        self.wall_clock = wall_clock  # where the disk is gone, is there a clock to number epochs?


class Place:
    """A node's state, running or not, and what observers need of it."""

    def __init__(self, up: bool, state: Frozen, promised: Epoch, config: Config, boot: int) -> None:
        self.up = up
        self.state = state
        self.promised = promised
        self.config = config
        self.boot = boot
        self.running: list[tuple[Fence, int, int]] = []  # fence, permits, time left
        self.held: Papers | None = None  # the token here, if it can be used
        self.papers: Papers | None = None  # the token here
        self.hop_seen: tuple[Epoch, int] = (NO_EPOCH, -1)
        self.adopted: Epoch = NO_EPOCH
        self.settled = False
        self.guess_hop = 0
        self.steps: list[tuple[int, int]] = []  # what the node itself could do, and with what
        self.proposing: Epoch = NO_EPOCH  # the epoch for which reports are collected
        self.doubt: tuple[Epoch, int] = (NO_EPOCH, -1)
        self.owes: list[Fence] = []
        self.inside: list[int] = []  # clients
        self.waiting: list[int] = []


class Outcome:
    def __init__(self, place: int, sends: list[int], granted: list[Fence]) -> None:
        self.place = place
        self.sends = sends
        self.granted = granted


Orphan = tuple[int, Fence, int, int]
State = tuple[tuple[int, ...], tuple[int, ...], tuple[Orphan, ...], tuple[int, ...], Fence]
"""Places, messages, orphans, what is left of the bounds, the highest fence so far."""

LEFT_PROPOSALS, LEFT_CRASHES, LEFT_FORGETS, LEFT_DOUBLES, LEFT_LOSSES, LEFT_SLOW = range(6)
LEFT_WITHDRAWS, LEFT_REPEATS, LEFT_CHANGES, LEFT_ASKS = range(6, 10)


class Unplayable(ValueError):
    """A script asks for a step that is not possible, or that violates a property."""


class RecoveryModel(Model):
    """``script``: steps by name that lead in; the search begins where they end."""

    def __init__(
        self, bounds: Bounds, make: Make = RecoveryNode, script: list[str] | None = None
    ) -> None:
        super().__init__()
        self.bounds = bounds
        self.script = script if script is not None else []
        self.pool = bounds.pool
        self.make = make
        self.out: list[Effect] = []
        self.nodes = [make(i, self.pool, self.out) for i in range(bounds.size)]
        self.places: list[Place] = []
        self.place_numbers: list[dict[tuple[bool, Frozen, Epoch, Frozen, int], int]] = [
            {} for _ in range(bounds.size)
        ]
        self.messages: list[tuple[int, int, Frozen]] = []
        self.message_numbers: dict[tuple[int, int, Frozen], int] = {}
        self.tracks: list[Frozen] = []  # of renewals: all but their time
        self.older: dict[tuple[int, int], int] = {}  # message, slow node: the same one tick later
        self.outcomes: dict[tuple[int, int, int, int], Outcome] = {}
        self.rows: list[State] = []
        self.row_numbers: dict[State, int] = {}
        self.kinds: dict[str, type[Message]] = {kind.kind: kind for kind in KINDS}
        self.first: State | None = None

    # -- the first state -----------------------------------------------------------------------

    def initial(self) -> int:
        if self.first is None:
            self.first = self.birth() if self.bounds.born else self.first_epoch()
            for step in self.script:
                self.first = self.play(self.first, step)
        return self.number(self.first)

    def play(self, row: State, step: str) -> State:
        """The state after the step of that name; of several messages alike, the latest."""
        for kind, subject in reversed(self.steps(row)):
            if self.name(kind, subject) == step:
                after = self.after(row, kind, subject)
                for _, text in self.judge(row, after):
                    raise Unplayable(f"'{step}' goes wrong: {text}.")
                return after
        possible = ", ".join([self.name(kind, subject) for kind, subject in self.steps(row)])
        raise Unplayable(f"'{step}' cannot happen here; what can: {possible}.")

    def birth(self) -> State:
        """Everybody has just started and nobody has a disk yet."""
        bounds = self.bounds
        places: list[int] = []
        for i in range(bounds.size):
            node = self.make(i, self.pool, self.out)
            node.start(0, 1, NO_EPOCH)
            places.append(self.place(i, True, node.freeze(0), node.promised, node.config, 1))
        self.out.clear()
        left = [
            bounds.proposals,
            bounds.crashes,
            bounds.forgets,
            bounds.doubles,
            bounds.losses,
            bounds.slow,
            bounds.withdraws,
            bounds.repeats,
            len(bounds.changes),
        ]
        left += [bounds.asks] * len(bounds.clients)
        return (tuple(places), (), (), tuple(left), (NO_EPOCH, 0))

    def first_epoch(self) -> State:
        """Birth, then node 0 proposes, everybody answers in time, and it has the first token."""
        state = self.birth()
        places, _, _, budget, _ = state
        left = list(budget)
        left[LEFT_PROPOSALS] += 1
        state = (places, (), (), tuple(left), (NO_EPOCH, 0))
        for _ in range(self.pool.wait):
            state = self.after(state, TICK, 0)
        state = self.deliver_all(self.after(state, PROPOSE, 0))
        state = self.deliver_all(self.after(state, CLOSE, 0))
        for _ in range(self.pool.wait):
            state = self.deliver_all(self.after(state, RENEW, 0))
            state = self.after(state, TICK, 0)
        return self.deliver_all(self.after(state, RENEW, 0))

    def deliver_all(self, row: State) -> State:
        """Wave after wave, until there is quiet."""
        waves = 0
        while row[1] and waves < MOST_WAVES:
            for message in row[1]:
                if message in row[1] and self.places[row[0][self.messages[message][1]]].up:
                    row = self.after(row, DELIVER, message)
            waves += 1
        return row

    # -- when faults stop ----------------------------------------------------------------------

    def rounds_to_serve(self, number: int, most: int) -> int:
        """From here on nothing fails: after how many ticks is everybody served, and all is free?

        Who is down restarts, every client asks once more and leaves when it was in, messages
        arrive at once, and all else is left to :class:`Pace`, which is told of nobody that it is
        gone. -1: not within so many ticks.
        """
        places, messages, _, _, _ = self.rows[number]
        nodes: list[RecoveryNode] = []
        for i in range(self.bounds.size):
            place = self.places[places[i]]
            node = self.make(i, self.pool, self.out)
            if place.up:
                node.thaw(place.state)
            else:
                node.start(0, place.boot + 1, place.promised, place.config)
            nodes.append(node)
        paces = [Pace(node, 1) for node in nodes]
        line = [self.message(message) for message in messages]
        asking = list(range(len(self.bounds.clients)))
        for now in range(most):
            self.carry(nodes, line, now)
            for client in list(asking):
                i, want, priority = self.bounds.clients[client]
                node = nodes[i]
                if client not in node.waiting and not has_grant(node, client):
                    asking.remove(client)
                    node.request(client, want, priority, now)
                    self.carry(nodes, line, now)
            for i in range(self.bounds.size):
                paces[i].poll(now, (3 * i + now) % 7 / 7)
                self.carry(nodes, line, now)
                for client in [grant.client for grant in nodes[i].grants.values()]:
                    nodes[i].release(client, now)
                    self.carry(nodes, line, now)
            if len(asking) == 0 and self.all_is_well(nodes, now):
                return now
        return -1

    def carry(self, nodes: list[RecoveryNode], line: list[Message], now: int) -> None:
        """Deliver everything, and what follows from it."""
        carried = 0
        while carried < MOST_CARRIED:
            line += [effect for effect in self.out if isinstance(effect, Message)]
            self.out.clear()
            if len(line) == 0:
                return
            message = line.pop(0)
            nodes[message.receiver].receive(message, now)
            carried += 1

    def all_is_well(self, nodes: list[RecoveryNode], now: int) -> bool:
        if any(len(node.waiting) > 0 or len(node.grants) > 0 for node in nodes):
            return False
        return any(
            node.usable(now) and node.token is not None and node.token.free == self.pool.permits
            for node in nodes
        )

    # -- steps ---------------------------------------------------------------------------------

    def number(self, state: State) -> int:
        known = self.row_numbers.get(state, -1)
        if known < 0:
            known = len(self.rows)
            self.row_numbers[state] = known
            self.rows.append(state)
        return known

    def expand(self, state: int) -> None:
        self.successors.clear()
        self.labels.clear()
        self.faults.clear()
        row = self.rows[state]
        for kind, subject in self.steps(row):
            label = (kind << SHIFT) + subject
            after = self.after(row, kind, subject)
            wrong = self.judge(row, after)
            if wrong:
                for name, text in wrong:
                    self.faults.append(Fault(name, text, label))
            elif after != row:
                self.successors.append(self.number(after))
                self.labels.append(label)

    def steps(self, row: State) -> list[tuple[int, int]]:
        """All that can happen next."""
        places, messages, _, left, _ = row
        bounds = self.bounds
        found: list[tuple[int, int]] = []
        for i in range(bounds.size):
            place = self.places[places[i]]
            if place.up:
                for kind, subject in place.steps:
                    if (
                        (kind == ASK and left[LEFT_ASKS + subject] == 0)
                        or (kind in (PROPOSE, CHANGE) and left[LEFT_PROPOSALS] == 0)
                        or (kind == CHANGE and left[LEFT_CHANGES] == 0)
                        or (kind == LEAVE and not bounds.leaves)
                        or (kind == WITHDRAW and left[LEFT_WITHDRAWS] == 0)
                        or (kind == REPEAT and left[LEFT_REPEATS] == 0)
                    ):
                        continue
                    if kind == RENEW and not bounds.detached:
                        members = place.config[1]
                        found += [
                            (MEET, i * bounds.size + member)
                            for member in members
                            if (member != i or len(members) == 1) and self.places[places[member]].up
                        ]
                        continue
                    found.append((kind, subject))
                if left[LEFT_CRASHES] > 0 and i in bounds.crashing:
                    found.append((CRASH, i))
            else:
                found.append((RESTART, i))
                if left[LEFT_FORGETS] > 0:
                    found.append((FORGET, i))
        for message in messages:
            receiver = self.messages[message][1]
            if self.places[places[receiver]].up:
                found.append((DELIVER, message))
                if left[LEFT_DOUBLES] > 0:
                    found.append((DOUBLE, message))
            if left[LEFT_LOSSES] > 0:
                found.append((LOSE, message))
        found.append((TICK, 0))
        if left[LEFT_SLOW] > 0:
            found += [(SLOW, i) for i in range(bounds.size)]
        return found

    def after(self, row: State, kind: int, subject: int) -> State:
        places, messages, orphans, left, fence = row
        if kind in (TICK, SLOW):
            return self.tick(row, subject if kind == SLOW else -1)
        if kind == CRASH:
            return self.crash(row, subject)
        if kind == MEET:
            return self.meet(row, subject // self.bounds.size, subject % self.bounds.size)
        if kind == LOSE:
            rest = tuple([message for message in messages if message != subject])
            return (places, rest, orphans, less(left, LEFT_LOSSES), fence)
        i = subject
        if kind in (ASK, LEAVE, WITHDRAW):
            i = self.bounds.clients[subject][0]
        if kind in (DELIVER, DOUBLE):
            i = self.messages[subject][1]
            if kind == DELIVER:
                messages = tuple([message for message in messages if message != subject])
            else:
                left = less(left, LEFT_DOUBLES)
        elif kind == ASK:
            left = less(left, LEFT_ASKS + subject)
        elif kind == WITHDRAW:
            left = less(left, LEFT_WITHDRAWS)
        elif kind == REPEAT:
            left = less(left, LEFT_REPEATS)
        elif kind == PROPOSE:
            left = less(left, LEFT_PROPOSALS)
        elif kind == CHANGE:
            i = subject // len(self.bounds.changes)
            left = less(less(left, LEFT_PROPOSALS), LEFT_CHANGES)
        elif kind == FORGET:
            left = less(left, LEFT_FORGETS)
        detail = subject
        if kind == PROPOSE:
            detail = self.wall_clock(row)
        outcome = self.outcome(i, places[i], kind, detail)
        changed = (*places[:i], outcome.place, *places[i + 1 :])
        for granted in outcome.granted:
            fence = granted if granted > fence else (fence[0], -1)  # judge: it did not grow
        return self.settled(changed, messages, outcome.sends, orphans, left, fence)

    def wall_clock(self, row: State) -> int:
        """Not below any number that an epoch had before; only for those without a disk."""
        if not self.bounds.wall_clock or self.bounds.forgets == 0:
            return 0
        return max(row[4][0][0], *[self.places[place].promised[0] for place in row[0]])

    def settled(
        self,
        places: tuple[int, ...],
        messages: tuple[int, ...],
        sends: list[int],
        orphans: tuple[Orphan, ...],
        left: tuple[int, ...],
        fence: Fence,
    ) -> State:
        """Messages that can never have an effect any more are taken away."""
        for sent in sends:
            track = self.tracks[sent]
            if track:
                messages = tuple([one for one in messages if self.tracks[one] != track])
        together = sorted({*messages, *sends}) if sends else messages
        alive = [message for message in together if not self.is_moot(message, places, left)]
        return (places, tuple(alive), orphans, left, fence)

    def is_moot(self, number: int, places: tuple[int, ...], left: tuple[int, ...]) -> bool:
        _, receiver, frozen = self.messages[number]
        place = self.places[places[receiver]]
        kind = frozen[0]
        if kind == "PROMISE":
            return not place.up or place.proposing != frozen[1]
        if kind == "GOT":
            return not place.up or place.doubt != frozen[1:3]
        if kind == "RELEASED":
            return not place.up or frozen[2] not in place.owes
        if kind == "STILL" and (not place.up or place.boot != frozen[2]):
            return True
        if kind == "WHICH":
            asker = self.places[places[cast(int, frozen[1])]]
            return not asker.up or asker.boot != frozen[2]
        if kind == "COPY":
            epoch = cast(Epoch, frozen[1])
            if epoch < place.promised or self.bounds.stale:
                return epoch < place.promised
            if not place.up or place.boot != frozen[5]:
                return True
            if place.settled and epoch <= place.adopted:
                return epoch < place.adopted or cast(int, frozen[4]) <= place.guess_hop
            return False
        if left[LEFT_FORGETS] > 0:
            return False  # who forgets may welcome what it had refused
        if kind in ("PROPOSE", "HIGHER"):
            return left[LEFT_PROPOSALS] == 0 and cast(Epoch, frozen[1]) <= place.promised
        epoch = cast(Papers, frozen[1])[0] if kind == "TOKEN" else cast(Epoch, frozen[1])
        if epoch >= place.promised:
            return False
        if kind == "REQUEST":  # all it can do is to let the asker know of a later epoch
            asked = cast(Asked, frozen[2])
            asker = self.places[places[asked[0]]]
            return not asker.up or asker.boot != asked[1] or asker.adopted > epoch
        if kind == "RELEASE":  # all it can do is to let it be acknowledged
            owner = self.places[places[cast(int, frozen[4])]]
            return not owner.up or owner.adopted != epoch or frozen[2] not in owner.owes
        return True

    def outcome(self, i: int, place: int, kind: int, subject: int) -> Outcome:
        if kind == DOUBLE:
            kind = DELIVER
        key = (i, place, kind, subject)
        known = self.outcomes.get(key)
        if known is None:
            known = self.run(i, self.places[place], kind, subject)
            self.outcomes[key] = known
        return known

    def run(self, i: int, place: Place, kind: int, subject: int) -> Outcome:
        now = 0
        boot = place.boot
        if kind in (RESTART, FORGET):
            node = self.make(i, self.pool, self.out)
            boot += 1
            if kind == FORGET:
                node.start(now, boot, NO_EPOCH)
            else:
                node.start(now, boot, place.promised, place.config)
        else:
            node = self.nodes[i]
            node.thaw(place.state)
            if kind == ASK:
                _, want, priority = self.bounds.clients[subject]
                node.request(subject, want, priority, now)
            elif kind == LEAVE:
                node.release(subject, now)
            elif kind == WITHDRAW:
                node.withdraw(subject, now)
            elif kind == RENEW:
                node.renew(now)
            elif kind == PROPOSE:
                node.propose(now, subject)
            elif kind == CHANGE:
                changes = self.bounds.changes
                node.propose(now, 0, changes[subject % len(changes)])
            elif kind == CLOSE:
                node.close(now)
            elif kind == REPEAT:
                node.repeat(now)
            elif kind == TICK:
                now = 1
                node.wake(now)
            else:
                node.receive(self.message(subject), now)
        sends: list[int] = []
        granted: list[Fence] = []
        for effect in self.out:
            if isinstance(effect, Message):
                sends.append(self.number_message(effect, now))
            elif isinstance(effect, Granted):
                granted.append(effect.fence)
        self.out.clear()
        number = self.place(i, True, node.freeze(now), node.promised, node.config, boot)
        return Outcome(number, sends, granted)

    def tick(self, row: State, slow: int) -> State:
        places, messages, orphans, left, fence = row
        if slow >= 0:
            left = less(left, LEFT_SLOW)
        older = sorted({self.age(message, slow) for message in messages} - {-1})
        sends: list[int] = []
        changed = list(places)
        for i in range(self.bounds.size):
            if self.places[places[i]].up and i != slow:
                outcome = self.outcome(i, places[i], TICK, 0)
                changed[i] = outcome.place
                sends += outcome.sends
                for granted in outcome.granted:
                    fence = granted if granted > fence else (fence[0], -1)
        alive = tuple(
            [
                (node, one, h, time if node == slow else time - 1)
                for node, one, h, time in orphans
                if time > 1 or node == slow
            ]
        )
        return self.settled(tuple(changed), tuple(older), sends, alive, left, fence)

    def meet(self, row: State, i: int, member: int) -> State:
        """Node i renews with this member: question and answer at once."""
        places, messages, orphans, left, fence = row
        asking = self.outcome(i, places[i], RENEW, i)
        changed = list(places)
        changed[i] = asking.place
        sends: list[int] = []
        for question in asking.sends:
            if self.messages[question][1] != member:
                continue
            asked = self.outcome(member, places[member], DELIVER, question)
            changed[member] = asked.place
            for answer in asked.sends:
                told = self.outcome(i, changed[i], DELIVER, answer)
                changed[i] = told.place
                sends += told.sends
                for granted in told.granted:
                    fence = granted if granted > fence else (fence[0], -1)
        return self.settled(tuple(changed), messages, sends, orphans, left, fence)

    def crash(self, row: State, i: int) -> State:
        places, messages, orphans, left, fence = row
        place = self.places[places[i]]
        more = [(i, one, h, time) for one, h, time in place.running if time > 0]
        down = self.place(i, False, (), place.promised, place.config, place.boot)
        changed = (*places[:i], down, *places[i + 1 :])
        together = tuple(sorted([*orphans, *more]))
        return self.settled(changed, messages, [], together, less(left, LEFT_CRASHES), fence)

    # -- messages ------------------------------------------------------------------------------

    def number_message(self, message: Message, now: int) -> int:
        frozen = message.freeze()
        if isinstance(message, (Renew, Ledger)):
            frozen = (*frozen[:-1], message.sent - now)
        elif isinstance(message, Still):
            frozen = (*frozen[:-2], message.sent - now, message.mine)
        return self.number_frozen((message.sender, message.receiver, frozen))

    def number_frozen(self, key: tuple[int, int, Frozen]) -> int:
        known = self.message_numbers.get(key, -1)
        if known < 0:
            known = len(self.messages)
            self.message_numbers[key] = known
            self.messages.append(key)
            self.tracks.append(track(key))
        return known

    def message(self, number: int) -> Message:
        sender, receiver, frozen = self.messages[number]
        kind: Callable[..., Message] = self.kinds[str(frozen[0])]
        message = kind(receiver, *frozen[1:])
        message.sender = sender
        return message

    def age(self, number: int, slow: int) -> int:
        """The same message a tick later; -1 if it has become worthless."""
        known = self.older.get((number, slow))
        if known is None:
            known = self.aged(self.message(number), number, slow)
            self.older[(number, slow)] = known
        return known

    def aged(self, message: Message, number: int, slow: int) -> int:
        oldest = -self.pool.lease
        if isinstance(message, (Renew, Ledger)):
            if message.sender != slow:
                message.sent = max(oldest, message.sent - 1)
                if message.sent == oldest and isinstance(message, Renew):
                    return -1
        elif isinstance(message, Still):
            if message.receiver != slow:
                message.sent -= 1
                if message.sent <= oldest:
                    return -1
        elif isinstance(message, Token):
            message.travelled = min(message.left, message.travelled + 1)
        else:
            return number
        return self.number_frozen((message.sender, message.receiver, message.freeze()))

    # -- places --------------------------------------------------------------------------------

    def place(
        self, i: int, up: bool, state: Frozen, promised: Epoch, config: Config, boot: int
    ) -> int:
        key = (up, state, promised, config[:2], boot)
        numbers = self.place_numbers[i]
        known = numbers.get(key, -1)
        if known < 0:
            known = len(self.places)
            numbers[key] = known
            self.places.append(self.described(i, Place(up, state, promised, config, boot)))
        return known

    def described(self, i: int, place: Place) -> Place:
        if not place.up:
            return place
        node = self.make(i, self.pool, [])
        node.thaw(place.state)
        place.running = [(fence, grant.h, grant.until) for fence, grant in node.grants.items()]
        if node.token is not None:
            place.papers = node.token.papers()
            if node.usable(0):
                place.held = place.papers
        place.inside = [grant.client for grant in node.grants.values()]
        place.waiting = list(node.waiting)
        place.hop_seen = node.hop_seen
        place.adopted = node.adopted
        place.settled = node.settled
        place.guess_hop = node.guess_hop
        place.owes = list(node.releasing)
        if node.doubt is not None:
            place.doubt = node.doubt[0][:2]
        if node.proposal is not None and not node.proposal.closed:
            place.proposing = node.proposal.epoch
        place.steps = self.own_steps(i, node)
        return place

    def own_steps(self, i: int, node: RecoveryNode) -> list[tuple[int, int]]:
        steps: list[tuple[int, int]] = []
        for client in range(len(self.bounds.clients)):
            if self.bounds.clients[client][0] == i:
                if client in node.waiting:
                    steps.append((WITHDRAW, client))
                elif has_grant(node, client):
                    steps.append((LEAVE, client))
                else:
                    steps.append((ASK, client))
        if node.promised == node.adopted and node.has_to_renew(0):
            steps.append((RENEW, i))
        if i in self.bounds.proposers and node.votes(0):
            steps.append((PROPOSE, i))
            for number, (added, other) in enumerate(self.bounds.changes):
                if added != (other in node.members):
                    steps.append((CHANGE, i * len(self.bounds.changes) + number))
        if node.may_close():
            steps.append((CLOSE, i))
        if len(node.waiting) > 0 or len(node.releasing) > 0 or node.doubt is not None:
            steps.append((REPEAT, i))
        return steps

    # -- properties ----------------------------------------------------------------------------

    def judge(self, before: State, row: State) -> list[tuple[str, str]]:
        places, messages, orphans, _, fence = row
        wrong: list[tuple[str, str]] = []
        permits = self.pool.permits
        valid: list[Fence] = [one for _, one, _, _ in orphans]
        used = sum([h for _, _, h, _ in orphans])
        usable: dict[tuple[Epoch, int, int], Papers] = {}
        for i in range(self.bounds.size):
            place = self.places[places[i]]
            for one, h, time in place.running:
                if time > 0:
                    used += h
                    valid.append(one)
            if place.held is not None:
                usable[(place.held[0], place.held[1], i)] = place.held
            if place.papers is not None and not balanced(place.papers, permits):
                wrong.append(("conservation", f"node {i} holds a token that does not add up"))
        for number in messages:
            _, receiver, frozen = self.messages[number]
            if frozen[0] == "TOKEN":
                message = self.message(number)
                assert isinstance(message, Token)
                if self.can_arrive(message, self.places[places[receiver]]):
                    papers = message.papers
                    usable[(papers[0], papers[1], receiver)] = papers
        if used > permits:
            wrong.append(("safety", f"{used} of {permits} permits are under valid leases"))
        if fence[1] < 0 <= before[4][1]:
            wrong.append(("fences", "a grant's fence is not above all before it"))
        if len(usable) > 1:
            wrong.append(("one-token", f"{len(usable)} tokens can be used"))
        for papers in usable.values():
            named = [entry[1] for entry in papers[3]]
            if any(one not in named for one in valid):
                wrong.append(("ledger", "a grant under a valid lease is not in the ledger"))
        if self.bounds.ordered:
            wrong += self.judge_order(before, row)
        return wrong

    def judge_order(self, before: State, row: State) -> list[tuple[str, str]]:
        for number in before[1]:
            if self.messages[number][2][0] in ("REQUEST", "TOKEN") and number in row[1]:
                return []  # somebody may not be known yet
        clients = self.bounds.clients
        waiting = [client for place in before[0] for client in self.places[place].waiting]
        highest = max([clients[client][2] for client in waiting], default=0)
        for i in range(self.bounds.size):
            earlier = self.places[before[0][i]].inside
            for client in self.places[row[0][i]].inside:
                if client not in earlier and clients[client][2] < highest:
                    return [("order", f"client {self.client(client)} overtakes a higher priority")]
        return []

    def can_arrive(self, token: Token, place: Place) -> bool:
        epoch, hop = token.papers[0], token.papers[1]
        return (
            place.up
            and token.left > token.travelled
            and token.boot == place.boot
            and epoch >= place.promised
            and (epoch, hop) > place.hop_seen
        )

    # -- telling -------------------------------------------------------------------------------

    def tell(self, state: int, label: int) -> list[Act]:
        kind, subject = label >> SHIFT, label & ((1 << SHIFT) - 1)
        act = Act(subject, self.name(kind, subject))
        return [act]

    def client(self, number: int) -> str:
        """Its node, and which of several on that node it is."""
        clients = self.bounds.clients
        node = clients[number][0]
        here = [other for other in range(len(clients)) if clients[other][0] == node]
        return f"{node}" if len(here) == 1 else f"{node}{'abcdefgh'[here.index(number)]}"

    def name(self, kind: int, subject: int) -> str:
        """A step in a word or two: ``crash 1``, ``deliver RENEW 0>2``, ``tick``."""
        if kind in (DELIVER, DOUBLE, LOSE):
            sender, receiver, frozen = self.messages[subject]
            return f"{NAMES[kind]} {frozen[0]} {sender}>{receiver}"
        if kind == MEET:
            return f"renew {subject // self.bounds.size} with {subject % self.bounds.size}"
        if kind in (ASK, LEAVE, WITHDRAW):
            return f"{NAMES[kind]} {self.client(subject)}"
        if kind == CHANGE:
            added, node = self.bounds.changes[subject % len(self.bounds.changes)]
            by = subject // len(self.bounds.changes)
            return f"{'add' if added else 'remove'} {node} by {by}"
        return NAMES[kind] if kind == TICK else f"{NAMES[kind]} {subject}"


def has_grant(node: RecoveryNode, client: int) -> bool:
    return any(grant.client == client for grant in node.grants.values())


def track(key: tuple[int, int, Frozen]) -> Frozen:
    """What renewals have in common of which only the latest is worth keeping."""
    sender, receiver, frozen = key
    if frozen[0] == "RENEW":
        return (sender, receiver, *frozen[:4])
    if frozen[0] == "STILL":
        return (sender, receiver, *frozen[:3], frozen[4])
    return ()


def less(left: tuple[int, ...], which: int) -> tuple[int, ...]:
    return (*left[:which], left[which] - 1, *left[which + 1 :])


def balanced(papers: Papers, permits: int) -> bool:
    ledger: tuple[Entry, ...] = papers[3]
    return papers[2] >= 0 and papers[2] + sum([entry[2] for entry in ledger]) == permits
