"""Equal priorities are served in the order in which they asked, with nothing in flight.

Jiang's paper: "processes with the same priority are served in first come, first served order". On
a line a request behind another of its neighbour is not seen by the holder, so jiang, Reverse Link
and Raymond cannot keep every order there. No ageing may lose an order that they keep without it.
"""

from __future__ import annotations

from itertools import permutations
from random import Random

import pytest
from prompt import Make, Scene

from meshlock.algorithms.mutants.mutant import Mutant

KEPT = {"line": (16, 40), "tree": (16, 60), "star": (24, 120), "complete": (24, 120)}
"""Of all orders in which four or five nodes can ask: those that a queue per node keeps."""


def served(
    algorithm: str,
    topology: str,
    order: tuple[int, ...],
    make: Make | None = None,
    **options: str,
) -> list[int]:
    scene = Scene(algorithm, len(order), topology, 1, make, **options)
    for client in order:
        scene.ask(client, client, 5)
    done = []
    while scene.inside:
        done.append(scene.inside[0])
        scene.leave(scene.inside[0])
    return done


def kept(algorithm: str, topology: str, size: int, **options: str) -> set[tuple[int, ...]]:
    orders = permutations(range(size))
    return {one for one in orders if served(algorithm, topology, one, **options) == list(one)}


@pytest.mark.parametrize("size", [4, 5])
@pytest.mark.parametrize("topology", KEPT)
def test_ageing_keeps_every_order_that_is_kept_without_it(topology: str, size: int) -> None:
    without = kept("jiang", topology, size, ageing="none")
    assert len(without) == KEPT[topology][size - 4]
    for options in ({}, {"patience": "1"}, {"moves": "silent"}, {"moves": "broadcast"}):
        assert kept("jiang", topology, size, **options) == without, options


@pytest.mark.parametrize("topology", ["line", "star", "tree"])
def test_that_is_what_a_queue_per_node_keeps(topology: str) -> None:
    assert kept("raymond", topology, 4) == kept("jiang", topology, 4)
    assert kept("reverse-link", topology, 4) == kept("jiang", topology, 4)


@pytest.mark.parametrize("topology", KEPT)
def test_one_queue_for_all_keeps_every_order(topology: str) -> None:
    for options in ({}, {"patience": "1"}, {"ageing": "none"}):
        assert len(kept("direct", topology, 4, **options)) == 24


def test_on_a_line_of_three_the_second_is_served_second() -> None:
    """Stamped ageing once served 0, 2, 1."""
    assert served("jiang", "line", (0, 1, 2)) == [0, 1, 2]


@pytest.mark.parametrize("algorithm", ["direct", "jiang"])
@pytest.mark.parametrize("seed", range(40))
def test_whoever_has_asked_before_goes_first_whatever_they_want(algorithm: str, seed: int) -> None:
    """Several permits and wants, clients that come again and again: a later one never passes an
    earlier one of its priority. One client per node, so that the holder knows them all."""
    random = Random(seed)
    permits, size = random.randint(1, 4), random.randint(2, 6)
    scene = Scene(algorithm, size, random.choice(["star", "complete"]), permits, patience="2")
    waiting: list[int] = []
    nodes: dict[int, int] = {}
    asked = 0
    for _ in range(300):
        idle = [node for node in range(size) if node not in nodes.values()]
        if idle and (not scene.inside or random.random() < 0.6):
            asked += 1
            nodes[asked] = random.choice(idle)
            waiting.append(asked)
            scene.ask(nodes[asked], asked, 5, random.randint(1, permits))
        else:
            gone = random.choice(scene.inside)
            scene.leave(gone)
            del nodes[gone]
        entered = [client for client in waiting if client in scene.inside]
        assert entered == waiting[: len(entered)]
        waiting = waiting[len(entered) :]


# -- with a rule undone ---------------------------------------------------------------------


AGES_WHAT_STOOD_BEHIND = """@@ jiang.py
         self.grants = token.grants
+        for entry in list(self.queue.fresh):
+            if entry.priority == token.priority:
+                self.queue.stamp(entry, token.given)
+                break
"""
"""The request that the token was sent for has the holder's stamp, those behind it an older one."""

TAKES_AN_UPDATE_FOR_ANOTHER = """@@ jiang.py
-        same = isinstance(asking, Update) and asking.same
+        same = False
"""
"""A request that has changed gets another stamp, and comes behind its equals."""

TAKES_A_CHANGE_FOR_ANOTHER = """@@ direct.py
         node, number, since, want, priority, rank, fresh = one
+        since = number
"""
"""A request that has changed gets another stamp and another turn."""


def undone(algorithm: str, patch: str) -> Make:
    return Mutant(f"{algorithm}/mistaken", "", patch, {}).algorithm.make


def test_what_stood_behind_another_does_not_count_as_older() -> None:
    make = undone("jiang", AGES_WHAT_STOOD_BEHIND)
    assert served("jiang", "line", (0, 1, 2), make) == [0, 2, 1]


def after_a_change(algorithm: str, make: Make | None) -> list[int]:
    """1 asks before 2, and becomes as urgent as 2 later."""
    scene = Scene(algorithm, 3, "star", 1, make)
    scene.ask(0, 10, 9)
    scene.ask(1, 11, 4)
    scene.ask(2, 12, 5)
    scene.change(11, 1, 5)
    scene.leave(10)
    return scene.inside


def test_a_request_that_changes_keeps_its_place_among_equals() -> None:
    assert after_a_change("jiang", None) == after_a_change("direct", None) == [11]
    make = undone("jiang", TAKES_AN_UPDATE_FOR_ANOTHER)
    assert after_a_change("jiang", make) == [12]
    make = undone("direct", TAKES_A_CHANGE_FOR_ANOTHER)
    assert after_a_change("direct", make) == [12]


def test_what_the_holder_has_ranked_is_not_ranked_anew() -> None:
    """Two clients of node 1 ask before node 2; the token comes to node 1 for the first of them."""
    scene = Scene("direct", 3, "complete", 2)
    scene.ask(0, 10, 5)
    scene.ask(1, 11, 5, want=2)
    scene.ask(1, 13, 5)
    scene.ask(2, 12, 5)
    scene.leave(10)
    scene.leave(11)
    assert scene.inside == [13, 12]
