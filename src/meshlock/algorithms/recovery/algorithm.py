"""Direct as pools with members run it, for the registry.

The idea is that of :mod:`meshlock.algorithms.direct`: requests go straight to the token's holder,
or wait ahead of it where it will come, and the queue travels with the token. The nodes are
others (:mod:`.node`), for they may crash.
"""

from __future__ import annotations

from meshlock.algorithms.interface import Algorithm, Effect, Network, Node
from meshlock.algorithms.recovery.messages import KINDS
from meshlock.algorithms.recovery.order import PATIENCE


def make(network: Network, permits: int, options: dict[str, str], out: list[Effect]) -> list[Node]:
    """These nodes have members, clocks and leases, which a network alone does not give them:
    whoever runs them makes a :class:`~meshlock.algorithms.recovery.node.RecoveryNode` each."""
    raise ValueError("nodes that recover are made one by one, with members and leases")


DIRECT = Algorithm(
    "direct",
    "Requests straight to the token, the queue travels with it, nodes may crash",
    "meshlock; epochs after Lamport, TOCS 1998, leases after Gray and Cheriton, SOSP 1989",
    "h-of-k",
    make,
    tuple(KINDS),
    priorities=True,
    changing_links=True,
    routed=True,
    many_clients=True,
    recovers=True,
    options={"ageing": ("stamped",), "patience": (str(PATIENCE),)},
)
