"""Which entry is due next, as far as a step of all nodes can say, and who went before it."""

from __future__ import annotations

from meshlock.check import kinds
from meshlock.check.model import Fault
from meshlock.check.places import NOTHING_DUE, Outcome, Place, shifted
from meshlock.check.standings import Standings
from meshlock.properties import sentences


class Order:
    """``gain``: waiting may have raised a priority by so much. What is wrong goes to ``faults``."""

    def __init__(self, standings: Standings, gain: float, faults: list[Fault]) -> None:
        self.standings = standings
        self.setup = standings.setup
        self.priorities = standings.priorities
        self.gain = gain
        self.faults = faults

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

    def falls(self, shift: int) -> bool:
        here, there = self.standings.shifts[shift]
        return self.priorities[there] < self.priorities[here]

    def judge_grants(self, outcome: Outcome, around: list[Place], label: int) -> None:
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
                text = self.out_of_order(node, self.priorities[client], due)
                self.faults.append(Fault("order", text, label))
                return

    def judge_lent(self, node: int, waiting: tuple[int, ...], due: int, label: int) -> None:
        """Permits are sent to a node at which these wait."""
        highest = max([self.priorities[client] for client in waiting], default=due)
        if highest + self.gain < due:
            text = sentences.lent_out_of_order(
                node, self.setup.in_steps(highest), self.setup.in_steps(due)
            )
            self.faults.append(Fault("order", text, label))

    def judge_entry(self, node: int, client: int, due: int, label: int) -> None:
        if due > NOTHING_DUE and self.priorities[client] + self.gain < due:
            text = self.out_of_order(node, self.priorities[client], due)
            self.faults.append(Fault("order", text, label))

    def out_of_order(self, node: int, priority: int, due: int) -> str:
        return sentences.out_of_order(node, self.setup.in_steps(priority), self.setup.in_steps(due))
