"""What can happen next to nodes that may crash, and what each such step is called."""

from __future__ import annotations

from meshlock.algorithms.actor import NIL
from meshlock.check import kinds
from meshlock.check.faults import Faults
from meshlock.check.layers import NO_BOOT, Layers
from meshlock.check.links import Pair
from meshlock.check.mailboxes import Mailboxes
from meshlock.check.world import Step, World


class Possible:
    """Every step that the bounds allow; they are taken in :mod:`.crashing_nodes`."""

    def __init__(
        self, layers: Layers, mailboxes: Mailboxes, bounds: Faults, links: list[Pair]
    ) -> None:
        self.layers = layers
        self.mailboxes = mailboxes
        self.mail = layers.mail
        self.bounds = bounds
        self.links = links
        self.setup = layers.setup
        self.size = layers.size

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
        if kind == kinds.PRIORITY:
            client, priority = self.layers.change_of(kind, subject)
            number, changed = (
                subject // (len(self.setup.requests) + 1),
                left[kinds.LEFT_REQUESTS + client - 1],
            )
            now = self.setup.priority(client, changed)
            return priority != now and self.setup.change(changed, number) < 0
        if kind == kinds.CHANGE and left[kinds.LEFT_PROPOSALS] == 0:
            return False
        budget = kinds.BUDGETS.get(kind, -1)
        return budget < 0 or left[budget] > 0

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

    def name(self, kind: int, subject: int) -> str:
        """A step in a word or two: ``crash 1``, ``deliver RENEW 0>2``, ``tick``."""
        if kind in (kinds.DELIVER, kinds.NEXT, kinds.DOUBLE, kinds.LOSE):
            return f"{kinds.NAMES[kind]} {self.mail.name(subject)}"
        if kind == kinds.MEET:
            return f"renew {subject // self.size} with {subject % self.size}"
        if kind in (kinds.REQUEST, kinds.LEAVE, kinds.WITHDRAW):
            return f"{kinds.NAMES[kind]} {self.setup.client_name(subject)}"
        if kind == kinds.PRIORITY:
            client, priority = self.layers.change_of(kind, subject)
            return f"priority {self.setup.client_name(client)} {self.setup.in_steps(priority):.12g}"
        if kind == kinds.GIVE_BACK:
            client, number = self.layers.change_of(kind, subject)
            more = "" if number == 1 else f" {number}"
            return f"{kinds.NAMES[kind]} {self.setup.client_name(client)}{more}"
        if kind == kinds.CHANGE:
            changes = self.bounds.changes
            add, remove, permits, names = changes[subject % len(changes)]
            action = f"resize to {permits}" if permits else f"remove {remove}"
            action = f"rename to {' '.join(names)}" if names else action
            return f"{action if add == NIL else f'add {add}'} by {subject // len(changes)}"
        if kind in (kinds.CUT, kinds.HEAL):
            return f"{kinds.NAMES[kind]} {self.links[subject][0]}-{self.links[subject][1]}"
        return kinds.NAMES[kind] if kind == kinds.TICK else f"{kinds.NAMES[kind]} {subject}"
