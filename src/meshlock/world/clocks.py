"""Clocks of nodes under the recovery layer: whole ticks, each at its own rate, and leases in them.

What is recorded and judged is in true time, in time units.
"""

from __future__ import annotations

from math import ceil
from random import Random

from meshlock.algorithms.subclassing import mypyc_attr

TICKS = 1000
"""To the time unit."""

MILLION = 1_000_000
"""Rates of clocks are counted in millionths."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Clocks:
    """``lease`` in time units; rates differ from true time by at most ``skew`` millionths. ``wait``
    on any clock is longer than ``lease`` on any other, the rounding of both to ticks included."""

    def __init__(self, lease: float, skew: int, rates: list[int]) -> None:
        self.lease = max(1, round(lease * TICKS))
        self.skew = skew
        self.rates = rates
        self.wait = self.lease * (MILLION + skew) // (MILLION - skew) + 5

    def shown(self, me: int, time: float) -> int:
        """By this node's clock at this time; the thousandth is for the rounding of floats."""
        return int(time * TICKS + 0.001) * self.rates[me] // MILLION

    def true_time(self, me: int, shown: int) -> float:
        """The first time at which this node's clock shows that or more."""
        return -(-shown * MILLION // self.rates[me]) / TICKS

    def longest(self, time: float) -> int:
        """The most that any clock counts in this time."""
        return ceil(time * TICKS) * (MILLION + self.skew) // MILLION + 2


def drawn_clocks(size: int, lease: float, skew: float, seed: int) -> Clocks:
    """Rates that differ by at most ``skew``, 0.01 for one per cent."""
    millionths = round(skew * MILLION)
    draw = Random(f"{seed}:clocks")
    rates = [MILLION + draw.randint(-millionths, millionths) for _ in range(size)]
    return Clocks(lease, millionths, rates)
