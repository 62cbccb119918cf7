"""Many broken algorithms: the reduced graph is wrong where the full one is, and only there."""

from __future__ import annotations

from collections.abc import Callable
from zlib import crc32

import pytest
from checks import ask, with_algorithm

from meshlock.algorithms import general_scheme as algorithms
from meshlock.algorithms.actor import (
    Actor,
    Algorithm,
    Assumptions,
    Effect,
    Message,
    Network,
)
from meshlock.algorithms.registry import find
from meshlock.check.arguments import judged
from meshlock.check.explorer import Explorer
from meshlock.check.persistent import Reduced
from meshlock.check.plain import Plain

if not (algorithms.__file__ or "").endswith(".py"):
    pytest.skip("nodes are broken by replacing a method", allow_module_level=True)

NAMES = ["safety", "one-token", "conservation", "served"]
MOST = 20_000


def chance(node: Actor, message: Message, seed: int) -> int:
    """A number that depends on the node's state, the message and the seed, and nothing else."""
    return crc32(repr((node.me, node.freeze(), message.freeze(), seed)).encode()) % 100


def flawed(name: str, seed: int, percent: int) -> Algorithm:
    """The algorithm, but in some states its nodes overlook some messages."""
    origin = find(name)

    def overlooking(node: Actor) -> Callable[[Message], None]:
        receive = node.receive

        def sometimes(message: Message) -> None:
            if chance(node, message, seed) >= percent:
                receive(message)

        return sometimes

    def make(
        network: Network, permits: int, options: dict[str, str], out: list[Effect]
    ) -> list[Actor]:
        nodes = origin.make(network, permits, options, out)
        for node in nodes:
            node.freeze()  # its variables are found when it is first frozen: before it has one more
            node.receive = overlooking(node)  # type: ignore[method-assign]
        return nodes

    return Algorithm(
        f"{name} with flaw {seed}",
        "",
        "",
        origin.problem,
        make,
        origin.kinds,
        assumes=Assumptions(routed=origin.assumes.routed),
        serves=origin.serves,
        options=origin.options,
    )


@pytest.mark.parametrize("links", ["fifo", "unordered"])
@pytest.mark.parametrize(
    ("name", "topology", "nodes"),
    [
        ("raymond", "line", 4),
        ("raymond", "star", 4),
        ("naimi-trehel", "complete", 3),
        ("suzuki-kasami", "complete", 3),
        ("singhal", "complete", 3),
        ("ricart-agrawala", "complete", 3),
        ("maekawa", "complete", 3),
        ("lelann", "ring", 3),
    ],
)
def test_reduced_and_full_agree(name: str, topology: str, nodes: int, links: str) -> None:
    broken = 0
    for seed in range(12):
        what = ask(name, topology, nodes, links="fifo")
        what.fifo = links == "fifo"
        with_algorithm(what, flawed(name, seed, (1, 4, 15)[seed % 3]))
        full = Explorer(Plain(what, judged(NAMES)), MOST)
        while full.run(1000) and not full.violations:
            pass
        reduced = Explorer(Reduced(Plain(what, judged(NAMES))), MOST)
        while reduced.run(1000) and not reduced.violations:
            pass
        assert bool(full.violations) == bool(reduced.violations), seed
        broken += bool(full.violations)
    assert broken > 0
