"""One search by several processes: they are started, listened to, and asked what they know.

Each process has a :class:`~.worker.Worker` and talks with all the others (:mod:`.exchange`); with
this one it has a pipe. In memory that all share each notes how many states it has, so that all stop
when there are as many as are wanted. Afterwards they stay, to tell the way to what they found: of
each state its parts and where it was reached from. The steps between are found again here.
"""

from __future__ import annotations

import os
import signal
from array import array
from mmap import mmap
from multiprocessing import get_all_start_methods, get_context
from multiprocessing.connection import Connection, wait
from time import monotonic, process_time
from typing import TYPE_CHECKING, Any

from meshlock.check.disk import Space
from meshlock.check.exchange import Exchange, between, close
from meshlock.check.explorer import Explorer, Violation
from meshlock.check.lasso import components
from meshlock.check.model import AT_REST, Fault
from meshlock.check.outgrowing import OutgrowingWorker
from meshlock.check.partition import Aspect, partition
from meshlock.check.system import System
from meshlock.check.worker import LAST, SHIFT, Batch, Worker, unpacked
from meshlock.errors import Refused, setting

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess
    from socket import socket

ALONE = 10_000
"""States that one process expands before it asks others to help: many searches end before."""
STRETCH = 1000
"""States that are expanded before a process looks whether others have written."""
NEWS = 0.2
"""Seconds between two reports of how far a process is."""
LOOK_AROUND = 1.0
"""Seconds after which somebody who waits sees whether the search is still wanted."""


class Shared(Explorer):
    """Breadth first like any explorer: alone at first, to see by what to share states, then on
    several cores. It cannot tell where cycles are, only whether there are any."""

    def __init__(
        self,
        model: System,
        most: int,
        workers: int,
        graph: bool = False,
        space: Space | None = None,
    ) -> None:
        if "fork" not in get_all_start_methods():
            raise Refused(
                f"This search cannot use several processes: leave out {setting('workers')}."
            )
        super().__init__(model, most, graph)
        self.system = model
        self.workers = workers
        self.space = None if space is None else space.shared(workers)
        self.pipes: list[Connection] = []  # none while one is enough
        self.processes: list[BaseProcess] = []
        self.figures: list[tuple[int, int, int, int]] = [(0, 0, 0, 0)] * workers
        self.working: set[int] = set()
        self.cpu = 0.0  # of the workers
        self.cut = False
        self.cyclic: bool | None = None  # not known yet
        self.firsts: dict[str, tuple[int, str, int, int]] = {}  # of each property

    def share(self) -> None:
        """From the beginning again, with all that is known of single nodes by now."""
        context = get_context("fork")
        ends = between(self.workers)
        sizes = memoryview(mmap(-1, 8 * self.workers)).cast("q")
        by = partition(self.system, self.states, self.workers)
        for me in range(self.workers):
            ours, theirs = context.Pipe()
            worker = (self.system, me, by, self.workers, self.most)
            given = (worker, self.graph, self.space, sizes, ends, theirs, os.getpid())
            process = context.Process(target=search, args=given, daemon=True)
            process.start()
            self.processes.append(process)
            theirs.close()
            self.pipes.append(ours)
        close(ends)
        self.working = set(range(self.workers))
        self.violations.clear()
        self.backward = 0

    def count(self) -> int:
        if not self.pipes:
            return super().count()
        return max(1, sum([states for states, _, _, _ in self.figures]))

    def complete(self) -> bool:
        if not self.pipes:
            return super().complete()
        return not self.working and not self.cut

    def run(self, batch: int) -> bool:
        """Go on, or listen for a while; False when the search is over."""
        if not self.pipes:
            if self.expanded < ALONE:
                return super().run(min(batch, ALONE - self.expanded))
            self.share()
        waiting = [self.pipes[worker] for worker in self.working]
        for pipe in wait(waiting, LOOK_AROUND):
            worker = self.pipes.index(pipe)  # type: ignore[arg-type]
            said = self.receive(worker)
            self.figures[worker] = said[:4]
            if len(said) > 4:
                self.working.remove(worker)
                self.end(worker, *said[4:])
        self.expanded = sum([expanded for _, expanded, _, _ in self.figures])
        self.transitions = sum([transitions for _, _, transitions, _ in self.figures])
        self.depth = max([depth for _, _, _, depth in self.figures])
        if self.working:
            return True
        for name in sorted(self.firsts):
            _, text, worker, number = self.firsts[name]
            self.found(self.before(worker) + number, Fault(name, text, AT_REST))
        return False

    def before(self, worker: int) -> int:
        """How many states those before this one have: all are counted from one to the next."""
        return sum([states for states, _, _, _ in self.figures[:worker]])

    def end(
        self,
        worker: int,
        cpu: float,
        full: bool,
        stopped: str,
        backward: int,
        firsts: list[Any],
    ) -> None:
        """What a worker says last."""
        self.cpu += cpu
        self.stopped = self.stopped or stopped
        self.cut = self.cut or full
        self.backward += backward
        for level, name, text, number in firsts:
            first = (level, text, worker, number)
            self.firsts[name] = min(first, self.firsts.get(name, first))

    def receive(self, worker: int) -> Any:
        try:
            return self.pipes[worker].recv()
        except (EOFError, ConnectionError):
            raise Refused(
                f"Process {worker + 1} of the search ended early, perhaps for lack of "
                f"memory: lower {setting('max-states')} or {setting('workers')}."
            ) from None

    def ask(self, worker: int, *question: object) -> Any:
        self.pipes[worker].send(question)
        return self.receive(worker)

    def close(self) -> None:
        """They are not needed any more, and cannot be asked."""
        for process in self.processes:
            process.kill()
            process.join()

    # -- what they know ------------------------------------------------------------------------

    def state(self, number: int) -> int:
        if not self.pipes:
            return super().state(number)
        return self.known(self.place(number))[0]

    def place(self, number: int) -> int:
        """Whose it is, and its number there."""
        worker = 0
        while number >= self.figures[worker][0]:
            number -= self.figures[worker][0]
            worker += 1
        return (worker << SHIFT) + number

    def known(self, place: int) -> tuple[int, int]:
        """A state by our own numbers, and where it was reached from."""
        parent, parts = self.ask(place >> SHIFT, "state", place & (LAST - 1))
        numbers = [self.system.number_of(slot, part) for slot, part in enumerate(parts)]
        return self.system.joined(numbers), parent

    def found(self, here: int, fault: Fault) -> None:
        """The same fault, with a label that means something here."""
        if not self.pipes:
            super().found(here, fault)
            return
        states, labels = self.way(here)
        self.model.expand(states[-1])
        for again in self.model.faults:
            if again.name == fault.name:
                if again.label != AT_REST:
                    labels.append(again.label)
                break
        self.violations[fault.name] = Violation(fault.name, fault.text, states, labels)

    def way(self, number: int) -> tuple[list[int], list[int]]:
        if not self.pipes:
            return super().way(number)
        state, parent = self.known(self.place(number))
        states, labels = [state], list[int]()
        while states[-1] != self.states[0]:
            state, parent = self.known(parent)
            states.append(state)
        states.reverse()
        for k, after in enumerate(states[1:]):
            self.model.expand(states[k])
            labels.append(self.model.labels[self.model.successors.index(after)])
        return states, labels

    def may_have_cycles(self) -> bool:
        """They have some, or keep no transitions to know by: on disk."""
        if self.cyclic is None:
            if not self.pipes:
                self.cyclic = bool(components(self.count(), *self.adjacency()))
            else:
                self.cyclic = self.space is not None or self.left_over() > 0
        return self.cyclic

    def left_over(self) -> int:
        """Each removes from its states those without transitions, and says which of the others' led
        to them. Whatever is left in the end leads to a cycle."""
        left = self.count()
        ended = [array("q") for _ in self.pipes]
        while True:
            for pipe, numbers in zip(self.pipes, ended, strict=True):
                pipe.send(("remove", numbers))  # all at once, so that all are at work
            ended = [array("q") for _ in self.pipes]
            for worker in range(self.workers):
                cpu, removed, elsewhere = self.receive(worker)
                self.cpu += cpu
                left -= removed
                for other, numbers in enumerate(elsewhere):
                    ended[other].extend(numbers)
            if not any(ended):
                return left


class Searching:
    """One process of them."""

    def __init__(
        self,
        worker: Worker,
        sizes: memoryview[int],
        exchange: Exchange,
        pipe: Connection,
        parent: int,
    ) -> None:
        self.worker = worker
        self.wanted = worker.most  # by all together
        self.sizes = sizes  # of all
        self.exchange = exchange
        self.others = [other for other in range(worker.processes) if other != worker.me]
        self.pipe = pipe
        self.parent = parent
        self.early: list[Batch] = []  # of the next level, from those who are there already
        self.missing = 0  # processes that have more to say about this one
        self.found = 0  # states that they found new
        self.full = False
        self.due = 0.0

    def go(self, before: float) -> None:
        worker = self.worker
        while not self.full:
            self.missing, self.found = len(self.others), 0
            early, self.early = self.early, []
            for batch in early:
                self.take(batch)
            more = True
            while self.has_room() and more:
                more = worker.run(STRETCH)
                self.write()
                self.read(0)
            for other in self.others:
                self.exchange.put(other, worker.farewell(other, self.full).packed())
            while self.missing > 0:
                self.read(LOOK_AROUND)
            if self.found + worker.fresh == 0:
                break
            worker.descend()
        self.exchange.finish(LOOK_AROUND)
        firsts = [(it.level, it.name, it.text, it.number) for it in worker.firsts.values()]
        left = worker.stopped != "" or (self.full and worker.expanded < worker.count())
        said = (process_time() - before, left, worker.stopped, worker.backward, firsts)
        self.pipe.send((*self.figures(), *said))
        self.answer()

    def has_room(self) -> bool:
        """Are more states wanted? Of those everybody finds as many before it asks again."""
        worker = self.worker
        self.sizes[worker.me] = worker.count()
        room = self.wanted - sum(self.sizes)
        worker.most = worker.count() + max(0, -(-room // worker.processes))
        self.full = self.full or worker.full()
        return not self.full

    def figures(self) -> tuple[int, int, int, int]:
        worker = self.worker
        return worker.count(), worker.expanded, worker.transitions, worker.depth

    def write(self) -> None:
        for other in self.others:
            batch = self.worker.due(other)
            if batch is not None:
                self.exchange.put(other, batch.packed())
        if monotonic() > self.due:
            self.pipe.send(self.figures())
            self.due = monotonic() + NEWS

    def read(self, seconds: float) -> None:
        """What is there; or wait so long for more."""
        found = self.exchange.get(seconds)
        for said in found:
            self.take(unpacked(*said))
        if not found and os.getppid() != self.parent:
            os._exit(1)  # nobody wants to know any more

    def take(self, batch: Batch) -> None:
        if batch.level > self.worker.level:
            self.early.append(batch)
            return
        self.worker.receive(batch)
        if batch.last:
            self.missing -= 1
            self.found += batch.found
            self.full = self.full or batch.full

    def answer(self) -> None:
        """Tell what is asked until nobody asks any more."""
        worker = self.worker
        while True:
            try:
                about, *given = self.pipe.recv()
            except (EOFError, ConnectionError):
                return
            if about == "state":
                self.pipe.send((worker.parent(given[0]), worker.meaning(given[0])))
            else:
                before, known = process_time(), worker.removed
                elsewhere = worker.remove(*given)
                self.pipe.send((process_time() - before, worker.removed - known, elsewhere))


def search(
    given: tuple[System, int, list[Aspect], int, int],
    graph: bool,
    space: Space | None,
    sizes: memoryview[int],
    ends: list[dict[int, socket]],
    pipe: Connection,
    parent: int,
) -> None:
    """What a process does from its beginning to its end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started us is told, and ends us
    before = process_time()
    worker = Worker(*given, graph) if space is None else OutgrowingWorker(*given, space)
    Searching(worker, sizes, Exchange(given[1], ends), pipe, parent).go(before)
