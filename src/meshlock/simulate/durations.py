"""How long a message travels and a client holds: constant, uniform or exponential."""

from __future__ import annotations

from math import log
from random import Random


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
