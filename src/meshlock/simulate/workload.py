"""Who asks, when, for how many permits and how urgently; how long a message travels and a client
holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from random import Random

from meshlock.algorithms.amounts import amount_of, fields, is_part
from meshlock.algorithms.steps import urgency
from meshlock.world.clients import SimulatedClient


class Duration:
    """Draws times from one distribution and one random stream of its own."""

    def __init__(self, shape: str, low: float, high: float, stream: Random) -> None:
        self.constant = shape == "constant"
        self.uniform = shape == "uniform"
        self.low = low  # the constant, the lower bound, or the mean
        self.span = high - low
        self.random = stream.random

    @property
    def mean(self) -> float:
        return self.low + self.span / 2.0

    def draw(self) -> float:
        if self.uniform:
            return self.low + self.span * self.random()
        if self.constant:
            return self.low
        return -self.low * log(1.0 - self.random())


@dataclass
class Workload:
    """A number of requests, spread over the nodes in one of three ways.

    *serial*: one request in the whole system at a time, of a node drawn from all.
    *saturated*: a client asks again as soon as it has left. *poisson*: it thinks first,
    for a time drawn from ``think``.
    """

    requests: int
    clients: int  # per node
    serial: bool
    think: Duration | None
    wants: list[tuple[int, int]]  # of each kind of permits, the least and the most
    priorities: tuple[int, int]
    deadlines: Duration | None
    seed: int
    raises: float = 0.0  # share of requests whose priority changes
    parts: float = 0.0  # share of grants for several permits that are released in parts
    step: int = 1  # of priority; where there are deadlines, in grants

    def __post_init__(self) -> None:
        seed = self.seed
        self.requester = Random(f"{seed}:requester").random
        self.wanted = Random(f"{seed}:want").random
        self.urgency = Random(f"{seed}:priority").random
        self.raising = Random(f"{seed}:raise").random
        self.parting = Random(f"{seed}:release-part").random
        self.several = len(self.wants) > 1
        self.least = amount_of([low for low, _ in self.wants])
        self.most = amount_of([high for _, high in self.wants])

    def somewhere(self, nodes: int) -> int:
        return int(self.requester() * nodes)

    def client(self, node: int) -> SimulatedClient:
        low, high = self.least, self.most
        if low == high:
            want = low
        elif self.several:
            want = self.some_of_each()
        else:
            want = low + int(self.wanted() * (high - low + 1))
        return SimulatedClient(node, want, self.priorities[0])

    def some_of_each(self) -> int:
        """Of each kind a number; nothing at all is drawn again."""
        want = 0
        while want == 0:
            drawn = [low + int(self.wanted() * (high - low + 1)) for low, high in self.wants]
            want = amount_of(drawn)
        return want

    def make_urgent(self, client: SimulatedClient, now: float) -> None:
        """Where priorities differ: draw one, and a deadline."""
        low, high = self.priorities
        client.priority = low + int(self.urgency() * (high - low + 1))
        if self.deadlines is not None:
            left = self.deadlines.draw()
            client.deadline = now + left
            client.priority = urgency(client.priority, left, self.step)

    def change_after(self, mean: float) -> float:
        """How long a request waits before its priority changes; below 0 if it never does."""
        if self.raising() >= self.raises:
            return -1.0
        return -mean * log(1.0 - self.raising())

    def change_urgency(self, client: SimulatedClient, now: float) -> int:
        """Another priority than it has, drawn from the same range, or another deadline."""
        low, high = self.priorities
        before = client.priority // self.step
        drawn = low + int(self.raising() * (high - low))
        if low < high and drawn >= before:
            drawn += 1
        if self.deadlines is None:
            return drawn
        left = self.deadlines.draw()
        client.deadline = now + left
        return urgency(drawn, left, self.step)

    def closer(self, client: SimulatedClient, now: float) -> int:
        """What it counts for by now, with its deadline."""
        return urgency(client.priority // self.step, client.deadline - now, self.step)

    def part_of(self, want: int) -> int:
        """How many permits a client releases before the others; 0: none."""
        if want < 2 or self.parting() >= self.parts:
            return 0
        if self.several:
            return self.part_of_each(want)
        return 1 + int(self.parting() * (want - 1))

    def part_of_each(self, want: int) -> int:
        held = fields(want)
        if sum(held) < 2:
            return 0
        part = 0
        while not is_part(part, want):
            part = amount_of([int(self.parting() * (number + 1)) for number in held])
        return part
