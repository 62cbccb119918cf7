"""An algorithm on a network as a state machine: every order in which things can happen.

**What can happen.** A message is delivered (the first of its channel, or any where links
do not keep order); a client asks for the next request of its node; a client that is inside
leaves; a link changes. Where the set-up allows it, a client that waits gives up or changes its
priority, and a client that is inside releases a part of its permits. Where an algorithm lets the
outside choose something before a handler runs, every choice is a step of its own.

**How it is quick.** Everything that concerns one node is one *place*: its variables, its
clients, and the messages on their way to it. What a node can do next depends on its place
alone, and what it does changes its own place and appends messages to others. Each
distinct place gets a number, and the steps possible in it, and what becomes of it when a
given message is appended, are worked out once; after that, a step is a few look-ups.
Handlers run once per distinct variables and event, whatever the rest of the system does.

**How it is small.** There may be nearly as many places as states. Of a place that is all
that is kept for good: the number of its node with its clients, and that of its inbox, paired
into one integer. The rest is put together again when it is wanted and forgotten when too much of it
has gathered (``KEPT``): breadth first, a place that mattered once soon matters no more.
A global state is the row of the places' numbers (plus one for the links, where they
change), folded into one integer by :mod:`.packing`.

**Links that change** are the subject of :mod:`.changing_links`; here they stay as they are.

**Full links.** With a capacity, no state is looked at in which a link holds more messages
than that. What is found wrong is wrong in any case; what holds, holds of all runs that keep to
it. It makes the graph finite where a node that is not heard can be told things without end.

**Stuck.** Nobody is obliged to ask or to change a link. So a request is *never served*
as soon as no message can be delivered and no client can leave, even if somebody could
still ask.
"""

from __future__ import annotations

from array import array
from typing import Any, Final, cast

from meshlock.algorithms.interface import Effect, Enter, Frozen, Message, Node
from meshlock.algorithms.recovery.records import Seal
from meshlock.check.links import FrozenWire, Links, Pair
from meshlock.check.model import AT_REST, Act, Fault, Model, Part
from meshlock.check.packing import SPREAD, Tree
from meshlock.check.setup import SetUp
from meshlock.check.standings import NO_SHIFTS, Shift, Standings
from meshlock.check.structure import Sound, structure
from meshlock.check.ties import ASKS, CHANGES, LINKS, OTHER, RELEASES, TIES, WITHDRAWS, ties
from meshlock.errors import Refused, setting
from meshlock.properties import sentences
from meshlock.properties.promises import promises

NODE: Final = 16  # a label is the node's number shifted by this, plus the step's
NOTHING_DUE: Final = -(1 << 40)
KEPT: Final = 4096  # places of a node that are at hand with their steps

DELIVER: Final = 0
REQUEST: Final = 1
LEAVE: Final = 2
LINK_UP: Final = 3
LINK_DOWN: Final = 4
UNDELIVERED: Final = 5
START: Final = 6
WITHDRAW: Final = 7
PRIORITY: Final = 8
PART: Final = 9
EVENTS: Final = (
    "deliver",
    "request",
    "leave",
    "link-up",
    "link-down",
    "undelivered",
    "start",
    "withdraw",
    "priority",
    "give-back",
)

Line = tuple[int, tuple[int, ...]]  # a sender, and its messages on their way
Inbox = tuple[Line, ...]
Word = tuple[type[Message], int, int, Frozen, Frozen]  # a message as all processes know it
Desk = tuple[int, int, tuple[int, ...], tuple[int, ...]]  # a place without its inbox


NOBODY: Final = -1
OF_CLIENTS: Final = (LEAVE, WITHDRAW, PRIORITY, PART)
"""Those that say what order, or safety, is to be judged by from then on."""
TIES_OF: Final = {
    REQUEST: ASKS,
    LEAVE: RELEASES,
    PART: RELEASES,
    WITHDRAW: WITHDRAWS,
    PRIORITY: CHANGES,
    LINK_UP: LINKS,
    LINK_DOWN: LINKS,
}
"""What a step is to the order of requests."""
UNCHANGED: Final = "its client's request cannot be changed any more"


class Run:
    """What one handler did in one state of a node: it never needs to run again."""

    __slots__ = ("after", "enters", "faults", "grants", "lent", "possible", "receivers", "sends")

    def __init__(self) -> None:
        self.after = 0
        self.possible = True  # else the request could not be changed any more
        self.sends: tuple[int, ...] = ()  # message numbers
        self.receivers: tuple[int, ...] = ()  # beside them
        self.enters: tuple[int, ...] = ()  # clients
        self.lent = NOBODY  # to whom permits were sent, before anybody entered
        self.grants: tuple[int, ...] = ()  # in order: clients, or -1 - the node they were sent to
        self.faults: tuple[Fault, ...] = ()


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


class System(Model):
    def __init__(self, setup: SetUp, judged: set[str]) -> None:
        super().__init__()
        self.setup = setup
        self.size = setup.network.size
        self.out: list[Effect] = []
        self.nodes = setup.algorithm.make(setup.network, setup.permits, setup.options, self.out)
        self.permits = setup.permits
        self.fifo = setup.fifo
        self.promises = promises(setup.algorithm, setup.options)
        self.balanced = self.promises.balanced
        # Waiting may have raised a priority by so much at most: that is no violation. Where
        # nodes ask again for ever there is no most, and nothing to judge order by.
        self.gain = self.promises.ageing * len(setup.requests)
        endless = setup.repeat and self.promises.ageing > 0.0
        self.ordered = self.promises.ordered and "order" in judged and not endless
        self.judged = judged
        seen = structure(setup.algorithm, judged)
        self.sound = None if seen is None else Sound(seen, self.size)
        self.start_links: frozenset[Pair] = frozenset(setup.network.links())
        self.routed = setup.algorithm.routed
        self.changing = bool(setup.changes) or setup.flips > 0

        self.standings = standings = Standings(setup)
        self.wants, self.priorities = standings.wants, standings.priorities  # by standing
        self.stays = standings.stays
        self.ties = ties(setup, self.promises, standings, judged)
        self.clients: list[list[int]] = [[] for _ in range(self.size)]
        for client, request in enumerate(setup.requests, start=1):
            self.clients[request.node].append(client)

        self.local_numbers: list[dict[Frozen, int]] = [{} for _ in range(self.size)]
        self.locals: list[list[Frozen]] = [[] for _ in range(self.size)]
        self.message_numbers: dict[tuple[int, int, Frozen], int] = {}
        self.messages: list[Message] = []
        self.runs: dict[tuple[int, int, int, int, int], Run] = {}
        self.choices: list[list[int]] = [[] for _ in range(self.size)]  # by local; 0: unknown
        self.desk_numbers: list[dict[Desk, int]] = [{} for _ in range(self.size)]
        self.desks: list[list[Desk]] = [[] for _ in range(self.size)]
        self.inbox_numbers: list[dict[Inbox, int]] = [{} for _ in range(self.size)]
        self.inboxes: list[list[Inbox]] = [[] for _ in range(self.size)]
        self.place_numbers: list[dict[int, int]] = [{} for _ in range(self.size)]
        self.pairs = [array("q") for _ in range(self.size)]  # of desk and inbox, by place
        self.kept = KEPT
        self.places: list[dict[int, Place]] = [{} for _ in range(self.size)]  # at hand now
        self.around: list[Place] = []  # those of the state that is being expanded
        self.arrivals: list[dict[int, int]] = [{} for _ in range(self.size)]  # likewise
        self.lines: dict[Line, Line] = {}  # equal ones kept once
        self.rows: dict[tuple[int, ...], tuple[int, ...]] = {}  # likewise
        self.links_numbers: dict[tuple[object, ...], int] = {}
        self.links: list[Links] = []

        self.first = -1
        self.told: list[Act] = []  # what happened on the lead
        self.wide = self.changing or self.ordered or self.ties is not None
        self.tree = Tree(self.size + (1 if self.wide else 0))
        self.everything = (1 << self.tree.leaves) - 1
        self.above = [ancestors(leaf) for leaf in range(2 * self.tree.leaves)]

    # -- numbers for things ---------------------------------------------------------

    def initial(self) -> int:
        if self.first < 0:
            self.first = self.find_first()
            for step in self.setup.lead:
                self.first = self.take_lead(self.first, step)
        return self.first

    def take_lead(self, state: int, step: str) -> int:
        """The state after the step of that name; of several alike, the first."""
        self.expand(state)
        wrong = {fault.label: fault.text for fault in self.faults}
        for label in wrong:
            if label != AT_REST and self.name(state, label) == step:
                raise Refused(f"{setting('lead')} '{step}' violates a property: {wrong[label]}.")
        names = [self.name(state, label) for label in self.labels]
        if step not in names:
            possible = ", ".join(names)
            raise Refused(
                f"{setting('lead')} '{step}' is not possible here: use one of {possible}."
            )
        place = names.index(step)
        after = self.successors[place]
        self.told += self.explain(state, self.labels[place])
        return after

    def name(self, state: int, label: int) -> str:
        """A step in a word or two: ``request 1``, ``deliver TOKEN 0>2``, ``link-down 0-1``."""
        act = self.explain(state, label)[0]
        if isinstance(act.message, Message):
            return f"{act.event} {act.message.kind} {act.message.sender}>{act.message.receiver}"
        if act.peer >= 0:
            return f"{act.event} {act.node}-{act.peer}"
        more = f" {act.priority}" if act.event == "priority" else ""
        if act.released > 1:
            more = f" {act.released}"
        return f"{act.event} {self.setup.client_name(act.client)}{more}"

    def find_first(self) -> int:
        """The state in which the nodes are born; they are not asked again."""
        row: list[int] = []
        for i in range(self.size):
            local = self.local(i, self.nodes[i].freeze())
            row.append(self.place(i, local, 0, (), (), ()))
        if self.setup.algorithm.restless:
            self.set_going(row)
        if self.wide:
            row.append(self.number_links(Links(self.start_links, 0, NOTHING_DUE)))
        return self.tree.pack(row)

    def set_going(self, row: list[int]) -> None:
        """The nodes of a restless algorithm start before anything else happens."""
        for i in range(self.size):
            place = self.look(i, row[i])
            run = self.run(i, place.local, START, 0, -1)
            row[i] = self.place(i, run.after, 0, (), (), place.inbox)
            for message in run.sends:
                j = self.messages[message].receiver
                row[j] = self.arrival(j, row[j], message)

    def beginning(self) -> list[Act]:
        """What happened before the first state, at nodes as they were born."""
        if not self.setup.algorithm.restless:
            return self.told
        return [self.act(i, 0, START, 0, -1) for i in range(self.size)] + self.told

    def local(self, i: int, frozen: Frozen) -> int:
        numbers = self.local_numbers[i]
        known = numbers.get(frozen, -1)
        if known < 0:
            known = len(numbers)
            numbers[frozen] = known
            self.locals[i].append(frozen)
            self.choices[i].append(0)
        return known

    def message(self, message: Message) -> int:
        frozen = message.freeze()
        key = (message.sender, message.receiver, frozen)
        known = self.message_numbers.get(key, -1)
        if known < 0:
            known = len(self.messages)
            self.message_numbers[key] = known
            self.messages.append(copy(message))
        return known

    def place(
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
        numbers = self.place_numbers[i]
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
        place = self.places[i].get(number)
        return self.assemble(i, number) if place is None else place

    def assemble(self, i: int, number: int) -> Place:
        pair = self.pairs[i][number]
        inbox = self.inboxes[i][pair % SPREAD]
        place = Place(self.desks[i][pair // SPREAD], inbox)
        if self.setup.capacity > 0:
            place.full = any(len(line) > self.setup.capacity for _, line in inbox)
        place.eager = len(inbox) > 0
        for client in place.inside:
            place.held += self.wants[client]
            if not self.stays[client]:
                place.eager = True
        for client in place.waiting:
            place.top = max(place.top, self.priorities[client])
        at_hand = self.places[i]
        if len(at_hand) >= self.kept:
            at_hand.clear()
        at_hand[number] = place
        return place

    def expanded(self, i: int, number: int) -> Place:
        """The place of this number with its steps, which come in the same order each time."""
        place = self.places[i].get(number)
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
        sender = self.messages[message].sender
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
        known = self.place(i, local, asked, inside, waiting, tuple(inbox))
        arrivals = self.arrivals[i]
        if len(arrivals) >= 2 * self.kept:
            arrivals.clear()
        arrivals[message * SPREAD + number] = known
        return known

    # -- running a handler ------------------------------------------------------------

    def run(self, i: int, local: int, kind: int, subject: int, choice: int) -> Run:
        key = (i, local, kind, subject, choice)
        known = self.runs.get(key)
        if known is None:
            known = self.run_now(i, local, kind, subject, choice)
            self.runs[key] = known
        return known

    def run_now(self, i: int, local: int, kind: int, subject: int, choice: int) -> Run:
        node = self.nodes[i]
        node.thaw(self.locals[i][local])
        if choice >= 0:
            node.choose(choice)
        tokens, permits = node.tokens(), node.free_permits()
        if kind in (DELIVER, UNDELIVERED):
            tokens += self.messages[subject].tokens()
            permits += self.messages[subject].permits()
        elif kind == LEAVE:
            permits += self.wants[subject]
        elif kind == PART:
            permits += self.standings.released(subject)
        run = Run()
        sends: list[int] = []
        receivers: list[int] = []
        enters: list[int] = []
        grants: list[int] = []
        failure = self.handle(node, kind, subject)
        if failure == UNCHANGED:
            self.out.clear()
            run.possible = False
            return run
        for effect in self.out:
            if isinstance(effect, Message):
                if not failure and not self.reachable(i, effect.receiver):
                    failure = sentences.no_link(i, effect.receiver)
                sends.append(self.message(effect))
                receivers.append(effect.receiver)
                if effect.lends() > 0:
                    grants.append(-1 - effect.receiver)
                    if run.lent == NOBODY and not enters:
                        run.lent = effect.receiver
                tokens -= effect.tokens()
                permits -= effect.permits()
            elif isinstance(effect, Enter):
                enters.append(effect.client)
                grants.append(effect.client)
                permits -= self.wants[effect.client]
        self.out.clear()
        if failure:
            run.faults = (Fault("handlers", sentences.failed(i, failure), 0),)
            return run
        run.sends = self.once(sends)
        run.receivers = self.once(receivers)
        run.enters = self.once(enters)
        run.grants = self.once(grants)
        run.after = self.local(i, node.freeze())
        tokens -= node.tokens()
        permits -= node.free_permits()
        if self.balanced:
            if tokens != 0:
                run.faults += (Fault("one-token", sentences.tokens(i, tokens), 0),)
            if permits != 0:
                run.faults += (Fault("conservation", sentences.permits(i, permits), 0),)
        return run

    def once(self, row: list[int]) -> tuple[int, ...]:
        """The row as a tuple, the same one for all that are equal."""
        key = tuple(row)
        return self.rows.setdefault(key, key)

    def reachable(self, i: int, receiver: int) -> bool:
        """May node i send to this one, as far as is known before links change?"""
        if self.changing or self.routed:
            return 0 <= receiver < self.size
        return 0 <= receiver < self.size and self.setup.network.linked(i, receiver)

    def handle(self, node: Node, kind: int, subject: int) -> str:
        """Run one handler; the empty text, or what went wrong."""
        try:
            if kind == DELIVER:
                node.receive(copy(self.messages[subject]))
            elif kind == REQUEST:
                node.request(subject, self.wants[subject], self.priorities[subject])
            elif kind == LEAVE:
                node.release(self.standings.clients[subject])
            elif kind == PRIORITY:
                there = self.standings.shifts[subject][1]
                client, want = self.standings.clients[there], self.wants[there]
                if not node.change_priority(client, want, self.priorities[there]):
                    return UNCHANGED
            elif kind == PART:
                client = self.standings.clients[self.standings.shifts[subject][0]]
                node.release_some(client, self.standings.released(subject))
            elif kind == LINK_UP:
                node.link_up(subject)
            elif kind == LINK_DOWN:
                node.link_down(subject)
            elif kind == START:
                node.start()
            elif kind == WITHDRAW:
                if not node.withdraw(self.standings.clients[subject]):
                    return "its client waits, but cannot withdraw its request"
            else:
                node.undelivered(copy(self.messages[subject]))
        except Exception as error:
            return sentences.raised(error)
        return ""

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
                self.find_step(i, place, DELIVER, message, inbox)
        own = self.clients[i]
        if place.asked < len(own):
            client = own[place.asked]
            busy = place.inside + place.waiting
            if len(busy) < self.setup.clients and self.standings.of(client, busy) == 0:
                self.find_step(i, place, REQUEST, client, place.inbox)
        for client in place.inside:
            if not self.stays[client]:
                self.find_step(i, place, LEAVE, client, place.inbox)
        if self.setup.withdrawals:
            for client in place.waiting:
                self.find_step(i, place, WITHDRAW, client, place.inbox)
        if self.standings.change:
            for standing in place.waiting:
                for shift in self.standings.raises.get(standing, NO_SHIFTS):
                    self.find_step(i, place, PRIORITY, shift, place.inbox)
            for standing in place.inside:
                for shift in self.standings.parts.get(standing, NO_SHIFTS):
                    self.find_step(i, place, PART, shift, place.inbox)

    def shape(self, i: int, place: Place, sound: Sound) -> int:
        node = self.nodes[i]
        node.thaw(self.locals[i][place.local])
        arriving = [self.messages[number] for _, line in place.inbox for number in line]
        return sound.structure.see(node, arriving)

    def find_step(self, i: int, place: Place, kind: int, subject: int, inbox: Inbox) -> None:
        choices = self.choices[i][place.local]
        if choices == 0:
            node = self.nodes[i]
            node.thaw(self.locals[i][place.local])
            choices = node.choices()
            self.choices[i][place.local] = choices
        first = len(place.steps)
        for choice in range(choices):
            run = self.run(i, place.local, kind, subject, choice if choices > 1 else -1)
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
        if kind == REQUEST:
            asked += 1
            if self.setup.repeat:
                asked %= len(self.clients[i])
            waiting = (*waiting, subject)
        elif kind == LEAVE:
            inside = tuple(client for client in inside if client != subject)
        elif kind == WITHDRAW:
            waiting = tuple(client for client in waiting if client != subject)
        elif kind == PRIORITY:
            waiting = shifted(waiting, self.standings.shifts[subject])
        elif kind == PART:
            inside = shifted(inside, self.standings.shifts[subject])
        if self.standings.change and run.grants:
            outcome.enters = self.once(
                [self.standings.of(one, waiting) or one for one in run.enters]
            )
            outcome.grants = self.once(
                [self.standings.of(one, waiting) or one for one in run.grants]
            )
        for client in outcome.enters:
            if client in waiting:
                waiting = tuple(other for other in waiting if other != client)
                inside = (*inside, self.standings.clients[client])
            else:
                fault = Fault("safety", sentences.uninvited(i, client), 0)
                outcome.faults = (*outcome.faults, fault)
        outcome.after = self.place(i, run.after, asked, tuple(sorted(inside)), waiting, inbox)
        lends = self.ordered and run.lent != NOBODY
        outcome.plain = not (run.enters or outcome.faults or lends or kind in OF_CLIENTS)
        if self.ties is not None:
            outcome.plain = False
        return outcome

    # -- the same in all processes ---------------------------------------------------------------

    def parts(self, state: int) -> list[int]:
        return self.tree.unpack(state)[self.tree.leaves :]

    def part(self, state: int, slot: int) -> int:
        return self.tree.leaf(state, slot)

    def half(self, slot: int) -> int:
        return self.tree.half(slot)

    def met(self, slot: int) -> int:
        return len(self.links) if slot == self.size else len(self.pairs[slot])

    def joined(self, parts: list[int]) -> int:
        return self.tree.pack(parts)

    def meaning(self, slot: int, number: int) -> Part:
        if slot == self.size:
            links = self.links[number]
            wires = tuple([self.with_words(wire) for wire in links.wires])
            return links.links, links.changed, links.due, wires, links.memory
        pair = self.pairs[slot][number]
        local, asked, inside, waiting = self.desks[slot][pair // SPREAD]
        inbox = self.inboxes[slot][pair % SPREAD]
        words = tuple([(source, self.words(line)) for source, line in inbox])
        return self.locals[slot][local], asked, inside, waiting, words

    def number_of(self, slot: int, part: Part) -> int:
        if slot == self.size:
            present, changed, due, wires, memory = cast("tuple[Any, ...]", part)
            frozen = tuple([self.with_numbers(wire) for wire in wires])
            return self.number_links(Links(present, changed, due, frozen, memory))
        local, asked, inside, waiting, words = cast("tuple[Any, ...]", part)
        inbox: list[Line] = [(source, self.heard(line)) for source, line in words]
        number = self.local(slot, local)
        return self.place(slot, number, asked, inside, waiting, tuple(inbox))

    def words(self, line: tuple[int, ...]) -> tuple[Word, ...]:
        """Messages as all processes know them; in an order of their own where order is none."""
        found = [word(self.messages[number]) for number in line]
        return tuple(found if self.fifo else sorted(found, key=hash))

    def heard(self, words: tuple[Word, ...]) -> tuple[int, ...]:
        numbers = [self.message(spoken(each)) for each in words]
        return tuple(numbers if self.fifo else sorted(numbers))

    def with_words(self, wire: FrozenWire) -> Frozen:
        return *wire[:4], tuple([self.words(line) for line in wire[4]])

    def with_numbers(self, wire: tuple[Any, ...]) -> FrozenWire:
        one, other, alive, sees, lines = wire
        return one, other, alive, sees, tuple([self.heard(line) for line in lines])

    # -- expanding a state ----------------------------------------------------------------

    def expand(self, state: int) -> None:
        self.successors.clear()
        self.labels.clear()
        self.faults.clear()
        tree = self.tree.unpack(state)
        eager, top = self.survey(tree)
        if self.sound is not None:
            self.judge_structure(tree, self.sound)
        for i in range(self.size):
            self.expand_node(tree, i, top)
        if self.changing:
            self.expand_links(tree)
        if not eager:
            self.judge_rest(tree)

    def judge_structure(self, tree: list[int], sound: Sound) -> None:
        """What is promised of every single state."""
        seen = tuple([place.shape for place in self.around])
        if seen not in sound.known:
            for name, text in sound.wrong(seen, self.start_links):
                self.faults.append(Fault(name, text, AT_REST))

    def judge_rest(self, tree: list[int]) -> None:
        """Nothing can happen by itself any more: nobody may be left waiting."""
        waiting = self.unserved(tree)
        if waiting and "served" in self.judged:
            self.faults.append(Fault("served", sentences.unserved(len(waiting)), AT_REST))

    def unserved(self, tree: list[int]) -> list[int]:
        """The clients that wait and must be served in the end."""
        leaves = self.tree.leaves
        found: list[int] = []
        for i in range(self.size):
            found += self.clients_of(self.look(i, tree[leaves + i]).waiting)
        return found

    def clients_of(self, standings: tuple[int, ...]) -> list[int]:
        return [self.standings.clients[standing] for standing in standings]

    def survey(self, tree: list[int]) -> tuple[bool, int]:
        """Can anything happen by itself? And what entry is due if a client leaves now?"""
        leaves = self.tree.leaves
        eager = False
        quiet = self.ordered
        top = NOTHING_DUE
        self.around.clear()
        for i in range(self.size):
            place = self.expanded(i, tree[leaves + i])
            self.around.append(place)
            if place.eager:
                eager = True
            if not place.quiet:
                quiet = False
            if place.top > top:
                top = place.top
        return eager, top if quiet else NOTHING_DUE

    def expand_node(self, tree: list[int], i: int, top: int) -> None:
        label = i << NODE
        for outcome in self.around[i].steps:
            self.expand_step(tree, i, outcome, top, label)
            label += 1

    def expand_step(self, tree: list[int], i: int, outcome: Outcome, top: int, label: int) -> None:
        row = tree[:]
        if outcome.plain and not self.changing:
            dirty = self.apply(row, i, outcome)
        elif self.judge(row, i, outcome, top, label):
            dirty = self.apply(row, i, outcome)
            if self.wide:
                dirty |= self.above[self.tree.leaves + self.size]
        else:
            return
        if self.setup.capacity > 0 and self.overfull(row, outcome):
            return
        self.successors.append(self.tree.climb(row, dirty))
        self.labels.append(label)

    def overfull(self, row: list[int], outcome: Outcome) -> bool:
        leaves = self.tree.leaves
        return any(self.look(j, row[leaves + j]).full for j in outcome.receivers)

    def judge(self, row: list[int], i: int, outcome: Outcome, top: int, label: int) -> bool:
        """Look at a step that is not plain; False if the run ends here."""
        cut = False
        if self.changing and not self.may_send(row, i, outcome, label):
            return False
        for fault in outcome.faults:
            if fault.name in self.judged:
                self.faults.append(Fault(fault.name, fault.text, label))
            if fault.name not in ("one-token", "conservation"):
                cut = True
        leaves = self.tree.leaves
        due = NOTHING_DUE
        if self.ordered:
            due = self.links[row[leaves + self.size]].due
            if outcome.kind == PRIORITY:
                due = self.due_after_change(outcome.subject, due, top, row)
            elif outcome.kind in (LEAVE, PART) and top > NOTHING_DUE and self.whole(row):
                due = top
            elif outcome.kind == WITHDRAW:
                due = NOTHING_DUE  # it may have been the one
            several = len(outcome.grants) > 1 and outcome.kind in (LEAVE, PART, PRIORITY)
            if several and top > NOTHING_DUE and self.whole(row):
                self.judge_grants(outcome, label)
        if outcome.lent != NOBODY and due > NOTHING_DUE:
            waiting = self.look(outcome.lent, row[leaves + outcome.lent]).waiting
            highest = max([self.priorities[client] for client in waiting], default=due)
            if highest + self.gain < due:
                text = sentences.lent_out_of_order(outcome.lent, highest, due)
                self.faults.append(Fault("order", text, label))
            due = NOTHING_DUE
        if outcome.enters and not cut:
            held = self.look(i, outcome.after).held
            for j in range(self.size):
                if j != i:
                    held += self.look(j, row[leaves + j]).held
            if held > self.permits:
                want = self.wants[outcome.enters[-1]]
                text = sentences.overuse(i, want, held, self.permits)
                if "safety" in self.judged:
                    self.faults.append(Fault("safety", text, label))
                cut = True
            for client in outcome.enters:
                if due > NOTHING_DUE and self.priorities[client] + self.gain < due:
                    text = sentences.out_of_order(i, self.priorities[client], due)
                    self.faults.append(Fault("order", text, label))
                due = NOTHING_DUE
        if outcome.kind == PRIORITY and self.falls(outcome.subject):
            due = NOTHING_DUE  # until all have heard of it, the request may be served as it was
        if self.ordered and not cut:
            before = self.links[row[leaves + self.size]]
            if due != before.due:
                row[leaves + self.size] = self.number_links(before.but(due))
        if self.ties is not None and not cut:
            self.judge_ties(row, i, outcome, label)
        return not cut

    def judge_ties(self, row: list[int], i: int, outcome: Outcome, label: int) -> None:
        assert self.ties is not None
        before = self.links[row[self.tree.leaves + self.size]]
        kind = TIES_OF.get(outcome.kind, OTHER)
        standing = outcome.subject if kind not in (OTHER, LINKS) else 0
        if outcome.kind in (PRIORITY, PART):
            standing = self.standings.shifts[outcome.subject][1]
        quiet = all(place.quiet for place in self.around)
        sent = [self.messages[number] for number in outcome.sends]
        moves = any(one.tokens() > 0 and one.lends() == 0 for one in sent)
        step = (kind, standing, i, quiet, self.whole(row), outcome.grants, moves)
        memory, wrong = self.ties.after(before.memory, step)
        if wrong:
            self.faults.append(Fault(TIES, wrong, label))
        if memory is not before.memory:
            after = self.number_links(before.but(before.due, memory))
            row[self.tree.leaves + self.size] = after

    def due_after_change(self, shift: int, due: int, top: int, row: list[int]) -> int:
        """What is due in a step that changes a priority: at rest the highest of all who wait,
        whichever of its two priorities the request is known by. Else a request that falls may
        have been the one that was due."""
        here, there = self.standings.shifts[shift]
        if top == NOTHING_DUE or not self.whole(row):
            return NOTHING_DUE if self.falls(shift) else due
        lower = min(self.priorities[here], self.priorities[there])
        waiting = [standing for place in self.around for standing in place.waiting]
        return max([lower if one == here else self.priorities[one] for one in waiting])

    def falls(self, shift: int) -> bool:
        here, there = self.standings.shifts[shift]
        return self.priorities[there] < self.priorities[here]

    def judge_grants(self, outcome: Outcome, label: int) -> None:
        """At rest every request has arrived: of several grants in one step, those after the first
        as well are for the highest of all that still wait."""
        waiting = [list(place.waiting) for place in self.around]
        if outcome.kind == PRIORITY:
            shift = self.standings.shifts[outcome.subject]
            waiting = [list(shifted(place.waiting, shift)) for place in self.around]
        for number, grant in enumerate(outcome.grants):
            homes = [j for j in range(self.size) if grant == -1 - j or grant in waiting[j]]
            if not homes or not waiting[homes[0]]:
                continue
            node = homes[0]
            client = grant if grant >= 0 else max(waiting[node], key=self.priorities.__getitem__)
            due = max([self.priorities[other] for row in waiting for other in row])
            waiting[node].remove(client)
            if number > 0 and self.priorities[client] + self.gain < due:
                text = sentences.out_of_order(node, self.priorities[client], due)
                self.faults.append(Fault("order", text, label))
                return

    def apply(self, row: list[int], i: int, outcome: Outcome) -> int:
        """Change the places in ``row``; returns which pairs above them are now wrong."""
        row[self.tree.leaves + i] = outcome.after
        return self.above[self.tree.leaves + i] | self.send(row, outcome)

    def send(self, row: list[int], outcome: Outcome) -> int:
        leaves = self.tree.leaves
        dirty = 0
        receivers = outcome.receivers
        for k, message in enumerate(outcome.sends):
            j = receivers[k]
            row[leaves + j] = self.arrived(j, row[leaves + j], message)
            dirty |= self.above[leaves + j]
        return dirty

    # -- links: they stay ------------------------------------------------------------------

    def number_links(self, links: Links) -> int:
        key = links.key()
        known = self.links_numbers.get(key, -1)
        if known < 0:
            known = len(self.links)
            self.links_numbers[key] = known
            self.links.append(links)
        return known

    def expand_links(self, tree: list[int]) -> None:
        """What can happen to links."""

    def may_send(self, row: list[int], i: int, outcome: Outcome, label: int) -> bool:
        """Are there links for all that the step sends? If not, that is a fault."""
        return True

    def whole(self, row: list[int]) -> bool:
        """Can every node reach every other?"""
        return True

    # -- liveness: who waits, and what must happen in the end ---------------------------------

    def waiting(self, state: int) -> list[int]:
        return self.unserved(self.tree.unpack(state))

    def owed(self, state: int) -> list[int]:
        tree = self.tree.unpack(state)
        debts: list[int] = []
        for i in range(self.size):
            place = self.look(i, tree[self.tree.leaves + i])
            for source, line in place.inbox:
                if self.fifo:
                    debts.append(self.debt(source, i))
                else:
                    debts += [2 * message for message in dict.fromkeys(line)]
            leaving = tuple([one for one in place.inside if not self.stays[one]])
            debts += [2 * client + 1 for client in self.clients_of(leaving)]
        return debts

    def debt(self, sender: int, receiver: int) -> int:
        return 2 * (sender * self.size + receiver)

    def pays(self, state: int, label: int) -> int:
        i = label >> NODE
        if i >= self.size:
            return -1
        tree = self.tree.unpack(state)
        place = self.expanded(i, tree[self.tree.leaves + i])
        step = place.steps[label & ((1 << NODE) - 1)]
        if step.kind == DELIVER:
            return (
                self.debt(self.messages[step.subject].sender, i) if self.fifo else 2 * step.subject
            )
        return 2 * self.standings.clients[step.subject] + 1 if step.kind == LEAVE else -1

    # -- telling what happened ----------------------------------------------------------------

    def explain(self, state: int, label: int) -> list[Act]:
        leaves = self.tree.leaves
        row = self.tree.unpack(state)
        i = label >> NODE
        k = label & ((1 << NODE) - 1)
        if i < self.size:
            place = self.expanded(i, row[leaves + i])
            outcome = place.steps[k]
            return [self.act(i, place.local, outcome.kind, outcome.subject, outcome.choice)]
        return self.describe_links(row, k, label)

    def describe_links(self, row: list[int], k: int, label: int) -> list[Act]:
        """What happens in step k of those that concern links."""
        return []

    def act(self, i: int, local: int, kind: int, subject: int, choice: int) -> Act:
        node = self.nodes[i]
        act = Act(i, EVENTS[kind])
        act.before = self.locals[i][local]
        act.names = node.variables
        act.choice = choice
        node.thaw(act.before)
        if choice >= 0:
            node.choose(choice)
        if kind in (DELIVER, UNDELIVERED):
            act.message = copy(self.messages[subject])
        elif kind in (REQUEST, LEAVE, WITHDRAW, PRIORITY, PART):
            standing = (
                subject if kind not in (PRIORITY, PART) else self.standings.shifts[subject][1]
            )
            act.client = self.standings.clients[standing]
            act.want = self.wants[standing]
            act.priority = self.priorities[standing]
            act.released = self.standings.released(subject) if kind == PART else 0
        else:
            act.peer = subject
        act.failure = self.handle(node, kind, subject)
        act.effects = self.out[:]
        self.out.clear()
        act.after = act.before if act.failure else node.freeze()
        act.tokens = node.tokens()
        act.free = node.free_permits()
        return act


def shifted(standings: tuple[int, ...], shift: Shift) -> tuple[int, ...]:
    here, there = shift
    return tuple([there if one == here else one for one in standings])


def ancestors(leaf: int) -> int:
    """The pairs above this leaf of the tree, as bits."""
    bits = 0
    x = leaf >> 1
    while x > 1:
        bits |= 1 << x
        x >>= 1
    return bits


def copy(message: Message) -> Message:
    """A message of its own, so that no handler can change what others will receive."""
    twin: Message = type(message)(message.receiver, *message.freeze()[1:])
    twin.sender = message.sender
    twin.seal = message.seal
    return twin


def word(message: Message) -> Word:
    seal = () if message.seal is None else message.seal.freeze()
    return type(message), message.sender, message.receiver, message.freeze()[1:], seal


def spoken(words: Word) -> Message:
    """The message that was put into words."""
    kind, sender, receiver, fields, seal = words
    message: Message = kind(receiver, *fields)
    message.sender = sender
    if seal:
        message.seal = Seal(*cast("tuple[Any, ...]", seal))
    return message


def same(one: Outcome, other: Outcome) -> bool:
    return (
        one.after == other.after
        and one.sends == other.sends
        and one.enters == other.enters
        and len(one.faults) == len(other.faults)
    )
