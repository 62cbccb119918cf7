"""What all nodes of a pool must agree on, and how a node of it is made.

A pool *without recovery* is founded once, by one node, which so makes its token. A node that
links to one of the pool is told its configuration and takes part from then on, with clients or
without: it may be the only way between two others. A node therefore needs to know one neighbour,
and nothing else.

Algorithms know nodes by number. Where links may change, anybody may join later, so a
node's number must follow from its name alone: it is 63 bits of the name's hash. Where the
network is fixed, the configuration lists its nodes, the founder first.

A pool *with recovery* survives crashes (:mod:`.members`). Usually one node makes it, its first
member, under an identity drawn then, and the members choose themselves; a new node learns both
from a neighbour. Or every member is given the same configuration by its user, with the names of
all, and the first epoch makes the token; the identity follows from what they were given. Anybody
may use either, so nodes are known by hash, whatever the algorithm.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated

import msgspec

from meshlock.algorithms.actor import Actor, Algorithm, Effect
from meshlock.algorithms.recovery.inside import refuse_unrecoverable
from meshlock.algorithms.recovery.records import FENCE_BITS
from meshlock.algorithms.registry import find, refuse_impossible, with_defaults
from meshlock.algorithms.steps import in_grants
from meshlock.errors import Refused
from meshlock.live.machine import limits
from meshlock.live.machine.limits import MOST_NAMED, MOST_NODES, Count, Name, Permits, Word
from meshlock.topology.graphs import Graph

MOST_MEMBERS = int(limits.MEMBERS.most)

DEFAULT, DEFAULT_WITH_MEMBERS = "jiang", "direct"  # what a pool runs unless somebody says otherwise
LIVE = {"jiang": {"moves": "silent"}}
"""The options of an algorithm here, unless somebody says otherwise: on real links every message
costs."""

NO_RECOVERY = "none"

DEFAULT_RULES = DEFAULT_MEMBERS, PROMOTE_AFTER, REPLACE_AFTER = 5, 10.0, 30.0
"""How many members choose themselves, after how many seconds, and when one is replaced."""

MOST_REPLACED = 100

MOST_HASHED = 8 * MOST_NODES  # names whose numbers are kept
ERA = 1_735_689_600
"""1 January 2025. Seconds since then number the epochs of a node that has no memory, and begin the
fences of a pool."""


class PoolConfiguration(msgspec.Struct, array_like=True, frozen=True):
    pool: Name
    algorithm: Word
    options: dict[Word, Word]
    permits: Permits
    founder: Word
    identity: Count  # of this pool, whatever else has its name
    members: Annotated[tuple[Name, ...], msgspec.Meta(max_length=MOST_NODES)] = ()
    links: tuple[tuple[Count, Count], ...] = ()
    lease: Count = 0  # in microseconds; 0 in pools without recovery
    most_members: Count = 0  # that choose themselves; 0: members are by name
    promote_after: Count = 0  # microseconds that a node must have been there to become a member
    replace_after: Count = 0  # microseconds after which an unreachable member is replaced
    # pools of this name that were given up for this one
    replaces: Annotated[tuple[Count, ...], msgspec.Meta(max_length=MOST_REPLACED)] = ()
    fences: Count = 0  # is added to each: see first_fence
    names: Annotated[tuple[Name, ...], msgspec.Meta(max_length=MOST_NAMED)] = ()  # of the permits

    @property
    def by_name(self) -> bool:
        """Were the members given, the same everywhere?"""
        return self.lease > 0 and self.most_members == 0

    @property
    def rules(self) -> tuple[int, int, int]:
        """By which members choose themselves."""
        return self.most_members, self.promote_after, self.replace_after

    def number(self, name: str) -> int:
        """The node of this name, as the algorithm knows it."""
        if not self.members or self.lease:
            return hashed(name)
        if name not in self.members:
            raise Refused(
                f"{name} is not a node of the pool {self.pool}: {self.algorithm} is for "
                "fixed networks, so the founder must list all nodes."
            )
        return self.members.index(name)


@lru_cache(MOST_HASHED)
def hashed(name: str) -> int:
    """The number of a node, kept: when the link map changes, that of every node is asked for."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8]) >> 1


def chosen(
    algorithm: str | None, members: bool, options: dict[str, str]
) -> tuple[Algorithm, dict[str, str]]:
    """What a pool is to run, and its options."""
    entry = find(algorithm or (DEFAULT_WITH_MEMBERS if members else DEFAULT))
    settled = with_defaults(entry, {**LIVE.get(entry.name, {}), **options})
    limits.options(settled)
    if members:
        refuse_unrecoverable(entry, in_grants(settled))
    return entry, settled


def first_fence() -> int:
    """Above all fences of a pool of this name that was made before and is gone: nobody grants
    permits as fast as this grows. It counts parts of seconds of the wall clock."""
    return max(0, int((time.time() - ERA) * 2**FENCE_BITS))


def founded(
    pool: str,
    founder: str,
    permits: int | None,
    algorithm: str | None,
    options: dict[str, str],
    nodes: Sequence[str],
    links: Sequence[tuple[str, str]] | None,
) -> PoolConfiguration:
    """Of a new pool without recovery, or a sentence why it cannot be."""
    entry, settled = chosen(algorithm, False, options)
    if permits is None:
        raise Refused(f"The pool {pool} has no number of permits: set permits at its founder.")
    everybody = [founder, *[name for name in nodes if name != founder]]
    if entry.assumes.changing_links:
        complete, pairs = False, []
    else:
        pairs = fixed_links(entry, everybody, links)
        complete = len(pairs) == len(everybody) * (len(everybody) - 1) // 2
        if entry.assumes.complete_graph and not complete:
            raise Refused(
                f"{entry.name} sends to all nodes directly: leave links out, so that every two "
                "nodes of the pool are linked."
            )
    refuse_impossible(
        entry,
        permits=permits,
        want=1,
        complete=complete,
        fifo=True,
        changing=entry.assumes.changing_links,
    )
    return PoolConfiguration(
        pool,
        entry.name,
        settled,
        permits,
        founder,
        new_identity(),
        () if entry.assumes.changing_links else tuple(everybody),
        tuple(pairs),
        fences=first_fence(),
    )


def leased(
    pool: str,
    permits: int | None,
    algorithm: str | None,
    options: dict[str, str],
    lease: float,
    names: tuple[str, ...],
    founder: str = "",
    rules: tuple[int, float, float] = DEFAULT_RULES,
    members: Sequence[str] = (),
) -> PoolConfiguration:
    """Of a pool with recovery, or a sentence why it cannot be: of one that is made now and whose
    members choose themselves by these ``rules``, or as every one of the ``members`` is given it."""
    if permits is None:
        raise Refused(f"The pool {pool} has no number of permits: set permits at its members.")
    entry, settled = chosen(algorithm, True, options)
    refuse_permits(pool, entry, permits)
    everybody = tuple(sorted({limits.name(member, "node") for member in members}))
    if len(everybody) > MOST_MEMBERS:
        raise Refused(
            f"More than {MOST_MEMBERS} members: name fewer. Other nodes can use the "
            "pool all the same."
        )
    made = PoolConfiguration(
        *(pool, entry.name, settled, permits, founder, new_identity(), everybody),
        lease=int(limits.LEASE.real(lease) * 1_000_000),
        names=names,
    )
    if everybody:  # members come and go later, so they are no part of the pool's identity
        text = f"{pool} {permits} {made.lease} {entry.name} {sorted(settled.items())} {names}"
        identity = int.from_bytes(hashlib.sha256(text.encode()).digest()[:6])
        return msgspec.structs.replace(made, identity=identity)
    most, promote_after, replace_after = rules
    return msgspec.structs.replace(
        made,
        most_members=limits.MEMBERS.whole(most, "most_members"),
        promote_after=int(limits.STAY.real(promote_after, "promote_after") * 1_000_000),
        replace_after=int(limits.STAY.real(replace_after, "replace_after") * 1_000_000),
        fences=first_fence() % 2**FENCE_BITS,  # its epochs count the seconds
    )


def new_identity() -> int:
    return secrets.randbits(48)


def under_another_identity(configuration: PoolConfiguration) -> PoolConfiguration:
    """What was not made, and may not be any more, to be made all the same."""
    return msgspec.structs.replace(configuration, identity=new_identity())


def reset(
    before: PoolConfiguration, me: str, permits: int, names: tuple[str, ...]
) -> PoolConfiguration:
    """Of the pool that this node makes anew in place of one that cannot go on."""
    if not before.lease and before.members:
        raise Refused(
            f"{before.algorithm} without recovery cannot survive a restart: close all "
            f"nodes of {before.pool} and make it again."
        )
    rules: dict[str, int] = {}
    if before.by_name:
        rules = {
            "most_members": DEFAULT_MEMBERS,
            "promote_after": int(PROMOTE_AFTER * 1_000_000),
            "replace_after": int(REPLACE_AFTER * 1_000_000),
        }
    replaced = (*before.replaces, before.identity)[-MOST_REPLACED:]
    return msgspec.structs.replace(
        before,
        permits=permits,
        founder=me,
        identity=new_identity(),
        members=(),
        replaces=replaced,
        names=names,
        **rules,
    )


def refuse_permits(pool: str, algorithm: Algorithm, permits: int) -> None:
    """Can a pool with recovery have this number?"""
    refuse_too_many(pool, permits)
    refuse_impossible(algorithm, permits=permits, want=1, complete=True, fifo=True, changing=False)


def refuse_too_many(pool: str, permits: int) -> None:
    """Every grant has its place in the ledger, which goes with the token."""
    most = limits.LEASED_PERMITS.most
    if permits > most:
        raise Refused(
            f"Pool {pool} has {permits:,} permits, and {most:,} is the limit with "
            "members: let one permit stand for several things, or have no members "
            "(recovery 'none')."
        )


def refuse_incredible(configuration: PoolConfiguration, pool: str) -> None:
    """Can this be that pool's? What we would not make ourselves we do not join."""
    members = configuration.members
    if configuration.pool != pool:
        raise Refused(f"it is one of the pool {configuration.pool}, not {pool}")
    if configuration.lease:
        limits.LEASE.real(configuration.lease / 1e6)
        refuse_too_many(pool, configuration.permits)
        if max(len(members), configuration.most_members) > MOST_MEMBERS:
            raise Refused(f"it has {len(members)} members, not {limits.MEMBERS}")
        if bool(members) != configuration.by_name:
            raise Refused("its members are named, and also choose themselves")
    elif members and configuration.founder != members[0]:
        raise Refused("its founder is not the first of its nodes")
    else:
        limits.name(configuration.founder, "node")
    entry, settled = chosen(configuration.algorithm, configuration.lease > 0, configuration.options)
    if settled != configuration.options:
        raise Refused(f"it lacks options of {entry.name}")
    if configuration.names and len(set(configuration.names)) != configuration.permits:
        raise Refused("it does not name every permit once")
    if any(max(link) >= len(members) for link in configuration.links):
        raise Refused("its links name unknown nodes")


def fixed_links(
    algorithm: Algorithm, everybody: list[str], links: Sequence[tuple[str, str]] | None
) -> list[tuple[int, int]]:
    """The links by number; every two members are linked unless it is said who is."""
    if len(everybody) < 2:
        raise Refused(
            f"{algorithm.name} is for fixed networks: name all nodes of the pool, or "
            "choose an algorithm for changing links such as jiang."
        )
    size = len(everybody)
    if links is None:
        return [(one, other) for other in range(size) for one in range(other)]
    place = {name: number for number, name in enumerate(everybody)}
    for name in (name for link in links for name in link):
        if name not in place:
            raise Refused(f"A link names {name}, which is not a member: add {name} to the members.")
    pairs = sorted({(min(a, b), max(a, b)) for a, b in ((place[x], place[y]) for x, y in links)})
    if len(Graph(size, pairs).roots) > 1:
        raise Refused("The links do not connect all members: add links.")
    return pairs


def made(configuration: PoolConfiguration, me: str, founding: bool, out: list[Effect]) -> Actor:
    """This node's part in a pool without recovery. The token is made at the founding and never
    again: a founder that restarts comes back as anybody else."""
    entry = find(configuration.algorithm)
    number = configuration.number(me)
    permits, options = configuration.permits, in_grants(configuration.options)
    if configuration.members:
        if me == configuration.founder and not founding:
            raise Refused(
                f"{me} made the pool {configuration.pool} and lost it by a restart: "
                f"{entry.name} without recovery cannot survive one. Close all nodes of "
                "the pool and make it again."
            )
        network = Graph(len(configuration.members), configuration.links)
        return entry.make(network, permits, options, out)[number]
    if entry.newcomers.join is None:
        raise Refused(f"{entry.name} cannot be joined by live nodes: use jiang.")
    return entry.newcomers.join(number, founding, permits, options, out)
