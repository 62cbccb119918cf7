"""The rule by which pools are born, in every order in which links come up, nodes vote, tell each
other, restart and make the pool: there is never more than one.

The election is the one of live nodes. Disks, links and the news that there is a pool are here.
Mistakes that one could make in it are found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from itertools import combinations
from typing import NamedTuple

import pytest

from meshlock.live.pools.birth import MAKE, Election, Expected
from meshlock.live.pools.promises import Voted

CALLERS = "callers"
"""A node that names nobody, and that others can call."""

Names = dict[str, tuple[str, ...] | str]

ALL: Names = {"a": ("b", "c"), "b": ("a", "c"), "c": ("a", "b")}
STAR: Names = {"a": CALLERS, "b": ("a",), "c": ("a",)}
LINE: Names = {"a": CALLERS, "b": ("a",), "c": ("b",)}
LONE: Names = {"a": (), "b": ("a",), "c": ("a",)}
TAIL: Names = {"a": (), "b": ("c",), "c": ("a",)}
RING: Names = {"a": ("b",), "b": ("c",), "c": ("a",)}


class Setting(NamedTuple):
    """What may happen: who wants to make the pool, how often the last restarts, and how many disks
    are lost, each when all others know the pool."""

    names: Names
    founders: str = "ab"
    restarts: int = 0
    losses: int = 0


class World:
    """Some nodes, of which some want to make the pool."""

    def __init__(self, setting: Setting, make: type[Election]) -> None:
        self.names = names = setting.names
        self.nodes = {name: make(name) for name in names}
        self.numbers: dict[object, int] = {}  # of all that a node had in mind in any world
        self.minds = {name: self.mind(name) for name in names}
        self.own = dict.fromkeys(names, 0)
        self.own |= {name: place for place, name in enumerate(reversed(setting.founders), 1)}
        self.disks: dict[str, Voted | None] = dict.fromkeys(names)
        self.links: frozenset[frozenset[str]] = frozenset()
        self.pool = dict.fromkeys(names, 0)  # what each of them knows
        self.made: frozenset[int] = frozenset()
        self.restarts, self.losses = setting.restarts, setting.losses

    def state(self) -> object:
        return (
            tuple(self.minds.values()),
            tuple(self.own.values()),
            tuple(
                [(disk.identity, disk.withdrawn) if disk else None for disk in self.disks.values()]
            ),
            self.links,
            tuple(self.pool.values()),
            self.made,
            self.restarts,
            self.losses,
        )

    def mind(self, name: str) -> int:
        node = self.nodes[name]
        return self.numbers.setdefault((node.choice, node.ballot()), len(self.numbers))

    def copied(self) -> World:
        """Nodes are shared until they act."""
        other = copy(self)
        other.nodes, other.minds = dict(self.nodes), dict(self.minds)
        other.own, other.disks, other.pool = dict(self.own), dict(self.disks), dict(self.pool)
        return other

    def linked(self, name: str) -> frozenset[str]:
        return frozenset(other for link in self.links if name in link for other in link - {name})

    def expected(self, name: str) -> Expected:
        named, linked = self.names[name], self.linked(name)
        if isinstance(named, str):
            return Expected(2, linked, linked)
        return Expected((len(named) + 1) // 2 + 1, frozenset(named), linked & frozenset(named))

    def steps(self) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        """A link comes up, a node restarts, with its disk or without, or one acts on what some
        neighbours tell it."""
        for one, other in combinations(self.nodes, 2):
            if frozenset((one, other)) not in self.links:
                yield "link", one, (other,)
        for name in self.nodes:
            if not self.pool[name]:
                near = sorted(self.linked(name))
                for size in range(len(near) + 1):
                    for some in combinations(near, size):
                        yield "act", name, some
        if self.restarts:
            yield "restart", max(self.nodes), ()
        for name in self.nodes if self.losses else ():
            if self.knows_enough(name) and self.expected(name).needs > 1:
                yield "lose", name, ()

    def knows_enough(self, name: str) -> bool:
        """Do all others know the pool, so that this disk may be lost?"""
        return all(self.pool[other] for other in self.nodes if other != name)

    def take(self, what: str, name: str, others: tuple[str, ...]) -> None:
        if what == "link":
            self.links |= {frozenset((name, *others))}
        elif what == "restart":
            self.restarts -= 1
            self.restart(name)
        elif what == "lose":
            self.losses -= 1
            self.disks[name] = None
            self.pool[name] = 0
            self.restart(name)
        else:
            self.nodes[name] = copied(self.nodes[name])
            self.act(name, others)
        self.minds[name] = self.mind(name)

    def act(self, name: str, others: tuple[str, ...]) -> None:
        """A vote is on disk before anybody is told."""
        node = self.nodes[name]
        for other in others:
            if self.pool[other]:
                self.pool[name] = self.pool[other]
                return
            node.learn(self.nodes[other].ballot())
        what = node.decide(self.expected(name), self.own[name], self.linked(name).__contains__)
        if what == MAKE:
            self.made |= {node.choice}
            self.pool[name] = node.choice
        elif what:
            if node.choice:
                self.own[name] += 10
            node.vote(what, node.founders.get(what, name))
            self.disks[name] = Voted(what, node.founders[what], tuple(node.withdrawn))

    def restart(self, name: str) -> None:
        """With what is on its disk; its links are gone, and come back."""
        self.links = frozenset(link for link in self.links if name not in link)
        disk = self.disks[name]
        self.nodes[name] = type(self.nodes[name])(name)
        self.own[name] += 100 if self.own[name] else 0
        if disk is not None and not self.pool[name]:
            self.nodes[name].remember(disk)


def copied(node: Election) -> Election:
    other = copy(node)
    other.founders, other.withdrawn = dict(node.founders), dict(node.withdrawn)
    other.votes = {identity: dict(votes) for identity, votes in node.votes.items()}
    return other


def most_pools(
    setting: Setting, make: type[Election] = Election, model: type[World] = World
) -> tuple[int, int, int]:
    """Over all orders: how many pools were made at most, in how many states any, and all states."""
    born, seen = 0, set[object]()
    waiting = [model(setting, make)]
    while waiting:
        world = waiting.pop()
        for step in world.steps():
            after = world.copied()
            after.take(*step)
            state = after.state()
            if state not in seen:
                seen.add(state)
                waiting.append(after)
                born += len(after.made) > 0
                if len(after.made) > 1:
                    return len(after.made), born, len(seen)
    return int(born > 0), born, len(seen)


SETTINGS = [
    *[Setting(ALL, restarts=1), Setting(STAR), Setting(LINE), Setting(LONE, restarts=1)],
    *[Setting(TAIL), Setting(RING)],
    *[Setting(names, losses=1) for names in (ALL, LONE, TAIL, RING)],
    Setting(ALL, founders="abc"),
]


@pytest.mark.parametrize("setting", SETTINGS)
def test_one_pool_is_born_in_every_order(setting: Setting) -> None:
    most, born, states = most_pools(setting)
    assert most == 1 and born > 0, states


class Fickle(Election):
    """Votes for another when its maker cannot be reached."""

    def to_choose(self, own: int, reaches: Callable[[str], bool]) -> int:
        before = self.choice
        self.choice = 0
        found = super().to_choose(own, reaches)
        self.choice = before
        return found or before

    def vote(self, identity: int, founder: str) -> None:
        self.add(identity, founder)
        self.choice = identity


class Forgetful(Election):
    """Does not read its vote."""

    def remember(self, voted: Voted) -> None:
        pass


class Content(Election):
    """Its own majority is enough, whomever the others expect."""

    def is_elected(self) -> bool:
        votes = self.votes[self.choice]
        alike = votes.keys() & {self.me, *votes[self.me].names}
        return self.founders.get(self.choice) == self.me and len(alike) >= votes[self.me].needs


class Lonely(Election):
    """Its own vote is enough."""

    def is_elected(self) -> bool:
        return self.founders.get(self.choice) == self.me


class Hasty(Election):
    """Any linked nodes are enough, and so are none."""

    def decide(self, expected: Expected, own: int, reaches: Callable[[str], bool]) -> int:
        return super().decide(expected._replace(needs=len(expected.linked) + 1), own, reaches)


@pytest.mark.parametrize(
    ("make", "setting"),
    [
        (Fickle, Setting(ALL)),
        (Forgetful, Setting(ALL, restarts=1)),
        (Content, Setting(TAIL)),
        (Lonely, Setting(ALL)),
        (Hasty, Setting(LINE)),
    ],
)
def test_a_mistake_makes_two_pools(make: type[Election], setting: Setting) -> None:
    assert most_pools(setting, make)[0] > 1


class Early(World):
    """A disk may be lost while somebody has not heard of the pool."""

    def knows_enough(self, name: str) -> bool:
        return True


def test_a_vote_that_is_lost_before_all_others_know_the_pool_makes_two() -> None:
    """As guarantees.md says: of nodes that forgot or never knew there must be no majority."""
    assert most_pools(Setting(ALL, losses=1), model=Early)[0] == 2


@pytest.mark.parametrize("names", [{"a": (), "b": (), "c": ("a", "b")}])
def test_two_that_name_nobody_are_two_makers(names: Names) -> None:
    """As guarantees.md says: by the word of the person who started them."""
    assert most_pools(Setting(names))[0] == 2
