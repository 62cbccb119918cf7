"""What a run is measured by where permits are of several kinds."""

from __future__ import annotations

from meshlock.algorithms.amounts import fields, kinds_of, several
from meshlock.simulate.measures import Overtakings, RunMeasures
from meshlock.world.clients import SimulatedClient
from meshlock.world.effects import Kinds as MessageKinds


class ConflictingOvertakings(Overtakings):
    """Only pairs of requests count that want a kind in common."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[tuple[float, int]] = []  # rank and kinds

    def enters_by_kind(self, rank: float, kinds: int) -> None:
        self.waiting.remove((rank, kinds))
        passed = [one for one, other in self.waiting if one > rank and other & kinds != 0]
        self.pairs += len(passed)


class MeasuresByKind(RunMeasures):
    """How long permits are used is counted for each kind."""

    def __init__(
        self,
        kinds: int,
        nodes: int,
        sent: MessageKinds,
        ranked: bool,
        sized: bool,
        ageing: float,
        units: int,
    ) -> None:
        super().__init__(nodes, sent, ranked, sized, ageing, units)
        self.used_by_kind = [0.0] * kinds
        self.waiting_base = ConflictingOvertakings()
        self.waiting_aged = ConflictingOvertakings()

    def asks(self, client: SimulatedClient) -> None:
        super().asks(client)
        if self.ranked:
            kinds = kinds_of(client.want)
            self.waiting_base.waiting.append((client.priority, kinds))
            self.waiting_aged.waiting.append((client.rank, kinds))

    def enters(self, client: SimulatedClient, now: float, known: int | None) -> None:
        super().enters(client, now, None)  # what a node knows may be of other kinds
        if self.ranked:
            kinds = kinds_of(client.want)
            self.waiting_base.enters_by_kind(client.priority, kinds)
            self.waiting_aged.enters_by_kind(client.rank, kinds)
            self.base.pairs = self.waiting_base.pairs
            self.aged.pairs = self.waiting_aged.pairs

    def changes(self, client: SimulatedClient, priority: int) -> None:
        self.forget(client)
        super().changes(client, priority)
        if self.ranked:
            kinds = kinds_of(client.want)
            self.waiting_base.waiting.append((priority, kinds))
            self.waiting_aged.waiting.append((client.rank, kinds))

    def gives_up(self, client: SimulatedClient) -> None:
        self.forget(client)
        super().gives_up(client)

    def forget(self, client: SimulatedClient) -> None:
        if self.ranked:
            kinds = kinds_of(client.want)
            self.waiting_base.waiting.remove((client.priority, kinds))
            self.waiting_aged.waiting.remove((client.rank, kinds))

    def hold(self, more: int, now: float) -> None:
        length = now - self.held_since
        for place, number in enumerate(fields(self.held)):
            self.used_by_kind[place] += number * length
            self.used += number * length
        self.held_since = now
        self.held += more


def measures(
    permits: int,
    nodes: int,
    sent: MessageKinds,
    ranked: bool,
    sized: bool,
    ageing: float,
    units: int,
) -> RunMeasures:
    """Those of a run with these permits."""
    if several(permits):
        kinds = len(fields(permits))
        return MeasuresByKind(kinds, nodes, sent, ranked, sized, ageing, units)
    return RunMeasures(nodes, sent, ranked, sized, ageing, units)
