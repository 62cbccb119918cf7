"""A monitor of order whose memory can be put away as plain values, and be taken up again.

The checker looks at all runs at once and keeps this memory beside each state. Of two
memories that judge every continuation alike, one is kept: numbers of requests and of quiet moments
are only compared, so they are counted anew each time, and what is not due is forgotten.
"""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

from meshlock.properties.monitor import Known, Monitor, Rival
from meshlock.properties.promises import ALL_KNOWN, FIRST_KNOWN, PromisedOrder

AGELESS: Final = 0


class RememberedWaits(NamedTuple):
    """A request that waits; all of them stand in the order of asking."""

    client: int
    node: int
    priority: float
    highest: float
    born: int
    asked: int
    fresh: bool
    stay: bool  # it is known since the token came
    line: bool  # it has one
    changed: bool  # it has had another priority


Lines = tuple[tuple[float, tuple[tuple[int, int], ...]], ...]
"""By priority the requests that are known: the moment, and the place among those that wait."""


class Memory(NamedTuple):
    waiting: tuple[RememberedWaits, ...] = ()
    grants: int = 0
    known: Lines = ()
    oldest: tuple[tuple[float, int], ...] = ()
    due: tuple[float, int, bool, Lines] | None = None  # priority, grants, asked, known
    changed_at: int = -1


NOTHING: Final = Memory()


class Remembering(Monitor):
    def __init__(
        self, permits: int, promised: PromisedOrder, memory: Memory, connected: bool
    ) -> None:
        """As :meth:`memory` was at the end of a step."""
        super().__init__(permits, promised)
        self.rivals: dict[int, Rival] = {}  # by client
        self.connected = connected
        self.grants = memory.grants
        self.changed_at = memory.changed_at
        self.requests = len(memory.waiting)
        for number, one in enumerate(memory.waiting, 1):
            self.take_up(number, one)
        self.oldest = dict(memory.oldest)
        rivals = list(self.rivals.values())
        self.known = self.lines_of(memory.known, rivals)
        if memory.due is not None:
            self.due = True
            self.due_priority, self.due_grants, self.asked, lines = memory.due
            self.due_known = self.lines_of(lines, rivals)

    def take_up(self, number: int, one: RememberedWaits) -> None:
        rival = Rival(number, one.node, one.priority, one.born, one.asked)
        rival.highest = one.highest
        rival.stay = self.stay if one.stay else -1
        rival.changed = 0 if one.changed else -1
        self.rivals[one.client] = rival
        self.moments = max(self.moments, one.asked)
        self.levels.setdefault(one.priority, {})[number] = rival
        if -one.priority not in self.ranking:
            self.ranking.append(-one.priority)
            self.ranking.sort()
        if one.fresh:
            self.fresh.append(rival)
        if self.ties == FIRST_KNOWN:
            self.line.append(rival)
            if not one.changed:
                self.turns.setdefault((one.node, one.priority), deque()).append(rival)
        self.here[one.node] = self.here.get(one.node, 0) + 1
        if not one.line:
            self.crowded[one.node] = number

    def lines_of(self, lines: Lines, rivals: list[Rival]) -> Known:
        found: Known = {}
        for priority, line in lines:
            found[priority] = deque([(moment, rivals[place]) for moment, place in line])
            self.moments = max(self.moments, line[-1][0])
        return found

    def report(self, name: str, time: float, text: str) -> None:
        self.violated.setdefault(name, text)

    # -- putting it away ----------------------------------------------------------------------

    def memory(self) -> Memory:
        """Between two steps."""
        waiting = [(client, one) for client, one in self.rivals.items() if one.waits]
        places = {one.number: place for place, (_, one) in enumerate(waiting)}
        known = self.still_known(self.known, places)
        due_known = self.still_known(self.due_known, places) if self.due else []
        moments = {moment for _, line in known + due_known for moment, _ in line}
        ranks = {moment: rank for rank, moment in enumerate(sorted(moments), 1)}
        fresh = {one.number for one in self.fresh}
        ages = self.patience > 0
        due = None
        if self.due:
            due = (
                self.due_priority,
                self.due_grants if ages else AGELESS,
                self.asked and ages,
                ranked(due_known, ranks),
            )
        return Memory(
            tuple(
                [
                    RememberedWaits(
                        client,
                        one.node,
                        one.priority,
                        one.highest,
                        one.born if ages else AGELESS,
                        max(
                            [ranks[moment] for moment in moments if moment <= one.asked], default=0
                        ),
                        one.number in fresh,
                        self.ties == FIRST_KNOWN and one.stay == self.stay,
                        self.ties != ALL_KNOWN or self.has_line(one),
                        self.ties == FIRST_KNOWN and one.changed >= 0,
                    )
                    for client, one in waiting
                ]
            ),
            self.grants if ages else AGELESS,
            ranked(known, ranks),
            tuple(sorted(self.oldest.items())) if ages else (),
            due,
            self.changed_at if ages else -1,
        )

    def still_known(
        self, known: Known, places: dict[int, int]
    ) -> list[tuple[float, list[tuple[int, int]]]]:
        """Without those that have gone or changed."""
        found = []
        for priority, line in sorted(known.items()):
            left = [
                (moment, places[one.number])
                for moment, one in line
                if one.waits and one.priority == priority and one.changed < moment
            ]
            if left:
                found.append((priority, sorted(left)))
        return found


def ranked(known: list[tuple[float, list[tuple[int, int]]]], ranks: dict[int, int]) -> Lines:
    return tuple(
        [(priority, tuple([(ranks[m], place) for m, place in line])) for priority, line in known]
    )
