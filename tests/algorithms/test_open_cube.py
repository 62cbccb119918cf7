"""The open cube: its tree stays what it is, and so does its cost."""

from __future__ import annotations

from fractions import Fraction
from typing import cast

import pytest
from laboratory import run

from meshlock.algorithms.actor import NIL, Effect, Enter, Message
from meshlock.algorithms.general_scheme import SchemeNode, distance
from meshlock.algorithms.queues import Fifo
from meshlock.algorithms.registry import find, with_defaults
from meshlock.topology.graphs import Complete


class Cube:
    """One request at a time, from any node, in every tree that can come of it."""

    def __init__(self, size: int) -> None:
        self.out: list[Effect] = []
        cube = find("open-cube")
        made = cube.make(Complete(size), 1, with_defaults(cube, {}), self.out)
        self.nodes = [cast(SchemeNode, node) for node in made]

    def fathers(self) -> tuple[int, ...]:
        return tuple([node.father for node in self.nodes])

    def become(self, fathers: tuple[int, ...]) -> None:
        behaviour = self.nodes[0].behaviour
        self.nodes = [
            SchemeNode(me, self.out, father, behaviour, Fifo()) for me, father in enumerate(fathers)
        ]

    def serve(self, who: int) -> tuple[int, int]:
        """Messages until the requester enters, and in all."""
        self.nodes[who].request(1, 1, 0)
        sent = entered = 0
        while self.out:
            effect = self.out.pop(0)
            if isinstance(effect, Message):
                sent += 1
                self.nodes[effect.receiver].receive(effect)
            elif isinstance(effect, Enter):
                entered = sent
                self.nodes[who].release(1)
        return entered, sent


@pytest.mark.parametrize(("size", "trees", "worst"), [(4, 8, 3), (8, 128, 5), (11, 256, 6)])
def test_every_group_keeps_one_root_in_every_tree(size: int, trees: int, worst: int) -> None:
    cube = Cube(size)
    power = distance(0, size - 1)
    seen = {cube.fathers()}
    todo = list(seen)
    most = 0
    for tree in todo:
        costs: list[int] = []
        for group in range(power + 1):
            for first in range(0, size, 1 << group):
                members = range(first, min(size, first + (1 << group)))
                roots = [node for node in members if tree[node] not in members]
                assert len(roots) == 1
        for who in range(size):
            cube.become(tree)
            entered, sent = cube.serve(who)
            assert entered <= power + 1
            costs.append(sent)
            after = cube.fathers()
            if after not in seen:
                seen.add(after)
                todo.append(after)
        most = max(most, *costs)
        if size == 1 << power:
            assert Fraction(sum(costs), size) == mean(power)
    assert (len(seen), most) == (trees, worst)


def mean(power: int) -> Fraction:
    return Fraction(3 * power + 5, 4) - Fraction(power + 1, 1 << power)


@pytest.mark.parametrize("power", [3, 6, 10])
def test_the_mean_cost_is_three_quarters_of_the_depth_and_a_little(power: int) -> None:
    light = run("open-cube", 1 << power, "serial", 10_000)
    assert light.violated == {}
    assert light.messages_per_entry == pytest.approx(float(mean(power)), rel=0.02)


def test_five_messages_of_eight_nodes_where_the_loan_comes_back() -> None:
    """5 asks 4, 4 asks 0, 0 gives to 4, 4 lends to 5, 5 returns it."""
    cube = Cube(8)
    assert cube.fathers() == (NIL, 0, 0, 2, 0, 4, 4, 6)
    assert cube.serve(5) == (4, 5)
    assert cube.fathers() == (4, 0, 0, 2, NIL, 4, 4, 6)
