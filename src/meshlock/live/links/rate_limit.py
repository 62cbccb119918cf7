"""How much of something somebody may have: per second, or at a time. The time is handed in."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


def keep_latest(kept: dict[Key, Value], key: Key, value: Value, most: int) -> None:
    """Of this number the newest stay."""
    kept.pop(key, None)
    kept[key] = value
    if len(kept) > most:
        del kept[next(iter(kept))]


class RateLimit:
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

    def take(self, now: float) -> bool:
        """One, if there is any."""
        has = self.has(now)
        self.left -= has
        return has


class RateLimits(dict[Hashable, RateLimit]):
    """One for each; who has not come for longest is forgotten."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def take(self, who: Hashable, per_second: float, now: float, lasts: float = 1.0) -> bool:
        rate = self.get(who) or RateLimit(per_second, now, lasts)
        keep_latest(self, who, rate, self.most)
        return rate.take(now)


class TokenBuckets:
    """Bytes that are kept for others: a number for each, and for all together."""

    def __init__(self, of_each: int, of_all: int) -> None:
        self.of_each = of_each
        self.of_all = of_all
        self.total = 0
        self.kept: dict[str, int] = {}

    def add(self, who: str, size: int) -> bool:
        """False if there is no room."""
        mine = self.kept.get(who, 0) + size
        if mine > self.of_each or self.total + size > self.of_all:
            return False
        self.kept[who] = mine
        self.total += size
        return True

    def remove(self, who: str, size: int) -> None:
        self.total -= size
        self.kept[who] -= size
        if self.kept[who] == 0:
            del self.kept[who]
