"""Contact traces: who had a path to a majority for long enough is served, and nothing is unsafe."""

from __future__ import annotations

from pathlib import Path

import pytest

from meshlock.simulate.recovery import RecoverySimulation
from meshlock.simulate.settings import run_settings, simulation
from meshlock.trace.audit import Audit
from meshlock.trace.reader import Trace
from meshlock.trace.writer import TraceWriter
from whole import WHOLE

ABOVE = [folder / "shared" / "data" for folder in Path(__file__).parents]

MEETINGS = """0 CONN 0 1 up
100 CONN 1 2 up
400 CONN 1 2 down
500 CONN 0 1 down
520 CONN 2 3 up
600 CONN 0 3 up
640 CONN 1 3 up
650 CONN 2 3 down
900 CONN 0 3 down
950 CONN 0 2 up
1000 CONN 1 3 down
"""
"""Four nodes, three of them members: nobody alone is a majority, and node 3 passes messages on."""


def finished(run: RecoverySimulation) -> RecoverySimulation:
    run.start()
    while run.run(100_000):
        pass
    run.finish()
    return run


def among(path: Path, **given: str | int) -> RecoverySimulation:
    usual: dict[str, str | int] = {
        "members": "all",
        "lease": "5",
        "delay": "0.005",
        "hold": "1",
        "workload": "poisson:0.02",
        "requests": 1_000_000,
        "mobility": str(path),
    }
    run = simulation(run_settings({**usual, **given}), None)
    assert isinstance(run, RecoverySimulation)
    return run


@pytest.fixture
def meetings(tmp_path: Path) -> Path:
    path = tmp_path / "meetings.tsv"
    path.write_text(MEETINGS.replace(" ", "\t"))
    return path


def test_meetings_of_four(meetings: Path):
    run = finished(among(meetings, members="3", until="1100"))
    found = run.figures()
    assert run.monitor.violated == {}
    assert 0.8 < found["majority_share"] < 1.0
    assert run.measures.requested >= 60
    assert run.measures.waiting > 0  # from 1000 on nodes 1 and 3 see nobody, 0 and 2 go on
    assert 30 < found["requests_with_path"] < run.measures.requested
    assert found["unserved_with_path"] == found["late_with_path"] == 0


def test_who_promises_too_much_is_found_out(meetings: Path):
    run = among(meetings, members="3", until="1100")
    run.paths.recover = run.paths.queue = 1.0  # not even the silence at birth takes so little
    finished(run)
    assert run.waits.late > 0
    assert "although a quorum was reachable" in run.monitor.violated["served"]


def test_the_audit_sees_the_same_paths(meetings: Path, tmp_path: Path):
    path = tmp_path / "run.jsonl"
    settings = run_settings(
        {
            "members": "3",
            "lease": "5",
            "delay": "0.005",
            "workload": "poisson:0.02",
            "mobility": str(meetings),
            "until": "1100",
        }
    )
    with path.open("wb") as file:
        run = simulation(settings, TraceWriter(file, False))
        assert isinstance(run, RecoverySimulation)
        finished(run)
    verdict = Audit(Trace(path))
    assert verdict.monitor.violated == {}
    assert verdict.leases is not None and verdict.leases.paths is not None
    assert verdict.leases.paths.times == run.paths.times
    assert verdict.leases.paths.parts == run.paths.parts


FILES: list[tuple[str, dict[str, str | int], int]] = [
    (
        "haggle-intel.tsv",
        {"lease": "60", "workload": "poisson:0.00166667", "until": "20000"},
        40,
    ),
    ("rwp_10.ns_movements", {"range": "100", "lease": "3", "until": "900"}, 50),
    ("rwp_10.movements.gz", {"range": "100", "lease": "3", "until": "900"}, 50),
    ("rwp_10.movements.gz", {"range": "150", "permits": 2, "want": "1-2", "until": "900"}, 50),
]


@pytest.mark.parametrize(("name", "given", "least"), FILES)
def test_recorded_contacts_and_movements(name: str, given: dict[str, str | int], least: int):
    files = [folder / name for folder in ABOVE if (folder / name).exists()]
    if not files:
        pytest.skip("the recorded traces are not here")
    share = 1.0 if WHOLE else 0.35
    until = float(given["until"]) * share
    run = finished(among(files[0], **{**given, "until": str(until)}))
    found = run.figures()
    assert run.monitor.violated == {}
    assert found["requests_with_path"] > least * share
    assert found["unserved_with_path"] == found["late_with_path"] == 0
