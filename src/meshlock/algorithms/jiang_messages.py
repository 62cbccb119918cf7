"""The messages of ``jiang``, and what a node remembers of its last REQUEST or UPDATE."""

from __future__ import annotations

from typing import Any, ClassVar

from meshlock.algorithms.actor import Message, Reductions
from meshlock.algorithms.ranked import FRESH, Ranked, RankedRequest
from meshlock.algorithms.reverse_link import Height
from meshlock.algorithms.variables import StatePart


class Signal(Message):
    """Every message carries its sender's height, and how many grants the sender knows of."""

    wire: ClassVar[tuple[str, ...]] = ("height", "count")
    reductions: ClassVar = Reductions(heights=("height",), counts=("grants",))

    def __init__(self, receiver: int, height: Height, grants: int) -> None:
        super().__init__(receiver)
        self.height = height
        self.grants = grants


class Token(Signal):
    """TOKEN(t): t permits are free.

    It is sent for a request of that ``priority``, which a holder has ``given`` a rank. ``passed``
    and ``blocked`` are those of :class:`~meshlock.algorithms.jiang_backfill.Backfill`.
    """

    wire: ClassVar = (*Signal.wire, "share", "urgency", "rank", "count", "rank or none")

    def __init__(
        self,
        receiver: int,
        height: Height,
        grants: int,
        t: int,
        priority: int,
        given: int,
        passed: int,
        blocked: int | None,
    ) -> None:
        super().__init__(receiver, height, grants)
        self.t = t
        self.priority = priority
        self.given = given
        self.passed = passed
        self.blocked = blocked

    def tokens(self) -> int:
        return 1

    def permits(self) -> int:
        return self.t

    def ranks(self) -> tuple[str, ...]:
        return ("given", "blocked") if self.blocked is not None else ("given",)


class Asking(Signal):
    """What the sender asks for: priority, rank and want of its front, and whether that is fresh."""

    wire: ClassVar[tuple[str, ...]] = (*Signal.wire, "urgency", "rank", "share", "flag")

    def __init__(
        self,
        receiver: int,
        height: Height,
        grants: int,
        priority: int,
        rank: int,
        want: int,
        fresh: bool,
    ) -> None:
        super().__init__(receiver, height, grants)
        self.priority = priority
        self.rank = rank
        self.want = want
        self.fresh = fresh

    def ranks(self) -> tuple[str, ...]:
        return ("rank",) if self.want > 0 else ()


class Request(Asking):
    """REQUEST(i, R): the sender asks for the token."""


class Update(Asking):
    """UPDATE(i, R): the sender's request is now this; with want 0 it is withdrawn. If it is the
    ``same`` request, more or less urgent than before, it keeps its age."""

    wire: ClassVar = (*Asking.wire, "flag")

    def __init__(
        self,
        receiver: int,
        height: Height,
        grants: int,
        priority: int,
        rank: int,
        want: int,
        fresh: bool,
        same: bool,
    ) -> None:
        super().__init__(receiver, height, grants, priority, rank, want, fresh)
        self.same = same


class Release(Signal):
    """RELEASE(r): r permits on their way back to the token."""

    wire: ClassVar = (*Signal.wire, "share")

    def __init__(self, receiver: int, height: Height, grants: int, r: int) -> None:
        super().__init__(receiver, height, grants)
        self.r = r

    def permits(self) -> int:
        return self.r


class Link(Signal):
    """LINK: the sender's height."""


class Call(Signal):
    """CALL: ``node`` has stopped climbing and asks, for the ``number``-th time, whether the token
    can be reached. ``answered``: it can."""

    wire: ClassVar = (*Signal.wire, "node", "count", "flag")

    def __init__(
        self, receiver: int, height: Height, grants: int, node: int, number: int, answered: bool
    ) -> None:
        super().__init__(receiver, height, grants)
        self.node = node
        self.number = number
        self.answered = answered


class OwnRequest(StatePart):
    """Our request as next knows it: what our last REQUEST or UPDATE said. It was said of the entry
    ``queue.told``, as long as that waits here."""

    def __init__(self, queue: Ranked) -> None:
        self.queue = queue
        self.open = False  # next knows of a request of ours
        self.priority = 0
        self.rank = 0
        self.want = 0
        self.fresh = False

    def say(self, front: RankedRequest) -> None:
        self.queue.told = front
        self.open = True
        self.priority = front.priority
        self.rank = front.rank
        self.want = front.want
        self.fresh = front.age == FRESH

    def close(self) -> None:
        self.queue.told = None
        self.open = False

    def differs(self, front: RankedRequest, step: int, with_want: bool) -> bool:
        """A rank within the same step of priority is not worth a message. The steps are the same
        everywhere, so what is left unsaid does not add up from hop to hop. But a fresh entry has no
        rank yet, and would get that of another."""
        return (
            front.priority != self.priority
            or front.rank // step != self.rank // step
            or (front is not self.queue.told and (self.fresh or front.age == FRESH))
            or (with_want and front.want != self.want)
        )

    def freeze(self) -> tuple[object, ...]:
        return (self.priority, self.rank, self.want, int(self.fresh)) if self.open else ()

    def thaw(self, frozen: tuple[Any, ...]) -> None:
        self.open = len(frozen) > 0
        if self.open:
            self.priority, self.rank, self.want, fresh = frozen
            self.fresh = fresh == 1
