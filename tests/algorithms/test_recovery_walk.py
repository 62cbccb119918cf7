"""The walk of a crash and its recovery: which files of the algorithms it passes, from the missed
holder to the first client that is served again.

    make walk
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
from layer_machines import LEASE, born

from meshlock.algorithms.direct import DirectNode
from meshlock.algorithms.recovery import layer
from meshlock.algorithms.recovery.epoch import EpochState
from meshlock.algorithms.recovery.gate import Gate
from meshlock.algorithms.recovery.member import PoolMember
from meshlock.algorithms.recovery.proposal import Proposal
from meshlock.algorithms.recovery.timers import Timers
from walks import Walk

PAGE = Path(__file__).parents[2] / "docs" / "how-it-works" / "architecture.md"
MOMENTS: list[Any] = [
    Timers.shared_reason,
    PoolMember.propose,
    PoolMember.receive_propose,
    PoolMember.report,
    Proposal.close,
    PoolMember.adopt,
    EpochState.take_part,
    DirectNode.resume,
    PoolMember.confirm,
    EpochState.mint,
    Gate.let_in,
]
MOST = 8


def walk() -> Walk:
    """Of three nodes that which has the token and a grant crashes, while another waits."""
    found, machines = Walk(MOMENTS), born("direct", size=3)
    machines.ask(0)
    machines.ask(1)
    assert machines.who() == [0]
    sys.setprofile(found.note)
    try:
        machines.crash(0)
        machines.run(5 * LEASE)
    finally:
        sys.setprofile(None)
    assert machines.who() == [0, 1]
    return found


@pytest.mark.skipif(not str(layer.__file__).endswith(".py"), reason="compiled calls leave no trace")
def test_the_walk_of_a_recovery_is_short_and_the_page_names_its_files() -> None:
    found = walk()
    assert found.seen == found.moments
    assert len(found.passed) <= MOST, list(found.passed)
    text = PAGE.read_text(encoding="utf-8")
    crash = text[text.index("### After a crash") : text.index("### Simulated")]
    rows = re.findall(r"(?m)^\| \[[^]]*\]\(\.\./\.\./src/meshlock/([^)]*)\)", crash)
    assert rows == list(found.passed)


if __name__ == "__main__":
    walk().show()
