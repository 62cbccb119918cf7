"""One of several processes that search together.

Every state belongs to one process, by some aspects of it (:mod:`.partition`). That process alone
keeps the state, counts it and expands it; a step that leaves those aspects as they are stays at
home.
Processes number parts as they meet them. Those that were met before they parted have one number in
all of them; another is sent with its meaning when it is first mentioned. Halves of states are
numbered too, and there are far fewer of them than of states: a state goes as the sender's number of
it, and its parts go along only if one of its halves has not been sent before. In each level a
process sends a state to its owner once; or with every transition to it, where these are wanted.

Level by level: a state of the next depth is expanded when all processes have said that they are
done with this one, and what they said before that has been read. So depth, states and transitions
are those of a single process, whatever the order of events.
"""

from __future__ import annotations

from array import array
from typing import Any, Final

from meshlock.check.explorer import Explorer
from meshlock.check.model import Fault, Part
from meshlock.check.packing import SPREAD
from meshlock.check.partition import Aspect
from meshlock.check.system import System

BATCH: Final = 2000
"""States that go to another process together."""
SHIFT: Final = 40
LAST: Final = 1 << SHIFT
"""A state anywhere: its owner's number shifted by this, plus its own there."""


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
        self.last = False  # of this level
        self.found = 0  # if so: states that were new, or may be so elsewhere
        self.full = False  # if so: no more states are wanted

    def packed(self) -> tuple[object, ...]:
        rows = (self.meanings, self.examples, self.parts, self.states, self.sources)
        return self.sender, self.level, rows, (self.last, self.found, self.full)


def unpacked(sender: int, level: int, rows: Any, end: tuple[bool, int, bool]) -> Batch:
    batch = Batch(sender, level)
    batch.meanings, batch.examples, batch.parts, batch.states, batch.sources = rows
    batch.last, batch.found, batch.full = end
    return batch


class First:
    """Where a property was first seen to fail here."""

    def __init__(self, level: int, number: int, fault: Fault) -> None:
        self.level = level
        self.number = number
        self.name = fault.name
        self.text = fault.text


class Worker(Explorer):
    """``most``: states to keep here, as far as is known now. ``graph``: keep transitions too."""

    def __init__(
        self, model: System, me: int, by: list[Aspect], processes: int, most: int, graph: bool
    ) -> None:
        self.system = model
        self.by: list[list[int]] = [[], []]  # by half: places that say whose a state is
        self.aspects: dict[int, list[Aspect]] = {}  # by place: those that do
        for aspect in by:
            if aspect.slot not in self.aspects:
                self.by[model.half(aspect.slot)].append(aspect.slot)
                self.aspects[aspect.slot] = []
            self.aspects[aspect.slot].append(aspect)
        self.part_shares: dict[int, dict[int, int]] = {slot: {} for slot in self.aspects}
        self.me = me
        self.processes = processes
        self.away: set[int] = set()  # states of others that were reached in this level
        self.first_shares: list[int] = []  # by number of a first half: what it adds to the owner
        self.second_shares: list[int] = []  # likewise
        self.told: list[list[set[int]]] = []  # parts that a process knows of us
        self.told_firsts: list[list[int]] = [[] for _ in range(processes)]  # first halves
        self.told_seconds: list[list[int]] = [[] for _ in range(processes)]  # likewise
        self.here: list[list[dict[int, int]]] = []  # by process and place: its number, ours
        self.firsts_here: list[list[int]] = [[] for _ in range(processes)]  # halves, likewise
        self.seconds_here: list[list[int]] = [[] for _ in range(processes)]
        self.out: list[Batch] = []
        self.tails = array("q")  # transitions to states here: from anywhere
        self.heads = array("q")  # to here
        self.degrees = array("I")  # of states that are expanded: their transitions, or those left
        self.origins = array("q")  # where transitions to here come from, state by state
        self.begins: list[int] = []  # where among them those of each state do
        self.removed = 0  # states that are on no cycle
        self.level = 0
        self.fresh = 0  # states that this level has led to, as far as is known here
        self.firsts: dict[str, First] = {}
        super().__init__(model, most, graph)

    def begin(self, start: int) -> None:
        self.parents = array("q")  # anywhere
        slots = len(self.system.parts(start))
        self.slots = slots
        self.common = [self.system.met(slot) for slot in range(slots)]  # numbers that all share
        self.told = [[set() for _ in range(slots)] for _ in range(self.processes)]
        self.here = [[{} for _ in range(slots)] for _ in range(self.processes)]
        self.out = [Batch(self.me, 0) for _ in range(self.processes)]
        if self.owner(start) == self.me:
            self.keep(start, 0)
        self.depth = 0  # of the deepest state here
        self.level_end = self.count()  # states here up to this level

    # -- whose is it ---------------------------------------------------------------------------

    def owner(self, state: int) -> int:
        firsts, seconds = self.first_shares, self.second_shares
        first, second = state // SPREAD, state % SPREAD
        one = firsts[first] if first < len(firsts) else -1
        if one < 0:
            one = self.share(state, 0)
            put(firsts, first, one)
        other = seconds[second] if second < len(seconds) else -1
        if other < 0:
            other = self.share(state, 1)
            put(seconds, second, other)
        one += other
        return one if one < self.processes else one - self.processes

    def share(self, state: int, half: int) -> int:
        """What a half of a state adds to the number of its owner."""
        found = 0
        for slot in self.by[half]:
            found += self.part_share(slot, self.system.part(state, slot))
        return found % self.processes

    def part_share(self, slot: int, number: int) -> int:
        shares = self.part_shares[slot]
        known = shares.get(number, -1)
        if known < 0:
            part = self.system.meaning(slot, number)
            known = sum([by.share(part, self.processes) for by in self.aspects[slot]])
            known = shares[number] = known % self.processes
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

    def parent(self, number: int) -> int:
        return self.parents[number]

    def full(self) -> bool:
        """Are no more wanted?"""
        return len(self.states) >= self.most

    def reached(self) -> int:
        """-1 if this level is done with, or there are enough states."""
        return self.count() if self.expanded < self.level_end and not self.full() else -1

    def found(self, here: int, fault: Fault) -> None:
        if fault.name not in self.firsts:
            self.firsts[fault.name] = First(self.level, here, fault)

    def collect(self, here: int) -> None:
        """Keep or send those successors of a state that were not seen here."""
        seen, away, me = self.seen, self.away, self.me
        for state in self.model.successors:
            if state in seen:
                continue
            owner = self.owner(state)
            if owner == me:
                seen.add(state)
                self.states.append(state)
                self.parents.append((me << SHIFT) + here)
                self.depth = self.level + 1
                self.fresh += 1
            elif state not in away:
                away.add(state)
                self.send(owner, state, here)

    def number(self, here: int) -> None:
        """The same, and note every transition where it leads to."""
        self.degrees.append(len(self.model.successors))
        for state in self.model.successors:
            number = self.numbers.get(state, -1)
            if number < 0:
                owner = self.owner(state)
                if owner != self.me:
                    self.send(owner, state, here)
                    continue
                self.fresh += 1
                number = self.keep(state, (self.me << SHIFT) + here)
            self.join(self.me, here, number)

    def join(self, worker: int, source: int, number: int) -> None:
        """A transition from there to a state of ours."""
        self.tails.append((worker << SHIFT) + source)
        self.heads.append(number)
        if number < self.level_end:
            self.backward += 1

    # -- to and from others --------------------------------------------------------------------

    def send(self, owner: int, state: int, here: int) -> None:
        out = self.out[owner]
        firsts, seconds = self.told_firsts[owner], self.told_seconds[owner]
        first, second = state // SPREAD, state % SPREAD
        known = first < len(firsts) and firsts[first] > 0
        if not (known and second < len(seconds) and seconds[second] > 0):
            put(firsts, first, 1)
            put(seconds, second, 1)
            self.introduce(owner, state)
        out.states.append(state)
        out.sources.append(here)
        self.fresh += 1

    def introduce(self, owner: int, state: int) -> None:
        """Send the parts of a state, so that its halves are known."""
        out, told = self.out[owner], self.told[owner]
        parts = self.system.parts(state)
        for slot, number in enumerate(parts):
            if number >= self.common[slot] and number not in told[slot]:
                told[slot].add(number)
                out.meanings.append((slot, number, self.system.meaning(slot, number)))
        out.examples.append(state)
        out.parts.extend(array("q", parts))

    def due(self, owner: int, least: int = BATCH) -> Batch | None:
        """What there is to say to a process, if it is enough."""
        out = self.out[owner]
        if len(out.sources) < least:
            return None
        self.out[owner] = Batch(self.me, self.level)
        return out

    def farewell(self, owner: int, full: bool) -> Batch:
        """The last of this level; or of all, if no more states are wanted."""
        out = self.out[owner]
        out.last, out.found, out.full = True, self.fresh, full
        self.out[owner] = Batch(self.me, self.level + 1)
        return out

    def receive(self, batch: Batch) -> None:
        """Of the level that is being expanded here."""
        sender, source = batch.sender, batch.sender << SHIFT
        for k, state in enumerate(self.states_in(batch)):
            if self.graph:
                number = self.numbers.get(state, -1)
                if number < 0:
                    number = self.keep(state, source + batch.sources[k])
                self.join(sender, batch.sources[k], number)
            elif state not in self.seen:
                self.keep(state, source + batch.sources[k])

    def states_in(self, batch: Batch) -> list[int]:
        """The states that were sent, by our own numbers."""
        self.learn(batch)
        firsts, seconds = self.firsts_here[batch.sender], self.seconds_here[batch.sender]
        return [
            firsts[state // SPREAD] * SPREAD + seconds[state % SPREAD] for state in batch.states
        ]

    def learn(self, batch: Batch) -> None:
        """Which halves the sender means by its numbers."""
        model, here = self.system, self.here[batch.sender]
        firsts, seconds = self.firsts_here[batch.sender], self.seconds_here[batch.sender]
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
        self.level_end = self.count()
        self.fresh = 0
        self.away.clear()

    # -- afterwards ----------------------------------------------------------------------------

    def remove(self, ended: array[int]) -> list[array[int]]:
        """Remove states without transitions, one after the other, and with each the transitions to
        it: whatever is left when nothing can be removed leads to a cycle. ``ended``: states here
        with a transition to a state that somebody else has removed. Returns those of others."""
        degrees = self.degrees
        ends: list[int] = []
        if not self.begins:
            self.turn_round()
            ends = [number for number, degree in enumerate(degrees) if degree == 0]
        origins, begins = self.origins, self.begins
        elsewhere = [array("q") for _ in range(self.processes)]
        for number in ended:
            degrees[number] -= 1
            if degrees[number] == 0:
                ends.append(number)
        home = self.me << SHIFT
        while ends:
            removed = ends.pop()
            self.removed += 1
            for k in range(begins[removed], begins[removed + 1]):
                tail = origins[k]
                if tail >> SHIFT == self.me:
                    tail -= home
                    degrees[tail] -= 1
                    if degrees[tail] == 0:
                        ends.append(tail)
                else:
                    elsewhere[tail >> SHIFT].append(tail & (LAST - 1))
        return elsewhere

    def turn_round(self) -> None:
        """Sort the transitions to states here by these states."""
        begins = [0] * (self.count() + 1)
        for head in self.heads:
            begins[head] += 1
        total = 0
        for number in range(len(begins)):
            total += begins[number]
            begins[number] = total
        origins = array("q", bytes(8 * total))
        for k, head in enumerate(self.heads):  # from the end of each row to its beginning
            at = begins[head] - 1
            begins[head] = at
            origins[at] = self.tails[k]
        self.origins, self.begins = origins, begins
        self.tails, self.heads = array("q"), array("q")

    def meaning(self, number: int) -> list[Part]:
        parts = self.system.parts(self.state(number))
        return [self.system.meaning(slot, part) for slot, part in enumerate(parts)]


def put(row: list[int], at: int, value: int) -> None:
    """Numbers come in their order, nearly."""
    while len(row) <= at:
        row.append(-1)
    row[at] = value
