"""What a run promises beside safety and service: decided here, from algorithm and options.

Simulator, checker, scenarios and live nodes ask here, judge by the answer, and write it into
their trace's set-up. Whoever reads a trace judges by what is written there.
"""

from __future__ import annotations

from typing import Any

from meshlock.algorithms.interface import Algorithm


class Promises:
    def __init__(self, ordered: bool, balanced: bool, ageing: float, stamped: bool = False) -> None:
        self.ordered = ordered  # the highest priority goes next
        self.balanced = balanced  # one token, so that tokens and permits can be counted
        self.ageing = ageing  # by how much, at the most, a grant raises who waits ...
        self.stamped = stamped  # ... and only a grant that is made after it asked

    def line(self) -> dict[str, bool | float]:
        """As in a trace's set-up."""
        return {
            "ordered": self.ordered,
            "balanced": self.balanced,
            "ageing": self.ageing,
            "stamped": self.stamped,
        }


def promises(algorithm: Algorithm, options: dict[str, str], leased: bool = False) -> Promises:
    """What this algorithm promises with these options, which are settled.

    ``leased``: under the recovery layer, where crashes take requests and tokens with them: what is
    promised instead is in :mod:`.leases`.
    """
    backfill = options.get("backfill", "off") == "on"  # lets small requests pass large ones
    ageing = options.get("ageing", "none")
    return Promises(
        algorithm.priorities and not backfill and not leased,
        algorithm.token and not leased,
        1.0 / int(options["patience"]) if ageing != "none" else 0.0,
        ageing == "stamped",
    )


def orderly(algorithm: Algorithm, options: dict[str, str]) -> bool:
    """Is order judged where there are leases: does the more urgent go first, and age all alike?"""
    if not algorithm.priorities or options.get("backfill", "off") == "on":
        return False
    return options.get("ageing", "none") in ("stamped", "none")


def written(setup: dict[str, Any]) -> Promises:
    """What the run of a trace with this set-up promised."""
    return Promises(
        bool(setup.get("ordered")),
        bool(setup.get("balanced")),
        float(setup.get("ageing", 0.0)),
        bool(setup.get("stamped")),
    )
