"""What may happen to nodes that recover from crashes: how often, and to whom."""

from __future__ import annotations

from meshlock.algorithms.recovery.records import Change
from meshlock.algorithms.recovery.terms import Rules
from meshlock.check.settings import FaultSettings


class Faults(FaultSettings):
    """The bounds of a search. Nodes are named by their numbers."""

    def __init__(
        self, given: FaultSettings, size: int, members: tuple[int, ...], changes: list[Change]
    ) -> None:
        super().__init__(**given.given)
        everybody = tuple(range(size))
        if "wait" not in self.given:
            self.wait = self.lease
        self.members = members  # nobody: node 0 makes the pool, and members choose themselves
        self.rules = None if len(members) > 0 else Rules(5, 2 * self.lease, 4 * self.lease)
        self.changes = changes  # each may be proposed, once, with an epoch
        self.crashing = self.crashing or everybody
        self.proposers = self.proposers or (everybody if changes else members or everybody)
        self.travelling = self.renewals == "travel"  # or a renewal and its answer are one step
        self.eager = self.handshakes == "eager"  # HELLO and LINK arrive at once

    def budgets(self) -> list[int]:
        """How often each thing may happen, in the order of the ``LEFT_`` numbers in kinds.py."""
        return [
            self.proposals,
            self.crashes,
            self.forgets,
            self.doubles,
            self.losses,
            self.slow_ticks,
            self.resends,
            len(self.changes),
            self.cuts,
            self.stay_dead,
            self.slow_disks,
            self.ticks,
        ]
