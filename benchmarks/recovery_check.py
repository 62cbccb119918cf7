"""Explore recovery within wider bounds than the tests have time for.

    python benchmarks/recovery_check.py [NAME ...]

Every set-up is explored to the end or to MOST states, breadth first; from every STRIDE-th
state faults stop, and all must be served (with ``asks=0`` somebody asks only then). Counts
that are complete are pinned here.
"""

from __future__ import annotations

import sys
import time

from meshlock.algorithms.recovery.node import RecoveryNode
from meshlock.check.explorer import Explorer
from meshlock.check.mutants.recovery import MUTANTS
from meshlock.check.recovery import Bounds, RecoveryModel

MOST = 1_200_000
STRIDE = 50
LONGEST = 30  # ticks

SETUPS: dict[str, tuple[Bounds, int]] = {
    "two-clients": (Bounds(wants={0: 1, 1: 1}, proposers=(2,)), 168_500),
    "forgetting": (Bounds(wants={0: 1}, proposers=(1,), crashes=1, forgets=1), 120_528),
    "birth-duel": (Bounds(wants={0: 1}, proposals=2, proposers=(0, 1), born=True), 89_431),
    "doubled": (Bounds(wants={1: 1}, proposers=(2,), doubles=1), 106_393),
    "duel": (Bounds(wants={0: 1}, proposals=2, proposers=(1, 2)), 461_948),
    "two-permits": (Bounds(permits=2, wants={0: 1, 1: 1}, proposers=(2,)), 807_196),
    "two-permits-crash": (
        Bounds(permits=2, wants={0: 1, 1: 1}, proposers=(2,), crashes=1, leaves=False),
        928_303,
    ),
    "duel-forgetting": (
        Bounds(
            wants={1: 1}, asks=0, proposals=2, proposers=(1, 2), crashes=1, crashing=(0,), forgets=1
        ),
        0,
    ),
    "two-crashes": (Bounds(wants={0: 1}, proposers=(1,), crashes=2), 210_619),
    "slow": (Bounds(wants={0: 1, 1: 1}, proposers=(2,), slow=1, lease=2, wait=3), 504_587),
    "renewals-travel": (Bounds(wants={1: 1}, proposers=(2,), detached=True), 0),
    "five-members": (Bounds(5, wants={1: 1}, asks=0, proposers=(4,)), 104_699),
    "three-epochs": (Bounds(wants={1: 1}, asks=0, proposals=3, proposers=(1, 2)), 469_383),
    "no-member": (Bounds(1, 1, proposals=2, wants={0: 1, 1: 1}, crashes=1), 247_321),
    "long-lease": (Bounds(wants={0: 1}, proposers=(2,), lease=3, wait=3), 16_626),
}

DURABLE = ["renews-the-dead", "answers-without-promise", "confirmed-by-any-boot"]
"""Rules that matter only where a disk can be lost: without that, their mutants must survive."""

WITH_DISKS: list[Bounds] = [
    Bounds(wants={}, proposals=2, proposers=(1, 2), crashes=1, crashing=(0, 1)),
    Bounds(wants={0: 1}, proposers=(1,), crashes=1),
]


def explore(name: str, model: RecoveryModel, pinned: int, follow: bool) -> bool:
    began = time.process_time()
    explorer = Explorer(model, MOST)
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
    if pinned and (explorer.count() != pinned or not explorer.complete()):
        print(f"  pinned: {pinned:,} states")
        wrong = True
    return not wrong


def main() -> int:
    chosen = sys.argv[1:] or [*SETUPS, *DURABLE]
    sound = True
    for name, (bounds, pinned) in SETUPS.items():
        if name in chosen:
            sound &= explore(name, RecoveryModel(bounds, RecoveryNode), pinned, True)
    for mutant in MUTANTS:
        name = mutant.name.split("/")[1]
        if name in DURABLE and name in chosen:
            for bounds in WITH_DISKS:
                model = RecoveryModel(bounds, mutant.make)
                sound &= explore(f"{name}, with disks", model, 0, False)
    return 0 if sound else 1


if __name__ == "__main__":
    sys.exit(main())
