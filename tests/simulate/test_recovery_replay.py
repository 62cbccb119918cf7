"""Runs of nodes that crash are played again, stated anew and made small like any other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from meshlock.algorithms.mutants.catalogue import MUTANTS
from meshlock.algorithms.mutants.patches import PACKAGE, Patched
from meshlock.simulate.rerun import with_states
from meshlock.simulate.schedule import read, shrink
from meshlock.simulate.settings import run_settings, simulation
from meshlock.trace.audit import Audit
from meshlock.trace.reader import Trace
from meshlock.trace.writer import TraceWriter
from meshlock.world import lives

TROUBLE: dict[str, str | int] = {
    "nodes": 5,
    "topology": "ring",
    "members": "3",
    "crashes": "400",
    "disks-lost": "0.2",
    "cuts": "500,100",
    "workload": "poisson:0.01",
    "requests": 40,
}


def recorded(path: Path, states: bool, **given: str | int) -> Path:
    with path.open("wb") as file:
        run = simulation(run_settings({**TROUBLE, **given}), TraceWriter(file, states))
        run.start()
        while run.run(100_000):
            pass
        run.finish()
    return path


RUNS: list[dict[str, str | int]] = [
    {"algorithm": "jiang", "permits": 3, "want": "1-3", "priority": "1-3", "clients": 2},
    {"algorithm": "jiang", "mobility": "flips:0.01", "partitions": "allowed"},
    {"algorithm": "reverse-link", "delay": "exp:1", "links": "unordered"},
    {"algorithm": "naimi-trehel", "clients": 2},
    {"algorithm": "raymond", "topology": "line"},
    {"algorithm": "centralized", "clock-skew": "0.2"},
    {"algorithm": "suzuki-kasami"},
    {"algorithm": "neilsen-mizuno"},
    {"algorithm": "direct", "permits": 2, "want": "1-2", "clients": 2},
    *[
        {
            "algorithm": algorithm,
            "permits": 3,
            "want": "1-3",
            "priority": "1-5",
            "raise": "0.5",
            "release-part": "0.5",
            "clients": 2,
            "permits-change": "300:4",
            "members": "2",
            "members-change": "400:+2,400:+3,900:-0",
        }
        for algorithm in ("jiang", "direct")
    ],
]


@pytest.mark.parametrize("given", RUNS)
def test_the_same_run_again(tmp_path: Path, given: dict[str, str | int]):
    path = recorded(tmp_path / "run.jsonl", True, **given)
    schedule, entries = read(Trace(path))
    play = schedule.play(strict=True)
    assert play.outcome().entries == entries and len(entries) > 20
    assert play.outcome().violated == {}
    assert Audit(Trace(path)).monitor.violated == {}

    setup, *lines = path.read_bytes().splitlines(keepends=True)
    bare = [json.loads(line) for line in lines]
    for line in bare:
        line.pop("state", None)
    about = {key: value for key, value in json.loads(setup).items() if key != "states"}
    stated = with_states(about, [json.dumps(line).encode() for line in bare])
    assert stated is not None
    assert [json.loads(line).get("state") for line in stated[1:]] == [
        json.loads(line).get("state") for line in lines
    ]


def test_a_layer_that_lets_anybody_in_is_caught_and_the_run_made_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    if not (lives.__file__ or "").endswith(".py"):
        pytest.skip("compiled modules cannot be patched")
    minted_too_early = MUTANTS["recovery/does-not-wait"]
    patched = Patched(minted_too_early.name, minted_too_early.patch)
    made = patched.module(f"{PACKAGE}.recovery.layer").Layer
    monkeypatch.setattr(lives, "layer", made)
    path = recorded(
        tmp_path / "run.jsonl",
        False,
        algorithm="jiang",
        nodes=3,
        topology="complete",
        hold="80",
        workload="saturated",
        until="170",
        seed=25,
        **{"crashes": "150,40", "disks-lost": "0", "cuts": "100000,1"},
    )
    assert "safety" in Audit(Trace(path)).monitor.violated
    schedule, _ = read(Trace(path))
    small, wrong = shrink(schedule)
    assert "safety" in wrong
    assert len(small.actions) < len(schedule.actions) / 4
