"""What the checker finds where nodes crash, as a trace that the other tools read."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
from checks import ask
from click.testing import CliRunner

from meshlock.algorithms.mutants.catalogue import mutant
from meshlock.check.arguments import judged
from meshlock.check.crashing_nodes import Crashing
from meshlock.check.explorer import Violation
from meshlock.check.kinds import SHIFT
from meshlock.check.mutants import setup_of
from meshlock.check.retold import write_trace
from meshlock.check.verdict import Checking
from meshlock.cli.main import app
from meshlock.errors import Refused
from meshlock.simulate.schedule import read
from meshlock.trace.audit import Audit
from meshlock.trace.reader import Trace
from meshlock.web.index import open_trace
from meshlock.web.sequence import Diagram


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(words))
    return result.exit_code, result.output


def audited(model: Crashing, violation: Violation, path: Path) -> Audit:
    with path.open("wb") as file:
        write_trace(model, violation, file)
    return Audit(Trace(path))


def found(name: str, path: Path) -> Audit:
    """The trace of the first counterexample of a mutant, judged."""
    what = mutant(f"recovery/{name}")
    check = Checking(setup_of(what, what.algorithm), judged([]), 500_000)
    while not check.explorer.violations and check.run(1):
        pass
    assert isinstance(check.model, Crashing)
    return audited(check.model, check.violations()[0], path)


def test_a_counterexample_is_written_audited_and_drawn(tmp_path: Path) -> None:
    path, drawn = str(tmp_path / "way.jsonl"), tmp_path / "way.mmd"
    name = "recovery/takes-tokens-of-a-former-life"
    assert run("check", "--mutant", name, "--trace", path)[0] == 1
    code, told = run("audit", path)
    assert code == 1
    assert "one-token     VIOLATED at 4: node 1 made 1 token" in told
    assert run("convert", path, "--to", "mermaid", "-o", str(drawn))[0] == 0
    text = drawn.read_text(encoding="utf-8")
    assert text.startswith("sequenceDiagram")
    assert "PROPOSE" in text
    assert "TOKEN" in text
    index = open_trace(Path(path))
    assert [bad["property"] for bad in index.violated] == ["one-token"]
    notes = str(vars(Diagram(index, 0, index.steps)))
    assert all(word in notes for word in ("propose", "close", "renew", "crash", "restart"))


def test_it_is_not_replayed(tmp_path: Path) -> None:
    found("does-not-withhold", tmp_path / "way.jsonl")
    with pytest.raises(Refused, match="cannot be replayed"):
        read(Trace(tmp_path / "way.jsonl"))


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("does-not-withhold", ["safety"]),
        ("forgets-its-promise", ["fences", "one-token"]),
        ("returns-by-amount", ["conservation"]),
        ("takes-back-an-unaccepted-token", ["one-token"]),
        (
            "does-not-wait",
            [],
        ),  # tokens of two epochs: a trace does not say until when they are good
        ("strikes-nothing", []),  # free and lent make k; the algorithm inside knows better
        ("hears-every-epoch", []),  # a handler fails
        ("asks-nothing-anew", []),
    ],
)
def test_the_audit_sees_what_a_trace_can_show(name: str, seen: list[str], tmp_path: Path) -> None:
    assert sorted(found(name, tmp_path / "way.jsonl").monitor.violated) == seen


def test_who_waits_for_ever_is_said_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "way.jsonl"
    found("asks-nothing-anew", path)
    last = json.loads(path.read_text(encoding="utf-8").splitlines()[-1])
    assert last["event"] == "end"
    assert "served" in last["violated"]


@pytest.mark.parametrize("algorithm", ["jiang", "raymond", "naimi-trehel", "direct"])
def test_walks_with_every_fault_are_sound_traces(algorithm: str, tmp_path: Path) -> None:
    """Every message that arrives was sent, leases end when they say, and nothing is violated."""
    events: set[str] = set()
    several = algorithm in ("jiang", "direct")  # permits, and priorities
    for seed in range(12):
        draw = Random(seed)
        what = ask(
            algorithm,
            "line" if algorithm in ("jiang", "raymond") else "complete",
            3,
            permits=4 if several else 1,
            requests=["0:2" if several else "0", "2", "1", "2"],
            raises=["1:5", "2:5", "2:7"] if several else [],
            release_parts=["0:1"] if several else [],
            lead=["request 0"] if several else [],
            members="all",
            crashes=2,
            forgets=1,
            proposals=3,
            cuts=2 if algorithm == "jiang" else 0,
            slow_ticks=1,
            doubles=3,
            losses=1,
            resends=2,
            wait=3,
            renewals=draw.choice(["meet", "travel"]),
            handshakes=draw.choice(["eager", "any"]),
            member_changes=["remove 1"],
            withdrawals=True,
        )
        model = Crashing(what, judged([]))
        path = tmp_path / "walk.jsonl"
        audit = audited(model, walked(model, draw, 120), path)
        assert not audit.monitor.violated
        events |= {json.loads(line).get("event", "") for line in path.read_bytes().splitlines()}
    assert events >= {"crash", "restart", "timer", "deliver", "enter", "recover", "withdraw"}
    assert not several or events >= {"priority", "give-back"}


def walked(model: Crashing, draw: Random, length: int) -> Violation:
    """A way of these many steps, or until nothing can happen; their kinds are equally likely."""
    states, labels = [model.initial()], list[int]()
    for _ in range(length):
        model.expand(states[-1])
        if not model.labels:
            break
        kind = draw.choice(sorted({label >> SHIFT for label in model.labels}))
        places = [at for at, label in enumerate(model.labels) if label >> SHIFT == kind]
        place = draw.choice(places)
        states.append(model.successors[place])
        labels.append(model.labels[place])
    return Violation("none", "", states, labels)
