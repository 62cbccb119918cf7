"""Random walks of nodes that crash, with every fault, for every algorithm that can recover.

    python campaigns/recovery_walks.py [--walks N] [--first N] [--algorithm NAME] [--steps N]

A walk follows from its number and its algorithm, so a finding can be walked again. Its bounds are
drawn: three to five nodes, members or not, one or two permits, crashes, lost disks, cuts, epochs,
changes of members (two at once, too), of permits and of their names, changed priorities, deadlines,
parts, doubled and lost messages, slow clocks and disks, nodes that stop for good. Every step is
judged; at the end of every SERVED-th walk faults stop, and everybody must be served. Exits 1 with
the story of the first finding of each algorithm.

Walks are weak where a search is strong: they see deep states, and few of them.
"""

from __future__ import annotations

import argparse
import sys
from random import Random
from time import process_time
from typing import Any

from pin_counts import RECOVERING

from meshlock.algorithms.recovery.records import NO_EPOCH
from meshlock.algorithms.registry import find
from meshlock.check.arguments import judged, setup
from meshlock.check.crashing_nodes import Crashing
from meshlock.check.explorer import Violation
from meshlock.check.kinds import (
    CHANGE,
    CLOSE,
    CRASH,
    CUT,
    DELIVER,
    DOUBLE,
    FORGET,
    GIVE_BACK,
    HEAL,
    LEAVE,
    LOSE,
    MEET,
    NEXT,
    PRIORITY,
    PROPOSE,
    RENEW,
    REQUEST,
    RESEND,
    SLOW,
    TICK,
    WITHDRAW,
)
from meshlock.check.model import Fault
from meshlock.check.serving import NOT_SERVED, ticks_to_serve
from meshlock.check.story import told
from meshlock.check.world import Step, World

SETUPS = 100
"""Walks with the same bounds, one after the other, so that what handlers did is remembered."""
SERVED = 10
USUAL = 2.0
WEIGHTS: dict[int, float] = {
    DELIVER: 8,
    NEXT: 8,
    MEET: 5,
    RENEW: 5,
    REQUEST: 4,
    CLOSE: 3,
    TICK: 1.5,
    LEAVE: 1,
    HEAL: 1,
    GIVE_BACK: 1,
    PROPOSE: 0.7,
    CRASH: 0.5,
    FORGET: 0.5,
    RESEND: 0.5,
    CUT: 0.4,
    DOUBLE: 0.3,
    LOSE: 0.3,
    CHANGE: 0.2,
    WITHDRAW: 0.2,
    PRIORITY: 0.2,
    SLOW: 0.1,
}
"""How likely a kind of step is, of those that are possible; USUAL for the others."""


def words(algorithm: str, draw: Random) -> dict[str, Any]:
    """A set-up with everything on."""
    many = algorithm in ("jiang", "direct")
    nodes = draw.choice([3, 3, 4, 5])
    permits = draw.choice([1, 2]) if many else 1
    members = draw.choice([nodes, nodes, max(1, nodes - 1)])
    requests = [
        f"{node}:{draw.randint(1, permits)}@{draw.randint(0, 3)}"
        for node in range(nodes)
        for _ in range(2)
    ]
    node = draw.randrange(nodes)
    several = any(":2" in request for request in requests)
    lease, slow = draw.choice([2, 3]), draw.choice([0, 1])
    table = {
        "algorithm": algorithm,
        "topology": draw.choice(["line", "ring", "complete", "star"]) if nodes > 2 else "line",
        "nodes": nodes,
        "permits": permits,
        "requests": requests,
        "clients": 2 if many else 1,
        "withdrawals": True,
        "members": str(members),
        "crashes": 3,
        "forgets": 2,
        "proposals": 3,
        "cuts": 2 if find(algorithm).assumes.changing_links else 0,
        "raises": [f"{node}:5" for node in range(nodes)] if many else [],
        "parts": several,
        "doubles": 3,
        "losses": 3,
        "resends": 3,
        "slow_ticks": slow,
        "lease": lease,
        "wait": lease + slow,
        "member_changes": [f"{'remove' if node < members else 'add'} {node}"],
        "handshakes": draw.choice(["eager", "any"]),
        "renewals": draw.choice(["meet", "travel"]),
    }
    return table | changes(table, many, draw)


def changes(table: dict[str, Any], many: bool, draw: Random) -> dict[str, Any]:
    """What a part of the walks have besides: deadlines, another change of members, other permits,
    disks that hang, a node that stops for good."""
    nodes, members, permits = table["nodes"], int(table["members"]), table["permits"]
    more: dict[str, Any] = {"slow_disks": draw.choice([0, 0, 2])}
    if members > 2 and draw.random() < 0.3:
        more |= {"crashes": 2, "stay_dead": 1}
    if many and draw.random() < 0.5:
        more["requests"] = [one + draw.choice(["", ".2", ".7"]) for one in table["requests"]]
        more["raises"] = [f"{node}:{draw.choice(['5', '1.99'])}" for node in range(nodes)]
    if members < nodes or nodes > 3:
        other = draw.choice([f"{'remove' if i < members else 'add'} {i}" for i in range(nodes)])
        if other not in table["member_changes"]:
            more["member_changes"] = [*table["member_changes"], other]
    if many and draw.random() < 0.5:  # after that, a lost disk is more than is promised
        more |= {"slots": True, "forgets": 0, "resizes": [3 - permits]}
        more["renames"] = draw.choice([["1,2"], ["2"], []])
    return more


class Walk:
    def __init__(self, model: Crashing, draw: Random) -> None:
        self.model = model
        self.draw = draw
        self.worlds: list[World] = [model.beginning()]
        self.taken: list[Step] = []
        self.wrong: list[Fault] = []
        self.entries = 0

    def go(self, steps: int) -> None:
        model = self.model
        world = self.worlds[0]
        for _ in range(steps):
            kind, subject = self.choose(model.steps(world))
            after = model.events.after(world, kind, subject)
            self.taken.append((kind, subject))
            self.wrong = model.judge.all(world, after, 0)
            if self.wrong:
                return
            world = after
            self.worlds.append(world)
            self.entries += len(model.judge.entered(self.worlds[-2], world))

    def epochs(self) -> int:
        """How many somebody adopted, besides that in which the walk began."""
        model = self.model
        adopted = {model.at(world, i).adopted for world in self.worlds for i in range(model.size)}
        return len(adopted - {NO_EPOCH}) - 1

    def choose(self, possible: list[Step]) -> Step:
        """First of what kind, then which."""
        kinds: dict[int, list[Step]] = {}
        for step in possible:
            kinds.setdefault(step[0], []).append(step)
        weights = [WEIGHTS.get(kind, USUAL) for kind in kinds]
        kind = self.draw.choices(list(kinds), weights)[0]
        return self.draw.choice(kinds[kind])

    def serve(self) -> None:
        if ticks_to_serve(self.model, self.worlds[-1]) == NOT_SERVED:
            text = "when faults stop here, not all requests are served"
            self.wrong = [Fault("served", text, 0)]

    def story(self) -> list[str]:
        model = self.model
        acts = [
            model.describe_step(world, *step)
            for world, step in zip(self.worlds, self.taken, strict=False)
        ]
        violation = Violation(self.wrong[0].name, self.wrong[0].text, [], [])
        names = [model.step_name(*step) for step in self.taken]
        return [f"--lead '{name}'" for name in names] + told(acts, violation)


class Tally:
    """What came of all walks of one algorithm."""

    def __init__(self) -> None:
        self.steps = self.entries = self.epochs = self.served = self.wrong = 0
        self.story: list[str] = []  # of the first finding

    def row(self) -> str:
        return (
            f"{self.steps:>10,} {self.entries:>9,} {self.epochs:>8,} {self.served:>7,} "
            f"{self.wrong:>6}"
        )


def walk(algorithm: str, first: int, count: int, steps: int) -> Tally:
    tally = Tally()
    for number in range(first, first + count):
        if number == first or number % SETUPS == 0:
            given = words(algorithm, Random(f"{algorithm} {number // SETUPS}"))
            model = Crashing(setup(**given), judged([]))
        one = Walk(model, Random(f"{algorithm} walk {number}"))
        one.go(steps)
        if not one.wrong and number % SERVED == 0:
            one.serve()
            tally.served += 1
        tally.steps += len(one.taken)
        tally.entries += one.entries
        tally.epochs += one.epochs()
        if one.wrong:
            tally.wrong += 1
            if not tally.story:
                said = f"{algorithm}, walk {number}: {one.wrong[0].name}: {one.wrong[0].text}"
                tally.story = [said, str(given), *one.story()]
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--walks", type=int, default=1_000, help="of each algorithm")
    parser.add_argument("--first", type=int, default=0, help="the number of the first walk")
    parser.add_argument("--steps", type=int, default=120, help="of a walk")
    parser.add_argument("--algorithm", action="append", default=[], help="only this one; repeat")
    asked = parser.parse_args()
    stories: list[list[str]] = []
    print(
        f"{'algorithm':<16} {'walks':>8} {'steps':>10} {'entries':>9} {'epochs':>8} "
        f"{'served':>7} {'wrong':>6} {'CPU s':>8}"
    )
    for algorithm in asked.algorithm or RECOVERING:
        began = process_time()
        tally = walk(algorithm, asked.first, asked.walks, asked.steps)
        print(
            f"{algorithm:<16} {asked.walks:>8,} {tally.row()} {process_time() - began:>8.1f}",
            flush=True,
        )
        if tally.story:
            stories.append(tally.story)
    for story in stories:
        print("\n" + "\n".join(story))
    return 1 if stories else 0


if __name__ == "__main__":
    sys.exit(main())
