"""The judge of virtual chaos is awake: it notices live nodes with a rule undone.

These are noticed in seconds; ``campaigns/virtual_chaos.py --sabotage all`` tries all of them.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from sabotages import SABOTAGES, sabotaged
from virtual_chaos import chaos
from virtual_judge import Wrong


@pytest.mark.parametrize("name", ["tells-no-client", "deadline-too-late", "releases-nothing"])
def test_a_sabotage_is_noticed(tmp_path: Path, name: str) -> None:
    with sabotaged(SABOTAGES[name]), pytest.raises(Wrong) as wrong:
        for seed in range(40):
            chaos(tmp_path / str(seed), seed, 300.0)
    print(wrong.value)
