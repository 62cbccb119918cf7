"""Ties in all runs: order as simulator and audit judge it, first come, first served among equals.

Who came first is no part of a state, so the memory of the monitor is kept beside it. That costs
states, so ties are judged only where somebody asks for it. What a step does to a memory is worked
out once.
"""

from __future__ import annotations

from typing import Final

from meshlock.check.setup import SetUp
from meshlock.check.standings import Standings
from meshlock.properties.promises import NO_TIES, PromisedOrder
from meshlock.properties.remembered import Memory, Remembering

TIES: Final = "ties"

ASKS: Final = 0
RELEASES: Final = 1
WITHDRAWS: Final = 2
CHANGES: Final = 3
OTHER: Final = 4
LINKS: Final = 5

Step = tuple[int, int, int, bool, bool, tuple[int, ...], bool]
"""What happens and to which standing; the node; is nothing in flight, and can all reach all; the
grants in order, as clients or -1 - the node that permits are sent to; does the token move."""


class Ties:
    def __init__(self, setup: SetUp, promised: PromisedOrder, standings: Standings) -> None:
        self.setup = setup
        self.permits = setup.permits
        self.promised = promised
        self.standings = standings
        self.known: dict[tuple[Memory, Step], tuple[Memory, str]] = {}
        self.memories: dict[Memory, Memory] = {}  # equal ones kept once

    def after(self, memory: Memory, step: Step) -> tuple[Memory, str]:
        """The memory after a step, and what is wrong with the step, if anything."""
        key = (memory, step)
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = self.work_out(memory, step)
        return found

    def work_out(self, memory: Memory, step: Step) -> tuple[Memory, str]:
        kind, standing, node, quiet, connected, grants, moves = step
        monitor = Remembering(self.permits, self.promised, memory, connected)
        if kind == LINKS:
            monitor.changed(connected)
        priority = self.setup.in_steps(self.standings.priorities[standing])
        client = self.standings.clients[standing]
        if kind == WITHDRAWS:
            monitor.withdraws(monitor.rivals[client], quiet)
        elif kind == CHANGES:
            monitor.changes(monitor.rivals[client], priority, quiet)
        elif kind in (ASKS, RELEASES) and quiet:
            monitor.quiet()
        if kind == ASKS:
            monitor.rivals[client] = monitor.asks(node, priority)
        for grant in grants:
            if grant >= 0:
                monitor.enters(0.0, node, 0, monitor.rivals[self.standings.clients[grant]])
            else:
                there = [one for one in monitor.rivals.values() if one.node == -1 - grant]
                monitor.lends(0.0, -1 - grant, [one for one in there if one.waits])
        if moves:
            monitor.forget_the_first()
        monitor.moved()
        after = monitor.memory()
        return self.memories.setdefault(after, after), monitor.violated.get("order", "")


def ties(
    setup: SetUp, promised: PromisedOrder, standings: Standings, judged: set[str]
) -> Ties | None:
    """How ties are judged; None: not."""
    if TIES not in judged or promised.ties == NO_TIES:
        return None
    return Ties(setup, promised, standings)
