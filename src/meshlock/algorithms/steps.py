"""Steps of priority, and the grants that they are worth.

The priorities of a request are steps, and a request that has waited for ``patience`` grants counts
as one step more urgent. A runner may need less than a step: live pools do, for deadlines. Then it
gives all priorities in grants, :func:`step` of them for each step, and tells the algorithm so by
:func:`in_grants`.
"""

from __future__ import annotations

UNIT = "unit"
"""Of the options of a node: no user can set it."""

GRANT = "grant"


def step(options: dict[str, str]) -> int:
    """The grants that a step of priority is worth; some algorithms do not count them."""
    return int(options.get("patience", "100"))


def in_grants(options: dict[str, str]) -> dict[str, str]:
    """The options of a node whose priorities come in grants."""
    return {**options, UNIT: GRANT}


def units(options: dict[str, str]) -> int:
    """How many units of priority a step has."""
    return step(options) if options.get(UNIT) == GRANT else 1
