"""What becomes of a request after it was made: another priority, or a part released.

A *standing* is a client with a priority while it waits, or with permits while it is
inside. Each has a number. That of a request as it is made is the number of its client; one that
enters is inside with that number, whatever its priority was. Where requests do not change, there
are no other standings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from meshlock.algorithms.amounts import is_part
from meshlock.check import kinds
from meshlock.check.setup import SetUp

Shift = tuple[int, int]
"""From which standing to which."""
NO_SHIFTS: Final[list[int]] = []


class Standings:
    def __init__(self, setup: SetUp) -> None:
        self.setup = setup
        self.clients = [0]  # whose each standing is
        self.wants = [0]
        self.priorities = [0]
        self.stays = [False]
        self.shifts: list[Shift] = []
        self.raises: dict[int, list[int]] = {}  # while it waits, by standing: its shifts
        self.parts: dict[int, list[int]] = {}  # likewise inside
        self.inside: dict[tuple[int, int], int] = {}  # by client and what it holds
        for client, request in enumerate(setup.requests, start=1):
            self.add(client, request.want, request.priority, request.stays)
        for client in range(1, len(setup.requests) + 1):
            self.add_raises(client, setup.raises_of(client))
            self.add_parts(client, setup.parts_of(client))
        self.change = len(self.shifts) > 0

    def add(self, client: int, want: int, priority: int, stays: bool) -> int:
        self.clients.append(client)
        self.wants.append(want)
        self.priorities.append(priority)
        self.stays.append(stays)
        return len(self.clients) - 1

    def add_raises(self, client: int, targets: list[int]) -> None:
        """To each priority that its request may get, once: to and fro has an end."""
        todo = [(client, tuple(targets))]
        known = {(self.priorities[client], tuple(targets)): client}
        for here, left in todo:
            for priority in left:
                if priority == self.priorities[here]:
                    continue
                key = (priority, tuple([other for other in left if other != priority]))
                if key not in known:
                    known[key] = self.add(client, self.wants[client], priority, self.stays[client])
                    todo.append((known[key], key[1]))
                self.raises.setdefault(here, []).append(self.shift(here, known[key]))

    def add_parts(self, client: int, amounts: list[int]) -> None:
        """From every number of permits to what is left, as long as some are."""
        priority, stays = self.priorities[client], self.stays[client]
        standings = {self.wants[client]: client}
        todo = [self.wants[client]]
        while todo:
            want = max(todo)
            todo.remove(want)
            for amount in amounts:
                if is_part(amount, want):
                    left = want - amount
                    if left not in standings:
                        standings[left] = self.add(client, left, priority, stays)
                        todo.append(left)
                    shift = self.shift(standings[want], standings[left])
                    self.parts.setdefault(standings[want], []).append(shift)
        self.inside.update({(client, want): one for want, one in standings.items()})

    def shift(self, here: int, there: int) -> int:
        self.shifts.append((here, there))
        return len(self.shifts) - 1

    def after(self, kind: int, subject: int) -> int:
        """The standing of a client behind a step of its own."""
        return self.shifts[subject][1] if kind in (kinds.PRIORITY, kinds.GIVE_BACK) else subject

    def released(self, shift: int) -> int:
        """How many permits a part has."""
        here, there = self.shifts[shift]
        return self.wants[here] - self.wants[there]

    def clients_of(self, standings: Sequence[int]) -> list[int]:
        return [self.clients[standing] for standing in standings]

    def of(self, client: int, standings: tuple[int, ...]) -> int:
        """The one of these that is this client's; 0 if none is."""
        for standing in standings:
            if self.clients[standing] == client:
                return standing
        return 0
