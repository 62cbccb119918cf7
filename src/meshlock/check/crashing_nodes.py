"""Nodes that may crash, as a state machine: see :mod:`.crash_events` for what can happen."""

from __future__ import annotations

from collections.abc import Container
from typing import cast

from meshlock.check import kinds
from meshlock.check.crash_events import CrashEvents, birth, first_epoch
from meshlock.check.crash_steps import Possible
from meshlock.check.layers import Key, Place
from meshlock.check.model import Act, Fault, Model, Part
from meshlock.check.setup import SetUp
from meshlock.check.slow_disks import in_numbers, in_words
from meshlock.check.world import Known, World
from meshlock.errors import Refused, setting


class Crashing(Model):
    def __init__(self, setup: SetUp, judged: set[str]) -> None:
        super().__init__()
        assert setup.faults is not None
        self.setup = setup
        self.bounds = setup.faults
        self.size = setup.network.size
        self.events = CrashEvents(setup, setup.faults, judged)
        self.layers, self.mail = self.events.layers, self.events.mail
        self.mailboxes, self.judge = self.events.mailboxes, self.events.judge
        self.worlds, self.links = self.events.worlds, self.events.links
        self.possible = Possible(self.layers, self.mailboxes, self.bounds, self.links)
        self.first: World | None = None
        self.seen: Container[int] = set()  # states that were judged when they were reached first

    # -- states as numbers ---------------------------------------------------------------------

    def world(self, state: int) -> World:
        return self.worlds.joined(self.worlds.parts(state))

    def parts(self, state: int) -> list[int]:
        return self.worlds.parts(state)

    def half(self, slot: int) -> int:
        return 0 if slot < self.size else 1

    def met(self, slot: int) -> int:
        if slot < self.size:
            return len(self.layers.places[slot])
        return len(self.mailboxes.loose) if slot == self.size else len(self.worlds.rests.all)

    def joined(self, parts: list[int]) -> int:
        return self.worlds.number(self.worlds.joined(parts))

    def meaning(self, slot: int, number: int) -> Part:
        if slot < self.size:
            place = self.layers.places[slot][number]
            return place.up, place.state, place.disk, place.boot
        if slot == self.size:
            return self.mailboxes.meaning(number)
        rest = self.worlds.rests.all[number]
        hanging = in_words(rest.hanging, self.mail)
        return rest.orphans, rest.left, rest.fence, rest.cuts, rest.due, rest.size, hanging

    def number_of(self, slot: int, part: Part) -> int:
        if slot < self.size:
            return self.layers.find(slot, cast(Key, part))
        if slot == self.size:
            return self.mailboxes.number_of(part)
        known = cast(Known, part)
        return self.worlds.rests.find((*known[:6], in_numbers(known[6], self.mail))).number

    def at(self, world: World, i: int) -> Place:
        return self.events.at(world, i)

    # -- the first state -----------------------------------------------------------------------

    def attach(self, numbers: dict[int, int], seen: Container[int]) -> None:
        self.seen = seen

    def initial(self) -> int:
        return self.worlds.number(self.beginning())

    def beginning(self) -> World:
        if self.first is None:
            self.first = birth(self.events)
            if not self.bounds.birth:
                first_epoch(self.events, self.first)
            for step in self.setup.lead:
                self.first = self.lead(self.first, step)
        return self.first

    def lead(self, world: World, step: str) -> World:
        """The state after the step of that name; of several messages alike, the latest."""
        steps = self.possible.steps(world)
        for kind, subject in reversed(steps):
            if self.possible.name(kind, subject) == step:
                after = self.events.after(world, kind, subject)
                for fault in self.judge.all(world, after, 0):
                    raise Refused(f"{setting('lead')} '{step}' violates a property: {fault.text}.")
                return after
        possible = ", ".join([self.possible.name(kind, subject) for kind, subject in steps])
        raise Refused(f"{setting('lead')} '{step}' is not possible here: use one of {possible}.")

    # -- what can happen -----------------------------------------------------------------------

    def expand(self, state: int) -> None:
        self.successors.clear()
        self.labels.clear()
        self.faults.clear()
        world, judge = self.world(state), self.judge
        for kind, subject in self.possible.steps(world):
            label = (kind << kinds.SHIFT) + subject
            after = self.events.after(world, kind, subject)
            wrong: list[Fault] = []
            if judge.ordered or after.failure or after.fence_repeated or self.events.resizes:
                wrong = judge.step(world, after, label)
            number = self.worlds.number(after)
            if number not in self.seen and not after.failure:
                wrong += judge.state(after, label)
            if wrong:
                self.faults += wrong
            elif number != state:
                self.successors.append(number)
                self.labels.append(label)

    # -- telling what happened -----------------------------------------------------------------

    def explain(self, state: int, label: int) -> list[Act]:
        return self.describe_step(
            self.world(state), label >> kinds.SHIFT, label & ((1 << kinds.SHIFT) - 1)
        )

    def opening(self) -> list[Act]:
        """What happens before the search begins, once everybody has started."""
        acts: list[Act] = []
        self.events.acts, self.first = acts, None
        self.beginning()
        self.events.acts = None
        return acts

    def describe_step(self, world: World, kind: int, subject: int) -> list[Act]:
        acts: list[Act] = []
        self.events.acts = acts
        self.events.after(world, kind, subject)
        self.events.acts = None
        for act in acts:
            act.step = self.possible.name(kind, subject)
        return acts

    def waiting(self, state: int) -> list[int]:
        return self.judge.waiting(self.world(state))
