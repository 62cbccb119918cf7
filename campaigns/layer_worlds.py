"""Random worlds of layered nodes by the thousand: prints every one in which something went wrong.

    python campaigns/layer_worlds.py [COUNT [SEED [ALGORITHM ...]]]
    python campaigns/layer_worlds.py auto [COUNT [SEED [ALGORITHM ...]]]

With ``auto`` the members of each world choose themselves.

A world follows from its algorithm and its seed, so a finding can be run again by itself. The worlds
and their judge are those of the tests (tests/algorithms/layer_stories.py), which run a few of them.
"""

from __future__ import annotations

import sys
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "algorithms"))

from layer_stories import ALGORITHMS, GROWING, Story


def main() -> int:
    words = sys.argv[1:]
    rules = GROWING if words[:1] == ["auto"] else None
    words = words[1:] if rules is not None else words
    count = int(words[0]) if words else 100
    first = int(words[1]) if len(words) > 1 else 0
    wrong = 0
    for algorithm in words[2:] or ALGORITHMS:
        began = time.process_time()
        found = entries = epochs = lost = members = 0
        for seed in range(first, first + count):
            story = Story(algorithm, seed, rules=rules)
            try:
                story.tell()
            except Exception as error:
                found += 1
                where = traceback.extract_tb(error.__traceback__)[-3:]
                places = " < ".join([f"{one.name}:{one.lineno}" for one in reversed(where)])
                print(algorithm, seed, type(error).__name__, error, places, flush=True)
            entries += len(story.world.entered)
            epochs += len(story.world.epochs)
            lost += story.world.lost
            members = max(members, *[len(node.member.members) for node in story.world.nodes])
        wrong += found
        took = time.process_time() - began
        print(
            f"{algorithm}: worlds {first} to {first + count - 1}: {entries} entries, {epochs} "
            f"epochs, {lost} leases lost, up to {members} members; {found} went wrong; "
            f"{took:.1f} s",
            flush=True,
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
