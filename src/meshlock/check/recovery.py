"""Recovery under the checker: crashes, restarts, forgetting, delay, doubling, time.

The nodes are those of :mod:`meshlock.algorithms.recovery.node`, handler for handler. The world
around them may do anything within its *bounds*: deliver any message at any time or never,
deliver it twice, stop a node, start it again with or without its disk, let time pass. A
message that is late for ever is a lost one, and a partition is messages between two sides
that are late: both are among the interleavings without being steps of their own.

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
are explored so. Messages that their receiver would refuse for ever are taken away, unless it
may still forget why.

Properties, judged after every step:

*safety*        permits under valid leases are at most k
*fences*        every grant's fence is above all fences granted before it
*one-token*     at most one token can be used, here or on its way
*ledger*        every grant under a valid lease stands in the ledger of the token that can be used
*conservation*  free permits and ledger make k, and there is no debt
"""

from __future__ import annotations

from collections.abc import Callable

from meshlock.algorithms.interface import Effect, Frozen, Message
from meshlock.algorithms.recovery.messages import (
    KINDS,
    NO_EPOCH,
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
from meshlock.check.model import Act, Fault, Model

ASK, LEAVE, RENEW, PROPOSE, CLOSE = 0, 1, 2, 3, 4
DELIVER, DOUBLE, LOSE, CRASH, RESTART, FORGET, TICK, SLOW = 5, 6, 7, 8, 9, 10, 11, 12
REPEAT, MEET = 13, 14
NAMES = [
    "ask",
    "leave",
    "renew",
    "propose",
    "close",
    "deliver",
    "double",
    "lose",
    "crash",
    "restart",
    "forget",
    "tick",
    "slow",
    "repeat",
    "meet",
]
SHIFT = 26
MOST_WAVES = 100

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
        asks: int = 1,
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
    ) -> None:
        size = members + others
        everybody = tuple(range(size))
        self.pool = Pool(everybody, tuple(range(members)), permits, lease, wait)
        self.size = size
        self.wants = wants if wants is not None else dict.fromkeys(everybody, 1)
        self.asks = asks  # times that each of these asks, in all
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
        self.wall_clock = wall_clock  # where the disk is gone, is there a clock to number epochs?


class Place:
    """A node's state, running or not, and what observers need of it."""

    def __init__(self, up: bool, state: Frozen, promised: Epoch, boot: int) -> None:
        self.up = up
        self.state = state
        self.promised = promised
        self.boot = boot
        self.running: list[tuple[Fence, int, int]] = []  # fence, permits, time left
        self.held: Papers | None = None  # the token here, if it can be used
        self.papers: Papers | None = None  # the token here
        self.hop_seen: tuple[Epoch, int] = (NO_EPOCH, -1)
        self.steps: list[int] = []  # what the node itself could do: ASK to CLOSE
        self.proposing: Epoch = NO_EPOCH  # the epoch for which reports are collected
        self.doubt: tuple[Epoch, int] = (NO_EPOCH, -1)
        self.owes: list[Fence] = []
        self.inside = False
        self.waiting = False
        self.stalled = False
        self.votes = False


class Outcome:
    def __init__(self, place: int, sends: list[int], granted: list[Fence]) -> None:
        self.place = place
        self.sends = sends
        self.granted = granted


Orphan = tuple[int, Fence, int, int]
State = tuple[tuple[int, ...], tuple[int, ...], tuple[Orphan, ...], tuple[int, ...], Fence]
"""Places, messages, orphans, what is left of the bounds, the highest fence so far."""

LEFT_PROPOSALS, LEFT_CRASHES, LEFT_FORGETS, LEFT_DOUBLES, LEFT_LOSSES, LEFT_SLOW = range(6)
LEFT_ASKS = 6


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
        self.place_numbers: list[dict[tuple[bool, Frozen, Epoch, int], int]] = [
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
            places.append(self.place(i, True, node.freeze(0), node.promised, 1))
        self.out.clear()
        left = [
            bounds.proposals,
            bounds.crashes,
            bounds.forgets,
            bounds.doubles,
            bounds.losses,
            bounds.slow,
        ]
        left += [bounds.asks if i in bounds.wants else 0 for i in range(bounds.size)]
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

        Who is down restarts, everybody who may ask does so once more, clients leave, messages
        arrive, and who is stalled for two leases proposes. -1: not within so many ticks.
        """
        places, messages, orphans, _, fence = self.rows[number]
        size = self.bounds.size
        asks = [1 if i in self.bounds.wants else 0 for i in range(size)]
        row: State = (places, messages, orphans, (most, 0, 0, 0, 0, 0, *asks), fence)
        for i in range(size):
            if not self.places[row[0][i]].up:
                row = self.after(row, RESTART, i)
        stalled = [0] * size
        for ticks in range(most):
            row = self.deliver_all(row)
            for i in range(size):
                for kind in (ASK, LEAVE, RENEW, REPEAT, CLOSE):
                    place = self.places[row[0][i]]
                    if kind == ASK and row[3][LEFT_ASKS + i] == 0:
                        continue
                    if kind in place.steps or (kind == REPEAT and (place.waiting or place.owes)):
                        row = self.deliver_all(self.after(row, kind, i))
            if self.all_is_well(row):
                return ticks
            row = self.after(row, TICK, 0)
            for i in range(size):
                place = self.places[row[0][i]]
                stalled[i] = stalled[i] + 1 if place.stalled else 0
                if stalled[i] > 2 * self.pool.wait and place.votes:
                    row = self.deliver_all(self.after(row, PROPOSE, i))
                    stalled = [0] * size
        return -1

    def all_is_well(self, row: State) -> bool:
        if any(row[3][LEFT_ASKS:]):
            return False
        here = [self.places[place] for place in row[0]]
        if any(place.waiting or place.inside for place in here):
            return False
        return any(place.held is not None and place.held[2] == self.pool.permits for place in here)

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
                for kind in place.steps:
                    if (
                        (kind == ASK and left[LEFT_ASKS + i] == 0)
                        or (kind == PROPOSE and left[LEFT_PROPOSALS] == 0)
                        or (kind == LEAVE and not bounds.leaves)
                    ):
                        continue
                    if kind == RENEW and not bounds.detached:
                        found += [
                            (MEET, i * bounds.size + member)
                            for member in self.pool.members
                            if (member != i or self.pool.majority == 1)
                            and self.places[places[member]].up
                        ]
                        continue
                    found.append((kind, i))
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
        if kind in (DELIVER, DOUBLE):
            i = self.messages[subject][1]
            if kind == DELIVER:
                messages = tuple([message for message in messages if message != subject])
            else:
                left = less(left, LEFT_DOUBLES)
        elif kind == ASK:
            left = less(left, LEFT_ASKS + i)
        elif kind == PROPOSE:
            left = less(left, LEFT_PROPOSALS)
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
        if left[LEFT_FORGETS] > 0:
            return False  # who forgets may welcome what it had refused
        if kind in ("PROPOSE", "HIGHER"):
            return left[LEFT_PROPOSALS] == 0 and frozen[1] <= place.promised  # type: ignore[operator]
        if kind == "REQUEST" and frozen[2][0] not in self.pool.members:  # type: ignore[index]
            return False  # it presses members to propose
        epoch = frozen[1][0] if kind == "TOKEN" else frozen[1]  # type: ignore[index]
        return bool(epoch < place.promised)  # type: ignore[operator]

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
            node.start(now, boot, NO_EPOCH if kind == FORGET else place.promised)
        else:
            node = self.nodes[i]
            node.thaw(place.state)
            if kind == ASK:
                node.request(0, self.bounds.wants[i], now)
            elif kind == LEAVE:
                node.release(0, now)
            elif kind == RENEW:
                node.renew(now)
            elif kind == PROPOSE:
                node.propose(now, subject)
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
        number = self.place(i, True, node.freeze(now), node.promised, boot)
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
        down = self.place(i, False, (), place.promised, place.boot)
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

    def place(self, i: int, up: bool, state: Frozen, promised: Epoch, boot: int) -> int:
        key = (up, state, promised, boot)
        numbers = self.place_numbers[i]
        known = numbers.get(key, -1)
        if known < 0:
            known = len(self.places)
            numbers[key] = known
            self.places.append(self.described(i, Place(up, state, promised, boot)))
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
        place.hop_seen = node.hop_seen
        place.owes = list(node.releasing)
        place.inside = len(node.grants) > 0
        place.waiting = len(node.waiting) > 0
        place.votes = node.votes(0)
        place.stalled = node.stalled(0)
        if node.doubt is not None:
            place.doubt = node.doubt[0][:2]
        if node.proposal is not None and not node.proposal.closed:
            place.proposing = node.proposal.epoch
        if i in self.bounds.wants and not node.waiting and not node.grants:
            place.steps.append(ASK)
        if node.grants:
            place.steps.append(LEAVE)
        if node.promised == node.adopted and node.has_to_renew(0):
            place.steps.append(RENEW)
        if i in self.bounds.proposers and node.votes(0):
            place.steps.append(PROPOSE)
        if node.may_close():
            place.steps.append(CLOSE)
        return place

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
        return wrong

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

    def name(self, kind: int, subject: int) -> str:
        """A step in a word or two: ``crash 1``, ``deliver RENEW 0>2``, ``tick``."""
        if kind in (DELIVER, DOUBLE, LOSE):
            sender, receiver, frozen = self.messages[subject]
            return f"{NAMES[kind]} {frozen[0]} {sender}>{receiver}"
        if kind == MEET:
            return f"renew {subject // self.bounds.size} with {subject % self.bounds.size}"
        return NAMES[kind] if kind == TICK else f"{NAMES[kind]} {subject}"


def track(key: tuple[int, int, Frozen]) -> Frozen:
    """What renewals have in common of which only the latest is worth keeping."""
    sender, receiver, frozen = key
    if frozen[0] == "RENEW":
        return (sender, receiver, *frozen[:3])
    if frozen[0] == "STILL":
        return (sender, receiver, *frozen[:3], frozen[4])
    return ()


def less(left: tuple[int, ...], which: int) -> tuple[int, ...]:
    return (*left[:which], left[which] - 1, *left[which + 1 :])


def balanced(papers: Papers, permits: int) -> bool:
    ledger: tuple[Entry, ...] = papers[3]
    return papers[2] >= 0 and papers[2] + sum([entry[2] for entry in ledger]) == permits
