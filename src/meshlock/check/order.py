"""Which entry is due next, as far as a step of all nodes can say, and who went before it."""

from __future__ import annotations

from collections.abc import Sequence

from meshlock.check import kinds
from meshlock.check.places import NOTHING_DUE, Outcome, Place, shifted
from meshlock.check.standings import Standings
from meshlock.properties import sentences
from meshlock.properties.promises import PromisedOrder


class Order:
    """What is wrong with a step; the empty text: nothing. Waiting may have raised a priority by the
    ``gain`` at most: that is no violation."""

    def __init__(self, standings: Standings, promised: PromisedOrder) -> None:
        self.standings = standings
        self.setup = standings.setup
        self.priorities = standings.priorities
        self.gain = promised.ageing * self.setup.units * len(self.setup.requests)

    def due_in(self, outcome: Outcome, due: int, top: int, around: list[Place]) -> int:
        """What is due in a step; ``top``: the highest that waits, if all is at rest before it.

        At rest, a changed priority makes the highest of all who wait due, whichever of its two
        priorities the request is known by. Else a request that falls, or is withdrawn, may have
        been the one that was due."""
        if outcome.kind == kinds.WITHDRAW:
            return NOTHING_DUE
        if outcome.kind != kinds.PRIORITY:
            return due if top == NOTHING_DUE else top
        if top == NOTHING_DUE:
            return NOTHING_DUE if self.falls(outcome.subject) else due
        here, there = self.standings.shifts[outcome.subject]
        lower = min(self.priorities[here], self.priorities[there])
        waiting = [standing for place in around for standing in place.waiting]
        return max([lower if one == here else self.priorities[one] for one in waiting])

    def top(self, standings: Sequence[int]) -> int:
        """What is due if these wait."""
        return max([self.priorities[one] for one in standings], default=NOTHING_DUE)

    def top_in(self, top: int, around: list[Place]) -> int:
        """The same for all who wait; ``top`` is their highest priority."""
        return top

    def spent(self, due: int, standings: Sequence[int]) -> int:
        """What is due still when one of these has been granted."""
        return NOTHING_DUE

    def owed(self, waiting: list[int], inside: list[int]) -> list[int]:
        """Which of those that wait must have been served when nothing can happen any more, while
        others ``stay`` inside."""
        return waiting

    def falls(self, shift: int) -> bool:
        here, there = self.standings.shifts[shift]
        return self.priorities[there] < self.priorities[here]

    def judge_grants(self, outcome: Outcome, around: list[Place]) -> str:
        """At rest every request has arrived: of several grants in one step, those after the first
        as well are for the highest of all that still wait."""
        waiting = [list(place.waiting) for place in around]
        if outcome.kind == kinds.PRIORITY:
            shift = self.standings.shifts[outcome.subject]
            waiting = [list(shifted(place.waiting, shift)) for place in around]
        for number, grant in enumerate(outcome.grants):
            homes = [j for j in range(len(around)) if grant == -1 - j or grant in waiting[j]]
            if not homes or not waiting[homes[0]]:
                continue
            node = homes[0]
            client = grant if grant >= 0 else max(waiting[node], key=self.priorities.__getitem__)
            due = max([self.priorities[other] for row in waiting for other in row])
            waiting[node].remove(client)
            if number > 0 and self.priorities[client] + self.gain < due:
                return self.out_of_order(node, self.priorities[client], due)
        return ""

    def judge_lent(self, node: int, waiting: Sequence[int], due: int) -> str:
        """Permits are sent to a node at which these wait."""
        highest = max([self.priorities[one] for one in waiting], default=due)
        if highest + self.gain >= due:
            return ""
        in_steps = self.setup.in_steps
        return sentences.lent_out_of_order(node, in_steps(highest), in_steps(due))

    def judge_entry(self, node: int, standing: int, due: int) -> str:
        priority = self.priorities[standing]
        fine = due == NOTHING_DUE or priority + self.gain >= due
        return "" if fine else self.out_of_order(node, priority, due)

    def out_of_order(self, node: int, priority: int, due: int) -> str:
        return sentences.out_of_order(node, self.setup.in_steps(priority), self.setup.in_steps(due))
