"""Random stories in :mod:`layer_world`: a world follows from its seed, and all that happens there.

Everything may fail until it is mended; then everybody must be served and all permits come back.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

from layer_world import LEASE, NAMES, World, check

from meshlock.algorithms.actor import NIL, Algorithm
from meshlock.algorithms.conflicts import LINES
from meshlock.algorithms.recovery.layer import Layer
from meshlock.algorithms.recovery.records import Change
from meshlock.algorithms.recovery.terms import Rules
from meshlock.algorithms.registry import find
from meshlock.algorithms.steps import step

ALGORITHMS = (
    "jiang",
    "direct",
    "reverse-link",
    "naimi-trehel",
    "raymond",
    "centralized",
    "suzuki-kasami",
    "neilsen-mizuno",
)

GROWING = Rules(5, LEASE // 2, 2 * LEASE)
"""Members that choose themselves, in a hurry."""

STEPS = 150
MOST = 4
"""Permits, where they change."""
PATIENCE = 30 * LEASE
"""So long may it take, once all is mended, until the last is served."""


class Story:
    def __init__(
        self,
        algorithm: str | Algorithm,
        seed: int,
        make: type[Layer] = Layer,
        rules: Rules | None = None,
        more: bool = True,
    ) -> None:
        """``more``: slow disks, members that die for good, changes of members from two places,
        deadlines, parts that come twice."""
        self.random = draw = Random(seed)
        self.more = more = Random(f"{seed} more") if more else None
        entry = find(algorithm) if isinstance(algorithm, str) else algorithm
        size = draw.choice([2, 3, 3, 4, 5])
        permits = draw.choice([1, 2, 3]) if entry.problem == "h-of-k" else 1
        if more is not None and entry.problem == "h-of-k":
            permits = more.choice([permits, permits, MOST])
        members = draw.choice([size, size, min(size, 3), min(size, 2)])
        self.crashes = draw.random() < 0.7
        self.changes = draw.random() < 0.3
        self.sizing = Random(f"{seed} sizes")
        self.ties = Random(f"{seed} ties")
        self.resizes = entry.problem == "h-of-k" and self.sizing.random() < 0.4
        # after changes of members or permits a lost disk is more than recovery promises to survive
        forgets = 0.0 if self.changes else draw.choice([0.0, 0.2, 0.5])
        self.forgets = 0.0 if self.resizes else forgets
        self.rules = rules
        self.cuts = draw.random() < 0.6
        self.sleeps = draw.random() < 0.3
        self.pauses = draw.choice([(0, 1, 2, 5), (0, 1, 2, 5, 20, 60), (0, 5, 50, 200)])
        self.probed = 0  # clients let in while their order was judged
        self.equals = 0  # of these, those behind which another of their priority had asked
        self.crossed = 0  # two changes of members that began at once
        self.crossing = more is not None and more.random() < 0.6
        self.deadlines = more is not None and more.random() < 0.3
        self.mortal = more is not None and more.random() < 0.4
        extras = extras_of(more) if more is not None else {}
        options = {}
        if more is not None and "rest" in entry.options:  # the token moves on, soon or late
            options["rest"] = Random(f"{seed} rest").choice(["1", "2", "3", "7", "61"])
        self.world = World(
            entry,
            size,
            links(draw.choice(["line", "ring", "star", "complete"]), size),
            permits,
            seed,
            members,
            slowest=draw.choice([1, 3, 3, 20]),
            loss=draw.choice([0.0, 0.0, 0.05, 0.2]),
            doubles=draw.choice([0.0, 0.1]),
            skew=draw.random() < 0.5,
            blind=draw.choice([0.0, 0.0, 0.8]),
            twins=draw.choice([0.0, 0.0, 0.1]),
            make=make,
            options=options,
            rules=rules,
            in_grants=self.deadlines,
            **extras,
        )

    def happen(self) -> None:
        world = self.world
        world.run(self.random.choice([0, 700]))
        for _ in range(STEPS):
            self.step()
            if self.more is not None:
                self.step_more(self.more)
            if self.resizes and self.sizing.random() < 0.05:
                self.resize(self.sizing.randrange(world.size), self.sizing.randint(1, MOST))
            world.run(self.random.choice(self.pauses))
            if world.held and world.waiting:
                self.judge_order()

    def tell(self) -> World:
        self.happen()
        world = self.world
        world.mend()
        if self.resizes:
            self.finish_resizing()
        check(world.until_served(PATIENCE), f"not served: {world.why()}")
        check(world.until_whole(PATIENCE), "permits were lost")
        if self.changes:
            self.finish_changes()
        return world

    def step(self) -> None:
        draw, world = self.random, self.world
        node = draw.randrange(world.size)
        what = draw.random()
        if what < 0.35 and world.up[node]:
            world.ask(node, draw.randint(1, world.permits), self.urgency(draw.randrange(3)))
        elif what < 0.6 and world.held:
            world.leave(draw.choice(sorted(world.held)))
        elif what < 0.65 and world.waiting:
            world.withdraw(draw.choice(sorted(world.waiting)))
        elif what > 0.96 and world.held:
            world.give_back(draw.choice(sorted(world.held)))
        elif what > 0.93 and world.waiting:
            number = draw.choice(sorted(world.waiting))
            world.change_priority(number, self.urgency(draw.randrange(3)))
        elif what < 0.7 and self.crashes and world.up[node]:
            world.crash(node)
        elif what < 0.77 and not world.up[node] and node not in world.dead:
            forget = draw.random() < self.forgets
            world.start(node, forget and (self.rules is None or world.may_forget(node)))
        elif what < 0.83 and self.cuts:
            link = draw.choice(sorted(world.all_links))
            world.set_link(*link, link not in world.links)
        elif what < 0.88 and self.changes and world.up[node]:
            self.change_members(node)
        elif what < 0.9:
            self.propose(node)
        elif what < 0.93 and self.sleeps and world.up[node]:
            world.asleep ^= {node}

    def step_more(self, draw: Random) -> None:
        world = self.world
        what = draw.random()
        if what < 0.02 and self.mortal:
            node = draw.randrange(world.size)
            if node not in world.dead and world.survives(node, self.wanted()):
                world.die(node)
        elif what < 0.05 and world.waiting:
            number = draw.choice(sorted(world.waiting))
            world.change_priority(number, self.urgency(draw.randrange(3)))
        several = [number for number, one in sorted(world.held.items()) if one.want > 1]
        if several and draw.random() < 0.3:
            number = draw.choice(several)
            world.give_back(number, draw.randint(1, world.held[number].want - 1))

    def urgency(self, priority: int) -> int:
        """As in live pools: a step counts for a hundred grants, and a deadline for fewer."""
        if self.more is None or not self.deadlines:
            return priority
        due = self.more.random() < 0.5
        return priority * step({}) + (self.more.randrange(1, step({})) if due else 0)

    def wanted(self) -> list[Change]:
        """All changes that somebody is about to make."""
        paces = [self.world.nodes[i].timers for i in self.living()]
        found = [pace.wanted for pace in paces if pace.wanted is not None]
        return [*self.changing(), *found]

    def change_members(self, node: int) -> None:
        """Never the last member. Two members may each want another change at the same time."""
        if not self.changing():
            self.change(node)
            others = [i for i in range(self.world.size) if i != node and self.world.up[i]]
            if self.crossing and others:
                self.change(self.random.choice(others))
            self.crossed += len(self.changing()) > 1

    def changing(self) -> list[Change]:
        """What users have asked for."""
        nodes = [self.world.nodes[i] for i in self.living()]
        return [node.timers.change for node in nodes if node.timers.change is not None]

    def change(self, node: int) -> None:
        """Two changes must not contradict each other, nor leave a quorum that is dead."""
        world, one = self.world, self.world.nodes[node]
        if not one.member.is_member() or one.timers.change is not None:
            return
        other = self.random.randrange(world.size)
        taken = [(change.add, change.remove) for change in self.changing()]
        if one.member.members == (other,) or any(other in pair for pair in taken):
            return
        added = other not in one.member.members
        change = Change(add=other) if added else Change(remove=other)
        if world.survives(NIL, [*self.wanted(), change]) and other not in world.dead:
            one.timers.change = change

    def resize(self, node: int, permits: int) -> None:
        one = self.world.nodes[node]
        sizes = [change for change in self.changing() if change.permits > 0 or change.names]
        free = not sizes if self.crossing else not self.changing()
        if one.member.is_member() and one.timers.change is None and free:
            self.world.resizes.add(permits)
            names = tuple(self.sizing.sample(NAMES, permits)) if self.sizing.random() < 0.5 else ()
            one.timers.change = Change(names=names) if names else Change(permits=permits)

    def finish_resizing(self) -> None:
        """In the end there is enough for everybody."""
        world = self.world
        end = world.now + PATIENCE
        for node in world.nodes:
            node.timers.change = None
        while not any(world.nodes[i].member.config.permits == MOST for i in world.usable()):
            check(world.now < end, "permits are not changed")
            for node in world.nodes:
                if not node.member.is_member():  # it has learned so since
                    node.timers.change = None
            members = [
                node.me for node in world.nodes if node.member.is_member() and world.up[node.me]
            ]
            self.resize(members[0], MOST)
            world.tick(end)

    def propose(self, node: int) -> None:
        """For no reason at all."""
        if self.world.up[node]:
            self.world.ready(node).propose()
            self.world.done(node)

    def judge_order(self) -> None:
        """What is promised of priorities: when all requests have arrived where they count, and
        then somebody leaves, nobody is let in while a higher priority waits; at least not first:
        where every node has its own queue, the token may pass on before it is asked back. The order
        is that in which grants were made: some have a way to go.

        A hundred grants make up for one step of priority: there are always fewer here. Where
        priorities come in grants, those that were made may make up for that many."""
        world = self.world
        if (
            not world.terms.algorithm.serves.priorities
            or not world.connected()
            or not world.quiet()
        ):
            return
        if not world.until_sure(LEASE // 2) or not world.is_seen() or not world.held:
            return  # what it asked for was struck out, and it is to ask again
        (holder,) = world.usable()
        epoch, before = world.nodes[holder].member.adopted, len(world.entered)
        if world.nodes[holder].member.paused():
            return
        # who wants more waits for an epoch that has it
        permits = world.nodes[holder].member.config.permits
        later, earlier = self.ask_after_equals(permits)
        waiting = {number: one for number, one in world.waiting.items() if one.want <= permits}
        if later and not (world.until_sure(LEASE) and world.is_seen() and world.held):
            return
        world.leave(self.random.choice(sorted(world.held)))
        world.tick()
        world.until_quiet(LEASE)
        if any(node.member.promised != epoch for node in world.nodes):
            return
        entered = sorted(world.entered[before:], key=lambda one: one.fence)
        for client in entered[:1] if world.terms.algorithm.assumes.changing_links else entered:
            waiting.pop(client.number, None)
            most = client.priority + (len(world.makers) if self.deadlines else 0)
            higher = [one for one in waiting.values() if one.priority > most]
            check(not higher, "a lower priority was served first")
            passed = client.number == later and not earlier.isdisjoint(waiting)
            check(not passed, "of equals the later was served first")
            self.probed += 1
            self.equals += client.number in earlier

    def ask_after_equals(self, permits: int) -> tuple[int, set[int]]:
        """Somebody asks where all have asked before: number and those of the same priority that
        are to be served before it. With one queue for all nodes these are all that it has: as many
        of each node as there are permits. Else they are those of its own node. 0: nobody asks."""
        world, draw = self.world, self.ties
        if self.more is None or draw.random() < 0.5:
            return 0, set()
        here = Counter([one.node for one in world.waiting.values()])
        lines = min(permits, LINES)
        open_to_all = world.terms.algorithm.name.partition("/")[0] == "direct"
        known = [
            one
            for _, one in sorted(world.waiting.items())
            if one.want <= permits and (here[one.node] <= lines or not open_to_all)
        ]
        if not known:
            return 0, set()
        first = draw.choice(known)
        free = [i for i in range(world.size) if here[i] < lines] if open_to_all else [first.node]
        if not free:
            return 0, set()
        node = draw.choice(free)
        equals = {
            one.number
            for one in known
            if one.priority == first.priority and (open_to_all or one.node == node)
        }
        later = world.ask(node, draw.randint(1, permits), first.priority)
        return later, equals

    def finish_changes(self) -> None:
        """Whatever members want to change is changed, one after the other; but a node that is dead
        for good never reports, so it cannot become a member."""
        world = self.world
        end = world.now + PATIENCE
        while any(
            world.nodes[i].member.is_member()
            and change is not None
            and change.add not in world.dead
            for i in self.living()
            for change in [world.nodes[i].timers.change]
        ):
            check(world.now < end, "members are not changed")
            world.tick(end)
        while not self.members_agree():
            check(world.now < end, "members do not agree who they are")
            world.tick(end)

    def members_agree(self) -> bool:
        """All members that the holder of the token goes by; others hear of it when they ask."""
        nodes = self.world.nodes
        for holder in self.world.usable():
            members = nodes[holder].member.members
            living = [member for member in members if member not in self.world.dead]
            return all(nodes[member].member.members == members for member in living)
        return False

    def living(self) -> list[int]:
        return [i for i in range(self.world.size) if i not in self.world.dead]


def extras_of(draw: Random) -> dict[str, Any]:
    """Of a world in which more may happen."""
    disk = draw.choice([0, 0, 3, 30, 200])
    return {
        "disk": disk,
        "fail": draw.choice([0.0, 0.0, 0.2]) if disk else 0.0,
        "parts": draw.choice([0.0, 0.0, 0.6]),
        "any_boot": draw.random() < 0.5,
    }


def links(shape: str, size: int) -> list[tuple[int, int]]:
    if shape == "star":
        return [(0, i) for i in range(1, size)]
    if shape == "complete":
        return [(i, j) for i in range(size) for j in range(i)]
    line = [(i, i + 1) for i in range(size - 1)]
    return [*line, (0, size - 1)] if shape == "ring" and size > 2 else line
