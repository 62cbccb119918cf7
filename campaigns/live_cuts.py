"""Eight processes on a ring with chords, under load, while links are cut at random.

    python campaigns/live_cuts.py --seconds 60 --seed 1

The traces of all nodes are merged and judged; the exit code is 1 if a property was violated
or a request was never served.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from meshlock.live.demo.run import Demo, figures
from meshlock.live.machine.loop import run

NAMES = tuple(f"n{number}" for number in range(8))
LINKS = (*[(n, (n + 1) % 8) for n in range(8)], (0, 4), (1, 5), (2, 6))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--trace", type=Path, help="keep the merged trace in this file")
    given = parser.parse_args()
    with TemporaryDirectory() as folder:

        async def go() -> Demo:
            demo = Demo(Path(folder), given.seconds, given.seed, NAMES, LINKS)
            await demo.run()
            return demo

        demo = run(go())
        merged = given.trace or Path(folder) / "merged.jsonl"
        demo.merge(merged)
        found = figures(merged, demo)
    print(json.dumps(found, indent=2))
    return 0 if found["holds"] and not found["unserved"] else 1


if __name__ == "__main__":
    sys.exit(main())
