"""Who decides what arrives next, and what is kept back."""

from __future__ import annotations

from meshlock.algorithms.actor import choices_of

from .judge import Violation
from .links import Step, Way
from .setup import Draw, Pair
from .world import World

MOST_STEPS = 2_000
"""A run that goes on for longer does not come to rest."""

PATIENCE = 300
"""The number of steps for which nothing that is kept back is delivered."""


class Deliveries:
    def __init__(self, world: World, draw: Draw) -> None:
        self.world = world
        self.setup = world.setup
        self.draw = draw
        self.held: set[Way] = set()  # nothing arrives this way, not even that the link failed
        self.choosing = max(choices_of(node) for node in world.nodes) > 1

    def let_go(self) -> None:
        if self.held:
            self.held.discard(self.draw.among(sorted(self.held)))

    def calm(self) -> None:
        self.held.clear()
        self.deliver_all()

    def deliver_all(self) -> None:
        """All that nobody keeps back; while some is, that may go round for ever."""
        for _ in range(PATIENCE if self.held else MOST_STEPS):
            if not self.deliver():
                return
        if not self.held:
            raise Violation("rest", f"{MOST_STEPS} messages, and there are still more")

    def deliver_some(self) -> None:
        for _ in range(self.draw.between(0, 6)):
            if not self.deliver():
                return

    def deliver(self) -> bool:
        """One message or notice that nobody keeps back, or all that are on its way."""
        steps = self.world.links.steps()
        if self.held:
            steps = [step for step in steps if way_of(step) not in self.held]
        if not steps:
            return False
        step = self.draw.among(steps)
        self.step(*step)
        if self.setup.habits.burst and self.draw.likely(self.setup.habits.burst):
            while self.world.links.possible(step):
                self.step(*step)
        return True

    def step(self, name: str, i: int, j: int) -> None:
        self.choose(j)
        if name == "deliver" and not self.setup.fifo:
            self.world.do(name, i, j, self.draw.between(0, len(self.world.links.lines[i, j]) - 1))
        else:
            self.world.do(name, i, j)

    def choose(self, i: int) -> None:
        if self.choosing:
            self.world.do("choose", i, self.draw.between(0, choices_of(self.world.nodes[i]) - 1))

    def drain(self, pair: Pair) -> None:
        for _ in range(100):
            ways = [way for way in (pair, pair[::-1]) if way in self.world.links.lines]
            if not ways:
                return
            self.step("deliver", *self.draw.among(ways))


def way_of(step: Step) -> Way:
    """Where it comes from and whom it reaches."""
    name, i, j = step
    return (i, j) if name in ("deliver", "late") else (j, i)
