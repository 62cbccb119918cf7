"""A thousand births of pools in virtual time, with all that can go wrong before there is a pool.

    python campaigns/births.py [--runs N] [--first SEED]

Never more than k permits may be in use, in all pools of one name together, and when faults stop
everybody must be served by one pool. What happens is in tests/live/birth_stories.py; one seed is
one run.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "live"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from birth_stories import PERMITS, birth


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    logging.getLogger("meshlock").setLevel(logging.CRITICAL)
    found, pools, wrong = Counter[int](), Counter[int](), list[int]()
    forgot = 0
    for seed in range(options.first, options.first + options.runs):
        with tempfile.TemporaryDirectory() as folder:
            outcome = birth(seed, Path(folder))
        found[outcome.most] += 1
        pools[outcome.pools] += 1
        forgot += outcome.forgot
        if outcome.most > PERMITS or not outcome.served:
            wrong.append(seed)
            print(f"seed {seed}: {outcome}", flush=True)
    print(f"{options.runs} births; in use at most, of {PERMITS}: {dict(sorted(found.items()))}")
    print(f"pools that granted anything: {dict(sorted(pools.items()))}; wrong: {wrong}")
    print(f"{forgot} lost disks")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":  # else a seed would be another run every time
        known = {**os.environ, "PYTHONHASHSEED": "0"}
        os.execve(sys.executable, [sys.executable, *sys.argv], known)
    main()
