"""Three ways in which waiting adds to the rank of a request of ``jiang``; ``direct`` has the first
and the last.

*none*: it adds nothing, and requests of low priority may starve. *printed*: every queue adds a
little to all its entries when its node gives the token away or its client leaves, once per grant.
*stamped*: every ``patience`` grants that a request has waited count for one step of priority.

A stamped rank is priority * patience - (number of grants when the age of the request began), so it
never changes: no queue is walked, and no message sent. Age begins when a holder of the token learns
of the request, for only a holder knows the number of grants. Until then the request is *fresh*:

1. The holder that receives a fresh request stamps it. TOKEN brings that rank back to the request
   for which the token was sent.
2. Where the token arrives, other fresh requests are stamped by the number of grants that was known
   there when they came, but at most patience - 1 grants ago. Without that allowance the token would
   turn back to the requests behind it (2.75 moves per entry on a saturated line of 20, not 1.9).
3. If the way of a fresh request fails, it is stamped as in 2 by the number of grants known here.

With m clients, a request of priority p sees at most (highest - p + 2) * patience + m - 3 grants
before its own since its age began, besides those that holders make to lower ranks before they learn
of it. docs/algorithms/jiang.md says why: *The bound*.
"""

from __future__ import annotations

from meshlock.algorithms.actor import NIL
from meshlock.algorithms.jiang_messages import Asking, Token
from meshlock.algorithms.ranked import FRESH, SETTLED, Met, Ranked, RankedRequest
from meshlock.algorithms.subclassing import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class Ageing:
    """What all three have in common, and what one without age does."""

    def __init__(self, patience: int, weight: int, aged: int | None = None) -> None:
        self.step = patience  # grants that one step of priority is worth
        self.weight = weight  # grants that one unit of priority is worth; a step has one or more
        self.aged = aged  # grants when a new queue was aged last; None: queues are never aged

    def own_entry(
        self, client: int, want: int, priority: int, age: int, grants: int, holder: bool
    ) -> RankedRequest:
        """For a client that has waited for ``age`` grants at a node before this one."""
        raise NotImplementedError

    def neighbour_entry(self, asking: Asking, grants: int, holder: bool) -> RankedRequest:
        """For what a neighbour asks."""
        return RankedRequest(asking.sender, NIL, asking.want, asking.priority, asking.rank)

    def aging(self, queue: Ranked, aged: int | None, grants: int) -> int | None:
        """aging(Q). ``aged`` and the result: the grants made when the queue was aged last."""
        return aged

    def stamp(self, queue: Ranked, token: Token) -> None:
        """The token has arrived."""

    def stamp_without_token(self, queue: Ranked, grants: int) -> None:
        """Our request takes another way: the token will not come on the way that it had."""

    def gain(self, before: int, after: int) -> int:
        """By how much the rank rises when the priority changes."""
        return (after - before) * self.weight

    def waited(self, entry: RankedRequest, grants: int) -> int:
        """The age of an entry, in grants, after that many grants were made."""
        return entry.rank - entry.priority * self.weight

    def patience(self) -> int:
        """0: ranks have nothing to do with the number of grants."""
        return 0


class NoAgeing(Ageing):
    def own_entry(
        self, client: int, want: int, priority: int, age: int, grants: int, holder: bool
    ) -> RankedRequest:
        return RankedRequest(NIL, client, want, priority, priority * self.weight)


class PrintedAgeing(Ageing):
    def own_entry(
        self, client: int, want: int, priority: int, age: int, grants: int, holder: bool
    ) -> RankedRequest:
        return RankedRequest(NIL, client, want, priority, priority * self.weight + age)

    def aging(self, queue: Ranked, aged: int | None, grants: int) -> int | None:
        """As printed, but once per grant. If every hop counted, two requests that wait for permits
        could overtake each other without end, and RELEASE would never catch the token."""
        if aged is not None and grants > aged:
            queue.age()
            return grants
        return aged


class StampedAgeing(Ageing):
    def own_entry(
        self, client: int, want: int, priority: int, age: int, grants: int, holder: bool
    ) -> RankedRequest:
        base = priority * self.weight + age
        kind = SETTLED if holder else FRESH
        return RankedRequest(NIL, client, want, priority, base - grants, kind, base)

    def neighbour_entry(self, asking: Asking, grants: int, holder: bool) -> RankedRequest:
        want, priority, rank = asking.want, asking.priority, asking.rank
        if not asking.fresh:
            return RankedRequest(asking.sender, NIL, want, priority, rank)
        base = rank + asking.grants
        kind = SETTLED if holder else FRESH
        return RankedRequest(asking.sender, NIL, want, priority, base - grants, kind, base)

    def stamp(self, queue: Ranked, token: Token) -> None:
        if queue.has_fresh():
            queue.rank_fresh(Met(token.grants - self.step + 1, token.priority, token.given))

    def stamp_without_token(self, queue: Ranked, grants: int) -> None:
        """If grants are known that were made since our request came, its age begins with them. All
        that is fresh here begins with it, or what came later would count as older."""
        entry = queue.told
        if entry is not None and entry.age == FRESH and entry.base - grants < entry.rank:
            queue.rank_fresh(Met(grants - self.step + 1))

    def waited(self, entry: RankedRequest, grants: int) -> int:
        rank = entry.rank
        if entry.age == FRESH:  # as when the token arrives
            rank = min(rank, entry.base - grants + self.step - 1)
        return rank + grants - entry.priority * self.weight

    def patience(self) -> int:
        return self.step


def ageing(name: str, patience: int, weight: int) -> Ageing:
    if name == "stamped":
        return StampedAgeing(patience, weight)
    return PrintedAgeing(patience, weight, 0) if name == "printed" else NoAgeing(patience, weight)
