"""Nodes that may crash, as a state machine: every order in which anything can happen to them.

The nodes are recovery's layers (:mod:`meshlock.algorithms.recovery.layer`) around nodes of any
token algorithm, handler for handler. The world around them may do anything within its bounds
(:mod:`.faults`): stop a node, start it again with or without its disk, cut a link, let time pass,
deliver a message late or never, or twice. When to renew, resend, propose and close is left open
altogether, so whatever the layer's timing chooses is among them; that it chooses well is tried
when faults stop (:mod:`.serving`).

**Ways.** Messages of recovery itself are *loose*: each may arrive at any time, so one that is
lost is one that is late for ever. Messages of the algorithm inside, and HELLO, are in *lines*.
Where that algorithm is for changing links there is a line per direction of a link. When the link
is cut or an end of it crashes, both ends notice at once, and what was on it is lost; but a token
or permits may still arrive late, or never. Where it is for fixed networks there is a line per pair
of nodes. It loses nothing until an end crashes: what was for that node is gone; what it had sent
may still arrive, until it restarts. So there a cut is a delay, and no step of its own.
HELLO and LINK at the head of a line, ASK and COPY arrive at once, unless ``handshakes`` is "any".

**Who is unreachable** is not modelled. The layer asks for it only where it sends, and in its
timing.

**Time.** A *tick* lets a unit of time pass on all clocks; any number of steps happens between two
ticks. Only differences of times are kept, so time has no beginning and the states stay finitely
many. With two ticks to a lease two leases can overlap in part, which is what the rules must
withstand; handlers only compare and add times, so what matters is the order of deadlines, and a
deadline can fall before, between or after the others. A *slow* tick is one that a node's clock
misses. With at most one missed, ``wait = lease + 1`` is the margin for the rates of clocks.

**Disks.** What a handler wants to be remembered is on disk at once. A disk may also *hang*. Then
it remembers nothing new, and messages that rest on that do not leave, until it *writes*. If the
node crashes before, nobody has heard of what its disk does not know. A node that has not crashed
does the same whatever its disk does.

**Who stays dead** stops like a node that crashes, but never restarts. For safety that is nothing
new, since nobody has to restart. But it makes fewer states, and when faults stop, the others must
do without it.

**A client** holds its permits until it leaves or its lease ends by its node's clock. When its
node crashes it runs on as an *orphan* until then, which is the worst it is allowed to do.

**Fewer states, and why nothing is missed.** Of two renewals on the same way only the later is
kept: its answer is given under the same condition and is worth more. Usually a renewal
*meets* a member at once, question and answer in one step. Take a run in which the question
arrives later: the member says yes then, so it would have said yes before, too (with its
disk its promises only rise; without, it is quiet until the question is worthless); the
lease has the same end, for it counts from the sending; and the node merely knows it
earlier, which allows more. Only the member refuses lower epochs earlier than it had to. With
``renewals`` "travel" both travel. What its receiver would refuse for ever is taken away
(:mod:`.refused`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from meshlock.algorithms.actor import NIL
from meshlock.algorithms.recovery.records import NO_EPOCH, Fence
from meshlock.check import kinds
from meshlock.check.faults import Faults
from meshlock.check.judging import Judge
from meshlock.check.layers import Layers, Outcome, Place
from meshlock.check.links import Pair
from meshlock.check.mailboxes import ADD, AGE, EMPTY, POP, PUSH, TAKE, Mailboxes
from meshlock.check.model import Act
from meshlock.check.order import Order
from meshlock.check.places import NOTHING_DUE
from meshlock.check.refused import refused
from meshlock.check.settings import ANY_NUMBER
from meshlock.check.setup import SetUp
from meshlock.check.slow_disks import a_tick_later, behind, to_write
from meshlock.check.world import CUTS, FENCE, ORPHANS, World, Worlds, without
from meshlock.world.channels import precious

MOST_WAVES: Final = 30


class CrashEvents:
    """What comes of a step. Where somebody listens, every act is noted in ``acts``."""

    def __init__(self, setup: SetUp, order: Order, bounds: Faults, judged: set[str]) -> None:
        self.setup = setup
        self.bounds = bounds
        self.size = setup.network.size
        self.layers = Layers(setup, order.standings, bounds)
        self.mail = self.layers.mail
        self.mailboxes = Mailboxes(self.mail)
        self.judge = Judge(self.layers, self.mailboxes, order, judged)
        self.worlds = Worlds()
        self.fixed = not setup.algorithm.assumes.changing_links
        sizes = [change.permits + len(change.names) for change in bounds.changes]
        self.resizes = any(size > 0 for size in sizes)
        self.links = [] if self.fixed else sorted(setup.network.links())
        self.link_numbers: dict[Pair, int] = {}  # by both directions
        for number, (one, other) in enumerate(self.links):
            self.link_numbers[one, other] = self.link_numbers[other, one] = number
        self.acts: list[Act] | None = None
        self.takes: dict[int, Callable[[World, int, int], None]] = {
            kinds.DELIVER: self.take_message,
            kinds.NEXT: self.take_message,
            kinds.DOUBLE: self.take_message,
            kinds.LOSE: self.take_message,
            kinds.MEET: self.take_meeting,
            kinds.TICK: self.take_tick,
            kinds.SLOW: self.take_tick,
            kinds.CRASH: self.crash,
            kinds.DIE: self.crash,
            kinds.HANG: self.hang,
            kinds.WRITE: self.write,
            kinds.RESTART: self.restart,
            kinds.FORGET: self.restart,
            kinds.CUT: self.change_link,
            kinds.HEAL: self.change_link,
            kinds.CHANGE: self.take_change,
            kinds.RENEW: self.take_own,
            kinds.PROPOSE: self.take_own,
            kinds.CLOSE: self.take_own,
            kinds.RESEND: self.take_own,
            kinds.REQUEST: self.take_client,
            kinds.LEAVE: self.take_client,
            kinds.WITHDRAW: self.take_client,
            kinds.GIVE_BACK: self.take_client,
            kinds.PRIORITY: self.take_client,
        }

    def at(self, world: World, i: int) -> Place:
        return self.layers.places[i][world.places[i]]

    # -- what comes of it ----------------------------------------------------------------------

    def after(self, world: World, kind: int, subject: int) -> World:
        after = world.copy()
        budget = kinds.BUDGETS.get(kind, -1)
        if budget >= 0:
            after.spend(budget)
        self.takes[kind](after, kind, subject)
        if self.mailboxes.messages[after.box]:
            self.settle(after)
        if self.judge.ordered:
            self.judge.due_after(world, after, kind, subject)
        if self.setup.raises:
            self.judge.forget_changes(after)
        if self.resizes:
            self.judge.size_after(after)
        return after

    def take_message(self, world: World, kind: int, message: int) -> None:
        if kind != kinds.DOUBLE:
            change = POP if kind == kinds.NEXT else TAKE
            world.box = self.mailboxes.after(change, world.box, message)
        if kind == kinds.LOSE:
            self.note_loss(message)
        else:
            self.deliver(world, message)

    def take_meeting(self, world: World, _: int, subject: int) -> None:
        self.meet(world, subject // self.size, subject % self.size)

    def take_tick(self, world: World, kind: int, subject: int) -> None:
        if world.rest.left[kinds.LEFT_TICKS] != ANY_NUMBER:
            world.spend(kinds.LEFT_TICKS)
        self.tick(world, subject if kind == kinds.SLOW else NIL)

    def take_change(self, world: World, kind: int, subject: int) -> None:
        world.spend(kinds.LEFT_PROPOSALS)
        self.call(world, subject // len(self.bounds.changes), kind, subject)

    def take_own(self, world: World, kind: int, i: int) -> None:
        self.call(world, i, kind, 0)

    def take_client(self, world: World, kind: int, subject: int) -> None:
        standing = self.layers.standings.after(kind, subject)
        client = self.layers.standings.clients[standing]
        if kind == kinds.PRIORITY:
            world.changes(client, standing)
        elif kind == kinds.REQUEST:
            world.spend(kinds.LEFT_REQUESTS + client - 1)
        self.call(world, self.setup.requests[client - 1].node, kind, subject)

    def wall_clock(self, world: World) -> int:
        """Not below any number that an epoch had before; only for those without a disk."""
        if not self.bounds.wall_clock or self.bounds.forgets == 0:
            return 0
        promised = [self.at(world, i).promised.counter for i in range(self.size)]
        return max(world.rest.fence.epoch.counter, *promised)

    def settle(self, world: World) -> None:
        """What happens at once happens, and what can have no effect any more goes away."""
        boxes = self.mailboxes
        if self.bounds.eager and boxes.hasty[world.box]:
            self.shake_hands(world)
        useless = refused(self.layers, world, boxes.messages[world.box])
        if useless:
            world.box = boxes.discard(world.box, tuple(useless))

    def shake_hands(self, world: World) -> None:
        boxes, carried = self.mailboxes, self.mail.carried
        again = True
        asked: list[int] = []  # once: with the token under way it could go round and round
        for _ in range(MOST_WAVES):  # link reversal without a token goes on for ever
            if not again or not boxes.hasty[world.box]:
                return
            again = False
            for number in boxes.loose[world.box]:
                if carried[number].handshake:
                    world.box = boxes.after(TAKE, world.box, number)
                    if number not in asked:
                        asked.append(number)
                        self.deliver(world, number)
                    again = True
            for pair, line in boxes.lines[world.box]:  # a line's head stays until it is its turn
                if carried[line[0]].handshake and self.at(world, pair[1]).up:
                    world.box = boxes.after(POP, world.box, line[0])
                    self.deliver(world, line[0])
                    again = True

    def tick(self, world: World, slow: int) -> None:
        self.note(NIL if slow == NIL else slow, "tick" if slow == NIL else "slow", NIL)
        world.box = self.mailboxes.after(AGE, world.box, slow)
        if world.rest.orphans:
            orphans = [
                (node, fence, permits, time if node == slow else time - 1, slots)
                for node, fence, permits, time, slots in world.rest.orphans
                if time > 1 or node == slow
            ]
            world.rest = world.rest.but(ORPHANS, tuple(orphans))
        for i, writes in world.rest.hanging:
            world.set_writes(i, a_tick_later(writes, self.mail, slow))
        for i, place in enumerate(world.places):
            if i != slow and self.layers.places[i][place].up:
                self.call(world, i, kinds.TICK, 0)

    def meet(self, world: World, i: int, member: int) -> None:
        """Node i renews with this member: question and answer at once."""
        for question in self.run(world, i, kinds.RENEW, 0):
            if self.mail.carried[question].receiver == member:
                for answer in self.run(world, member, kinds.DELIVER, question):
                    self.deliver(world, answer)

    def crash(self, world: World, kind: int, i: int) -> None:
        self.note(i, kinds.NAMES[kind], NIL)
        running = [(i, *one) for one in self.at(world, i).running if one[2] > 0]
        world.rest = world.rest.but(ORPHANS, tuple(sorted([*world.rest.orphans, *running])))
        place = world.places[i]
        world.places[i] = self.layers.dead(i) if kind == kinds.DIE else self.layers.down(i, place)
        for _, messages in world.writes(i) or ():
            for message in messages:
                self.note_loss(message)
        world.set_writes(i, None)
        if self.fixed:
            self.lose_lines(world, i, 1)
        for number, (one, other) in enumerate(self.links):
            if i in (one, other) and number not in world.rest.cuts:
                self.fail(world, one, other)

    def restart(self, world: World, kind: int, i: int) -> None:
        if self.fixed:
            self.lose_lines(world, i, 0)
        forgotten = kind == kinds.FORGET or self.at(world, i).disk is None
        self.call(world, i, kind, self.wall_clock(world) if forgotten else 0)
        for number, (one, other) in enumerate(self.links):
            if i in (one, other) and number not in world.rest.cuts:
                self.form(world, one, other)

    def lose_lines(self, world: World, i: int, end: int) -> None:
        """What is on its way from (0) or to (1) a node that crashed."""
        for pair, line in self.mailboxes.lines[world.box]:
            if pair[end] == i:
                world.box = self.mailboxes.with_line(world.box, pair, ())
                for message in line:
                    self.note_loss(message)

    def change_link(self, world: World, kind: int, number: int) -> None:
        one, other = self.links[number]
        self.note(one, "break" if kind == kinds.CUT else "return", other)
        if kind == kinds.CUT:
            world.rest = world.rest.but(CUTS, tuple(sorted([*world.rest.cuts, number])))
            self.fail(world, one, other)
        else:
            world.rest = world.rest.but(CUTS, without(world.rest.cuts, number))
            self.form(world, one, other)

    def form(self, world: World, one: int, other: int) -> None:
        if self.at(world, one).up and self.at(world, other).up:
            self.call(world, one, kinds.LINK_UP, other)
            self.call(world, other, kinds.LINK_UP, one)

    def fail(self, world: World, one: int, other: int) -> None:
        """The ends that are up notice; of what was on the link, tokens and permits may be late."""
        boxes = self.mailboxes
        for pair in ((one, other), (other, one)):
            line = boxes.line(world.box, pair)
            world.box = boxes.with_line(world.box, pair, ())
            for message in line:
                if precious(self.mail.carried[message].message):
                    world.box = boxes.after(ADD, world.box, message)
                else:
                    self.note_loss(message)
        for me, peer in ((one, other), (other, one)):
            if self.at(world, me).up:
                self.call(world, me, kinds.LINK_DOWN, peer)

    # -- handlers and messages -----------------------------------------------------------------

    def deliver(self, world: World, message: int) -> None:
        i = self.mail.carried[message].receiver
        if self.layers.places[i][world.places[i]].up:
            for answer in self.run(world, i, kinds.DELIVER, message):
                self.send(world, answer)

    def call(self, world: World, i: int, kind: int, subject: int) -> None:
        """Run a handler, and send what it sends."""
        for message in self.run(world, i, kind, subject):
            self.send(world, message)

    def run(self, world: World, i: int, kind: int, subject: int) -> list[int]:
        """The messages that leave at once: all, unless the disk hangs."""
        before = world.places[i]
        outcome = self.layers.places[i][before].outcomes.get((kind << kinds.SHIFT) + subject)
        if outcome is None:
            outcome = self.layers.outcome(i, before, kind, subject)
        if self.acts is not None:
            self.acts.append(self.layers.act(i, before, kind, subject))
        world.places[i] = outcome.place
        if outcome.rare:
            for fence in outcome.granted:
                world.fence_repeated |= fence <= world.rest.fence
                world.rest = world.rest.but(FENCE, max(fence, world.rest.fence))
            if self.resizes and outcome.permits > 0:
                world.limit = outcome.permits
            world.failure = world.failure or outcome.failure
        if len(world.rest.hanging) > 0 and not outcome.failure:
            return self.held_up(world, i, before, outcome)
        return outcome.sends

    # -- disks that hang -----------------------------------------------------------------------

    def held_up(self, world: World, i: int, before: int, outcome: Outcome) -> list[int]:
        """Of what a handler sent, what need not wait for the disk."""
        writes = world.writes(i)
        if writes is None:
            return outcome.sends
        old, disk = self.layers.places[i][before].disk, self.layers.places[i][outcome.place].disk
        world.places[i] = self.layers.with_disk(i, outcome.place, old)
        on_disk = NO_EPOCH if old is None else old[0]
        at_once: list[int] = []
        for place, number in enumerate(outcome.sends):
            if place == outcome.behind:
                writes = to_write(writes, disk)
            message = self.mail.carried[number].message
            if len(writes) == 0 or not self.layers.nodes[i].member.rests_on_disk(message, on_disk):
                at_once.append(number)
            else:
                writes = behind(writes, number, self.mail)
        if outcome.behind == len(outcome.sends):
            writes = to_write(writes, disk)
        world.set_writes(i, writes)
        return at_once

    def hang(self, world: World, _: int, i: int) -> None:
        self.note(i, "hang", NIL)
        world.set_writes(i, ())

    def write(self, world: World, _: int, i: int) -> None:
        """The disk takes what it is to write, and what stands behind that leaves."""
        self.note(i, "write", NIL)
        writes = world.writes(i) or ()
        world.set_writes(i, writes[1:] if len(writes) > 1 else None)
        for disk, messages in writes[:1]:
            world.places[i] = self.layers.with_disk(i, world.places[i], disk)
            for message in messages:
                self.send(world, message)

    def send(self, world: World, number: int) -> None:
        carried = self.mail.carried[number]
        if carried.ordered and (self.fixed or self.are_linked(world, carried.pair)):
            world.box = self.mailboxes.after(PUSH, world.box, number)
        elif not carried.ordered or carried.inner is not None:
            world.box = self.mailboxes.after(ADD, world.box, number)

    def are_linked(self, world: World, pair: Pair) -> bool:
        number = self.link_numbers.get(pair, -1)
        return (
            number >= 0
            and number not in world.rest.cuts
            and self.at(world, pair[0]).up
            and self.at(world, pair[1]).up
        )

    # -- telling what happened -----------------------------------------------------------------

    def note(self, node: int, event: str, peer: int) -> None:
        if self.acts is not None:
            act = Act(node, event)
            act.peer = peer
            self.acts.append(act)

    def note_loss(self, message: int) -> None:
        if self.acts is not None:
            act = Act(self.mail.carried[message].message.receiver, "drop")
            act.message = self.mail.fresh(message)
            self.acts.append(act)


# -- how a search begins: a pool that works ----------------------------------------


def birth(events: CrashEvents) -> World:
    """Everybody has just started and nobody has a disk yet."""
    asks = [0 if events.bounds.idle else 1] * len(events.setup.requests)
    left = (*events.bounds.budgets(), *asks)
    fence = Fence(NO_EPOCH, 0)
    known = ((), left, fence, (), NOTHING_DUE, events.setup.permits, ())
    places = [events.layers.birth(i) for i in range(events.size)]
    world = World(places, EMPTY, events.worlds.rests.find(known))
    for one, other in events.links:
        events.form(world, one, other)
    events.settle(world)
    return world


def first_epoch(events: CrashEvents, world: World) -> None:
    """Node 0 proposes, everybody answers in time, and it has the first token. If it has made
    the pool it has it already, and an epoch is only needed where nodes do not meet."""
    made = events.bounds.rules is not None
    for _ in range(events.bounds.wait):
        renew_and_tick(events, world)
    if not made or events.fixed:
        for kind in (kinds.PROPOSE, kinds.CLOSE):
            events.call(world, 0, kind, 0)
            deliver_all(events, world)
    if not made:
        for _ in range(events.bounds.wait):
            renew_and_tick(events, world)
    events.call(world, 0, kinds.RENEW, 0)
    deliver_all(events, world)


def renew_and_tick(events: CrashEvents, world: World) -> None:
    events.call(world, 0, kinds.RENEW, 0)
    deliver_all(events, world)
    events.tick(world, NIL)


def deliver_all(events: CrashEvents, world: World) -> None:
    """Wave after wave, until there is quiet."""
    boxes = events.mailboxes
    for _ in range(MOST_WAVES):
        events.settle(world)
        for message in boxes.loose[world.box]:
            world.box = boxes.after(TAKE, world.box, message)
            events.deliver(world, message)
        for pair, _ in boxes.lines[world.box]:
            while line := boxes.line(world.box, pair):
                world.box = boxes.after(POP, world.box, line[0])
                events.deliver(world, line[0])
        if world.box == EMPTY:
            return
