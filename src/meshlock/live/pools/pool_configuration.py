"""What all nodes of a pool must agree on, and how a node of it is born.

A pool is *founded* once, by one node, which so makes its token. Whoever links to a node
of the pool is told its charter and takes part from then on, with clients or without: it
may be the only way between two others. A node therefore needs to know one neighbour, and
nothing else.

Algorithms know nodes by number. Where links may change, anybody may join later, so a
node's number must follow from its name alone: it is 63 bits of the name's hash. Where the
network is fixed, the charter lists the members, the founder first.

A pool *with leases* has no founder: every member is told the same charter by its user, and
the first epoch makes the token (:mod:`.leases`).
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from typing import Annotated

import msgspec

from meshlock.algorithms.interface import Algorithm, Effect, Node
from meshlock.algorithms.recovery.algorithm import DIRECT
from meshlock.algorithms.registry import (
    ALGORITHMS,
    RECOVERING,
    find,
    refuse_impossible,
    settle,
)
from meshlock.errors import Refused
from meshlock.live.machine import limits
from meshlock.live.machine.limits import MOST_NODES, Count, Name, Permits, Word
from meshlock.topology.graphs import Graph

MOST_MEMBERS = int(limits.MEMBERS.most)

LIVE = {"jiang": {"moves": "silent"}}
"""What is chosen here where nobody chooses: on real links every message costs."""


class Charter(msgspec.Struct, array_like=True, frozen=True):
    pool: Name
    algorithm: Word
    options: dict[Word, Word]
    permits: Permits
    founder: Word
    stamp: Count  # drawn at the founding, so that a second founding is noticed
    members: Annotated[tuple[Name, ...], msgspec.Meta(max_length=MOST_NODES)] = ()
    links: tuple[tuple[Count, Count], ...] = ()
    lease: Count = 0  # in microseconds; 0 in pools without leases

    def number(self, name: str) -> int:
        """The node of this name, as the algorithm knows it."""
        if not self.members or self.lease:
            return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8]) >> 1
        if name not in self.members:
            raise Refused(
                f"{name} is no member of the pool {self.pool}: {self.algorithm} is for fixed "
                f"networks, so whoever founds the pool must list it."
            )
        return self.members.index(name)


def meant(algorithm: str | None, members: Sequence[str], options: dict[str, str]) -> Algorithm:
    """What a pool is to run: jiang, or with members direct, unless it is said. The members of
    another algorithm for fixed networks say what its network is."""
    name = algorithm or (DIRECT.name if members else "jiang")
    if name in RECOVERING and not members:
        raise Refused(f"Live nodes run {name} with members: name them, or leave out the algorithm.")
    fixed = name not in RECOVERING and name in ALGORITHMS and not ALGORITHMS[name].changing_links
    entry = find(name, members=bool(members) and not fixed)
    settle(entry, options)
    limits.options(options)
    for member in members:
        limits.name(member, "node")
    return entry


def found(
    pool: str,
    founder: str,
    permits: int,
    entry: Algorithm,
    options: dict[str, str],
    members: Sequence[str],
    links: Sequence[tuple[str, str]] | None,
) -> Charter:
    """A new pool, or a sentence why it cannot be."""
    chosen = settle(entry, {**LIVE.get(entry.name, {}), **options})
    everybody = [founder, *[name for name in members if name != founder]]
    if entry.changing_links:
        complete, pairs = False, []
    else:
        pairs = fixed_links(entry, everybody, links)
        complete = len(pairs) == len(everybody) * (len(everybody) - 1) // 2
    refuse_impossible(
        entry,
        permits=permits,
        want=1,
        complete=complete,
        fifo=True,
        changing=entry.changing_links,
    )
    return Charter(
        pool,
        entry.name,
        chosen,
        permits,
        founder,
        secrets.randbits(48),
        () if entry.changing_links else tuple(everybody),
        tuple(pairs),
    )


def leased(
    pool: str,
    permits: int | None,
    lease: float,
    members: Sequence[str],
    founder: bool | None = None,
    links: Sequence[tuple[str, str]] | None = None,
) -> Charter:
    """What every member of a pool with leases says, or a sentence why it cannot be.

    Members come and go later, so they are no part of what tells two pools apart."""
    if permits is None:
        raise Refused(f"The members of the pool {pool} say how many permits it has.")
    if founder:
        raise Refused(f"Nobody founds a pool with members: leave out founder for {pool}.")
    if links is not None:
        raise Refused(f"{DIRECT.name} uses whatever links there are: leave out links for {pool}.")
    lease = limits.lease(lease)
    everybody = tuple(sorted(set(members)))
    if len(everybody) > MOST_MEMBERS:
        raise Refused(f"{MOST_MEMBERS} members are enough; others may use the pool all the same.")
    microseconds = int(lease * 1_000_000)
    text = f"{pool} {permits} {microseconds}"
    stamp = int.from_bytes(hashlib.sha256(text.encode()).digest()[:6])
    return Charter(
        pool, DIRECT.name, settle(DIRECT, {}), permits, "", stamp, everybody, (), microseconds
    )


def refuse_incredible(charter: Charter, pool: str) -> None:
    """Can this be the charter of that pool? What we would not found ourselves we do not join."""
    if charter.pool != pool:
        raise Refused(f"it is one of the pool {charter.pool}, not {pool}")
    if charter.lease:
        limits.lease(charter.lease / 1e6)
        if len(charter.members) > MOST_MEMBERS or not charter.members:
            raise Refused(f"it has {len(charter.members)} members, not {limits.MEMBERS}")
    elif charter.algorithm in RECOVERING:
        raise Refused(f"{charter.algorithm} needs members and a lease")
    elif charter.members and charter.founder != charter.members[0]:
        raise Refused("its founder is not the first of its members")
    else:
        limits.name(charter.founder, "node")
    entry = find(charter.algorithm, members=charter.lease > 0)
    if settle(entry, charter.options) != charter.options:
        raise Refused(f"it lacks options of {entry.name}")
    limits.options(charter.options)
    if any(max(link) >= len(charter.members) for link in charter.links):
        raise Refused("its links lead to nobody")


def fixed_links(
    algorithm: Algorithm, everybody: list[str], links: Sequence[tuple[str, str]] | None
) -> list[tuple[int, int]]:
    """The links by number; every two members are linked unless it is said who is."""
    if len(everybody) < 2:
        raise Refused(
            f"{algorithm.name} is for fixed networks: give all members of the pool when you "
            f"found it, or choose an algorithm for changing links such as jiang."
        )
    size = len(everybody)
    if links is None:
        return [(one, other) for other in range(size) for one in range(other)]
    place = {name: number for number, name in enumerate(everybody)}
    for name in (name for link in links for name in link):
        if name not in place:
            raise Refused(f"The link to {name} leads nowhere: add {name} to the members.")
    pairs = sorted({(min(a, b), max(a, b)) for a, b in ((place[x], place[y]) for x, y in links)})
    if Graph(size, pairs).reached < size:
        raise Refused("These links do not reach all members: add some.")
    return pairs


def born(charter: Charter, me: str, founding: bool, out: list[Effect]) -> Node:
    """This node's part in the pool. The token is made at the founding and never again: a
    founder that restarts comes back as anybody else."""
    entry = find(charter.algorithm)
    number = charter.number(me)
    if charter.members:
        if me == charter.founder and not founding:
            raise Refused(
                f"{me} founded the pool {charter.pool} and lost it by restarting: {entry.name} "
                f"is for nodes that do not fail, so close all its nodes and found it again."
            )
        network = Graph(len(charter.members), charter.links)
        return entry.make(network, charter.permits, charter.options, out)[number]
    if entry.join is None:
        raise Refused(f"{entry.name} cannot be joined by live nodes: use jiang.")
    return entry.join(number, founding, charter.permits, charter.options, out)
