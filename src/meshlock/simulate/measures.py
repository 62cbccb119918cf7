"""What a run is measured by, gathered as it goes."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort

from meshlock.world.clients import SimulatedClient
from meshlock.world.effects import Kinds, by_name

MOST_LEVELS = 1000
"""Priorities, or numbers of permits, whose waiting times are kept apart."""


def add_wait(times: dict[int, list[float]], level: int, wait: float) -> None:
    if level in times or len(times) < MOST_LEVELS:
        times.setdefault(level, []).append(wait)


class Overtakings:
    """Pairs of requests in which the lower one went first.

    A pair (a, b) counts if a waits when b enters, and ranks above b at that time. It does not
    matter which of the two asked first. The ranks of clients that wait are kept in order.
    """

    def __init__(self) -> None:
        self.ranks: list[float] = []
        self.pairs = 0

    def asks(self, rank: float) -> None:
        insort(self.ranks, rank)

    def enters(self, rank: float) -> None:
        self.pairs += len(self.ranks) - bisect_right(self.ranks, rank)
        self.gives_up(rank)

    def gives_up(self, rank: float) -> None:
        del self.ranks[bisect_left(self.ranks, rank)]


class RunMeasures:
    """Counts and times; :mod:`.report` makes figures of them.

    ``ageing`` is how much a waiting request's priority grows with every grant made, so a
    request's *rank*, its priority less ageing times the grants made before it asked,
    compares aged priorities once and for all.
    """

    def __init__(
        self, nodes: int, sent: Kinds, ranked: bool, sized: bool, ageing: float, units: int = 1
    ) -> None:
        self.requested = 0
        self.entries = 0
        self.sent = sent
        self.more_crossings = 0  # of links, than one by every message
        self.waits: list[float] = []
        self.by_priority: dict[int, list[float]] = {}
        self.by_want: dict[int, list[float]] = {}
        self.entries_by_node = [0] * nodes
        self.held = 0
        self.held_since = 0.0
        self.used = 0.0  # integral of permits in use over time
        self.waiting = 0
        # when clients left while others waited; none has entered since
        self.free_since: list[float] = []
        self.sync_total = 0.0
        self.sync_count = 0
        self.ranked = ranked  # priorities differ, so overtaking means something
        self.sized = sized  # and so do wants
        self.ageing = ageing
        self.units = units  # of priority, in a step
        self.base = Overtakings()  # by the priorities that requests have
        self.aged = Overtakings()  # by these and what waiting adds
        self.known = 0  # entries although a higher request was known where it was decided
        self.missed = 0  # deadlines
        self.changed = 0  # priorities of requests that wait
        self.parts = 0  # releases of a part

    @property
    def messages(self) -> dict[str, int]:
        """How many of each kind."""
        return by_name(self.sent)

    @property
    def crossings(self) -> int:
        """Of links, by all messages."""
        return sum([kind.sent for kind in self.sent.values()]) + self.more_crossings

    def asks(self, client: SimulatedClient) -> None:
        self.requested += 1
        self.waiting += 1
        client.number = self.requested
        if self.ranked:
            client.rank = client.priority - self.ageing * self.entries
            self.base.asks(client.priority)
            self.aged.asks(client.rank)

    def enters(self, client: SimulatedClient, now: float, known: int | None) -> None:
        wait = now - client.asked
        self.entries += 1
        self.waiting -= 1
        self.waits.append(wait)
        self.entries_by_node[client.node] += 1
        if self.sized:
            add_wait(self.by_want, client.want, wait)
        if self.ranked:
            add_wait(self.by_priority, client.priority // self.units, wait)
            self.base.enters(client.priority)
            self.aged.enters(client.rank)
            if known is not None and known > client.priority:
                self.known += 1
            if client.deadline > 0.0 and now > client.deadline:
                self.missed += 1
        if self.free_since:
            for since in self.free_since:
                self.sync_total += now - since
            self.sync_count += len(self.free_since)
            self.free_since = []
        self.hold(client.want, now)

    def changes(self, client: SimulatedClient, priority: int) -> None:
        """A client that waits is to have this priority, and keeps its age."""
        if self.ranked:
            rank = client.rank + (priority - client.priority)
            self.base.gives_up(client.priority)
            self.base.asks(priority)
            self.aged.gives_up(client.rank)
            self.aged.asks(rank)
            client.rank = rank

    def gives_up(self, client: SimulatedClient) -> None:
        """It waits no more, for its node has crashed."""
        self.waiting -= 1
        if self.waiting == 0:
            self.free_since = []
        if self.ranked:
            self.base.gives_up(client.priority)
            self.aged.gives_up(client.rank)

    def leaves(self, client: SimulatedClient, now: float) -> None:
        self.hold(-client.want, now)
        if self.waiting > 0:
            self.free_since.append(now)

    def leaves_some(self, part: int, now: float) -> None:
        self.parts += 1
        self.hold(-part, now)

    def hold(self, more: int, now: float) -> None:
        self.used += self.held * (now - self.held_since)
        self.held_since = now
        self.held += more
