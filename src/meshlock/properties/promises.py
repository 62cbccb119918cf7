"""What a run promises beside safety and service: decided here, from algorithm and options.

Simulator, checker, scenarios and live nodes ask here, judge by the answer, and write it into
their trace's set-up. The reader of a trace judges by what is written there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from meshlock.algorithms.actor import Algorithm
from meshlock.algorithms.conflicts import lines_per_kind

NO_TIES: Final = ""
"""First come, first served is not promised."""

FIRST_KNOWN: Final = "first"
"""Each node knows only the first request of each neighbour, so one may hide another. The node with
the token knows a request that is the only one of the highest priority. As long as the token stays
there, that request goes before all later ones of its priority."""

ALL_KNOWN: Final = "all"
"""The node that decides knows every request of each node, or the first ones if the algorithm says
how many a node may have in the queue."""

TIES: Final = {
    "jiang": FIRST_KNOWN,
    "direct": ALL_KNOWN,
    "naimi-trehel-original": ALL_KNOWN,
    "neilsen-mizuno": ALL_KNOWN,
    "lamport": ALL_KNOWN,
    "ricart-agrawala": ALL_KNOWN,
}
"""Algorithms that serve equal priorities in the order of asking, if all that was sent has arrived.
In the others the token may take a neighbour's request first, or those along its way."""


@dataclass
class PromisedOrder:
    """Named as in a trace's set-up."""

    ordered: bool  # the highest priority goes next
    balanced: bool  # one token, so that tokens and permits can be counted
    ageing: float  # by how much, at the most, a grant raises who waits ...
    stamped: bool = False  # ... and only a grant that is made after it asked
    ties: str = NO_TIES  # which equals are served in the order of asking

    def lines(self, permits: int) -> int:
        """How many requests of one node are known where it is decided, with ALL_KNOWN."""
        return lines_per_kind(permits)


def promises(algorithm: Algorithm, options: dict[str, str], leased: bool = False) -> PromisedOrder:
    """What this algorithm promises with these options, which are settled.

    ``leased``: under the recovery layer, where crashes take requests and tokens with them: what is
    promised instead is in :mod:`.leases`.
    """
    backfill = options.get("backfill", "off") == "on"  # lets small requests pass large ones
    ageing = options.get("ageing", "none")
    return PromisedOrder(
        algorithm.serves.priorities and not backfill and not leased,
        algorithm.serves.token and not leased,
        1.0 / int(options["patience"]) if ageing != "none" else 0.0,
        ageing == "stamped",
        NO_TIES if leased else ties(algorithm, options),
    )


def ties(algorithm: Algorithm, options: dict[str, str]) -> str:
    """Not where small requests pass large ones, where a node's own goes first, or where each node
    raises what waits by what it sees itself."""
    usual = {"backfill": "off", "queue": "fifo"}
    others = any(options.get(name, value) != value for name, value in usual.items())
    if others or options.get("ageing") == "printed":
        return NO_TIES
    return TIES.get(algorithm.name.partition("/")[0], NO_TIES)


def orderly(algorithm: Algorithm, options: dict[str, str]) -> bool:
    """Is order judged where there are leases: does the more urgent go first, and age all alike?"""
    if not algorithm.serves.priorities or options.get("backfill", "off") == "on":
        return False
    return options.get("ageing", "none") in ("stamped", "none")


def written(setup: dict[str, Any]) -> PromisedOrder:
    """What the run of a trace with this set-up promised."""
    return PromisedOrder(
        bool(setup.get("ordered")),
        bool(setup.get("balanced")),
        float(setup.get("ageing", 0.0)),
        bool(setup.get("stamped")),
        str(setup.get("ties", NO_TIES)),
    )
