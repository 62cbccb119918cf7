"""One of several processes that search together.

Every state belongs to one process, by the hash of an *aspect* of one of its parts (or several):
one item of what the part means, such as how often a node has asked. That process alone keeps the
state, counts it and expands it; a step that leaves those aspects as they are stays at home.
Processes number parts as they meet them. Those that were met before they parted have one number in
all of them; another is sent with its meaning when it is first mentioned. Halves of states are
numbered too, and there are far fewer of them than of states: a state goes as the sender's number of
it, and its parts go along only if one of its halves has not been sent before. A state is sent to
its owner once by each process that reaches it; after that only the number of that sending goes,
where transitions are wanted at all.

Level by level: a state of the next depth is expanded when all processes have said that they are
done with this one, and what they said before that has been read. So depth, states and transitions
are those of a single process, whatever the order of events.
"""

from __future__ import annotations

from array import array
from typing import Any, Final, cast

from meshlock.check.model import Fault, Model, Part
from meshlock.check.packing import SPREAD

BATCH: Final = 2000
"""States that go to another process together."""
SHIFT: Final = 40
"""A state anywhere: its owner's number shifted by this, plus its own there."""
MIXED: Final = (1 << 30) - 1
"""The bits that are kept of a hash."""

Aspect = tuple[int, int]
"""A place in states, and an item of what is there."""


class Batch:
    """What one process says to another, all of one level."""

    def __init__(self, sender: int, level: int) -> None:
        self.sender = sender
        self.level = level  # of the states that it comes from
        self.meanings: list[tuple[int, int, Part]] = []  # place in the state, number, what it is
        self.examples = array("q")  # states with a half that is mentioned for the first time
        self.parts = array("q")  # of these, one after the other
        self.states = array("q")  # by the sender's numbers
        self.sources = array("q")  # from which each was reached
        self.tails = array("q")  # transitions to states that were sent: from where,
        self.heads = array("q")  # and to which of those sent
        self.last = False  # of this level
        self.found = 0  # if so: states that were new, at home or elsewhere
        self.full = False  # if so: no more states are wanted

    def packed(self) -> tuple[object, ...]:
        return (
            self.sender,
            self.level,
            self.meanings,
            self.examples.tobytes(),
            self.parts.tobytes(),
            self.states.tobytes(),
            self.sources.tobytes(),
            self.tails.tobytes(),
            self.heads.tobytes(),
            self.last,
            self.found,
            self.full,
        )


def unpacked(
    sender: int,
    level: int,
    meanings: list[tuple[int, int, Part]],
    examples: bytes,
    parts: bytes,
    states: bytes,
    sources: bytes,
    tails: bytes,
    heads: bytes,
    last: bool,
    found: int,
    full: bool,
) -> Batch:
    batch = Batch(sender, level)
    batch.meanings = meanings
    batch.examples.frombytes(examples)
    batch.parts.frombytes(parts)
    batch.states.frombytes(states)
    batch.sources.frombytes(sources)
    batch.tails.frombytes(tails)
    batch.heads.frombytes(heads)
    batch.last, batch.found, batch.full = last, found, full
    return batch


class First:
    """Where a property was first seen to fail here."""

    def __init__(self, level: int, number: int, fault: Fault) -> None:
        self.level = level
        self.number = number
        self.name = fault.name
        self.text = fault.text


class Worker:
    """``most``: states to keep here. ``graph``: keep the transitions too."""

    def __init__(
        self, model: Model, me: int, by: list[Aspect], count: int, most: int, graph: bool
    ) -> None:
        self.model = model
        self.by: list[list[int]] = [[], []]  # by half: places that say whose a state is
        self.items: dict[int, list[int]] = {}  # by place: the items of it that do
        for slot, item in by:
            if slot not in self.items:
                self.by[model.half(slot)].append(slot)
            self.items.setdefault(slot, []).append(item)
        self.part_shares: dict[int, dict[int, int]] = {slot: {} for slot in self.items}
        self.me = me
        self.count = count
        self.most = most
        self.graph = graph
        self.states = array("q")
        self.parents = array("q")  # anywhere
        self.numbers: dict[int, int] = {}  # of states here, or -1 - the sending of others
        self.seen: set[int] = set()  # both, where numbers are not wanted
        self.shares: list[list[int]] = [[], []]  # by half and its number: what it adds to the owner
        self.told: list[list[set[int]]] = []  # parts that a process knows of us
        self.told_halves: list[list[list[int]]] = []  # halves: by process, half, number
        self.sent = [0] * count  # states to each process
        self.here: list[list[dict[int, int]]] = []  # by process and place: its number, ours
        self.halves_here: list[list[list[int]]] = []  # by half, likewise
        self.came: list[array[int]] = [array("q") for _ in range(count)]  # by sending: ours
        self.out: list[Batch] = []
        self.tails = array("q")  # transitions to states here: from anywhere
        self.heads = array("q")  # to here
        self.backward = 0  # of these, to a level that is not below
        self.transitions = 0
        self.expanded = 0
        self.level = 0
        self.depth = 0  # of the deepest state here
        self.level_end = 0  # states here up to this level
        self.found = 0
        self.firsts: dict[str, First] = {}
        model.attach(self.numbers, self.seen)
        start = model.initial()
        slots = len(model.parts(start))
        self.slots = slots
        self.common = [model.met(slot) for slot in range(slots)]  # numbers that all share
        self.told = [[set() for _ in range(slots)] for _ in range(count)]
        self.told_halves = [[[], []] for _ in range(count)]
        self.here = [[{} for _ in range(slots)] for _ in range(count)]
        self.halves_here = [[[], []] for _ in range(count)]
        self.out = [Batch(me, 0) for _ in range(count)]
        if self.owner(start) == me:
            self.keep(start, 0)
            self.depth = 0
        self.level_end = self.size()

    # -- whose is it ---------------------------------------------------------------------------

    def owner(self, state: int) -> int:
        return (
            self.share(state, 0, state // SPREAD) + self.share(state, 1, state % SPREAD)
        ) % self.count

    def share(self, state: int, half: int, number: int) -> int:
        """What a half of a state adds to the number of its owner."""
        shares = self.shares[half]
        known = entry(shares, number)
        if known < 0:
            known = 0
            for slot in self.by[half]:
                known += self.part_share(slot, self.model.part(state, slot))
            known %= self.count
            put(shares, number, known)
        return known

    def part_share(self, slot: int, number: int) -> int:
        shares = self.part_shares[slot]
        known = shares.get(number, -1)
        if known < 0:
            part = self.model.meaning(slot, number)
            known = sum([aspect(part, slot, item) for item in self.items[slot]]) % self.count
            shares[number] = known
        return known

    # -- states --------------------------------------------------------------------------------

    def keep(self, state: int, parent: int) -> int:
        """A state of ours that is new."""
        number = len(self.states)
        if self.graph:
            self.numbers[state] = number
        else:
            self.seen.add(state)
        self.states.append(state)
        self.parents.append(parent)
        self.depth = self.level + 1
        return number

    def size(self) -> int:
        """How many states there are here."""
        return len(self.states)

    def state(self, number: int) -> int:
        return self.states[number]

    def parent(self, number: int) -> int:
        return self.parents[number]

    def full(self) -> bool:
        """Are no more wanted?"""
        return len(self.states) >= self.most

    def work(self, batch: int) -> bool:
        """Expand so many states of this level; False when there is none left."""
        stop = min(self.level_end, self.expanded + batch)
        model = self.model
        while self.expanded < stop:
            if self.full():
                return False
            here = self.expanded
            model.expand(self.state(here))
            self.transitions += len(model.successors)
            if self.graph:
                self.number(here)
            else:
                self.collect(here)
            for fault in model.faults:
                if fault.name not in self.firsts:
                    self.firsts[fault.name] = First(self.level, here, fault)
            self.expanded = here + 1
        return self.expanded < self.level_end

    def collect(self, here: int) -> None:
        """Keep or send those successors of a state that were never seen here."""
        seen, me = self.seen, self.me
        size = len(seen)
        for state in self.model.successors:
            seen.add(state)
            if len(seen) > size:
                size += 1
                self.found += 1
                owner = self.owner(state)
                if owner == me:
                    self.states.append(state)
                    self.parents.append((me << SHIFT) + here)
                    self.depth = self.level + 1
                else:
                    self.send(owner, state, here)

    def number(self, here: int) -> None:
        """The same, and note every transition where it leads to."""
        for state in self.model.successors:
            number = self.numbers.get(state)
            if number is None:
                self.found += 1
                owner = self.owner(state)
                if owner == self.me:
                    self.join(self.me, here, self.keep(state, (self.me << SHIFT) + here))
                else:
                    self.numbers[state] = -1 - (self.sent[owner] * self.count + owner)
                    self.send(owner, state, here)
            elif number >= 0:
                self.join(self.me, here, number)
            else:
                sending = -1 - number
                out = self.out[sending % self.count]
                out.tails.append(here)
                out.heads.append(sending // self.count)

    def join(self, worker: int, source: int, number: int) -> None:
        """A transition from there to a state of ours."""
        self.tails.append((worker << SHIFT) + source)
        self.heads.append(number)
        if number < self.level_end:
            self.backward += 1

    # -- to and from others --------------------------------------------------------------------

    def send(self, owner: int, state: int, here: int) -> None:
        out = self.out[owner]
        firsts, seconds = self.told_halves[owner]
        first, second = state // SPREAD, state % SPREAD
        if entry(firsts, first) < 0 or entry(seconds, second) < 0:
            put(firsts, first, 1)
            put(seconds, second, 1)
            self.introduce(owner, state)
        out.states.append(state)
        out.sources.append(here)
        self.sent[owner] += 1

    def introduce(self, owner: int, state: int) -> None:
        """Send the parts of a state, so that its halves are known."""
        out, told = self.out[owner], self.told[owner]
        parts = self.model.parts(state)
        for slot, number in enumerate(parts):
            if number >= self.common[slot] and number not in told[slot]:
                told[slot].add(number)
                out.meanings.append((slot, number, self.model.meaning(slot, number)))
        out.examples.append(state)
        out.parts.extend(array("q", parts))

    def due(self, owner: int, least: int = BATCH) -> Batch | None:
        """What there is to say to a process, if it is enough."""
        out = self.out[owner]
        if len(out.sources) + len(out.tails) < least:
            return None
        self.out[owner] = Batch(self.me, self.level)
        return out

    def farewell(self, owner: int) -> Batch:
        """The last of this level."""
        out = self.out[owner]
        out.last, out.found = True, self.found
        out.full = self.full()
        self.out[owner] = Batch(self.me, self.level + 1)
        return out

    def receive(self, batch: Batch) -> None:
        """Of the level that is being expanded here."""
        sender, came = batch.sender, self.came[batch.sender]
        for k, state in enumerate(self.states_in(batch)):
            if self.graph:
                number = self.numbers.get(state, -1)
                if number < 0:
                    number = self.keep(state, (sender << SHIFT) + batch.sources[k])
                came.append(number)
                self.join(sender, batch.sources[k], number)
            elif state not in self.seen:
                self.keep(state, (sender << SHIFT) + batch.sources[k])
        for k, tail in enumerate(batch.tails):
            self.join(sender, tail, came[batch.heads[k]])

    def states_in(self, batch: Batch) -> list[int]:
        """The states that were sent, by our own numbers."""
        self.learn(batch)
        firsts, seconds = self.halves_here[batch.sender]
        return [
            firsts[state // SPREAD] * SPREAD + seconds[state % SPREAD] for state in batch.states
        ]

    def learn(self, batch: Batch) -> None:
        """Which halves the sender means by its numbers."""
        model, here = self.model, self.here[batch.sender]
        firsts, seconds = self.halves_here[batch.sender]
        for slot, number, part in batch.meanings:
            here[slot][number] = model.number_of(slot, part)
        parts, at = batch.parts, 0
        for theirs in batch.examples:
            row: list[int] = []
            for slot, common in enumerate(self.common):
                number = parts[at + slot]
                row.append(number if number < common else here[slot][number])
            ours = model.joined(row)
            put(firsts, theirs // SPREAD, ours // SPREAD)
            put(seconds, theirs % SPREAD, ours % SPREAD)
            at += self.slots

    def descend(self) -> None:
        """Everybody has said what this level leads to."""
        self.level += 1
        self.level_end = self.size()
        self.found = 0

    # -- afterwards ----------------------------------------------------------------------------

    def origins(self, firsts: list[int]) -> tuple[array[int], array[int]]:
        """Where the transitions to each state here come from, and where among them those of each
        state begin. ``firsts``: how many states the processes before each have."""
        begins = [0] * (self.size() + 1)
        for head in self.heads:
            begins[head] += 1
        total = 0
        for number in range(len(begins)):
            total += begins[number]
            begins[number] = total
        origins = array("I", bytes(4 * total))
        for k, head in enumerate(self.heads):  # from the end of each row to its beginning
            begins[head] -= 1
            tail = self.tails[k]
            origins[begins[head]] = firsts[tail >> SHIFT] + (tail & ((1 << SHIFT) - 1))
        return origins, array("Q", begins)

    def meaning(self, number: int) -> list[Part]:
        parts = self.model.parts(self.state(number))
        return [self.model.meaning(slot, part) for slot, part in enumerate(parts)]


def entry(row: list[int], at: int) -> int:
    return row[at] if at < len(row) else -1


def put(row: list[int], at: int, value: int) -> None:
    """Numbers come in their order, nearly."""
    while len(row) <= at:
        row.append(-1)
    row[at] = value


def aspect(part: Part, slot: int, item: int) -> int:
    """The hash of an item of a part: the same in all processes."""
    items = cast("tuple[Any, ...]", part)
    return hash((slot, item, items[item])) & MIXED
