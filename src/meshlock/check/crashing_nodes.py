"""Nodes that may crash, as a state machine: see :mod:`.crash_events` for what can happen."""

from __future__ import annotations

from collections.abc import Container
from typing import Any, cast

from meshlock.algorithms.actor import NIL
from meshlock.check import kinds
from meshlock.check.crash_events import CrashEvents, birth, first_epoch
from meshlock.check.layers import NO_BOOT, Key, Place
from meshlock.check.model import Act, Fault, Part
from meshlock.check.setup import SetUp
from meshlock.check.slow_disks import translated
from meshlock.check.standings import NO_SHIFTS
from meshlock.check.system import System, called
from meshlock.check.world import Step, World
from meshlock.errors import Refused, setting


class Crashing(System):
    def __init__(self, setup: SetUp, judged: set[str]) -> None:
        super().__init__(setup, judged)
        assert setup.faults is not None
        self.bounds = setup.faults
        self.events = CrashEvents(setup, self.order, setup.faults, judged)
        self.layers, self.mail = self.events.layers, self.events.mail
        self.mailboxes, self.judge = self.events.mailboxes, self.events.judge
        self.worlds, self.links = self.events.worlds, self.events.links
        self.rests = self.worlds.rests
        self.first: World | None = None
        self.seen: Container[int] = set()  # states that were judged when they were reached first

    # -- states as numbers ---------------------------------------------------------------------

    def world(self, state: int) -> World:
        return self.worlds.joined(self.worlds.parts(state))

    def parts(self, state: int) -> list[int]:
        return self.worlds.parts(state)

    def half(self, slot: int) -> int:
        return 0 if slot < self.size else 1

    def joined(self, parts: list[int]) -> int:
        return self.worlds.number(self.worlds.joined(parts))

    def met(self, slot: int) -> int:
        if slot < self.size:
            return len(self.layers.places[slot])
        return len(self.mailboxes.loose) if slot == self.size else len(self.rests.all)

    def meaning(self, slot: int, number: int) -> Part:
        if slot < self.size:
            place = self.layers.places[slot][number]
            return place.up, place.state, place.disk, place.boot
        if slot == self.size:
            return self.mailboxes.meaning(number)
        *known, hanging = self.rests.all[number].known
        return (*known, translated(hanging, self.mail.word))

    def number_of(self, slot: int, part: Part) -> int:
        if slot < self.size:
            return self.layers.find(slot, cast(Key, part))
        if slot == self.size:
            return self.mailboxes.number_of(part)
        *known, hanging = cast("tuple[Any, ...]", part)
        return self.rests.find((*known, translated(hanging, self.mail.heard))).number

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
        steps = self.steps(world)
        for kind, subject in reversed(steps):
            if self.step_name(kind, subject) == step:
                after = self.events.after(world, kind, subject)
                for fault in self.judge.all(world, after, 0):
                    raise Refused(f"{setting('lead')} '{step}' violates a property: {fault.text}.")
                return after
        possible = ", ".join([self.step_name(kind, subject) for kind, subject in steps])
        raise Refused(f"{setting('lead')} '{step}' is not possible here: use one of {possible}.")

    # -- what can happen -----------------------------------------------------------------------

    def steps(self, world: World) -> list[Step]:
        """All that can happen next."""
        left, own = world.rest.left, world.rest.own
        found: list[Step] = []
        for i, place in enumerate(world.places):
            steps = own.get((i, place))
            if steps is None:
                steps = own[i, place] = self.own_steps(i, place, left)
            found += steps
        found += self.mailboxes.steps[world.box]
        if (
            left[kinds.LEFT_CRASHES] + left[kinds.LEFT_DEATHS]
            < self.bounds.crashes + self.bounds.stay_dead
        ):
            found = [step for step in found if self.meets_nobody_down(world, step)]
        if left[kinds.LEFT_DOUBLES] > 0 or left[kinds.LEFT_LOSSES] > 0:
            found += self.faults_of_messages(world)
        if self.bounds.slow_disks > 0:
            found = self.with_disks(world, found)
        for number in range(len(self.links)):
            if number in world.rest.cuts:
                found.append((kinds.HEAL, number))
            elif left[kinds.LEFT_CUTS] > 0:
                found.append((kinds.CUT, number))
        if left[kinds.LEFT_TICKS] != 0:
            found.append((kinds.TICK, 0))
            if left[kinds.LEFT_SLOW] > 0:
                found += [(kinds.SLOW, i) for i in range(self.size)]
        return found

    def is_up(self, world: World, i: int) -> bool:
        return self.layers.places[i][world.places[i]].up

    def meets_nobody_down(self, world: World, step: Step) -> bool:
        kind, subject = step
        if kind == kinds.MEET:
            return self.is_up(world, subject % self.size)
        if kind in (kinds.DELIVER, kinds.NEXT):
            return self.is_up(world, self.mail.carried[subject].receiver)
        return True

    def faults_of_messages(self, world: World) -> list[Step]:
        left = world.rest.left
        found: list[Step] = []
        for message in self.mailboxes.loose[world.box]:
            if left[kinds.LEFT_DOUBLES] > 0 and self.meets_nobody_down(
                world, (kinds.DELIVER, message)
            ):
                found.append((kinds.DOUBLE, message))
            if left[kinds.LEFT_LOSSES] > 0:
                found.append((kinds.LOSE, message))
        return found

    def own_steps(self, i: int, number: int, left: tuple[int, ...]) -> list[Step]:
        """Of one node; and to meet others, whether or not they are up."""
        bounds, place = self.bounds, self.layers.places[i][number]
        found: list[Step] = []
        if not place.up and place.boot != NO_BOOT:
            found.append((kinds.RESTART, i))
            if left[kinds.LEFT_FORGETS] > 0:
                found.append((kinds.FORGET, i))
        for step in place.steps:
            if step[0] == kinds.RENEW and not bounds.travelling:
                found += self.meetings(i, place.members)
            elif step[0] == kinds.PRIORITY:
                found += self.changes_of(step[1], left)
            elif self.is_allowed(step, left):
                found.append(step)
        if place.up and left[kinds.LEFT_CRASHES] > 0 and i in bounds.crashing:
            found.append((kinds.CRASH, i))
        if place.up and left[kinds.LEFT_DEATHS] > 0 and i in bounds.crashing:
            found.append((kinds.DIE, i))
        return found

    def is_allowed(self, step: Step, left: tuple[int, ...]) -> bool:
        """Do the bounds allow what this node could do?"""
        kind, subject = step
        if kind == kinds.REQUEST:  # the requests of a node come in their order
            if left[kinds.LEFT_REQUESTS + subject - 1] <= 0:
                return False
            here = self.layers.clients[self.setup.requests[subject - 1].node]
            return all(left[kinds.LEFT_REQUESTS + one - 1] <= 0 for one in here if one < subject)
        if kind == kinds.CHANGE and left[kinds.LEFT_PROPOSALS] == 0:
            return False
        budget = kinds.BUDGETS.get(kind, -1)
        return budget < 0 or left[budget] > 0

    def changes_of(self, client: int, left: tuple[int, ...]) -> list[Step]:
        """To the priorities that its request has not had yet."""
        standing = -left[kinds.LEFT_REQUESTS + client - 1] or client
        shifts = self.standings.raises.get(standing, NO_SHIFTS)
        return [(kinds.PRIORITY, shift) for shift in shifts]

    def meetings(self, i: int, members: tuple[int, ...]) -> list[Step]:
        return [
            (kinds.MEET, i * self.size + member)
            for member in members
            if member != i or len(members) == 1
        ]

    def with_disks(self, world: World, found: list[Step]) -> list[Step]:
        """A renewal that waits for the disk is worth less than the next one."""
        late = [i for i, writes in world.rest.hanging if len(writes) > 0]
        steps = [
            step for step in found if step[0] != kinds.MEET or step[1] // self.size not in late
        ]
        for i in range(self.size):
            if world.writes(i) is not None:
                steps.append((kinds.WRITE, i))
            elif world.rest.left[kinds.LEFT_HANGS] > 0 and self.is_up(world, i):
                steps.append((kinds.HANG, i))
        return steps

    def expand(self, state: int) -> None:
        self.successors.clear()
        self.labels.clear()
        self.faults.clear()
        world, judge = self.world(state), self.judge
        for kind, subject in self.steps(world):
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
        return self.describe_step(self.world(state), *kinds.step_of(label))

    def opening(self) -> list[Act]:
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
            act.step = self.step_name(kind, subject)
        return acts

    def waiting(self, state: int) -> list[int]:
        return self.judge.waiting(self.world(state))

    def step_name(self, kind: int, subject: int) -> str:
        """A step in a word or two: ``crash 1``, ``deliver RENEW 0>2``, ``tick``."""
        if kind in (kinds.DELIVER, kinds.NEXT, kinds.DOUBLE, kinds.LOSE):
            return f"{kinds.NAMES[kind]} {self.mail.name(subject)}"
        if kind == kinds.MEET:
            return f"renew {subject // self.size} with {subject % self.size}"
        if kind in kinds.OF_CLIENTS:
            return called(self.setup, self.layers.cause(self.layers.nodes[0], kind, subject))
        if kind == kinds.CHANGE:
            changes = self.bounds.changes
            add, remove, permits, names = changes[subject % len(changes)]
            action = f"resize to {permits}" if permits else f"remove {remove}"
            action = f"rename to {' '.join(names)}" if names else action
            return f"{action if add == NIL else f'add {add}'} by {subject // len(changes)}"
        if kind in (kinds.CUT, kinds.HEAL):
            return f"{kinds.NAMES[kind]} {self.links[subject][0]}-{self.links[subject][1]}"
        return kinds.NAMES[kind] if kind == kinds.TICK else f"{kinds.NAMES[kind]} {subject}"
