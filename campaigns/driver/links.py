"""Three kinds of links that fail and form, each with its own account of what is lost.

**drain**: a link fails when it is empty; both ends are told at the same moment.

**return**: it fails at any time; what carries a token or permits comes back to its sender, the
rest is lost, and both ends are told at the same moment.

**custody**: as live nodes have them. Each end notices by itself; until it does, what is on the
link may still arrive there, and it goes on sending. What carries a token or permits stays with its
sender and arrives late, once and in order, while its receiver has no link: by a detour if
there is one and the sender has noticed, or when the link is back, before the receiver is told so.

A *way* is one direction of a link.
"""

from __future__ import annotations

from collections.abc import Iterable

from meshlock.algorithms.actor import Message

from .setup import Pair

Way = tuple[int, int]
"""From, to."""

Step = tuple[str, int, int]
"""What can happen to links by itself: deliver, late (from, to), down or up (whose end, peer)."""


class NoLink(Exception):
    """A message was sent where the sender has no link."""


def pair_of(i: int, j: int) -> Pair:
    return (i, j) if i < j else (j, i)


def carries(message: Message) -> bool:
    return message.tokens() > 0 or message.permits() > 0


def joined(size: int, links: Iterable[Pair], start: int = 0) -> set[int]:
    """The nodes that these links join to ``start``."""
    near: list[list[int]] = [[] for _ in range(size)]
    for i, j in links:
        near[i].append(j)
        near[j].append(i)
    reached, todo = {start}, [start]
    while todo:
        for other in near[todo.pop()]:
            if other not in reached:
                reached.add(other)
                todo.append(other)
    return reached


class Links:
    """Links whose ends are told together: drain, return, and those that never change."""

    def __init__(self, size: int, routed: bool) -> None:
        self.size = size
        self.routed = routed  # messages may go to nodes without a link
        self.working: set[Pair] = set()
        self.sees: set[Way] = set()  # (i, j): i has been told that it has a link to j
        self.lines: dict[Way, list[Message]] = {}  # what is under way, where anything is

    def under_way(self) -> list[Message]:
        return [message for line in self.lines.values() for message in line]

    def post(self, message: Message) -> None:
        way = (message.sender, message.receiver)
        if way not in self.sees and not self.routed:
            raise NoLink
        self.lines.setdefault(way, []).append(message)

    def take(self, way: Way, place: int = 0) -> Message:
        line = self.lines[way]
        message = line.pop(place)
        if not line:
            del self.lines[way]
        return message

    def empty(self, pair: Pair) -> bool:
        return pair not in self.lines and pair[::-1] not in self.lines

    def steps(self) -> list[Step]:
        return [("deliver", i, j) for i, j in self.lines]

    def possible(self, step: Step) -> bool:
        return step[0] == "deliver" and step[1:] in self.lines

    def settled(self) -> bool:
        """Nothing is under way, and all ends know what is the case."""
        return not self.lines

    def connected(self) -> bool:
        return len(joined(self.size, self.working)) == self.size


class CustodyLinks(Links):
    """Links whose ends learn of a failure, and of a return, each at its own time.

    A generation is over (``broken``) from the failure until every end that knew of it has
    noticed; then, and not before, the next may begin.
    """

    def __init__(self, size: int) -> None:
        super().__init__(size, routed=False)
        self.broken: set[Pair] = set()
        self.kept: dict[Way, list[Message]] = {}  # in custody of the sender, where anything is

    def under_way(self) -> list[Message]:
        return super().under_way() + [message for line in self.kept.values() for message in line]

    def post(self, message: Message) -> None:
        i, j = message.sender, message.receiver
        if (i, j) in self.sees:
            if pair_of(i, j) not in self.broken or (j, i) in self.sees:
                self.lines.setdefault((i, j), []).append(message)
                return
        elif not carries(message):
            raise NoLink
        if carries(message):
            self.keep((i, j), [message], first=False)

    def keep(self, way: Way, messages: list[Message], first: bool) -> None:
        kept = [message for message in messages if carries(message)]
        if kept:
            others = self.kept.get(way, [])
            self.kept[way] = kept + others if first else others + kept

    def fail(self, pair: Pair) -> None:
        self.working.discard(pair)
        i, j = pair
        if (i, j) in self.sees or (j, i) in self.sees:
            self.broken.add(pair)
            for way in ((i, j), (j, i)):
                if way[::-1] not in self.sees:  # this generation's beginning never reached it
                    self.keep(way, self.lines.pop(way, []), first=False)

    def form(self, pair: Pair) -> None:
        self.working.add(pair)
        i, j = pair
        if (i, j) in self.sees and (j, i) in self.sees:
            self.broken.discard(pair)  # it was gone for a moment, and nobody noticed

    def notice_failure(self, i: int, j: int) -> None:
        self.sees.discard((i, j))
        self.keep((j, i), self.lines.pop((j, i), []), first=True)
        if (j, i) not in self.sees:
            self.broken.discard(pair_of(i, j))

    def take_late(self, way: Way) -> Message:
        kept = self.kept[way]
        message = kept.pop(0)
        if not kept:
            del self.kept[way]
        return message

    def steps(self) -> list[Step]:
        steps: list[Step] = [("deliver", i, j) for i, j in self.lines if (j, i) in self.sees]
        for i, j in sorted(self.broken):
            steps += [("down", *end) for end in ((i, j), (j, i)) if end in self.sees]
        steps += [("late", i, j) for i, j in self.kept if self.possible(("late", i, j))]
        if len(self.sees) < 2 * len(self.working):
            for i, j in sorted(self.working):
                for end in ((i, j), (j, i)):
                    if self.possible(("up", *end)):
                        steps.append(("up", *end))
        return steps

    def possible(self, step: Step) -> bool:
        kind, i, j = step
        pair = pair_of(i, j)
        if kind == "deliver":
            return (i, j) in self.lines and (j, i) in self.sees
        if kind == "down":
            return pair in self.broken and (i, j) in self.sees
        back = pair in self.working and pair not in self.broken
        if kind == "up":
            return back and (i, j) not in self.sees and (j, i) not in self.kept
        if (i, j) not in self.kept or (j, i) in self.sees:
            return False
        return back or ((i, j) not in self.sees and j in joined(self.size, self.whole(), i))

    def whole(self) -> list[Pair]:
        """Links that work, as both ends know."""
        return [
            pair
            for pair in self.working - self.broken
            if pair in self.sees and pair[::-1] in self.sees
        ]

    def settled(self) -> bool:
        return not (
            self.lines or self.kept or self.broken or len(self.sees) != 2 * len(self.working)
        )
