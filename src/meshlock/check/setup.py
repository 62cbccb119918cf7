"""What is to be explored: an algorithm, a small network, requests, link changes and faults."""

from __future__ import annotations

from meshlock.algorithms.interface import Algorithm
from meshlock.check.faults import Faults
from meshlock.topology.graphs import Topology


class Request:
    """One request: so many permits for a client of this node, with this priority.

    A client that ``stays`` never leaves once it is in: whoever needs no more than the rest of
    the permits must be served all the same.
    """

    def __init__(self, node: int, want: int, priority: int, stays: bool = False) -> None:
        self.node = node
        self.want = want
        self.priority = priority
        self.stays = stays


class Change:
    """A link that forms (``up``) or fails, the smaller node first."""

    def __init__(self, up: bool, one: int, other: int) -> None:
        self.up = up
        self.one = min(one, other)
        self.other = max(one, other)

    def __str__(self) -> str:
        return f"{'up' if self.up else 'down'} {self.one}-{self.other}"


class SetUp:
    def __init__(
        self,
        algorithm: Algorithm,
        options: dict[str, str],
        network: Topology,
        permits: int,
        requests: list[Request],
        *,
        changes: list[Change] | None = None,
        flips: int = 0,
        fifo: bool = True,
        clients: int = 1,
        partitions: bool = False,
        failures: str = "drain",
        repeat: bool = False,
        withdrawals: bool = False,
        capacity: int = 0,
        faults: Faults | None = None,
    ) -> None:
        self.algorithm = algorithm
        self.options = options
        self.network = network
        self.permits = permits
        self.requests = requests  # each node's in its order; client i + 1 makes request i
        self.changes = changes if changes is not None else []  # in this order, at any time
        self.flips = flips  # so many more of any links
        self.partitions = partitions  # these may cut the network in two
        self.fifo = fifo
        self.clients = clients if algorithm.many_clients else 1  # of one node at a time
        self.failures = failures  # drain, return or custody: see check/changing_links.py
        self.withdrawals = withdrawals  # whoever waits may give up, at any time
        self.repeat = repeat  # a node that is through with its requests starts again
        self.capacity = capacity  # messages on one link at a time; 0: any number
        self.faults = faults  # of nodes that recover; None: they are plain and nothing fails
