"""Explore recovery within wider bounds than the tests have time for.

    python campaigns/recovery_check.py [--most=STATES] [NAME ...]

Every set-up is explored to the end or to so many states, breadth first; from every STRIDE-th
state faults stop, and all must be served (with ``asks=0`` somebody asks only then). Counts
that are complete are pinned here (two-permits needs ``--most=2500000``).
"""

from __future__ import annotations

import sys
import time

from meshlock.algorithms.recovery.node import RecoveryNode
from meshlock.check.explorer import Explorer
from meshlock.check.recovery import Bounds, RecoveryModel
from meshlock.check.recovery_mutants import MUTANTS

MOST = 1_000_000
STRIDE = 200
LONGEST = 30  # ticks

SETUPS: dict[str, tuple[Bounds, int]] = {
    "two-clients": (Bounds(wants={0: 1, 1: 1}, proposers=(2,), leaves=False), 302_087),
    "crash": (Bounds(wants={0: 1}, proposers=(1,), crashes=1), 311_873),
    "forgetting": (
        Bounds(wants={0: 1}, proposers=(1,), crashes=1, crashing=(0,), forgets=1),
        189_657,
    ),
    "birth-duel": (Bounds(wants={0: 1}, proposals=2, proposers=(0, 1), born=True), 655_419),
    "doubled": (Bounds(wants={1: 1}, proposers=(2,), doubles=1, leaves=False), 171_371),
    "sent-again": (Bounds(wants={1: 1}, proposers=(2,), repeats=1, leaves=False), 122_219),
    "duel": (Bounds(wants={0: 1}, proposals=2, proposers=(1, 2), leaves=False), 635_884),
    "two-permits": (Bounds(permits=2, wants={0: 1, 1: 1}, proposers=(2,), leaves=False), 1_496_205),
    "two-permits-crash": (
        Bounds(permits=2, wants={0: 1, 1: 1}, proposers=(2,), crashes=1, leaves=False),
        0,
    ),
    "many-clients": (
        Bounds(clients=((0, 1, 0), (1, 1, 0), (1, 1, 1)), proposals=0, withdraws=1),
        359_598,
    ),
    "two-crashes": (Bounds(wants={0: 1}, proposers=(1,), crashes=2, leaves=False), 0),
    "slow": (Bounds(wants={0: 1}, proposers=(2,), slow=1, lease=2, wait=3), 59_079),
    "renewals-travel": (Bounds(wants={1: 1}, proposers=(2,), detached=True, leaves=False), 0),
    "five-members": (Bounds(5, wants={1: 1}, asks=0, proposers=(4,)), 279_530),
    "three-epochs": (Bounds(wants={1: 1}, asks=0, proposals=3, proposers=(1, 2)), 648_370),
    "no-member": (Bounds(1, 1, proposals=2, wants={0: 1, 1: 1}, crashes=1, leaves=False), 225_200),
    "long-lease": (Bounds(wants={0: 1}, proposers=(2,), lease=3, wait=3), 65_018),
    "two-to-three": (Bounds(2, 1, wants={}, proposals=2, changes=((True, 2),), crashes=1), 454_103),
    "three-to-four": (
        Bounds(3, 1, wants={}, proposals=2, proposers=(0, 1), changes=((True, 3),)),
        802_488,
    ),
    "three-to-two": (
        Bounds(wants={}, proposals=2, proposers=(0, 1), changes=((False, 2),), crashes=1),
        0,
    ),
    "two-to-three-to-two": (
        Bounds(2, 1, wants={}, proposals=3, proposers=(0, 1), changes=((True, 2), (False, 1))),
        0,
    ),
    "added-client": (
        Bounds(2, 1, wants={2: 1}, proposals=2, changes=((True, 2),), leaves=False),
        0,
    ),
}

DURABLE = ["renews-the-dead", "answers-without-promise", "confirmed-by-any-boot"]
"""Rules that matter only where a disk can be lost: without that, their mutants must survive."""


class GoesByTheMembersBefore(RecoveryNode):
    """A change of members is promised by a majority of those before it instead of those after.
    By the argument of ``may_change`` that is as good, so nothing must be found."""

    def may_close(self) -> bool:
        proposal = self.proposal
        if proposal is None or proposal.closed:
            return False
        before = self.latest(proposal)[1]
        counted = [node for node in proposal.reports if node in before]
        return len(counted) >= len(before) // 2 + 1


CHANGING = ["two-to-three", "three-to-two", "two-to-three-to-two"]

WITH_DISKS: list[Bounds] = [
    Bounds(wants={}, proposals=2, proposers=(1, 2), crashes=1, crashing=(0, 1)),
    Bounds(wants={0: 1}, proposers=(1,), crashes=1),
]


def explore(name: str, model: RecoveryModel, pinned: int, follow: bool, most: int = MOST) -> bool:
    began = time.process_time()
    explorer = Explorer(model, most)
    while explorer.run(20_000):
        pass
    seen = "complete" if explorer.complete() else "not complete"
    broken = ", ".join(sorted(explorer.violations)) or "nothing"
    worst = 0
    stuck = 0
    if follow:
        for state in explorer.states[::STRIDE]:
            ticks = model.rounds_to_serve(state, LONGEST)
            worst = max(worst, ticks)
            stuck += ticks < 0
    print(
        f"{name:<36} {explorer.count():>9,} states {explorer.transitions:>10,} steps, depth "
        f"{explorer.depth:>2}, {seen}, violated: {broken}, served within {worst} ticks, "
        f"stuck: {stuck}, {time.process_time() - began:.0f} s",
        flush=True,
    )
    wrong = bool(explorer.violations) or stuck > 0
    if 0 < pinned < most and (explorer.count() != pinned or not explorer.complete()):
        print(f"  pinned: {pinned:,} states")
        wrong = True
    return not wrong


def main() -> int:
    most = MOST
    names: list[str] = []
    for word in sys.argv[1:]:
        if word.startswith("--most="):
            most = int(word.removeprefix("--most="))
        else:
            names.append(word)
    chosen = names or [*SETUPS, *DURABLE, "members-before"]
    sound = True
    for name, (bounds, pinned) in SETUPS.items():
        if name in chosen:
            sound &= explore(name, RecoveryModel(bounds, RecoveryNode), pinned, True, most)
    for mutant in MUTANTS:
        name = mutant.name.split("/")[1]
        if name in DURABLE and name in chosen:
            for bounds in WITH_DISKS:
                model = RecoveryModel(bounds, mutant.make)
                sound &= explore(f"{name}, with disks", model, 0, False)
    if "members-before" in chosen:
        for name in CHANGING:
            model = RecoveryModel(SETUPS[name][0], GoesByTheMembersBefore)
            sound &= explore(f"members-before, {name}", model, 0, False)
    return 0 if sound else 1


if __name__ == "__main__":
    sys.exit(main())
