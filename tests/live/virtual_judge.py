"""The judge of chaos in virtual time: it sees what clients see, and nothing else.

A grant is valid until its client releases it, is told that it is lost, or reaches the last deadline
that it was told of; a client whose node was killed, or has left, goes on until then.

========  ======================================================================================
permits   valid grants never add up to more than there are: each new grant fits, with all that
          were let in before and are still valid, into the permits of its epoch
resized   who asks after the permits were changed is let in by the new number
slots     where permits have names, no two valid grants have one in common
fences    none comes twice; and a grant asked for while another was held has a higher one
order     where nothing was done for two leases (and four writes, where disks are slow), nobody who
          waits there is passed more than three times by who asked later and is less urgent; where
          the holder of the token knows everybody, not once, nor by an equal, nor by a more urgent
          one if it has waited for enough grants that its age counts for more
told      a client whose deadline passes has been told that its grant is lost, and not before,
          unless its pool is reset; a program is told by its agent within another lease
ready     as in :mod:`meshlock.live.chaos.readiness`
served    soon after the last fault everybody is given all permits, one after the other
members   where they choose themselves there are as many as there should be, and one that stays
          away is replaced, if somebody can
errors    nothing failed inside a node
========  ======================================================================================
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import NamedTuple

from meshlock.algorithms.recovery.records import FENCE_BITS, MOST_GRANTS
from meshlock.algorithms.steps import step
from meshlock.live.chaos.readiness import Readiness
from meshlock.live.machine import clock
from meshlock.live.pools.grants import Grant
from meshlock.properties.waits import Overtaking

FOREVER = float("inf")


class Wrong(Exception):
    """What the judge has to say."""


class Valid(NamedTuple):
    """A grant that may be in use."""

    fence: int
    want: int
    slots: tuple[str, ...]
    permits: int  # of its epoch


class Judge:
    def __init__(
        self,
        wrong: asyncio.Future[None],
        permits: int,
        names: tuple[str, ...],
        readiness: Readiness,
    ) -> None:
        self.readiness = readiness
        self.wrong = wrong
        self.names = names
        self.valid: dict[Grant, float] = {}  # until when, as far as its client was told
        self.orphans: list[tuple[float, Valid]] = []  # of clients whose node is gone
        self.fences: set[int] = set()
        self.permits: dict[int, float] = {permits: FOREVER}  # that may be in force, until when
        self.order: Overtaking | None = None
        self.requests = 0

    def set_order(self, algorithm: str, slack: float) -> None:
        if algorithm == "direct":
            self.order = Overtaking(slack, min(self.permits), 0, step({}))
        elif algorithm == "jiang":
            self.order = Overtaking(slack)

    def blame(self, rule: str, sentence: str) -> None:
        if not self.wrong.done():
            self.wrong.set_exception(Wrong(f"{rule}: at {clock.seconds():.3f} {sentence}"))

    # -- requests --------------------------------------------------------------------------------

    def asks(self, node: int, priority: int, due: bool) -> int:
        """The number of the request. One with a deadline is up to a step more urgent."""
        self.requests += 1
        if self.order is not None:
            self.order.asks(clock.seconds(), self.requests, node, priority, due)
        return self.requests

    def changes(self, request: int, priority: int) -> None:
        if self.order is not None:
            self.order.changes(clock.seconds(), request, priority)

    def gives_up(self, request: int) -> None:
        if self.order is not None:
            self.order.stops(request)

    def disturbed(self) -> None:
        """A fault begins, or ends."""
        self.readiness.disturbed()
        if self.order is not None:
            self.order.disturbed(clock.seconds())

    def crashed(self, node: int) -> None:
        if self.order is not None:
            self.order.crashed(node)

    # -- grants ----------------------------------------------------------------------------------

    def seen(self, grant: Grant) -> float:
        """The latest deadline its client was told of."""
        if grant in self.valid:
            self.valid[grant] = max(self.valid[grant], grant.until or 0.0)
            return self.valid[grant]
        return 0.0

    def is_over(self, grant: Grant) -> None:
        self.valid.pop(grant, None)

    def abandoned(self, node: str) -> None:
        """Clients of a node that is gone go on, each until the last deadline it knows."""
        for grant in [grant for grant in self.valid if grant._source.me == node]:
            self.orphans.append((self.seen(grant), described(grant)))
            del self.valid[grant]

    def entered(
        self,
        grant: Grant,
        request: int,
        highest: int,
        asked: float,
        reached: Callable[[], Iterable[int]],
    ) -> None:
        """``highest``: of the fences when it was asked for."""
        now, fence = clock.seconds(), grant.fence
        assert fence is not None
        if fence in self.fences:
            self.blame("fences", f"{fence} comes again")
        if fence < highest:
            self.blame("fences", f"{fence} is lower than {highest}, held before it was asked for")
        self.fences.add(fence)
        self.valid[grant] = 0.0
        self.count(now)
        if self.permits.get(grant.permits, 0.0) < asked:
            known = sorted(one for one, until in self.permits.items() if until >= asked)
            self.blame("resized", f"{grant} goes by {grant.permits} permits, there are {known}")
        if self.order is None:
            return
        epoch, reach = fence >> FENCE_BITS, set(reached())
        self.order.goes_by(now, epoch)
        number = ((epoch, 0, 0), fence & MOST_GRANTS)
        for one in self.order.granted(now, request, reach, number):
            self.blame("order", f"one with priority {one.priority} waits, and is overtaken again")

    def count(self, now: float) -> None:
        """A grant may become known late, so they are added up in the order in which they were
        made: what is valid of those before it was so when it was."""
        self.orphans = [orphan for orphan in self.orphans if orphan[0] > now]
        valid = [described(one) for one in list(self.valid) if self.seen(one) > now]
        valid += [one for _, one in self.orphans]
        held, slots = 0, set[str]()
        for one in sorted(valid):
            held += one.want
            if held > one.permits:
                self.blame("permits", f"{held} of {one.permits} are held: {sorted(valid)}")
            if slots & set(one.slots) or len(one.slots) != (one.want if self.names else 0):
                self.blame("slots", f"of {sorted(valid)}")
            slots |= set(one.slots)

    def held(self) -> int:
        return sum(one.want for one in self.valid) + sum(one.want for _, one in self.orphans)

    def unsettled(self) -> bool:
        """May there be one number of permits or another?"""
        return len([until for until in self.permits.values() if until == FOREVER]) > 1

    # -- the number of permits -------------------------------------------------------------------

    def may_become(self, permits: int) -> None:
        """Where there are fewer, a node has fewer lines."""
        self.permits[permits] = FOREVER
        order = self.order
        if order is not None and permits < order.lines:
            order.lines = permits
            for node, waiting in order.here.items():
                if waiting > permits:
                    order.crowded[node] = order.requests

    def has_become(self, permits: int, settled: float) -> None:
        """A request made after ``settled`` goes by it."""
        self.permits = {one: min(until, settled) for one, until in self.permits.items()}
        self.permits[permits] = FOREVER


def described(grant: Grant) -> Valid:
    return Valid(grant.fence or 0, grant.want, grant.slots, grant.permits)
