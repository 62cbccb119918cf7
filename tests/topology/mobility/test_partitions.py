"""Partitions are prevented, or allowed, or healed; and the graph knows its pieces."""

from __future__ import annotations

from random import Random

import networkx
import pytest

from meshlock.topology.graphs import Graph
from meshlock.topology.mobility.changes import (
    Changes,
    Flips,
    LinkChange,
    NetworkChange,
    Planned,
    Prevented,
    Until,
)
from meshlock.topology.mobility.live_graph import LiveGraph
from meshlock.topology.mobility.specification import mobility
from meshlock.topology.specification import network


def script(*steps: str) -> Planned:
    """up/down 0-1 at 1, 2, 3 ..."""
    changes: list[NetworkChange] = []
    for time, step in enumerate(steps, 1):
        word, pair = step.split()
        one, other = pair.split("-")
        changes.append(LinkChange(float(time), word == "up", int(one), int(other)))
    return Planned(changes)


def carried_out(changes: Changes, graph: LiveGraph) -> list[str]:
    """All changes, as text, each carried out before the next is asked for."""
    done = []
    while (change := changes.next()) is not None:
        if not isinstance(change, LinkChange):
            continue  # time has passed, nothing else
        apply(change, graph)
        word = "up" if change.up else "down"
        done.append(f"{change.time:g} {word} {change.one}-{change.other}")
    return done


def apply(change: LinkChange, graph: LiveGraph) -> None:
    assert change.up != graph.linked(change.one, change.other)
    if change.up:
        graph.connect(change.one, change.other)
    else:
        graph.cut(change.one, change.other)


def pieces(graph: LiveGraph) -> int:
    other = networkx.Graph(list(graph.links()))
    other.add_nodes_from(range(graph.size))
    return int(networkx.number_connected_components(other))


def test_the_graph_always_knows_its_pieces() -> None:
    stream = Random(5)
    graph = LiveGraph(12, [])
    assert graph.components == 12
    for _ in range(1500):
        one, other = stream.sample(range(12), 2)
        if graph.linked(one, other):
            parts = graph.bridge(one, other)
            before = graph.components
            graph.cut(one, other)
            assert parts == (graph.components == before + 1)
        elif stream.random() < 0.3:
            graph.connect(one, other)
        assert graph.components == pieces(graph)


def test_a_path_is_a_path() -> None:
    graph = LiveGraph(9, Graph(9, [(i, (i + 1) % 9) for i in range(9)]).links())
    assert graph.path(0, 3) == [0, 1, 2, 3]
    assert graph.path(0, 1) == [0, 1]
    assert graph.path(0, 1, direct=False) == [0, 8, 7, 6, 5, 4, 3, 2, 1]
    graph.cut(4, 5)
    assert graph.path(0, 1, direct=False) == []


def test_a_bridge_is_kept_until_another_way_is_there() -> None:
    graph = LiveGraph(4, [(0, 1), (1, 2), (2, 3)])
    changes = Prevented(script("down 1-2", "down 0-1", "up 0-2", "up 1-3"), graph)
    assert carried_out(changes, graph) == [
        "3 up 0-2",
        "3 down 1-2",  # the first to fall due goes first; 0-1 is then a bridge again
        "4 up 1-3",
        "4 down 0-1",
    ]


def test_a_bridge_is_forgiven_when_its_nodes_meet_again() -> None:
    graph = LiveGraph(3, [(0, 1), (1, 2)])
    changes = Prevented(script("down 1-2", "up 1-2", "up 0-2", "down 1-2"), graph)
    assert carried_out(changes, graph) == ["3 up 0-2", "4 down 1-2"]


def test_a_new_link_elsewhere_relieves_nothing() -> None:
    graph = LiveGraph(5, [(0, 1), (1, 2), (2, 3), (3, 4)])
    changes = Prevented(script("down 0-1", "up 2-4"), graph)
    assert carried_out(changes, graph) == ["2 up 2-4"]


def test_changes_end_and_the_graph_is_healed() -> None:
    graph = LiveGraph(4, [(0, 1), (1, 2), (2, 3)])
    changes = Until(script("down 0-1", "down 2-3", "down 1-2"), graph, 2.0, True)
    assert carried_out(changes, graph) == ["1 down 0-1", "2 down 2-3", "2 up 0-1", "2 up 0-3"]
    assert graph.components == 1


@pytest.mark.parametrize("spec", ["line", "tree", "ring", "complete", "links:30", "random:0.8"])
def test_flips_keep_the_graph_whole_and_the_number_of_links(spec: str) -> None:
    found = mobility("flips:2", network(spec, 20, 1), 20, 7)
    assert found is not None
    graph, count = found.graph, len(list(found.graph.links()))
    met = set()
    last = 0.0
    for _ in range(2001):
        change = found.changes.next()
        assert isinstance(change, LinkChange)
        apply(change, graph)
        assert graph.components == 1
        met.add((change.one, change.other))
        last = change.time
    assert abs(len(list(graph.links())) - count) <= 1
    assert len(met) > 180  # of 190: in the end every pair has its turn
    assert last == pytest.approx(500, rel=0.1)  # 1000 flips at 2 per unit of time


def test_flips_may_part_a_graph_where_that_is_allowed() -> None:
    found = mobility("flips:1", network("line", 8, 1), None, 7, partitions="allowed")
    assert found is not None
    seen = set()
    for _ in range(300):
        change = found.changes.next()
        assert isinstance(change, LinkChange)
        apply(change, found.graph)
        seen.add(found.graph.components)
    assert seen >= {1, 2, 3}
    assert found.graph.components == pieces(found.graph)


@pytest.mark.parametrize("nodes", [1, 2])
def test_too_few_nodes_to_flip(nodes: int) -> None:
    found = mobility("flips:1", network("line", nodes, 1), None, 7)
    assert found is not None
    assert found.changes.next() is None


def test_cutting_draws_every_link_that_can_go() -> None:
    """A triangle with a tail: the tail is never cut, each side of the triangle sometimes."""
    cut = set()
    for seed in range(60):
        graph = LiveGraph(4, [(0, 1), (1, 2), (0, 2), (2, 3)])
        flips = Flips(graph, 1.0, True, Random(seed))
        up = flips.next()
        assert isinstance(up, LinkChange)
        apply(up, graph)
        down = flips.next()
        assert isinstance(down, LinkChange)
        cut.add((down.one, down.other))
        assert (down.one, down.other) != (up.one, up.other)
    assert cut == {(0, 1), (0, 2), (1, 2), (2, 3)}


@pytest.mark.parametrize(
    "spec", ["waypoint:0.02,0.25", "walk:0.02,0.25", "gauss-markov:0.02,0.25", "manhattan:0.02,0.3"]
)
def test_moving_nodes_stay_in_one_piece(spec: str) -> None:
    found = mobility(spec, None, 40, 7)
    assert found is not None
    for _ in range(3000):
        change = found.changes.next()
        if isinstance(change, LinkChange):
            apply(change, found.graph)
            assert found.graph.components == 1
