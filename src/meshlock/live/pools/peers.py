"""How neighbours of a node come to share a pool: they send each other its configuration.

Two separate pools of one name must never mix. Of two that meet one gives way, if nobody has been
granted anything of it and its founder is its only member: the one that is used stays, or of two
that nobody has used the one with the lower identity. Only its founder can withdraw a pool; another
node that receives the rival's configuration passes it on, and follows when the founder has
withdrawn. Of two that have both been used, the one with a quorum of more members goes on; the other
renews nothing, tells its holders, and says how its nodes can join the first. Each is sent once per
link and change, so that no disagreement becomes a storm.

That a pool is over, withdrawn or reset, is not believed of one that was used while we reach a
quorum of its members, who do not say so themselves, or did a lease ago: nobody else ends a pool.
But a member that was down then, and has granted nothing since it is back, is no such quorum alone.
"""

from __future__ import annotations

from logging import ERROR, INFO, WARNING
from typing import TYPE_CHECKING, Annotated

import msgspec

from meshlock.errors import Refused
from meshlock.live.links.frames import BadFrame, Carry, Content, RoutedFrame, encode, reader
from meshlock.live.links.session import OVERHEAD
from meshlock.live.machine.limits import Count, EpochCount
from meshlock.live.machine.logs import log_event
from meshlock.live.pools.pool_configuration import PoolConfiguration, refuse_incredible

if TYPE_CHECKING:
    from meshlock.live.pools.pool import LocalPool

CONFIGURATION = "configuration"
"""A word between adapters; the kinds of the algorithms' messages are in capitals."""

MOST_WITHDRAWN = 100
MOST_NEWS = 200  # over one link, about one pool
RECONSIDERS = 2
"""Leases after which a pool that is said to be over looks again whether its quorum lives."""

FOLLOWS = 3  # leases after which a peer that was told so is in our pool, or will not be
A_SECOND = 1_000_000  # in units of leases; pools without any follow as well
BETWEEN_LINES = 60.0  # seconds between two lines of the log about the same conflict


class News(msgspec.Struct, array_like=True, frozen=True):
    """A pool, whether anything of it was granted as far as is known, and which pools of its name
    their founders have withdrawn."""

    configuration: PoolConfiguration
    used: bool
    withdrawn: Annotated[tuple[Count, ...], msgspec.Meta(max_length=2 * MOST_WITHDRAWN)] = ()
    members: Count = 0  # if a quorum of them is reachable, else 0
    epoch: EpochCount = 0


Told = tuple[int, bool, tuple[int, ...], int]  # the same in short
read_news = reader(News, "an invalid configuration")


class Peers:
    def __init__(self, pool: LocalPool) -> None:
        self.pool = pool
        self.adapter = pool.adapter
        self.mesh = pool.mesh
        self.near, self.leaving = self.adapter.near, self.adapter.leaving
        self.informed: dict[str, set[Told]] = {}  # peer: what it was told over this link
        self.conflicts: dict[str, str] = {}  # peer in another pool: what to say of it
        self.rivals: dict[str, News] = {}  # of the same: its pool, if it could be ours
        self.heard: dict[str, int] = {}  # peer: how often it spoke of its pool over this link
        self.doubted: set[str] = set()  # peers that said our pool was over
        self.replaced: dict[str, PoolConfiguration] = {}  # peer in a pool that ours replaces: which
        self.shared = False  # has anybody else ever been in our pool?
        self.told_used = False  # somebody who knew has said that our pool is used
        self.withdrawn: list[int] = []
        self.logged: dict[str, float] = {}  # peer: when we logged last that it conflicts
        self.early: list[tuple[str, Carry | RoutedFrame]] = []  # came before the configuration
        self.adapter.conflicts = self.conflicts.__setitem__
        self.adapter.is_used = self.inform_all
        pool.participation.between_neighbours[CONFIGURATION] = self.receive

    # -- links -------------------------------------------------------------------------

    def up(self, peer: str) -> None:
        if self.adapter.configuration is not None:
            self.inform(peer)

    def down(self, peer: str) -> None:
        self.informed.pop(peer, None)
        self.heard.pop(peer, None)
        self.doubted.discard(peer)
        self.replaced.pop(peer, None)
        self.at_peace(peer)
        self.leaving.discard(peer)
        if peer in self.near:
            self.near.discard(peer)
            self.pool.participation.link_down(peer)

    def inform(self, peer: str) -> None:
        """Our configuration, and whether permits were ever granted under it as far as we know."""
        members, ours = self.adapter.members, self.ours()
        epoch = members.member.promised.counter if members is not None else 0
        self.say(peer, News(ours, self.used(), tuple(self.withdrawn), self.strength(), epoch))

    def ours(self) -> PoolConfiguration:
        assert self.adapter.configuration is not None
        return self.adapter.configuration

    def say(self, peer: str, news: News) -> None:
        told = self.informed.setdefault(peer, set())
        short = (news.configuration.identity, news.used, news.withdrawn, news.members)
        if short not in told:
            told.add(short)
            self.mesh.send(peer, Content(self.pool.name, 0, CONFIGURATION, encode(news)))

    def inform_all(self) -> None:
        for peer in self.mesh.linked:
            self.inform(peer)

    def begin(self) -> None:
        """We have just learned it ourselves; what came before it can be read now."""
        self.withdraw(self.ours().replaces)
        self.inform_all()
        for sender, frame in self.taken():
            try:
                self.adapter.receive(sender, frame)
            except BadFrame as error:  # of its sender, not of the node that told us
                self.mesh.accuse(sender, error)

    def answered(self) -> bool:
        """Do all neighbours know of our pool, and we of theirs?"""
        return all(peer in self.near or peer in self.conflicts for peer in self.mesh.linked)

    def used(self) -> bool:
        """Has anybody had anything of our pool, as far as we know?"""
        pool = self.pool
        if self.told_used or self.adapter.measures.entries > 0:
            return True
        if self.adapter.members is not None:
            return self.adapter.members.used()
        return not pool.founding or bool(self.near or self.adapter.clients)

    # -- messages ----------------------------------------------------------------------

    def wait(self, sender: str, frame: Carry | RoutedFrame) -> None:
        """It cannot be read before the configuration is known."""
        if not self.mesh.stored.add(sender, OVERHEAD + len(frame.payload)):
            raise BadFrame(f"too many messages of {frame.pool[:64]!r} before its configuration")
        self.early.append((sender, frame))

    def taken(self) -> list[tuple[str, Carry | RoutedFrame]]:
        """What waited, which now waits no more."""
        early, self.early = self.early, []
        for sender, frame in early:
            self.mesh.stored.remove(sender, OVERHEAD + len(frame.payload))
        return early

    def custody(self) -> bool:
        """Waits anything whose sender has been told that it arrived?"""
        frames = [frame for _, frame in self.early]
        return any(f.custody if isinstance(f, Carry) else f.number for f in frames)

    def receive(self, peer: str, payload: bytes) -> None:
        pool = self.pool
        self.heard[peer] = self.heard.get(peer, 0) + 1
        if self.heard[peer] > MOST_NEWS:
            raise BadFrame(f"more notices about {pool.name!r} than allowed")
        news = read_news(payload)
        try:
            refuse_incredible(news.configuration, pool.name)
            news.configuration.number(peer)
            over = (*news.withdrawn, *news.configuration.replaces)
            if self.adapter.identity in over and not self.gives_way(peer):
                self.doubt(peer, payload)
                over = tuple([one for one in over if one != self.adapter.identity])
            self.withdraw(over)
            ours = self.adapter.configuration
            if ours is None or ours.identity in self.withdrawn:
                self.follow(news)
        except Refused as error:
            raise BadFrame(f"an invalid configuration: {error}") from None
        if news.configuration.identity == self.adapter.identity:
            self.shares(peer, news)
        elif news.configuration.identity not in self.withdrawn:
            self.meets(peer, news)
        else:
            self.inform(peer)
            self.expect(peer, news.configuration)

    def expect(self, peer: str, theirs: PoolConfiguration) -> None:
        """It is told that its pool is over. If that goes on, so does ours beside it."""
        if peer not in self.replaced:
            self.replaced[peer] = theirs
            seconds = FOLLOWS * max(theirs.lease, self.ours().lease, A_SECOND) / 1e6
            self.mesh.failures.later(seconds, "pool", self.has_followed, peer, theirs)

    def has_followed(self, peer: str, theirs: PoolConfiguration) -> None:
        ours = self.adapter.configuration
        if ours is not None and self.replaced.get(peer) is theirs:  # over the same link
            del self.replaced[peer]
            self.conflict(peer, ours, theirs)

    def gives_way(self, peer: str) -> bool:
        """May our pool be over because that peer says so?"""
        members, core = self.adapter.members, self.adapter.core
        if not self.used():
            return True
        if members is not None:
            others = {peer, *self.conflicts}
            return members.has_no_quorum(others) or members.is_back(others)
        return core is not None and core.tokens() == 0

    def doubt(self, peer: str, payload: bytes) -> None:
        """Our pool is not over, but every two leases from now on it may have to be."""
        name, members = self.pool.name, self.adapter.members
        if peer not in self.doubted:
            reason = f"it claims that the pool {name} has ended, but it has not"
            self.mesh.refusals.note(peer, reason)
            if members is not None:
                self.doubted.add(peer)
                lease = members.configuration.lease / 1e6
                later = self.mesh.failures.later
                later(RECONSIDERS * lease, "pool", self.reconsider, peer, payload)

    def reconsider(self, peer: str, payload: bytes) -> None:
        """What that peer said once counts as said once."""
        if peer in self.doubted and not self.pool.closed:
            self.doubted.discard(peer)
            self.heard[peer] -= 1
            self.receive(peer, payload)

    def shares(self, peer: str, news: News) -> None:
        """That peer is in our pool."""
        if news.used and not self.told_used:
            self.told_used = True
            self.inform_all()
        self.inform(peer)
        self.replaced.pop(peer, None)
        self.at_peace(peer)
        if peer not in self.near:
            self.near.add(peer)
            self.shared = True
            self.pool.participation.link_up(peer)

    def withdraw(self, identities: tuple[int, ...]) -> None:
        new = [identity for identity in identities if identity not in self.withdrawn]
        self.withdrawn = (self.withdrawn + new)[-MOST_WITHDRAWN:]

    def reset(self) -> None:
        """What neighbours said of our pool was of one that is no more."""
        self.near.clear()
        self.replaced.clear()
        for peer in list(self.conflicts):
            self.at_peace(peer)
        self.told_used = False

    def follow(self, news: News) -> None:
        """Take part in that pool."""
        self.reset()
        self.told_used = news.used
        self.pool.participation.adopt(news.configuration)

    def meets(self, peer: str, rival: News) -> None:
        """That peer speaks of another pool of this name."""
        pool, ours, theirs = self.pool, self.ours(), rival.configuration
        used = self.used()
        if used and rival.used:
            by_leases = ours.lease and theirs.lease and not (ours.by_name or theirs.by_name)
            if by_leases:
                self.rivals[peer] = rival
            self.conflict(peer, ours, theirs)
            if by_leases:
                self.oppose(peer, rival)
        elif rival.used or (not used and theirs.identity < ours.identity):
            if pool.founding:
                log_event(INFO, "new pool withdrawn", pool=pool.name, founder=theirs.founder)
                self.withdraw((ours.identity,))
                self.follow(rival)
                self.shares(peer, rival)
                return
            for other in self.near:
                self.say(other, rival)
        self.inform(peer)

    def strength(self) -> int:
        """Of how many members our pool is, if it can go on."""
        members = self.adapter.members
        reached = members is not None and members.has_quorum(self.conflicts)
        return len(members.member.members) if members is not None and reached else 0

    def oppose(self, peer: str, rival: News) -> None:
        """Two pools were both used. The one of more members that have a quorum goes on, at equal
        numbers the one with the lower identity; the other renews nothing, and its holders are told.
        But a quorum of several does not stop because a node says that it should."""
        if not self.goes_on():
            what = f"the pool that {rival.configuration.founder} made goes on, this one stops"
            log_event(ERROR, "pool stopped", pool=self.pool.name, peer=peer, what=what)
            self.pool.participation.give_up()
        elif self.adapter.members is not None:
            self.adapter.members.rise_above(rival.epoch)

    def goes_on(self) -> bool:
        """Does our pool, beside all that conflict with it?"""
        members, ours = self.adapter.members, self.adapter.configuration
        if members is None or ours is None:
            return False
        several = len(members.member.members) > 1
        if ours.by_name or (several and members.has_quorum(self.conflicts)):
            return True
        weaker = all(self.is_weaker(rival) for rival in self.rivals.values())
        return weaker and self.rivals.keys() == self.conflicts.keys()

    def is_weaker(self, rival: News) -> bool:
        """Than our pool."""
        strength, identity = self.strength(), self.adapter.identity
        theirs = rival.members, -rival.configuration.identity
        return strength > 0 and theirs < (strength, -identity)

    def at_peace(self, peer: str) -> None:
        self.conflicts.pop(peer, None)
        self.rivals.pop(peer, None)
        if not self.rivals:
            self.adapter.stopped = False

    def join(self, peer: str) -> None:
        """Give our pool up for the one of that peer."""
        pool, rival = self.pool, self.rivals.get(peer)
        if rival is None:
            known = ", ".join(sorted(self.rivals)) or "none"
            raise Refused(
                f"{peer} is no neighbour in another pool {pool.name}: nothing was changed. "
                f"Neighbours in another one: {known}."
            )
        log_event(WARNING, "pool given up", pool=pool.name, founder=rival.configuration.founder)
        self.withdraw((self.adapter.identity,))
        self.follow(rival)
        self.shares(peer, rival)

    def in_words(self) -> str:
        """What a neighbour has that conflicts with this pool, which of the two goes on, and what to
        do; the empty text if none has."""
        for peer, text in self.conflicts.items():
            join = f"run 'meshlock pool join {self.pool.name} --from"
            if peer not in self.rivals:
                return text
            if self.goes_on():
                return f"{text} This one goes on: {join} {self.pool.me}' at {peer}."
            return f"{text} This one has stopped: {join} {peer}' here."
        return ""

    def conflict(self, peer: str, ours: PoolConfiguration, theirs: PoolConfiguration) -> None:
        name = self.pool.name
        if ours.by_name or theirs.by_name or bool(ours.lease) != bool(theirs.lease):
            text = (
                f"{peer} has a conflicting configuration of the pool {name} "
                f"({terms(theirs)}; here: {terms(ours)}): use the same at all nodes."
            )
        else:
            text = (
                f"Two separate pools have the same name, {name}: {peer} is in the one "
                f"that {theirs.founder} made, this node is in the one that {ours.founder} made."
            )
        self.conflicts[peer] = text
        now = self.mesh.loop.time()
        if now - self.logged.get(peer, -BETWEEN_LINES) >= BETWEEN_LINES:
            self.logged[peer] = now
            log_event(ERROR, "conflict", pool=name, peer=peer, what=self.in_words())


def terms(configuration: PoolConfiguration) -> str:
    permits, algorithm = configuration.permits, configuration.algorithm
    if configuration.lease:
        return f"{permits} permits under leases of {configuration.lease / 1e6:g} s, {algorithm}"
    return f"{permits} permits without leases, {algorithm}, founded by {configuration.founder}"
