"""What a request counts for: its priority, and how close its deadline is.

The priorities of a request are steps, and a request that has waited for ``patience`` grants (100)
counts as one step more urgent. Deadlines need less than a step: where there are any, a runner gives
all priorities in grants, :func:`step` of them for each step, and tells the algorithm so by
:func:`in_grants`. A deadline counts for 1 to 99 of 100 grants, the closer the more, five more
whenever half of the time left has passed. So

- a higher priority goes before any deadline of a lower one,
- of one priority, requests with a deadline go before those without, and the earliest first,
- waiting counts in the same coin, so no request starves.

Only the time that is left matters, by the clock of the node where the request waits: no two clocks
need to agree, and there is no date at which the numbers run out. As time passes the request rises,
level by level.
"""

from __future__ import annotations

from math import ceil, inf, log2

UNIT = "unit"
"""Of the options of a node: no user can set it."""

GRANT = "grant"

LEVELS = 99  # of closeness; 0 is that of a request without a deadline
HALVING = 5  # levels that a deadline rises by while half of the time that is left passes
SHORTEST = 0.1
"""Seconds: deadlines that are closer than that, or have passed, are on the highest level."""


def step(options: dict[str, str]) -> int:
    """The grants that a step of priority is worth; some algorithms do not count them."""
    return int(options.get("patience", "100"))


def in_grants(options: dict[str, str]) -> dict[str, str]:
    """The options of a node whose priorities come in grants."""
    return {**options, UNIT: GRANT}


def units(options: dict[str, str]) -> int:
    """How many units of priority a step has."""
    return step(options) if options.get(UNIT) == GRANT else 1


def level(left: float) -> int:
    """How close a deadline is of which ``left`` seconds are left."""
    if left <= SHORTEST:
        return LEVELS
    return max(1, LEVELS - ceil(HALVING * log2(left / SHORTEST) - 1e-6))


def time_on_level(left: float) -> float:
    """Seconds until it rises by a level; none on the highest."""
    here = level(left)
    if here == LEVELS:
        return inf
    return left - SHORTEST * 2 ** ((LEVELS - here - 1) / HALVING)


def urgency(priority: int, left: float | None, step: int) -> int:
    """In grants, of which a step of priority is worth ``step``. ``left``: seconds until its
    deadline, None without one."""
    if left is None or step == 1:  # nothing is less than such a step, and not nothing
        return priority * step
    return priority * step + max(1, level(left) * step // (LEVELS + 1))


def without_unit(options: dict[str, str]) -> dict[str, str]:
    """The options that users set."""
    return {name: value for name, value in options.items() if name != UNIT}
