"""Places: a node, its clients, and the messages on their way to it, as numbers.

What a node can do next depends on its place alone, and what it does changes its own place and
appends messages to others. The steps of a place, and what becomes of it when a message is
appended, are worked out once.

There may be nearly as many places as states. Of a place that is all that is kept for good: the
number of its node with its clients, and that of its inbox, paired into one integer. The rest is put
together again when it is wanted, and forgotten when too much of it has gathered (``KEPT``): breadth
first, a place that mattered once soon matters no more.
"""

from __future__ import annotations

from array import array
from typing import Any, Final, cast

from meshlock.check import kinds
from meshlock.check.handlers import NOBODY, PlainHandlers, Run
from meshlock.check.model import Fault, Part
from meshlock.check.packing import SPREAD
from meshlock.check.setup import SetUp
from meshlock.check.standings import NO_SHIFTS, Shift, Standings
from meshlock.check.structure import Sound
from meshlock.properties import sentences

NOTHING_DUE: Final = -(1 << 40)
KEPT: Final = 4096  # places of a node that are at hand with their steps

Line = tuple[int, tuple[int, ...]]  # a sender, and its messages on their way
Inbox = tuple[Line, ...]
Desk = tuple[int, int, tuple[int, ...], tuple[int, ...]]  # a place without its inbox


class Outcome:
    """One step from one place."""

    __slots__ = (
        "after",
        "choice",
        "enters",
        "faults",
        "grants",
        "kind",
        "lent",
        "plain",
        "receivers",
        "sends",
        "subject",
    )

    def __init__(self, kind: int, run: Run) -> None:
        self.kind = kind
        self.subject = 0  # message number, client, or peer
        self.choice = -1
        self.after = 0  # the place it leads to
        self.receivers = run.receivers
        self.sends = run.sends
        self.enters = run.enters
        self.lent = run.lent
        self.grants = run.grants
        self.faults = run.faults
        self.plain = True  # nobody enters or leaves and nothing is wrong


class Place:
    """A node, its clients, and what is on its way to it."""

    __slots__ = (
        "asked",
        "eager",
        "expanded",
        "full",
        "held",
        "inbox",
        "inside",
        "local",
        "quiet",
        "shape",
        "steps",
        "top",
        "waiting",
    )

    def __init__(self, desk: Desk, inbox: Inbox) -> None:
        self.local, self.asked, self.inside, self.waiting = desk
        self.inbox = inbox
        self.steps: list[Outcome] = []
        self.expanded = False
        self.held = 0  # permits that its clients use
        self.top = NOTHING_DUE  # highest priority that waits here
        self.quiet = len(inbox) == 0  # nothing is on its way here
        self.shape = 0  # the glimpse that properties of whole states have of it
        self.full = False  # more is on its way here than is to be looked at
        self.eager = False  # something can happen here without anybody's leave


class Places:
    """``sound``, ``ordered`` and ``ties`` say what is judged, so that a place knows its glimpse and
    a step whether it is plain."""

    def __init__(
        self, setup: SetUp, handlers: PlainHandlers, sound: Sound | None, ordered: bool, ties: bool
    ) -> None:
        self.setup = setup
        self.handlers = handlers
        self.sound = sound
        self.ordered = ordered
        self.ties = ties
        self.size = size = handlers.size
        self.fifo = setup.fifo
        self.standings: Standings = handlers.standings
        self.clients = handlers.clients
        self.desk_numbers: list[dict[Desk, int]] = [{} for _ in range(size)]
        self.desks: list[list[Desk]] = [[] for _ in range(size)]
        self.inbox_numbers: list[dict[Inbox, int]] = [{} for _ in range(size)]
        self.inboxes: list[list[Inbox]] = [[] for _ in range(size)]
        self.numbers: list[dict[int, int]] = [{} for _ in range(size)]
        self.pairs = [array("q") for _ in range(size)]  # of desk and inbox, by place
        self.kept = KEPT
        self.at_hand: list[dict[int, Place]] = [{} for _ in range(size)]
        self.arrivals: list[dict[int, int]] = [{} for _ in range(size)]  # likewise
        self.lines: dict[Line, Line] = {}  # equal ones kept once

    def number(
        self,
        i: int,
        local: int,
        asked: int,
        inside: tuple[int, ...],
        waiting: tuple[int, ...],
        inbox: Inbox,
    ) -> int:
        desk = (local, asked, inside, waiting)
        d = self.desk_numbers[i].get(desk, -1)
        if d < 0:
            d = len(self.desks[i])
            self.desk_numbers[i][desk] = d
            self.desks[i].append(desk)
        pair = d * SPREAD + self.number_inbox(i, inbox)
        numbers = self.numbers[i]
        known = numbers.get(pair, -1)
        if known < 0:
            known = len(numbers)
            numbers[pair] = known
            self.pairs[i].append(pair)
        return known

    def number_inbox(self, i: int, inbox: Inbox) -> int:
        numbers = self.inbox_numbers[i]
        known = numbers.get(inbox, -1)
        if known < 0:
            inbox = tuple([self.lines.setdefault(line, line) for line in inbox])
            known = len(numbers)
            numbers[inbox] = known
            self.inboxes[i].append(inbox)
        return known

    def look(self, i: int, number: int) -> Place:
        """The place of this number; its steps may still have to be found."""
        place = self.at_hand[i].get(number)
        return self.assemble(i, number) if place is None else place

    def assemble(self, i: int, number: int) -> Place:
        pair = self.pairs[i][number]
        inbox = self.inboxes[i][pair % SPREAD]
        place = Place(self.desks[i][pair // SPREAD], inbox)
        if self.setup.capacity > 0:
            place.full = any(len(line) > self.setup.capacity for _, line in inbox)
        place.eager = len(inbox) > 0
        for client in place.inside:
            place.held += self.standings.wants[client]
            if not self.standings.stays[client]:
                place.eager = True
        for client in place.waiting:
            place.top = max(place.top, self.standings.priorities[client])
        at_hand = self.at_hand[i]
        if len(at_hand) >= self.kept:
            at_hand.clear()
        at_hand[number] = place
        return place

    def expanded(self, i: int, number: int) -> Place:
        """The place of this number with its steps, which come in the same order each time."""
        place = self.at_hand[i].get(number)
        if place is None:
            place = self.assemble(i, number)
        if not place.expanded:
            self.find_steps(i, place)
        return place

    def arrived(self, i: int, number: int, message: int) -> int:
        """The place that this one becomes when a message is sent to it."""
        after = self.arrivals[i].get(message * SPREAD + number, -1)
        return after if after >= 0 else self.arrival(i, number, message)

    def arrival(self, i: int, number: int, message: int) -> int:
        """The same, worked out."""
        pair = self.pairs[i][number]
        sender = self.handlers.messages[message].sender
        inbox: list[Line] = []
        found = False
        for source, line in self.inboxes[i][pair % SPREAD]:
            if source == sender:
                found = True
                longer = (*line, message)
                inbox.append((source, longer if self.fifo else tuple(sorted(longer))))
            else:
                inbox.append((source, line))
        if not found:
            inbox.append((sender, (message,)))
            inbox.sort()
        local, asked, inside, waiting = self.desks[i][pair // SPREAD]
        known = self.number(i, local, asked, inside, waiting, tuple(inbox))
        arrivals = self.arrivals[i]
        if len(arrivals) >= 2 * self.kept:
            arrivals.clear()
        arrivals[message * SPREAD + number] = known
        return known

    # -- the steps of a place -----------------------------------------------------------

    def find_steps(self, i: int, place: Place) -> None:
        place.expanded = True
        if self.sound is not None:
            place.shape = self.shape(i, place, self.sound)
        for position, (source, line) in enumerate(place.inbox):
            heads = line[:1] if self.fifo else tuple(dict.fromkeys(line))
            for message in heads:
                rest = list(line)
                rest.remove(message)
                kept = ((source, tuple(rest)),) if rest else ()
                inbox = (*place.inbox[:position], *kept, *place.inbox[position + 1 :])
                self.find_step(i, place, kinds.DELIVER, message, inbox)
        own = self.clients[i]
        if place.asked < len(own):
            client = own[place.asked]
            busy = place.inside + place.waiting
            if len(busy) < self.setup.clients and self.standings.of(client, busy) == 0:
                self.find_step(i, place, kinds.REQUEST, client, place.inbox)
        for client in place.inside:
            if not self.standings.stays[client]:
                self.find_step(i, place, kinds.LEAVE, client, place.inbox)
        if self.setup.withdrawals:
            for client in place.waiting:
                self.find_step(i, place, kinds.WITHDRAW, client, place.inbox)
        if self.standings.change:
            for standing in place.waiting:
                for shift in self.standings.raises.get(standing, NO_SHIFTS):
                    self.find_step(i, place, kinds.PRIORITY, shift, place.inbox)
            for standing in place.inside:
                for shift in self.standings.parts.get(standing, NO_SHIFTS):
                    self.find_step(i, place, kinds.GIVE_BACK, shift, place.inbox)

    def shape(self, i: int, place: Place, sound: Sound) -> int:
        node = self.handlers.node_at(i, place.local)
        arriving = [self.handlers.messages[number] for _, line in place.inbox for number in line]
        waiting = tuple(self.standings.clients_of(place.waiting))
        inside = tuple(self.standings.clients_of(place.inside))
        return sound.structure.see(node, arriving, (waiting, inside))

    def find_step(self, i: int, place: Place, kind: int, subject: int, inbox: Inbox) -> None:
        choices = self.handlers.choices_at(i, place.local)
        first = len(place.steps)
        for choice in range(choices):
            run = self.handlers.run(i, place.local, kind, subject, choice if choices > 1 else -1)
            if not run.possible:
                continue
            outcome = self.outcome(i, place, kind, subject, run, inbox)
            outcome.choice = choice if choices > 1 else -1
            if not any(same(outcome, other) for other in place.steps[first:]):
                place.steps.append(outcome)

    def outcome(
        self, i: int, place: Place, kind: int, subject: int, run: Run, inbox: Inbox
    ) -> Outcome:
        outcome = Outcome(kind, run)
        outcome.subject = subject
        asked, inside, waiting = place.asked, place.inside, place.waiting
        if kind == kinds.REQUEST:
            asked += 1
            if self.setup.repeat:
                asked %= len(self.clients[i])
            waiting = (*waiting, subject)
        elif kind == kinds.LEAVE:
            inside = tuple(client for client in inside if client != subject)
        elif kind == kinds.WITHDRAW:
            waiting = tuple(client for client in waiting if client != subject)
        elif kind == kinds.PRIORITY:
            waiting = shifted(waiting, self.standings.shifts[subject])
        elif kind == kinds.GIVE_BACK:
            inside = shifted(inside, self.standings.shifts[subject])
        if self.standings.change and run.grants:
            outcome.enters = self.handlers.once(
                [self.standings.of(one, waiting) or one for one in run.enters]
            )
            outcome.grants = self.handlers.once(
                [self.standings.of(one, waiting) or one for one in run.grants]
            )
        for client in outcome.enters:
            if client in waiting:
                waiting = tuple(other for other in waiting if other != client)
                inside = (*inside, self.standings.clients[client])
            else:
                fault = Fault("safety", sentences.uninvited(i, client), 0)
                outcome.faults = (*outcome.faults, fault)
        if run.losses:
            inside = tuple([one for one in inside if self.standings.clients[one] not in run.losses])
        outcome.after = self.number(i, run.after, asked, tuple(sorted(inside)), waiting, inbox)
        lends = self.ordered and run.lent != NOBODY
        # What order, or safety, is judged by from then on, is for clients to say.
        told = kind in kinds.OF_CLIENTS and kind != kinds.REQUEST
        outcome.plain = not (
            run.enters or run.losses or outcome.faults or lends or told or self.ties
        )
        return outcome

    # -- the same in all processes ---------------------------------------------------------------

    def meaning(self, i: int, number: int) -> Part:
        pair = self.pairs[i][number]
        local, asked, inside, waiting = self.desks[i][pair // SPREAD]
        inbox = self.inboxes[i][pair % SPREAD]
        words = tuple([(source, self.handlers.words(line)) for source, line in inbox])
        return self.handlers.locals[i][local], asked, inside, waiting, words

    def number_of(self, i: int, part: Part) -> int:
        local, asked, inside, waiting, words = cast("tuple[Any, ...]", part)
        inbox: list[Line] = [(source, self.handlers.heard(line)) for source, line in words]
        number = self.handlers.local(i, local)
        return self.number(i, number, asked, inside, waiting, tuple(inbox))


def shifted(standings: tuple[int, ...], shift: Shift) -> tuple[int, ...]:
    here, there = shift
    return tuple([there if one == here else one for one in standings])


def same(one: Outcome, other: Outcome) -> bool:
    return (
        one.after == other.after
        and one.sends == other.sends
        and one.enters == other.enters
        and len(one.faults) == len(other.faults)
    )
