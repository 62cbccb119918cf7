"""Le Lann's token is on its way before anybody asks, and never rests."""

from __future__ import annotations

import io

from checks import ask, counts, explore, with_algorithm

from meshlock.algorithms.interface import Algorithm, Effect, Network, Node
from meshlock.algorithms.lelann import RingNode
from meshlock.algorithms.registry import find
from meshlock.check.story import write_trace


class KeepsTheToken(RingNode):
    def release(self, client: int) -> None:
        self.client = -1


def make(network: Network, permits: int, options: dict[str, str], out: list[Effect]) -> list[Node]:
    return [KeepsTheToken(me, out, network.size) for me in range(network.size)]


def test_the_ring_is_sound_and_its_states_are_few() -> None:
    checking = explore(ask("lelann", "ring", 3))
    assert checking.holds()
    assert counts(checking) == (108, 207, 11)


def test_a_trace_tells_who_set_the_token_going() -> None:
    origin = find("lelann")
    greedy = Algorithm("greedy", "", "", "mutex", make, origin.kinds, routed=True, restless=True)
    checking = explore(with_algorithm(ask("lelann", "ring", 3), greedy))
    (violation,) = checking.violations()
    assert violation.name == "served"
    sink = io.BytesIO()
    write_trace(checking.system, violation, sink, "test")
    lines = sink.getvalue().decode().splitlines()
    assert '"event":"start"' in lines[1]
    assert '"event":"send"' in lines[2]
