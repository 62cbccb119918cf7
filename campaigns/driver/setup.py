"""What one run is: a network, a pool, its options, and how unkind the scheduler is; all drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from meshlock.algorithms.actor import Algorithm
from meshlock.algorithms.registry import find, with_defaults
from meshlock.algorithms.steps import in_grants, units
from meshlock.errors import Refused

FAILURES = ("drain", "return", "custody")
MOVES = ("quiet", "silent", "broadcast")

AGEING = (
    ("stamped", "100"),
    ("stamped", "100"),
    ("stamped", "100"),
    ("none", "100"),
    ("none", "100"),
    ("stamped", "3"),
    ("printed", "10"),
)
"""Ageing and patience. The default comes first and most often; few grants make a run, so a
patience of 100 leaves priorities as they are, and one of 3 lets waiting overtake them."""

DEADLINES = (0.0, 0.2, 0.5, 0.8, 0.99)
"""Parts of a step of priority: without a deadline, and closer and closer ones."""

LINK, TOKEN = "slow_link", "slow_token"
OPENINGS: tuple[tuple[str, ...], ...] = (
    (),
    (LINK,),
    (LINK, LINK),
    (TOKEN,),
    (TOKEN, LINK),
    (TOKEN, TOKEN),
)
"""Stories to begin with, while most nodes know but one way to the token."""

Pair = tuple[int, int]
"""A link, the smaller node first."""

Choice = TypeVar("Choice")


class Draw:
    """Chances that depend on the run's number alone: each decision takes one number."""

    def __init__(self, number: int) -> None:
        self.chance = Random(f"independent {number}").random

    def among(self, choices: Sequence[Choice]) -> Choice:
        return choices[int(self.chance() * len(choices))]

    def likely(self, probability: float) -> bool:
        return self.chance() < probability

    def between(self, least: int, most: int) -> int:
        return least + int(self.chance() * (most + 1 - least))


@dataclass
class Habits:
    """How the scheduler goes about it.

    Uniform choices meet few of the rare orders. What breaks an algorithm is mostly one link that is
    slow while all the others settle, a change meanwhile, and then a moment of quiet in which
    the order is judged. So messages on some links are kept back for long.
    """

    opening: tuple[str, ...]
    length: int
    weights: list[tuple[str, float]]  # how often the scheduler does what, by its methods' names
    both_ways: float  # a link is kept back in both directions
    aim: float  # a link fails that carries a token or permits
    focus: float  # what comes next, comes where something is kept back
    burst: float  # all that is on one way is delivered before anything else
    slow: float  # at the end, clients leave only when all is quiet: there the order is judged


@dataclass
class Setup:
    """Everything about a run but its steps."""

    algorithm: Algorithm
    options: dict[str, str]
    size: int
    permits: int
    links: list[Pair]
    failures: str
    fifo: bool
    joined: bool  # the nodes start without links, as live nodes do
    clients: int  # of one node, at a time
    requests: int
    priorities: int
    most_wanted: int
    changes: int
    partitions: bool
    habits: Habits
    changing: bool = False  # parts are released, priorities change, and ties are judged
    deadlines: bool = False  # requests have them: priorities count in grants

    def urgency(self, draw: Draw, least: int = 0) -> int:
        """A priority, and maybe a deadline, in the units of the nodes."""
        priority = draw.between(1, max(least, self.priorities))
        if not self.deadlines:
            return priority
        unit = units(self.options)
        return priority * unit + int(draw.among(DEADLINES) * unit)

    def highest(self) -> int:
        return self.priorities * units(self.options)

    def __str__(self) -> str:
        chosen = " ".join(f"{name}={value}" for name, value in sorted(self.options.items()))
        links = " ".join(f"{i}-{j}" for i, j in self.links)
        more = "" if self.fifo else ", messages overtake each other"
        more += ", nodes join without links" if self.joined else ""
        return (
            f"{self.algorithm.name} {chosen}\n{self.size} nodes, links {links}, "
            f"{self.permits} permits, failures {self.failures}{more}"
        )


def draw_setup(
    draw: Draw,
    algorithm: Algorithm,
    moves: Sequence[str] = MOVES,
    failures: Sequence[str] = FAILURES,
    changing: bool = True,
) -> Setup:
    refuse_undrivable(algorithm, failures)
    among, likely = draw.among, draw.likely
    size = among((2, 3, 4, 4, 4, 4, 5, 5, 6))
    permits = 1 if algorithm.problem == "mutex" else among((1, 2, 2, 2, 3, 4))
    mobile, many = algorithm.assumes.changing_links, algorithm.serves.many_clients
    parts = of_live_nodes(algorithm)
    kind = among([kind for kind in failures if parts or kind != "custody"])
    made = Setup(
        algorithm,
        with_defaults(algorithm, draw_options(draw, algorithm, moves)),
        size,
        permits,
        draw_links(draw, size, algorithm.assumes.complete_graph),
        kind if mobile else "none",
        fifo=algorithm.assumes.fifo or likely(0.2),
        joined=likely(0.2) and parts and algorithm.newcomers.join is not None,
        clients=among((1, 2, 2, 3)) if many else 1,
        requests=draw.between(4, 40),
        priorities=among((1, 2, 3, 3, 4, 4, 9, 9)) if algorithm.serves.priorities else 1,
        most_wanted=among((1, permits, permits)) if algorithm.problem == "h-of-k" else 1,
        changes=among((0, 1, 2, 3, 4, 6, 10, 16)) if mobile else 0,
        partitions=likely(0.4) and parts,
        habits=Habits(
            opening=among(OPENINGS),
            length=among((0, 10, 30, 60, 100)),
            weights=[
                ("ask", 3.0),
                ("ask_unheard", among((0.0, 0.5, 1.0))),
                ("slow_link", among((0.0, 1.0, 3.0))),
                ("slow_token", among((0.0, 0.3, 1.0))),
                ("part", among((0.0, 0.5))),
                ("leave", among((0.0, 0.3, 1.0, 2.0))),
                ("withdraw", 0.5 if likely(0.25) and many else 0.0),
                ("change", among((0.3, 1.0, 2.0))),
                ("hold", among((0.0, 0.5, 1.0, 2.0))),
                ("let_go", among((0.2, 0.5, 1.0))),
                ("deliver_all", among((0.3, 1.0, 3.0))),
                ("deliver_some", among((0.0, 1.0, 3.0))),
                ("calm", among((0.0, 0.3, 1.0))),
            ],
            both_ways=among((0.1, 0.5)),
            aim=among((0.0, 0.5, 0.9)),
            focus=among((0.2, 0.8, 0.9)),
            burst=among((0.0, 0.3)),
            slow=among((0.0, 1.0, 1.0)),
        ),
    )
    if changing:
        add_changes(draw, made)
    return made


def add_changes(draw: Draw, setup: Setup) -> None:
    """Drawn last, so that a run without them is the same as ever."""
    algorithm, weights = setup.algorithm, setup.habits.weights
    setup.changing = True
    weights.append(("ask_calmly", draw.among((0.0, 2.0, 6.0))))
    if draw.likely(0.3):
        setup.priorities = 1
    origin = algorithm.name.partition("/")[0]
    if origin in ("jiang", "direct"):
        weights.append(("change_priority", draw.among((0.0, 0.5, 2.0))))
        weights.append(("withdraw", draw.among((0.0, 0.0, 0.5))))
    if setup.most_wanted > 1:
        weights.append(("release_part", draw.among((0.0, 0.5, 2.0))))
    if "rest" in algorithm.options:  # so often direct's token moves on
        setup.options["rest"] = draw.among(("1", "2", "3", "7", "61"))
    if algorithm.serves.priorities and draw.likely(0.3):
        setup.deadlines = True
        setup.options = in_grants(setup.options)


def of_live_nodes(algorithm: Algorithm) -> bool:
    """May the network fall apart, and links be as live nodes have them? A mutant is of the
    same kind as its original."""
    return "raises" in find(algorithm.name.partition("/")[0]).options  # it stops climbing


def refuse_undrivable(algorithm: Algorithm, failures: Sequence[str]) -> None:
    if algorithm.serves.restless:
        raise Refused(f"{algorithm.name} never comes to rest, so its end cannot be judged.")
    if tuple(failures) == ("custody",) and not of_live_nodes(algorithm):
        raise Refused(
            f"{algorithm.name} is not for links as live nodes have them: use --failures drain "
            f"or return."
        )


def draw_options(draw: Draw, algorithm: Algorithm, moves: Sequence[str]) -> dict[str, str]:
    ageing, patience = draw.among(AGEING)
    backfill = draw.likely(0.05)
    drawn = {
        "moves": draw.among(moves),
        "ageing": ageing,
        "patience": patience,
        "raises": draw.among(("1", "2", "2", "3", "16")),
        "backfill": "on" if backfill else "off",
        "backfill-most": draw.among(("1", "2", "8")),
    }
    chosen = {}
    for name, values in algorithm.options.items():
        numeric = "<number>" in values
        if name in drawn and (numeric or drawn[name] in values):
            chosen[name] = drawn[name]
        elif not numeric:
            chosen[name] = draw.among(values)
    return chosen


def draw_links(draw: Draw, size: int, complete: bool) -> list[Pair]:
    """A tree and some links more: often all there can be, where most ways lead round."""
    pairs = [(i, j) for j in range(size) for i in range(j)]
    density = 1.0 if complete else draw.among((0.0, 0.2, 0.5, 1.0, 1.0, 1.0))
    tree = {(draw.between(0, j - 1), j) for j in range(1, size)}
    return [pair for pair in pairs if pair in tree or draw.likely(density)]
