"""What a mutant is: an algorithm, one mistake, and a small set-up in which it shows."""

from __future__ import annotations

from collections.abc import Callable

from meshlock.algorithms.interface import Algorithm, Effect, Network, Node
from meshlock.algorithms.registry import settle
from meshlock.check.setup import Change, SetUp, Wish
from meshlock.topology.graphs import Graph, Topology
from meshlock.topology.specification import network

Make = Callable[[Network, int, dict[str, str], list[Effect]], list[Node]]


class Mutant:
    """An algorithm with a mistake in it, registered nowhere.

    ``algorithm`` is the original in everything but its nodes. The set-up is as small as
    shows the mistake; ``requests`` are (node, want, priority), in order per node, and
    ``changes`` are link changes in order; with ``repeat`` nodes ask again and again. Links are
    unordered wherever the original allows it, or the mistake is to think it does.
    ``links`` stand in for a topology that has no name. The clients of nodes in ``stay`` never
    leave. So many ``clients`` of one node may wait or be inside at once.
    """

    def __init__(
        self,
        origin: Algorithm,
        name: str,
        mistake: str,
        make: Make,
        nodes: int,
        topology: str,
        requests: list[tuple[int, int, int]],
        *,
        permits: int = 1,
        changes: list[Change] | None = None,
        repeat: bool = False,
        options: dict[str, str] | None = None,
        links: list[tuple[int, int]] | None = None,
        stay: tuple[int, ...] = (),
        unordered: bool = False,
        clients: int = 1,
    ) -> None:
        self.name = f"{origin.name}/{name}"
        self.origin = origin
        self.mistake = mistake
        self.nodes = nodes
        self.topology = topology
        self.requests = requests
        self.permits = permits
        self.changes = changes if changes is not None else []
        self.repeat = repeat
        self.options = options if options is not None else {}
        self.links = links
        self.stay = stay
        self.clients = clients
        self.algorithm = Algorithm(
            self.name,
            f"{origin.title}; mistake: {mistake}",
            origin.source,
            origin.problem,
            make,
            origin.kinds,
            priorities=origin.priorities,
            changing_links=origin.changing_links,
            needs_fifo=origin.needs_fifo and not unordered,
            needs_complete_graph=origin.needs_complete_graph,
            routed=origin.routed,
            token=origin.token,
            many_clients=origin.many_clients,
            restless=origin.restless,
            options=origin.options,
        )

    def setup(self, algorithm: Algorithm) -> SetUp:
        """The set-up for the mutant's own algorithm, or, to compare, for the original."""
        graph: Topology
        if self.links is not None:
            graph = Graph(self.nodes, self.links)
        else:
            graph = network(self.topology, self.nodes, 1)
        return SetUp(
            algorithm,
            settle(algorithm, self.options),
            graph,
            self.permits,
            [Wish(node, want, level, node in self.stay) for node, want, level in self.requests],
            changes=self.changes,
            fifo=algorithm.needs_fifo,
            clients=self.clients,
            repeat=self.repeat,
        )


def once(*nodes: int) -> list[tuple[int, int, int]]:
    """One permit for each of these nodes, in this order; a node may be named twice."""
    return [(node, 1, 0) for node in nodes]
