"""A node is what it freezes to: its thawed twin says and becomes the same, step by step.

The checker rebuilds a node from its frozen state before every step, so a variable that
``freeze`` forgot would be a wrong verdict there and nowhere else.
"""

from __future__ import annotations

from random import Random

import pytest

from meshlock.algorithms.actor import (
    Actor,
    Algorithm,
    ChoosingActor,
    Effect,
    Enter,
    Frozen,
    Message,
)
from meshlock.algorithms.mutants.catalogue import REPAIRS
from meshlock.algorithms.registry import ALGORITHMS, find, with_defaults
from meshlock.topology.graphs import Complete

NODES = 5
STEPS = 400


def told(out: list[Effect]) -> list[tuple[object, ...]]:
    """What a handler did, as values."""
    return [
        (effect.receiver, *effect.freeze()) if isinstance(effect, Message) else ("enter", client)
        for effect in out
        for client in [effect.client if isinstance(effect, Enter) else 0]
    ]


def again(algorithm: Algorithm, message: Message) -> Message:
    """The same message, made anew from its frozen form."""
    kind, *values = message.freeze()
    (maker,) = [known for known in algorithm.kinds if known.kind == kind]
    copy = maker(message.receiver, *values)
    copy.sender = message.sender
    return copy


class World:
    """Nodes, messages on their way, and clients that come and go at random."""

    def __init__(self, algorithm: Algorithm, seed: int, given: dict[str, str]) -> None:
        self.algorithm = algorithm
        self.options = with_defaults(algorithm, given)
        self.random = Random(f"{algorithm.name}:{seed}")
        self.out: list[Effect] = []
        self.nodes = algorithm.make(Complete(NODES), 1, self.options, self.out)
        self.links: dict[tuple[int, int], list[Message]] = {}
        self.idle = set(range(NODES))
        self.inside: dict[int, int] = {}  # node: client
        self.clients = 0
        if algorithm.serves.restless:
            for node in self.nodes:
                node.start()
                self.carry(node)

    def step(self) -> None:
        busy = [pair for pair, line in sorted(self.links.items()) if line]
        acts = [("deliver", pair) for pair in busy]
        acts += [("ask", (node, 0)) for node in sorted(self.idle)]
        acts += [("leave", (node, 0)) for node in sorted(self.inside)]
        if not acts:
            return
        act, (first, second) = self.random.choice(acts)
        me = second if act == "deliver" else first
        node = self.nodes[me]
        before = node.freeze()
        hash(before)
        twins_out: list[Effect] = []
        twin = self.algorithm.make(Complete(NODES), 1, self.options, twins_out)[me]
        twin.thaw(before)
        assert twin.freeze() == before
        if isinstance(node, ChoosingActor) and node.choices() > 1:
            choice = self.random.randrange(node.choices())
            node.choose(choice)
            twin.choose(choice)
        if act == "ask":
            self.clients += 1
            self.idle.remove(me)
            node.request(self.clients, 1, 0)
            twin.request(self.clients, 1, 0)
        elif act == "leave":
            client = self.inside.pop(me)
            self.idle.add(me)
            node.release(client)
            twin.release(client)
        else:
            line = self.links[(first, second)]
            place = 0 if self.algorithm.assumes.fifo else self.random.randrange(len(line))
            message = line.pop(place)
            copy = again(self.algorithm, message)
            node.receive(message)
            twin.receive(copy)
        assert told(twins_out) == told(self.out)
        after: Frozen = node.freeze()
        assert twin.freeze() == after
        assert (twin.tokens(), twin.free_permits()) == (node.tokens(), node.free_permits())
        assert len(after) == len(node.variables)
        self.carry(node)

    def carry(self, node: Actor) -> None:
        for effect in self.out:
            if isinstance(effect, Message):
                self.links.setdefault((effect.sender, effect.receiver), []).append(effect)
            elif isinstance(effect, Enter):
                self.inside[node.me] = effect.client
        self.out.clear()


def variants() -> list[tuple[str, dict[str, str]]]:
    """Every algorithm as it is, and with each value of its options; jiang without its repairs."""
    found: list[tuple[str, dict[str, str]]] = []
    for name, algorithm in ALGORITHMS.items():
        found.append((name, {}))
        for option, values in algorithm.options.items():
            found += [(name, {option: value}) for value in values[1:] if value[0] != "<"]
    return found + [(mutant.name, {}) for mutant in REPAIRS.values()]


@pytest.mark.parametrize(("name", "given"), variants())
def test_a_thawed_twin_behaves_alike(name: str, given: dict[str, str]) -> None:
    for seed in range(3):
        world = World(find(name), seed, given)
        for _ in range(STEPS):
            world.step()
        assert world.clients >= NODES


@pytest.mark.parametrize("name", ALGORITHMS)
def test_after_a_release_nothing_of_the_client_is_left(name: str) -> None:
    """So that states which differ only in the past are one state to the checker."""
    world = World(ALGORITHMS[name], 1, {})
    for _ in range(STEPS):
        world.step()
        for me in world.idle:
            node = world.nodes[me]
            if "client" in node.variables:
                assert node.freeze()[node.variables.index("client")] == -1
