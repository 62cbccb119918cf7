"""Properties of a run with several kinds of permits: each kind is judged as a pool of its own.

- **safety**: of every kind at most as many permits are in use as there are.
- **order**, by conflict: a request is granted only if no more urgent one that waits wants a kind
  that it wants. That is to say: of all requests that want a kind, the first goes first, for every
  kind. So each kind has a :class:`.Monitor` of its own, which sees the requests that want it.
  Where a node hears of one request per neighbour only, whatever kinds that wants, the token may
  serve others on its way, as with one kind: then only the first grant after a quiet moment is
  judged.
- **order**, age: waiting counts in grants of any kind. A request may count as old as another of its
  priority at its node, which the token came for, whatever kinds that one wants.
"""

from __future__ import annotations

from collections.abc import Sequence

from meshlock.algorithms.amounts import fields, fits, several
from meshlock.algorithms.conflicts import lines_per_kind
from meshlock.properties import sentences
from meshlock.properties.monitor import Monitor, Rival
from meshlock.properties.promises import ALL_KNOWN, FIRST_KNOWN, PromisedOrder


class RivalByKind(Rival):
    """A request, and what it is among those that want each of its kinds, by the kind's place."""

    def __init__(self, number: int, node: int, priority: float, born: int, asked: int) -> None:
        super().__init__(number, node, priority, born, asked)
        self.parts: dict[int, Rival] = {}


class MonitorByKind(Monitor):
    def __init__(self, permits: int, promised: PromisedOrder) -> None:
        super().__init__(permits, promised)
        self.kinds = [Monitor(number, promised) for number in fields(permits)]
        for kind in self.kinds:
            kind.lines = lines_per_kind(permits)
            kind.violated = self.violated
        self.due = self.judges_order  # of some kind perhaps: each knows of itself

    # -- clients ------------------------------------------------------------------

    def asks(self, node: int, priority: float, want: int = 0) -> Rival:
        self.requests += 1
        level = priority if self.ordered else 0.0
        born = self.grants if self.stamped else 0
        rival = RivalByKind(self.requests, node, level, born, 0)
        if self.judges_order:
            self.add(rival)
            for place, number in enumerate(fields(want)):
                if number > 0:
                    rival.parts[place] = self.part(self.kinds[place], rival, priority)
        return rival

    def part(self, kind: Monitor, rival: RivalByKind, priority: float) -> Rival:
        part = kind.asks(rival.node, priority)
        if self.ties == FIRST_KNOWN:
            part.born = kind.oldest[part.priority] = min(part.born, rival.born)
        return part

    def enters(self, time: float, node: int, want: int, rival: Rival | None) -> None:
        self.held += want
        self.grants += 1
        if not fits(self.held, self.permits):
            self.report("safety", time, overuse(node, want, self.held, self.permits))
        if isinstance(rival, RivalByKind) and self.judges_order:
            self.remove(rival)
            rival.waits = False
            for place, kind in enumerate(self.kinds):
                part = rival.parts.get(place)
                if part is None:
                    kind.grants += 1
                    if self.ties != ALL_KNOWN:
                        kind.due = False
                else:
                    kind.enters(time, node, 0, part)

    def lends(self, time: float, node: int, waiting: Sequence[Rival], want: int = 0) -> None:
        known = [one for one in waiting if isinstance(one, RivalByKind)]
        for place, number in enumerate(fields(want)):
            if number > 0:
                there = [one.parts[place] for one in known if place in one.parts]
                self.kinds[place].lends(time, node, there)

    def withdraws(self, rival: Rival, quiet: bool) -> None:
        if isinstance(rival, RivalByKind) and self.judges_order:
            self.remove(rival)
            rival.waits = False
            for place, part in rival.parts.items():
                self.kinds[place].withdraws(part, quiet)
            self.at_once = quiet

    def changes(self, rival: Rival, priority: float, quiet: bool) -> None:
        if not self.ordered or priority == rival.priority or not isinstance(rival, RivalByKind):
            return
        for place, part in rival.parts.items():
            self.kinds[place].changes(part, priority, quiet)
        self.remove(rival)
        rival.priority = priority
        self.add(rival)

    def quiet(self) -> None:
        for kind in self.kinds:
            kind.quiet()
        self.at_once = True

    def moved(self) -> None:
        for kind in self.kinds:
            kind.moved()
        self.at_once = False

    def changed(self, connected: bool) -> None:
        super().changed(connected)
        for kind in self.kinds:
            kind.changed(connected)
        self.due = self.judges_order

    def forget_the_first(self) -> None:
        for kind in self.kinds:
            kind.forget_the_first()

    # -- balances -----------------------------------------------------------------

    def balance(self, time: float, node: int, tokens: int, permits: int) -> None:
        super().balance(time, node, tokens, 0)
        for place, number in enumerate(fields(permits), 1):
            if number != 0:
                text = f"{sentences.permits(node, number)} of kind {place}"
                self.report("conservation", time, text)


def overuse(node: int, want: int, held: int, permits: int) -> str:
    """Of the first kind of which there are not as many as are in use; of several kinds or one."""
    if not several(permits):
        return sentences.overuse(node, want, held, permits)
    place = [number < 0 for number in fields(permits - held)].index(True)
    wanted = (*fields(want), *[0] * (place + 1))[place]
    return f"{sentences.overuse(node, wanted, *excess(held, permits))} of kind {place + 1}"


def excess(used: int, permits: int) -> tuple[int, int]:
    """How many are used and how many there are, of the first kind of which more are used."""
    if not several(used | permits):
        return used, permits
    place = [number < 0 for number in fields(permits - used)].index(True)
    rows = [(*fields(amount), *[0] * (place + 1)) for amount in (used, permits)]
    return rows[0][place], rows[1][place]


def monitor(permits: int, promised: PromisedOrder) -> Monitor:
    """What judges a run with these permits."""
    return (MonitorByKind if several(permits) else Monitor)(permits, promised)
