"""What is to be explored: an algorithm, a small network, requests, link changes and faults."""

from __future__ import annotations

from meshlock.algorithms.actor import Algorithm
from meshlock.algorithms.amounts import parse_kinds
from meshlock.algorithms.steps import units
from meshlock.check.faults import Faults
from meshlock.check.settings import CheckSettings
from meshlock.topology.graphs import Topology

ForNode = tuple[int, int]
"""A node, and a number that is for the clients of that node."""


class CheckedRequest:
    """One request: ``want`` permits for a client of this node, with this priority in the units of
    the set-up.

    A client that ``stays`` never leaves once it is in: a request for no more than the
    rest of the permits must be served all the same.
    """

    def __init__(self, node: int, want: int, priority: int, stays: bool = False) -> None:
        self.node = node
        self.want = want
        self.priority = priority
        self.stays = stays


class CheckedChange:
    """A link that forms (``up``) or fails, the smaller node first."""

    def __init__(self, up: bool, one: int, other: int) -> None:
        self.up = up
        self.one = min(one, other)
        self.other = max(one, other)

    def __str__(self) -> str:
        return f"{'up' if self.up else 'down'} {self.one}-{self.other}"


class SetUp:
    """What the settings ``given`` mean for this network."""

    def __init__(
        self,
        given: CheckSettings,
        algorithm: Algorithm,
        options: dict[str, str],
        network: Topology,
        requests: list[CheckedRequest],
        changes: list[CheckedChange],
        *,
        raises: list[ForNode],
        parts: list[ForNode],
        faults: Faults | None,
    ) -> None:
        self.algorithm = algorithm
        self.options = options
        self.units = units(options)  # of priority, in a step
        self.network = network
        self.kinds = parse_kinds(str(given.permits))
        self.permits = self.kinds.permits
        self.requests = requests  # each node's in its order; client i + 1 makes request i
        self.changes = changes  # in this order, at any time
        self.flips = given.flips  # this many more of any links
        self.partitions = given.partitions  # these may cut the network in two
        self.fifo = given.links == "fifo"
        self.clients = (
            given.clients if algorithm.serves.many_clients else 1
        )  # of one node at a time
        self.failures = given.failures  # drain, return or custody: see check/changing_links.py
        self.withdrawals = given.withdrawals  # a waiting client may give up, at any time
        self.raises = raises  # a node's request may get this priority
        self.parts = parts  # a node's client may release this many
        self.repeat = given.repeat  # a node that is through with its requests starts again
        self.capacity = given.capacity  # messages on one link at a time; 0: any number
        self.lead = given.lead  # steps by name; the search begins behind them
        self.faults = faults  # of nodes that recover; None: they are plain and nothing fails

    def requests_of(self, node: int) -> list[CheckedRequest]:
        return [request for request in self.requests if request.node == node]

    def client_name(self, client: int) -> str:
        """Its node, and which of several on that node it is."""
        node = self.requests[client - 1].node
        here = [one for one, request in enumerate(self.requests, 1) if request.node == node]
        return f"{node}" if len(here) == 1 else f"{node}{'abcdefgh'[here.index(client)]}"

    def in_steps(self, priority: int) -> float:
        """With a deadline, a part of a step more."""
        return priority if self.units == 1 else priority / self.units

    def raises_of(self, client: int) -> list[int]:
        """The priorities that a client's request may get while it waits."""
        return numbers_of(self.requests[client - 1].node, self.raises)

    def parts_of(self, client: int) -> list[int]:
        """How many permits a client may release at a time while it keeps others."""
        return numbers_of(self.requests[client - 1].node, self.parts)


def numbers_of(node: int, rows: list[ForNode]) -> list[int]:
    return list(dict.fromkeys([number for one, number in rows if one == node]))
