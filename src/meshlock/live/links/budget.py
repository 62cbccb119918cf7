"""How much of something somebody may have."""

from __future__ import annotations


class Budget:
    """So much per second; what was not used lasts for as many seconds as is said."""

    __slots__ = ("left", "most", "per_second", "then")

    def __init__(self, per_second: float, now: float, lasts: float = 1.0) -> None:
        self.per_second = per_second
        self.most = self.left = per_second * lasts
        self.then = now

    def has(self, now: float) -> bool:
        self.left = min(self.most, self.left + (now - self.then) * self.per_second)
        self.then = now
        return self.left >= 1.0

    def spend(self) -> None:
        self.left -= 1.0
