"""How a pool is made once: by one maker, for whom enough nodes have voted.

A node *expects* itself and the nodes that it names. It votes, for itself or for another, when it is
linked to a majority of these and none of them knows the pool. A vote is on disk before anybody is
told of it, and is for one maker only. A candidate makes the pool when the nodes that voted for it
are enough for each of them: for every voter, a majority of those whom that voter expects. Where all
nodes name the same ones, or all name the first, two such sets share a node, which has voted once.

Only the candidate itself can take votes back: it withdraws, for one with a lower identity that can
be reached, and says so before it votes for that one. A candidate that restarts has made nothing,
else its disk would know the pool; so it withdraws what it asked for. While a candidate is gone, its
votes stay: it may have made the pool. Then somebody must decide, by ``--create``.

Nodes tell each other all that they know of candidates, votes and withdrawals, whenever that grows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from logging import INFO, WARNING
from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec

from meshlock.errors import setting
from meshlock.live.links.frames import Content, encode, reader
from meshlock.live.machine.limits import MOST_NODES, Count, Name
from meshlock.live.machine.logs import log_event
from meshlock.live.pools.members import WRITERS
from meshlock.live.pools.pool_configuration import PoolConfiguration, under_another_identity
from meshlock.live.pools.promises import Voted

if TYPE_CHECKING:
    from meshlock.live.pools.pool import LocalPool

BIRTH = "birth"  # a word between adapters
MOST_CANDIDATES, MOST_VOTES, MOST_WITHDRAWN = 64, 256, 256
"""What is kept, and passed on, of one pool."""

MAKE = -1

FIRST_CONTACT = 1.0  # seconds until it is worth a line in the log that a pool is waited for
LOG_EVERY = 10.0  # seconds between two such lines


class Vote(msgspec.Struct, array_like=True, frozen=True):
    """``needs``: how many of ``names`` and itself must vote alike for this vote to count."""

    node: Name
    needs: Count
    names: Annotated[tuple[Name, ...], msgspec.Meta(max_length=MOST_NODES)]


class Candidate(msgspec.Struct, array_like=True, frozen=True):
    identity: Count
    founder: Name
    votes: Annotated[tuple[Vote, ...], msgspec.Meta(max_length=MOST_VOTES)] = ()


class Ballot(msgspec.Struct, array_like=True, frozen=True):
    """All that a node knows of the birth of a pool."""

    candidates: Annotated[tuple[Candidate, ...], msgspec.Meta(max_length=MOST_CANDIDATES)]
    withdrawn: Annotated[tuple[Count, ...], msgspec.Meta(max_length=MOST_WITHDRAWN)]


class Expected(NamedTuple):
    """Whom a node expects: how many of these and itself are a majority, by name as far as that is
    known, who of them is linked, and where the others should be. A node that names none expects
    each that ``calls_at`` its address."""

    needs: int
    names: frozenset[str] = frozenset()
    linked: frozenset[str] = frozenset()
    missing: tuple[str, ...] = ()
    calls_at: str = ""

    def are_reached(self) -> bool:
        return len(self.linked) + 1 >= self.needs


read_ballot = reader(Ballot, f"a {BIRTH}")


class Election:
    """Who shall make a pool, as one node knows it. No clock, no disk, no link."""

    def __init__(self, me: str) -> None:
        self.me = me
        self.founders: dict[int, str] = {}  # of candidates, by their identities
        self.votes: dict[int, dict[str, Vote]] = {}
        self.withdrawn: dict[int, None] = {}
        self.choice = 0  # for whom this node has voted

    def remember(self, voted: Voted) -> None:
        """What we asked for ourselves we have not made, else the disk would know the pool."""
        for identity in voted.withdrawn:
            self.withdraw(identity)
        if voted.founder == self.me:
            self.withdraw(voted.identity)
        elif voted.identity:
            self.add(voted.identity, voted.founder)
            self.choice = voted.identity

    def add(self, identity: int, founder: str) -> None:
        if identity not in self.withdrawn and len(self.founders) < MOST_CANDIDATES:
            self.founders.setdefault(identity, founder)

    def withdraw(self, identity: int) -> None:
        self.withdrawn[identity] = None
        self.founders.pop(identity, None)
        self.votes.pop(identity, None)
        if self.choice == identity:
            self.choice = 0
        while len(self.withdrawn) > MOST_WITHDRAWN:
            del self.withdrawn[next(iter(self.withdrawn))]

    def learn(self, ballot: Ballot) -> None:
        for identity in ballot.withdrawn:
            self.withdraw(identity)
        for candidate in ballot.candidates:
            self.add(candidate.identity, candidate.founder)
            if candidate.identity in self.founders:
                for vote in candidate.votes:
                    self.count(candidate.identity, vote)

    def count(self, identity: int, vote: Vote) -> None:
        """A voter gets to know more of those whom it expects, and that some are the same."""
        votes = self.votes.setdefault(identity, {})
        before = votes.get(vote.node, vote)
        names = tuple(sorted({*before.names, *vote.names}))
        if vote.node in votes or len(votes) < MOST_VOTES:
            votes[vote.node] = Vote(vote.node, min(before.needs, vote.needs), names)

    def ballot(self) -> Ballot:
        candidates = []
        for identity, founder in sorted(self.founders.items()):
            votes = sorted(self.votes.get(identity, {}).values(), key=lambda vote: vote.node)
            candidates.append(Candidate(identity, founder, tuple(votes)))
        return Ballot(tuple(candidates), tuple(self.withdrawn))

    def decide(self, expected: Expected, own: int, reaches: Callable[[str], bool]) -> int:
        """What this node does now: it makes the pool (:data:`MAKE`), votes for that candidate, or
        does nothing (0). ``own`` is the candidate that it would be itself, 0 if none."""
        if not expected.are_reached():
            return 0
        if self.choice:
            names = tuple(sorted(expected.names))
            self.count(self.choice, Vote(self.me, expected.needs, names))
            if self.is_elected():
                return MAKE
        choice = self.to_choose(own, reaches)
        return choice if choice != self.choice else 0

    def to_choose(self, own: int, reaches: Callable[[str], bool]) -> int:
        """For whom this node should vote, or has voted."""
        choice = self.choice
        if choice and self.founders[choice] != self.me:
            return choice  # it may have made the pool
        others = [one for one, founder in self.founders.items() if founder != self.me]
        found = [one for one in others if reaches(self.founders[one])]
        found += [one for one in (choice, own) if one]
        return min(found, default=0)

    def vote(self, identity: int, founder: str) -> None:
        """A node that was a candidate itself has withdrawn by now."""
        if self.choice and self.choice != identity:
            self.withdraw(self.choice)
        self.add(identity, founder)
        self.choice = identity

    def is_elected(self) -> bool:
        """May this node make the pool, as the candidate for whom it voted?"""
        ours = self.founders.get(self.choice) == self.me
        return ours and self.me in enough(self.votes.get(self.choice, {}))

    def lacking(self) -> list[str]:
        """Whose votes for our choice do not count yet: who they expect has not voted alike."""
        votes = self.votes.get(self.choice, {})
        return sorted(votes.keys() - enough(votes))


def enough(votes: dict[str, Vote]) -> set[str]:
    """The most voters that are enough for each of them."""
    found = set(votes)
    while True:
        short = {
            name
            for name in found
            if len(found.intersection((name, *votes[name].names))) < votes[name].needs
        }
        if not short:
            return found
        found -= short


class Birth:
    """Of one pool at one node: its election, on a disk and over links."""

    def __init__(self, pool: LocalPool) -> None:
        self.pool = pool
        self.mesh = pool.mesh
        self.election = Election(pool.me)
        self.expected: Callable[[], Expected] = lambda: Expected(1)
        self.wanted: PoolConfiguration | None = None  # what this node makes if it may
        self.wanted_at = 0.0
        self.told: dict[str, bytes] = {}  # peer: what it was sent last over this link
        self.writing = False
        self.ticking = False
        self.logged = ""
        self.logged_at = float("-inf")
        pool.participation.between_neighbours[BIRTH] = self.receive
        found = pool.promises.read(pool.name, Voted) if pool.promises is not None else None
        if found is not None:
            self.election.remember(found)
            pool.peers.withdraw(found.withdrawn)

    def is_over(self) -> bool:
        return self.pool.adapter.configuration is not None or self.pool.closed

    def matters(self) -> bool:
        """Is there anything that this node must not forget?"""
        return not self.is_over() and (self.election.choice > 0 or self.writing)

    def want(self, configuration: PoolConfiguration) -> None:
        """This node is to make the pool, if it may. Alone it makes it at once."""
        self.wanted = configuration
        self.wanted_at = self.mesh.time()
        if self.expected().needs == 1 and self.election.choice == 0:
            self.make()
        else:
            self.consider()

    def make(self) -> None:
        """Alone, or elected."""
        configuration = self.wanted
        assert configuration is not None
        voters = ",".join(sorted(self.election.votes.get(configuration.identity, {})))
        if voters:
            log_event(INFO, "pool made", pool=self.pool.name, node=self.pool.me, votes=voters)
        self.pool.participation.adopt(configuration, founding=True)

    # -- links -----------------------------------------------------------------------------

    def up(self, peer: str) -> None:
        self.told.pop(peer, None)
        if not self.is_over():
            self.consider()

    def receive(self, peer: str, payload: bytes) -> None:
        ballot = read_ballot(payload)
        if self.pool.adapter.configuration is not None:
            self.pool.peers.inform(peer)
        else:
            self.election.learn(ballot)
            self.consider()

    def send_ballot(self) -> None:
        ballot = self.election.ballot()
        payload = encode(ballot)
        if ballot.candidates or ballot.withdrawn:
            for peer in self.mesh.linked:
                if self.told.get(peer) != payload:
                    self.told[peer] = payload
                    self.mesh.send(peer, Content(self.pool.name, 0, BIRTH, payload))
            self.mesh.flush()

    def reaches(self, name: str) -> bool:
        return name in self.mesh.linked or self.mesh.link_map.reaches(name)

    # -- what to do now --------------------------------------------------------------------

    def consider(self) -> None:
        """Whatever is new: vote, make the pool, or go on waiting."""
        if self.is_over():
            return
        self.look_again_later()
        own = self.wanted.identity if self.wanted is not None else 0
        what = 0 if self.writing else self.election.decide(self.expected(), own, self.reaches)
        if what == MAKE:
            self.make()
            return
        if what:
            if self.pool.promises is not None:
                self.pool.promises.open()
            self.writing = True
            founder = self.election.founders.get(what, self.pool.me)
            self.mesh.start(self.vote(what, founder), "disk")
        self.send_ballot()

    async def vote(self, identity: int, founder: str) -> None:
        """It is on disk before anybody is told of it."""
        election, promises = self.election, self.pool.promises
        before = election.choice
        if before and self.wanted is not None:  # it was ours
            self.wanted = under_another_identity(self.wanted)
        try:
            if promises is not None:
                withdrawn = (*election.withdrawn, before) if before else tuple(election.withdrawn)
                voted = Voted(identity, founder, withdrawn[-MOST_WITHDRAWN:])
                write = partial(promises.store, self.pool.name, voted)
                if not await self.mesh.loop.run_in_executor(WRITERS, write):
                    return
        finally:
            self.writing = False
        if identity not in election.withdrawn:
            election.vote(identity, founder)
            self.consider()

    def look_again_later(self) -> None:
        """Links come up before it is known whose address they lead to."""
        if not self.ticking and (self.wanted is not None or self.election.founders):
            self.ticking = True
            self.mesh.failures.later(self.mesh.heartbeat, "pool", self.tick)

    def tick(self) -> None:
        self.ticking = False
        self.consider()
        why = self.why()
        now = self.mesh.time()
        due = now - self.wanted_at >= FIRST_CONTACT and now - self.logged_at >= LOG_EVERY
        if self.wanted is not None and not self.is_over() and due and why != self.logged:
            self.logged, self.logged_at = why, now
            log_event(WARNING, "pool not made yet", pool=self.pool.name, why=why)

    # -- what people ask -------------------------------------------------------------------

    def why(self) -> str:
        """For whom this pool waits, and what to do."""
        expected, election = self.expected(), self.election
        first = f"start with {setting('create')} if this node is the first of the pool"
        missing = self.mesh.dialler.in_vain(expected.missing)
        if self.wanted is None:
            cut_off = f": no link to {missing}" if missing and not self.mesh.linked else ""
            return f"no neighbour has announced it yet{cut_off}"
        if not expected.are_reached():
            caller = f"another node to link to {expected.calls_at}{self.mesh.refusals.last}"
            return f"waiting for {missing or caller}; {first}"
        founder = election.founders.get(election.choice, "")
        if founder not in ("", self.pool.me):
            why = f"waiting for {founder}, for which this node has voted, to make the pool"
            return why if self.reaches(founder) else f"{why}; {first}"
        others = [name for name in election.lacking() if name != self.pool.me]
        if others:
            return f"waiting for the nodes that {', '.join(others)} must reach; {first}"
        return f"waiting for the votes of {', '.join(sorted(expected.names))}; {first}"
