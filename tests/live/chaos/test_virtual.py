"""A few runs of chaos in virtual time; campaigns/virtual_chaos.py makes thousands.

In processes of their own, for what a seed does depends on how names are hashed.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from whole import WHOLE

LIVE = Path(__file__).parents[1]
PROGRAM = """
import sys
from pathlib import Path
from virtual_chaos import chaos
print([one[:2] for one in chaos(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))])
"""


def log(folder: Path, seed: int, seconds: float) -> list[tuple[float, str]]:
    """What was done and seen, and when; judging it fails."""
    path = os.pathsep.join([str(LIVE), str(LIVE.parent), *sys.path])
    command = [sys.executable, "-c", PROGRAM, str(folder), str(seed), str(seconds)]
    known = os.environ | {"PYTHONHASHSEED": "0", "PYTHONPATH": path}
    done = subprocess.run(command, env=known, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    found: list[tuple[float, str]] = ast.literal_eval(done.stdout)
    return found


@pytest.mark.parametrize("seed", range(3))
def test_minutes_of_chaos_in_seconds(tmp_path: Path, seed: int) -> None:
    seconds = 1000.0 if WHOLE else 400.0
    done = log(tmp_path, seed, seconds)
    counts = {what: sum(one[1] == what for one in done) for what in ("enter", "kill", "stage")}
    assert counts["enter"] > seconds / 5 and counts["kill"] > seconds / 100
    assert counts["stage"] > 0


def test_one_seed_is_one_run(tmp_path: Path) -> None:
    once, again = (log(tmp_path / name, 7, 60.0) for name in ("once", "again"))
    assert once == again
    assert once != log(tmp_path / "other", 8, 60.0)
