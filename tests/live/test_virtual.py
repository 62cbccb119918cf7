"""A few runs of chaos in virtual time; campaigns/virtual_chaos.py makes thousands."""

from __future__ import annotations

from pathlib import Path

import pytest
from virtual_chaos import chaos


@pytest.mark.parametrize("seed", range(3))
def test_a_quarter_of_an_hour_of_chaos_in_seconds(tmp_path: Path, seed: int) -> None:
    log = chaos(tmp_path, seed, 1000.0)
    counts = {what: sum(one[1] == what for one in log) for what in ("enter", "kill", "lost")}
    assert counts["enter"] > 200 and counts["kill"] > 10
    print(seed, counts, f"until {log[-1][0]:.0f}")


def test_one_seed_is_one_run(tmp_path: Path) -> None:
    logs = [chaos(tmp_path / name, 7, 100.0) for name in ("once", "again")]
    assert logs[0] == logs[1]
    assert logs[0] != chaos(tmp_path / "other", 8, 100.0)
