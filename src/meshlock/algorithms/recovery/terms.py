"""What all nodes of a pool agree on when it is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from meshlock.algorithms.actor import Algorithm, Options
from meshlock.algorithms.recovery.records import Entry
from meshlock.algorithms.steps import units


class Rules(NamedTuple):
    """Of members that choose themselves (:mod:`.autopilot`): how many there may be, and how long a
    node must have been there to become one, or be unreachable to be replaced."""

    most: int
    promote_after: int
    replace_after: int


@dataclass(eq=False)
class Terms:
    """``nodes`` are all that should hear of an epoch; those that are no members may come and go.
    ``members`` and ``permits`` are those at first; a node's ``config`` says what holds now. Without
    members the pool is made by one node (``found``), and the others hear who the members are.
    ``wait`` on any clock is not shorter than ``lease`` on any other. ``near`` gives the neighbours
    of a node, as far as is known here. ``slots``: a grant says which of the permits it has, not
    only how many; ``names`` are what they are called at first, if anything. ``rules``: by which
    members choose themselves, if they do.
    """

    nodes: tuple[int, ...]
    members: tuple[int, ...]
    permits: int
    lease: int
    wait: int
    algorithm: Algorithm
    options: Options
    near: Callable[[int], Iterable[int]]
    slots: bool = False
    rules: Rules | None = None
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        algorithm, options = self.algorithm, self.options
        self.units = units(options)  # of priority, in a step
        # The algorithm inside: is it for fixed networks, whose messages are routed and never lost?
        # Then: may nodes come and go, or is it for those with whom an epoch began, by their places?
        self.fixed = not algorithm.assumes.changing_links
        self.open = self.fixed and algorithm.newcomers.late is not None
        self.closed = self.fixed and not self.open
        # Does the token move on after so few grants that a checker sees it? Then acknowledgements
        # are state: else no handler reads them.
        usual = algorithm.options.get("rest", ("",))[0]
        self.moves_early = options.get("rest", usual) != usual


class Notes:
    """What the runner writes into ledgers: how a client wants to be known, and what an entry says
    when its token is new, or is handed on."""

    def __init__(self) -> None:
        self.label: Callable[[int], str] = unlabelled
        self.minted: Callable[[tuple[Entry, ...]], tuple[Entry, ...]] = unchanged
        self.handed: Callable[[tuple[Entry, ...]], tuple[Entry, ...]] = unchanged


def unlabelled(client: int) -> str:
    return ""


def unchanged(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    return entries
