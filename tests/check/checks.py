"""Short words for the tests of the checker."""

from __future__ import annotations

from meshlock.algorithms.interface import Algorithm
from meshlock.check.arguments import judged, setup
from meshlock.check.setup import SetUp
from meshlock.check.verdict import Checking


def ask(algorithm: str, topology: str, nodes: int, **more: object) -> SetUp:
    """A set-up by its words; whatever is not said is at the command's default."""
    words: dict[str, object] = {
        "permits": 1,
        "requests": [],
        "changes": [],
        "flips": 0,
        "links": "fifo",
        "failures": "drain",
        "clients": 1,
        "repeat": False,
        "options": {},
        **more,
    }
    return setup(algorithm=algorithm, topology=topology, nodes=nodes, **words)  # type: ignore[arg-type]


def with_algorithm(what: SetUp, algorithm: Algorithm) -> SetUp:
    """The same set-up for an algorithm that is not registered."""
    what.algorithm = algorithm
    return what


def explore(what: SetUp, *names: str, most: int = 1_000_000) -> Checking:
    checking = Checking(what, judged(list(names)), most)
    while checking.run(10_000):
        pass
    return checking


def counts(checking: Checking) -> tuple[int, int, int]:
    found = checking.explorer
    return found.count(), found.transitions, found.depth
