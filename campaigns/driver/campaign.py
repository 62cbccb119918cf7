"""One run by its number, and many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from meshlock.algorithms.registry import find

from .judge import Violation
from .scheduler import Scheduler
from .setup import FAILURES, MOVES, Draw, Setup, draw_setup
from .shortest import replay, shortest
from .world import World

BATCH = 100


@dataclass
class Campaign:
    """What is run: the same numbers with the same choices are the same runs."""

    algorithm: str = "jiang"  # or one of its mutants, such as jiang/without-R10
    moves: tuple[str, ...] = MOVES
    failures: tuple[str, ...] = FAILURES
    changing: bool = True  # parts are released, priorities change, and ties are judged

    def setup(self, draw: Draw) -> Setup:
        return draw_setup(draw, find(self.algorithm), self.moves, self.failures, self.changing)

    def run(self, number: int) -> Outcome:
        draw = Draw(number)
        world = World(self.setup(draw))
        rule = text = ""
        try:
            Scheduler(world, draw).run()
        except Violation as violation:
            rule, text = violation.rule, violation.text
        except Exception as error:  # of a handler, most likely: a finding like any other
            rule, text = "failed", f"{type(error).__name__}: {error}"
        setup, judge = world.setup, world.judge
        kind = (setup.options.get("moves", ""), setup.failures)
        done = Counter([str(step[0]) for step in world.done])
        counts = (len(world.done), judge.grants, judge.judged, judge.ties)
        return Outcome(number, kind, rule, text, *counts, done)

    def runs(self, numbers: range, processes: int = 1) -> Iterator[Outcome]:
        """In the order of their numbers."""
        if processes == 1:
            yield from map(self.run, numbers)
            return
        batches = [numbers[start : start + BATCH] for start in range(0, len(numbers), BATCH)]
        with ProcessPoolExecutor(processes) as pool:
            for outcomes in pool.map(self.batch, batches):
                yield from outcomes

    def batch(self, numbers: range) -> list[Outcome]:
        return list(map(self.run, numbers))

    def story(self, number: int, tell: Callable[[str], None], short: bool) -> bool:
        """Tell a run step by step, or the shortest that breaks the same rule. Was it broken?"""
        draw = Draw(number)
        setup = self.setup(draw)
        tell(str(setup))
        world = World(setup, None if short else tell)
        try:
            Scheduler(world, draw).run()
        except Violation as violation:
            if short:
                replay(setup, shortest(setup, world.done, violation.rule), tell)
            else:
                tell(str(violation))
            return True
        return False


@dataclass
class Outcome:
    """What came of a run; ``rule`` is the one that was broken, if any."""

    number: int
    kind: tuple[str, str]  # moves, failures
    rule: str
    text: str
    steps: int
    entries: int
    judged: int
    ties: int
    done: Counter[str]  # steps by name
