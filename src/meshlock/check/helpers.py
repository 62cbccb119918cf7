"""Several processes search together: one keeps the states, the others help it to expand them.

The process that keeps the states gives the others *portions* of those that will be next, each to
the one that found them if it can, and expands those itself whose turn comes before another has
begun with them. What is found is taken in the order of the states. So the search is the one that a
single process would make: the same states come in the same order.

Processes number the parts of states as they meet them. Those that were met before they parted have
one number in all of them; another is sent with its meaning when it is first mentioned. Halves of
states are numbered too, and there are far fewer of them than of states: a state goes as the
sender's number of it, and its parts go along only if one of its halves has not been sent before.
"""

from __future__ import annotations

import signal
from array import array
from collections.abc import Callable, Sequence
from multiprocessing import get_all_start_methods, get_context
from multiprocessing.connection import Connection, wait
from time import process_time
from typing import TYPE_CHECKING, Any, Final

from meshlock.check.packing import SPREAD
from meshlock.check.system import System
from meshlock.errors import Refused, setting

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

ALONE = 10_000
"""States that one process expands before it asks others to help: many searches end before."""
PORTION: Final = 500
"""States of a portion, or fewer."""
AHEAD: Final = 4
"""Portions of each process that may be done before their turn comes."""
ATTENTION: Final = 64
"""States after which the process that keeps them looks whether others have written."""
UNSEEN: Final = 1 << 60
HERE: Final = -1
"""In place of a helper: the process that keeps the states."""
MOST_SEEN: Final = 1 << 20
"""States of which a helper remembers that it has judged and sent them."""

Told = tuple[list[tuple[int, int, Any]], Sequence[int], Sequence[int], Sequence[int]]
"""Parts that the other does not know (place, number, and the meaning or the other's own number);
states that are told by their parts, and these parts in one row; and all states."""
BY_PARTS: Final = -1
"""In place of a state."""


class Counterpart:
    """What two processes know of each other's numbers; each of them has one of these."""

    def __init__(self, model: System) -> None:
        self.model = model
        self.slots = len(model.parts(model.initial()))
        slots = range(self.slots)
        self.common = [model.met(slot) for slot in slots]  # numbers below these are the same
        self.told: list[set[int]] = [set() for _ in slots]  # parts, by our numbers
        self.ours: list[dict[int, int]] = [{} for _ in slots]  # of parts, by its numbers
        self.its: list[dict[int, int]] = [{} for _ in slots]  # and back
        self.told_halves: tuple[set[int], set[int]] = (set(), set())
        self.our_halves: tuple[dict[int, int], dict[int, int]] = ({}, {})
        self.its_halves: tuple[dict[int, int], dict[int, int]] = ({}, {})

    def give(self, states: Sequence[int]) -> Told:
        """States for the other to expand, by its numbers as far as we know them."""
        introduced, parts, given = list[tuple[int, int, Any]](), array("q"), array("q")
        firsts, seconds = self.its_halves
        for state in states:
            first, second = firsts.get(state // SPREAD, -1), seconds.get(state % SPREAD, -1)
            if first >= 0 and second >= 0:
                given.append(first * SPREAD + second)
            else:
                given.append(BY_PARTS)
                self.introduce(state, introduced, parts)
        return introduced, (), parts, given

    def take(self, told: Told) -> list[int]:
        """The states that were given, by our own numbers."""
        introduced, _, parts, given = told
        self.meet(introduced)
        at, taken = 0, list[int]()
        for state in given:
            if state == BY_PARTS:
                state = self.state(parts[at : at + self.slots])
                at += self.slots
            taken.append(state)
        return taken

    def tell(self, states: Sequence[int]) -> Told:
        """States that were found, by our own numbers."""
        introduced, examples, parts = list[tuple[int, int, Any]](), array("q"), array("q")
        firsts, seconds = self.told_halves
        for state in states:
            first, second = state // SPREAD, state % SPREAD
            if first not in firsts or second not in seconds:
                firsts.add(first)
                seconds.add(second)
                examples.append(state)
                self.introduce(state, introduced, parts)
        return introduced, examples, parts, states

    def hear(self, told: Told) -> list[int]:
        """The states that were found, by our own numbers."""
        introduced, examples, parts, states = told
        self.meet(introduced)
        (firsts, seconds), (its_firsts, its_seconds) = self.our_halves, self.its_halves
        for k, state in enumerate(examples):
            ours = self.state(parts[k * self.slots : (k + 1) * self.slots])
            firsts[state // SPREAD] = ours // SPREAD
            seconds[state % SPREAD] = ours % SPREAD
            its_firsts[ours // SPREAD] = state // SPREAD
            its_seconds[ours % SPREAD] = state % SPREAD
        return [firsts[state // SPREAD] * SPREAD + seconds[state % SPREAD] for state in states]

    def introduce(
        self, state: int, introduced: list[tuple[int, int, Any]], parts: array[int]
    ) -> None:
        """Name a state by its parts, and say what those are that the other does not know."""
        for slot, number in enumerate(self.model.parts(state)):
            if number >= self.common[slot] and number not in self.told[slot]:
                self.told[slot].add(number)
                known = self.its[slot].get(number, -1)
                meaning = self.model.meaning(slot, number) if known < 0 else known
                introduced.append((slot, number, meaning))
            parts.append(number)

    def meet(self, introduced: list[tuple[int, int, Any]]) -> None:
        for slot, number, meaning in introduced:
            ours = meaning if isinstance(meaning, int) else self.model.number_of(slot, meaning)
            self.ours[slot][number] = ours
            self.its[slot][ours] = number

    def state(self, parts: Sequence[int]) -> int:
        """The state that has these parts, by the other's numbers."""
        row: list[int] = []
        for slot, number in enumerate(parts):
            row.append(number if number < self.common[slot] else self.ours[slot][number])
        return self.model.tree.pack(row)


class Portion:
    """Some states in a row, and what follows them."""

    def __init__(self, first: int, count: int, home: int) -> None:
        self.first = first
        self.count = count
        self.home = home  # the process that found them
        self.begun = False
        self.done = False
        self.degrees: list[int] = []  # of each state: how many successors it has,
        self.sent: list[int] = []  # and how many of them were sent, which stand
        self.heads: list[int] = []  # here, one after the other
        self.wrong: dict[int, set[str]] = {}  # properties that fail, by state of the portion


class Helpers:
    """The processes that expand states, as the one that keeps them sees them. ``graph``: each sends
    every successor of a state, not only those to which no earlier state leads."""

    def __init__(self, model: System, processes: int, graph: bool) -> None:
        if "fork" not in get_all_start_methods():
            raise Refused(
                f"This search cannot use several processes: leave out {setting('workers')}."
            )
        self.model = model
        self.count = processes - 1  # without the one that keeps the states
        self.graph = graph
        self.pipes: list[Connection] = []  # none while one process is enough
        self.processes: list[BaseProcess] = []
        self.counterparts: list[Counterpart] = []
        self.at_work: dict[int, Portion] = {}  # by process
        self.portions: list[Portion] = []  # from the one whose turn it is on
        self.cut = 0  # the number of the first state that is in no portion yet
        self.taken = 0  # states of the portion whose turn it is
        self.at = 0  # where the successors of the next one stand
        self.cpu = 0.0  # seconds that the others have spent
        self.reported: set[str] = set()  # properties whose first failure is known

    def expand(self, here: int, known: int, states: Callable[[int, int], Sequence[int]]) -> int:
        """Let the model have what follows this state, the next of those that are known, as far as
        it may be new; returns how many successors it has."""
        if not self.pipes:
            if here < ALONE:
                self.model.expand(states(here, here + 1)[0])
                return len(self.model.successors)
            self.start(here)
        try:
            return self.expand_together(here, known, states)
        except (EOFError, ConnectionError):
            raise Refused(
                f"A process of the search ended early, perhaps for lack of memory: lower "
                f"{setting('max-states')} or {setting('workers')}."
            ) from None

    def expand_together(
        self, here: int, known: int, states: Callable[[int, int], Sequence[int]]
    ) -> int:
        model = self.model
        if not self.portions or self.taken == self.portions[0].count:
            self.advance(known, states)
        portion = self.portions[0]
        if portion.home == HERE:
            self.taken += 1
            if self.taken % ATTENTION == 0:
                self.listen(0)
                self.deal(states)
            model.expand(states(here, here + 1)[0])
            return len(model.successors)
        place, end = self.taken, self.at + portion.sent[self.taken]
        if place in portion.wrong and not portion.wrong[place] <= self.reported:
            self.reported |= portion.wrong[place]
            model.expand(states(here, here + 1)[0])
        else:
            model.successors[:] = portion.heads[self.at : end]
            model.faults.clear()
        self.taken, self.at = place + 1, end
        return portion.degrees[place]

    def start(self, here: int) -> None:
        """With all that is known of single nodes by now."""
        self.cut = here
        context = get_context("fork")
        for _ in range(self.count):
            ours, theirs = context.Pipe()
            counterpart = Counterpart(self.model)
            given = (counterpart, self.graph, theirs, [*self.pipes, ours])
            process = context.Process(target=help_search, args=given, daemon=True)
            process.start()
            theirs.close()
            self.pipes.append(ours)
            self.processes.append(process)
            self.counterparts.append(counterpart)

    def advance(self, known: int, states: Callable[[int, int], Sequence[int]]) -> None:
        """To the next portion; those who helped with the last one found what is new by now."""
        home = self.portions.pop(0).home if self.portions else HERE
        while self.cut < known:
            last = self.portions[-1] if self.portions else None
            if last is None or last.begun or last.count == PORTION:
                last = Portion(self.cut, 0, home)
                self.portions.append(last)
            more = min(PORTION - last.count, known - self.cut)
            last.count += more
            self.cut += more
        self.taken = self.at = 0
        self.listen(0)
        self.deal(states)
        first = self.portions[0]
        if not first.begun:
            first.begun, first.home = True, HERE
        while not (first.done or first.home == HERE):
            self.listen(None)
            self.deal(states)

    def deal(self, states: Callable[[int, int], Sequence[int]]) -> None:
        """Give portions to those who have none; not the next, for it would be waited for."""
        for process in range(self.count):
            if process in self.at_work:
                continue
            waiting = [one for one in self.portions[1 : 1 + AHEAD * self.count] if not one.begun]
            if waiting:
                own = [one for one in waiting if one.home == process]
                portion = (own or waiting)[-1]
                portion.begun, portion.home = True, process
                self.at_work[process] = portion
                given = states(portion.first, portion.first + portion.count)
                told = self.counterparts[process].give(given)
                self.pipes[process].send((portion.first, told))

    def listen(self, seconds: float | None) -> None:
        """Take what helpers have found; wait for that as long, or until there is something."""
        for pipe in wait([self.pipes[process] for process in self.at_work], seconds):
            process = self.pipes.index(pipe)  # type: ignore[arg-type]
            portion = self.at_work.pop(process)
            told, *found, cpu = self.pipes[process].recv()
            portion.heads = self.counterparts[process].hear(told)
            portion.degrees, portion.sent, portion.wrong = found
            portion.done = True
            self.cpu += cpu

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.join()


def help_search(
    counterpart: Counterpart, graph: bool, pipe: Connection, others: list[Connection]
) -> None:
    """What a process does from its beginning to its end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started us is told, and ends us
    for one in others:
        one.close()  # else nobody would see that its process has ended
    model = counterpart.model
    seen: dict[int, int] = {}  # states that were sent, and the first portion that leads to each
    model.attach({}, seen)
    while True:
        try:
            portion, told = pipe.recv()
        except (EOFError, ConnectionError):
            return
        before = process_time()
        degrees, sent, heads, wrong = list[int](), list[int](), array("q"), dict[int, set[str]]()
        for place, state in enumerate(counterpart.take(told)):
            model.expand(state)
            first = len(heads)
            for after in model.successors:
                if graph or portion < seen.get(after, UNSEEN):  # portions may come out of order
                    heads.append(after)
                    seen[after] = portion
            degrees.append(len(model.successors))
            sent.append(len(heads) - first)
            if model.faults:
                wrong[place] = {fault.name for fault in model.faults}
        if len(seen) > MOST_SEEN:
            seen.clear()
        found = counterpart.tell(heads)
        pipe.send((found, degrees, sent, wrong, process_time() - before))
