"""What the nodes of a pool write down and tell each other in order to recover."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from meshlock.algorithms.amounts import is_among

NOBODY = -1

new: Final[Callable[..., Any]] = tuple.__new__
"""What is made with every grant is made like this: the constructor of a NamedTuple is interpreted,
even where all else is compiled."""


class Epoch(NamedTuple):
    """Compared in this order. ``boot`` is that of the proposer."""

    counter: int
    proposer: int
    boot: int


def same(one: Epoch, other: Epoch) -> bool:
    """Mostly it is the very same object."""
    return one is other or one == other


class Fence(NamedTuple):
    """Of a grant: the ``number``-th of its epoch."""

    epoch: Epoch
    number: int


class Config(NamedTuple):
    """What an epoch goes by. ``slots``: which permits there are, if not the first ones.
    ``names``: what they are called, by slot, also those that there were before: a name keeps its
    slot for ever, so that grants which share no slot share no name. Empty: as the pool was made."""

    epoch: Epoch
    members: tuple[int, ...]
    permits: int
    lease: int
    slots: tuple[int, ...] = ()
    names: tuple[str, ...] = ()


class Durable(NamedTuple):
    """What a node must not forget: the highest epoch that it promised or answered, and what the
    latest that it adopted goes by."""

    promised: Epoch
    config: Config


class Life(NamedTuple):
    """How a life of a node begins. ``boot``: a number that it never had before; ``kept``: what its
    disk remembers; ``floor``: below it no epoch's number may be, the wall clock for a node without
    a disk. ``alone``: it is the only member of its pool. It ``founds`` that pool now: there was
    none before, so it need not wait (rule 16)."""

    boot: int
    kept: Durable | None = None
    floor: int = 0
    alone: bool = False
    founds: bool = False


class Change(NamedTuple):
    """What an epoch does differently from the one before, one thing at a time: a node becomes a
    member, or a member none, or there is another number of permits, or permits of these names."""

    add: int = NOBODY
    remove: int = NOBODY
    permits: int = 0
    names: tuple[str, ...] = ()

    def is_made(self, config: Config) -> bool:
        if len(self.names) > 0:
            names = config.names
            return tuple([names[slot] for slot in config.slots if slot < len(names)]) == self.names
        if self.permits > 0:
            return config.permits == self.permits
        if self.add != NOBODY:
            return self.add in config.members
        return self.remove not in config.members


def resized(config: Config, permits: int) -> Config:
    """Names that there are stay first; then those come back that there were before."""
    former = [slot for slot in range(len(config.names)) if slot not in config.slots]
    slots = (*config.slots, *former)[:permits] if len(config.slots) > 0 else ()
    return config._replace(permits=permits, slots=slots)


def renamed(config: Config, names: tuple[str, ...], first: tuple[str, ...]) -> Config:
    """``first``: as the pool was made."""
    known = list(config.names if len(config.names) > 0 else first)
    known += [name for name in names if name not in known]
    slots = tuple([known.index(name) for name in names])
    return config._replace(permits=len(names), slots=slots, names=tuple(known))


class Entry(NamedTuple):
    """Of a ledger: permits that are out. ``lapsing``: nobody renews them any more. ``slots``:
    which ones, where that matters; as many as permits, or none. ``label``: the client's own.
    ``numbers``: which of the permits that were granted are out, if not the first ones."""

    node: int
    fence: Fence
    permits: int
    lapsing: bool
    slots: tuple[int, ...]
    label: str
    numbers: tuple[int, ...] = ()


def new_entry(node: int, fence: Fence, permits: int, slots: tuple[int, ...], label: str) -> Entry:
    """Of a grant that is made now."""
    entry: Entry = new(Entry, (node, fence, permits, False, slots, label, ()))
    return entry


class ReleasedPart(NamedTuple):
    """Permits of a grant that were released together. The permits of a grant are numbered from 0,
    and the last ones are released first: these are the ``permits`` that follow the first ``left``,
    of each kind.
    So a part that comes twice, or before an earlier one, names what it returns."""

    fence: Fence
    left: int
    permits: int

    def has(self, number: int) -> bool:
        return is_among(number, self.left + self.permits) and not is_among(number, self.left)


def new_part(fence: Fence, left: int, permits: int) -> ReleasedPart:
    part: ReleasedPart = new(ReleasedPart, (fence, left, permits))
    return part


Parts = tuple[ReleasedPart, ...]

Returns = tuple[tuple[Fence, int], ...]
"""Grants, and how many permits of each are left."""


class Participant(NamedTuple):
    """Who reported for an epoch, in which life, and its father in the tree of a fixed network."""

    node: int
    boot: int
    father: int


class FirstLedger(NamedTuple):
    """With what an epoch begins; it never changes, so anybody may hand it on."""

    epoch: Epoch
    config: Config
    participants: tuple[Participant, ...]
    kept: tuple[Entry, ...]
    stand_ins: int  # how many clients of the founder stand for entries, kept or lapsing
    before: Epoch  # whose token was surrendered ...
    grants: int  # ... after this number of grants, for the age of those who wait
    paused: bool  # more is out than there are permits: nobody is let in before the next epoch


class TokenState(NamedTuple):
    """The token as recovery sees it: how often it moved, what is free (below 0: how much more is
    out than there are permits), what is out, how many grants this epoch has made."""

    epoch: Epoch
    hop: int
    free: int
    ledger: tuple[Entry, ...]
    grants: int


class Unaccepted(NamedTuple):
    """A token that was sent, to whom, and to which life of it; nobody has acknowledged it yet."""

    state: TokenState
    receiver: int
    boot: int


class Report(NamedTuple):
    """What a node has when it promises an epoch."""

    boot: int
    top: Epoch  # the highest answered or adopted
    adopted: Epoch
    grants: tuple[Entry, ...]  # under valid leases
    hop_seen: tuple[Epoch, int]
    token: TokenState | None  # surrendered
    unaccepted: Unaccepted | None
    config: Config  # of the latest epoch adopted, in this life or an earlier one
    forgot: bool  # who the members are; then it does not count for a quorum
    votes: bool = True  # else it does not either, and a former life may hold what it does not name


FENCE_BITS = 23
"""Of the number of a fence, for the count of grants in an epoch. With 30 more for the epoch it
fits into 53, which is what JSON carries everywhere."""
MOST_GRANTS = 2**FENCE_BITS - 1
"""In one epoch; :mod:`.timers` begins another long before."""

ANY_BOOT = 0
"""In the place of a boot: whichever life of the receiver has the message."""
NO_EPOCH = Epoch(0, -1, 0)
NEVER = 0
MINTING = -1
"""In the place of a hop: the sender will have the token soon."""
GRANTS = -2
"""In the place of a hop: the sender has grants only."""


def fence_number(fence: Fence) -> int:
    """The fence as one integer that grows as it does, for resources that compare numbers.

    A member promises each counter once, so that of two epochs with the same counter only one
    can have a quorum, and grants: the counter alone tells epochs apart."""
    return fence.epoch.counter << FENCE_BITS | fence.number


def majority(members: tuple[int, ...]) -> int:
    return len(members) // 2 + 1
