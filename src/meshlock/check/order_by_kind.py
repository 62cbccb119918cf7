"""Which entries are due next where permits are of several kinds: of each kind one.

What is due is one number: for every kind the place of a priority among all that the set-up has,
beginning at 1; 0 if nothing of that kind is due.
"""

from __future__ import annotations

from collections.abc import Sequence

from meshlock.algorithms.amounts import fields, fits, kinds_of, several
from meshlock.check import kinds
from meshlock.check.order import Order
from meshlock.check.places import NOTHING_DUE, Outcome, Place, shifted
from meshlock.check.standings import Standings
from meshlock.properties import sentences
from meshlock.properties.promises import ALL_KNOWN, PromisedOrder


class OrderByKind(Order):
    def __init__(self, standings: Standings, promised: PromisedOrder) -> None:
        super().__init__(standings, promised)
        self.levels = sorted(set(self.priorities))
        self.radix = len(self.levels) + 1
        # the places of the kinds that each standing wants
        self.kinds = [
            [place for place, number in enumerate(fields(want)) if number > 0]
            for want in standings.wants
        ]
        # all requests have one order, and one may wait for a kind that it does not want
        self.one_order = promised.ties != ALL_KNOWN
        self.count = len(fields(standings.setup.permits))

    # -- what is due, as one number and by kind ------------------------------------------------

    def joined(self, rows: list[int]) -> int:
        """Of the levels that are due, 0 where nothing is."""
        if not any(rows):
            return NOTHING_DUE
        due = 0
        for level in reversed(rows):
            due = due * self.radix + level
        return due

    def by_kind(self, due: int) -> list[int]:
        rows = [0] * self.count
        for place in range(self.count if due != NOTHING_DUE else 0):
            rows[place] = due % self.radix
            due //= self.radix
        return rows

    def highest(self, priorities: list[tuple[int, int]]) -> int:
        """``priorities``: of standings."""
        rows = [0] * self.count
        for standing, priority in priorities:
            level = self.levels.index(priority) + 1
            for place in self.kinds[standing]:
                rows[place] = max(rows[place], level)
        return self.joined(rows)

    def top(self, standings: Sequence[int]) -> int:
        return self.highest([(one, self.priorities[one]) for one in standings])

    def top_in(self, top: int, around: list[Place]) -> int:
        return self.top([standing for place in around for standing in place.waiting])

    def spent(self, due: int, standings: Sequence[int]) -> int:
        """What is due of kinds that none of these wants."""
        if self.one_order and len(standings) > 0:
            return NOTHING_DUE
        rows = self.by_kind(due)
        for standing in standings:
            for place in self.kinds[standing]:
                rows[place] = 0
        return self.joined(rows)

    def owed(self, waiting: list[int], inside: list[int]) -> list[int]:
        """Those whose permits are there, and that are the most urgent of all their kinds: what
        others wait for is no concern of theirs."""
        wants = self.standings.wants
        free = self.standings.setup.permits - sum([wants[one] for one in inside])
        return [
            one
            for one in waiting
            if fits(wants[one], free)
            and not any(
                (self.one_order or kinds_of(wants[one]) & kinds_of(wants[other]))
                and self.priorities[other] + self.gain >= self.priorities[one]
                for other in waiting
                if other != one
            )
        ]

    # -- steps ---------------------------------------------------------------------------------

    def due_in(self, outcome: Outcome, due: int, top: int, around: list[Place]) -> int:
        if outcome.kind != kinds.PRIORITY or top == NOTHING_DUE:
            return super().due_in(outcome, due, top, around)
        here, there = self.standings.shifts[outcome.subject]
        lower = min(self.priorities[here], self.priorities[there])
        waiting = [standing for place in around for standing in place.waiting]
        return self.highest(
            [(one, lower if one == here else self.priorities[one]) for one in waiting]
        )

    def passed(self, standing: int, due: int) -> int:
        """The priority that is due and above this one's, of a kind that it wants."""
        rows = self.by_kind(due)
        levels = [rows[place] for place in self.kinds[standing] if rows[place] > 0]
        above = [self.levels[level - 1] for level in levels]
        mine = self.priorities[standing] + self.gain
        return max([priority for priority in above if priority > mine], default=NOTHING_DUE)

    def judge_grants(self, outcome: Outcome, around: list[Place]) -> str:
        """Of several grants in one step from rest, each is for the highest of its kinds. Where a
        node is sent permits and several clients wait there, the one they are for is not known."""
        waiting = [list(place.waiting) for place in around]
        if outcome.kind == kinds.PRIORITY:
            shift = self.standings.shifts[outcome.subject]
            waiting = [list(shifted(place.waiting, shift)) for place in around]
        for number, grant in enumerate(outcome.grants):
            homes = [j for j in range(len(around)) if grant == -1 - j or grant in waiting[j]]
            if not homes or not waiting[homes[0]]:
                continue
            here = waiting[homes[0]]
            if grant < 0 and len(here) > 1:
                return ""
            client = grant if grant >= 0 else here[0]
            passed = self.passed(client, self.top([one for row in waiting for one in row]))
            here.remove(client)
            if number > 0 and passed > NOTHING_DUE:
                return self.out_of_order(homes[0], self.priorities[client], passed)
        return ""

    def judge_lent(self, node: int, waiting: Sequence[int], due: int) -> str:
        passed = [(self.passed(one, due), self.priorities[one]) for one in waiting]
        if not passed or min(passed)[0] == NOTHING_DUE:
            return ""
        in_steps = self.setup.in_steps
        lowest, priority = min(passed)
        return sentences.lent_out_of_order(node, in_steps(priority), in_steps(lowest))

    def judge_entry(self, node: int, standing: int, due: int) -> str:
        passed = self.passed(standing, due)
        if passed == NOTHING_DUE:
            return ""
        return self.out_of_order(node, self.priorities[standing], passed)


def order_of(standings: Standings, promised: PromisedOrder) -> Order:
    """How order is judged in this set-up."""
    if several(standings.setup.permits):
        return OrderByKind(standings, promised)
    return Order(standings, promised)
