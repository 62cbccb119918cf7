"""Short words for the tests of the checker."""

from __future__ import annotations

from unittest.mock import patch

from meshlock.algorithms.actor import Algorithm
from meshlock.check import serving
from meshlock.check.arguments import judged, setup
from meshlock.check.setup import SetUp
from meshlock.check.verdict import Checking
from whole import WHOLE

LINE = {"topology": "line", "nodes": 3}
TWO = ["0:1@1", "2:1@2"]
IN_RECOVERY = TWO if WHOLE else ["2"]
SET_UPS: dict[str, dict[str, object]] = {
    "raymond": {"algorithm": "raymond", "topology": "line", "nodes": 4},
    "naimi-trehel": {"algorithm": "naimi-trehel", "nodes": 4},
    "unordered": {"algorithm": "ricart-agrawala", "nodes": 3, "links": "unordered"},
    "changes": {"algorithm": "jiang", **LINE, "requests": TWO, "flips": 1},
    "custody": {
        "algorithm": "jiang",
        **LINE,
        "requests": TWO,
        "flips": 1,
        "failures": "custody",
        "options": {"raises": "1"},
    },
    "deadlock": {"algorithm": "jiang-printed", **LINE, "requests": ["2:1@5", "1:1@6", "0:1@1"]},
    "crashes": {
        "algorithm": "raymond",
        **LINE,
        "requests": IN_RECOVERY,
        "members": "all",
        "crashes": 1,
    },
    "slow disks": {
        "algorithm": "direct",
        "nodes": 2,
        "members": "all",
        "slow_disks": 1,
        "crashes": 1,
        "proposals": 1,
        "idle": True,
    },
    "renews the dead": {
        "algorithm": "recovery/renews-the-dead",
        **LINE,
        "requests": IN_RECOVERY,
        "members": "all",
        "crashes": 1,
    },
}
LARGE: dict[str, object] = {**SET_UPS["crashes"], "requests": TWO}
"""Of 14,244 states."""
TRIED = 500
"""States of a search from which all must be served when faults stop. Each takes as long as ten
others to be found. Every mutant of which that is noticed is noticed so in its own set-up."""

FEW_TRIED = 50
"""Where a search is compared with another one."""

FOR_EVER: dict[str, dict[str, object]] = {
    "served": {"algorithm": "raymond", **LINE, "repeat": True},
    "starving": {
        "algorithm": "jiang",
        **LINE,
        "repeat": True,
        "requests": ["0:1@2", "1:1@2", "2:1@1"],
        "options": {"patience": "1", "ageing": "none"},
    },
}
"""Searches by several processes and on disk find the same as one in memory."""


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


def finish(checking: Checking, tried: int = TRIED) -> None:
    """To the end; ``make test-whole`` tries as many states as a command does."""
    with patch.object(serving, "MOST_TRIED", serving.MOST_TRIED if WHOLE else tried):
        while checking.run(1_000):
            pass


def explore(what: SetUp, *names: str, most: int = 1_000_000) -> Checking:
    checking = Checking(what, judged(list(names)), most)
    finish(checking)
    return checking


def counts(checking: Checking) -> tuple[int, int, int]:
    found = checking.explorer
    return found.count(), found.transitions, found.depth


def sizes(verdict: Checking) -> tuple[object, ...]:
    """What is the same however a search is made."""
    explorer = verdict.explorer
    lengths = {it.name: len(it.labels) for it in verdict.violations()}
    if verdict.setup.faults is not None:
        lengths.pop("served", 0)  # of some states, which are not the same
    return explorer.count(), explorer.transitions, explorer.depth, verdict.holds(), lengths
