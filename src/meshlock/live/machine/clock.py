"""The clock of this machine that goes on while it sleeps, as leases do."""

from __future__ import annotations

import time

AWAKE_OR_NOT: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Linux has one of its own for that; elsewhere the monotonic clock counts sleep."""


def seconds() -> float:
    return time.clock_gettime(AWAKE_OR_NOT)


def nanoseconds() -> int:
    return time.clock_gettime_ns(AWAKE_OR_NOT)
