"""Faults injected into a run: crashes, cuts of the network in two, other numbers of permits, other
members. Times are in time units."""

from __future__ import annotations

from math import log
from random import Random


class InjectedFaults:
    """Means of exponential times, 0 for never; each kind of fault has its own random stream."""

    def __init__(
        self,
        seed: int,
        *,
        crash_every: float = 0.0,
        down_for: float = 0.0,
        disks_lost: float = 0.0,
        cut_every: float = 0.0,
        cut_for: float = 0.0,
        kill: str = "",
        kill_at: float = 0.0,
        resizes: list[tuple[float, int]] | None = None,
        members: list[tuple[float, str, int]] | None = None,
    ) -> None:
        self.crash_every = crash_every  # between two crashes, of any node
        self.down_for = down_for
        self.disks_lost = disks_lost  # share of the crashes that take the disk as well
        self.cut_every = cut_every  # from the healing of one cut to the next
        self.cut_for = cut_for
        self.kill = kill  # once, for good: "holder" of the token, or "client" elsewhere
        self.kill_at = kill_at  # then, or as soon as there is one
        self.resizes = resizes or []  # when, and how many permits there are to be; in that order
        self.members = members or []  # when, "add" or "remove", and which node
        self.crashing = Random(f"{seed}:crashes").random
        self.losing = Random(f"{seed}:disks").random
        self.cutting = Random(f"{seed}:cuts").random

    def crash_after(self) -> float:
        return -self.crash_every * log(1.0 - self.crashing())

    def restart_after(self) -> float:
        return -self.down_for * log(1.0 - self.crashing())

    def victim(self, size: int) -> int:
        return int(self.crashing() * size)

    def disk_survives(self) -> bool:
        return self.disks_lost == 0.0 or self.losing() >= self.disks_lost

    def cut_after(self) -> float:
        return -self.cut_every * log(1.0 - self.cutting())

    def heal_after(self) -> float:
        return -self.cut_for * log(1.0 - self.cutting())

    def sides(self, size: int) -> list[int]:
        """Everybody draws a side; somebody is on each where there are two nodes or more."""
        while True:
            side = [int(self.cutting() * 2) for _ in range(size)]
            if size < 2 or 0 < sum(side) < size:
                return side
