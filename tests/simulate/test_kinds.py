"""Runs with permits of several kinds: judged, written and read again by kind."""

from __future__ import annotations

import json
import re
from io import StringIO
from pathlib import Path

import pytest

from commands import meshlock
from meshlock.algorithms.actor import Enter
from meshlock.algorithms.amounts import parse_kinds
from meshlock.algorithms.registry import find, with_defaults
from meshlock.errors import Refused
from meshlock.simulate.engine import Simulation
from meshlock.simulate.report import figures
from meshlock.simulate.run_settings import Values
from meshlock.simulate.settings import run_settings, simulation
from meshlock.topology.graphs import Complete
from meshlock.trace.audit import Audit
from meshlock.trace.convert import FORMATS
from meshlock.trace.reader import Trace
from meshlock.trace.writer import TraceWriter

LAB: Values = {"permits": "gpu:2,licence:2", "want": "gpu:0-2,licence:0-1", "priority": "1-9"}
FOUR: Values = {"permits": "a:2,b:1,c:3,d:1", "want": "a:0-1,b:0-1,c:0-2,d:0-1", "priority": "1-3"}


def done(given: Values, trace: TraceWriter | None = None) -> Simulation:
    run = simulation(run_settings(given), trace)
    run.start()
    while run.run(10_000):
        pass
    run.finish()
    return run


@pytest.mark.parametrize("algorithm", ["direct", "jiang"])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"clients": 12, "nodes": 3, "raise": "0.3"},
        {"clients": 3, "release-part": "0.3", "workload": "poisson:0.1", "hold": "exp:3"},
        {"members": "all", "crashes": "300,100", "workload": "poisson:0.05"},
        {"members": "all", "permits-change": "100:gpu:2+licence:1", "want": "gpu:0-1,licence:1"},
        FOUR,
        {**FOUR, "members": "all", "release-part": "0.3", "workload": "poisson:0.05"},
    ],
)
def test_every_property_holds_and_the_trace_says_the_same(
    algorithm: str, more: Values, tmp_path: Path
) -> None:
    given: Values = {"algorithm": algorithm, "nodes": 5, "requests": 400, **LAB, **more}
    with (tmp_path / "run.jsonl").open("wb") as file:
        run = done(given, TraceWriter(file, states=False))
    assert run.monitor.violated == {}
    audit = Audit(Trace(tmp_path / "run.jsonl"))
    assert audit.monitor.violated == {} and audit.entries == run.measures.entries > 0


def test_amounts_are_numbers_by_kind(tmp_path: Path) -> None:
    with (tmp_path / "run.jsonl").open("wb") as file:
        run = done({"nodes": 3, "algorithm": "direct", **LAB}, TraceWriter(file, states=False))
    lines = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    assert lines[0]["permits"] == {"gpu": 2, "licence": 2}
    wants = [line["want"] for line in lines[1:] if line.get("event") == "enter"]
    assert {"gpu": 2, "licence": 1} in wants and {"licence": 1} in wants and {} not in wants
    found = figures(run, 1, 1.0)
    assert found["permits"] == {"gpu": 2, "licence": 2}
    assert set(found["use_rate_by_kind"]) == {"gpu", "licence"}
    assert all(0 < share <= 1 for share in found["use_rate_by_kind"].values())
    assert "gpu:2,licence:1" in found["waiting_by_want"]


@pytest.mark.parametrize("algorithm", ["direct"])
def test_requests_that_share_no_kind_pass_each_other(algorithm: str) -> None:
    lab, out = parse_kinds("gpu:2,licence:1"), []
    entry = find(algorithm)
    node = entry.make(Complete(1), lab.permits, with_defaults(entry, {}), out)[0]
    for client, want in enumerate(("gpu:1", "gpu:2", "gpu:1", "licence:1"), 1):
        node.request(client, lab.parse(want), 5)
    assert [one.client for one in out if isinstance(one, Enter)] == [1, 4]
    node.release(1)
    assert [one.client for one in out if isinstance(one, Enter)] == [1, 4, 2]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"want": "1"}, "say how many of which"),
        ({"want": "gpu:3"}, "3 of 2 permits of the kind gpu can never"),
        ({"want": "gpu:1,gpu:2"}, "names the kind 'gpu' twice"),
        ({"members": "all", "permits-change": "9:gpu:1"}, "more permits of a kind than there are"),
        ({"want": "fpga:1"}, "no kind of permits 'fpga'"),
        ({"want": "gpu:0,licence:0"}, "at least one permit"),
        ({"permits": "gpu:0,licence:1"}, "not 0"),
        ({"algorithm": "jiang", "backfill": "on"}, "one kind of permits only"),
        ({"algorithm": "raymond"}, "raymond grants permits of one kind"),
        ({"algorithm": "arbiter"}, "arbiter grants permits of one kind"),
        ({"algorithm": "jiang-printed"}, "permits of one kind"),
    ],
)
def test_what_makes_no_sense_is_refused(settings: Values, sentence: str) -> None:
    given: Values = {"algorithm": "direct", "nodes": 3, **LAB, **settings}
    with pytest.raises(Refused, match=sentence):
        simulation(run_settings(given), None)


def test_a_converted_trace_says_how_many_of_each_kind(tmp_path: Path) -> None:
    given: Values = {"algorithm": "direct", "nodes": 3, "requests": 20, **LAB, "release-part": "1"}
    with (tmp_path / "run.jsonl").open("wb") as file:
        done(given, TraceWriter(file, states=True))
    for kind, shown in (
        ("mermaid", r"wants (gpu:[12])?,?(licence:1)? @ \d"),
        ("shiviz", r"request (gpu:[12])?,?(licence:1)? with"),
        ("csv", r",request,\d+,\"?(gpu:[12])?,?(licence:1)?\"?,"),
        ("itf", r"request (gpu:[12])?,?(licence:1)? with"),
    ):
        out = StringIO()
        FORMATS[kind](Trace(tmp_path / "run.jsonl"), out)
        text = out.getvalue()
        assert len(re.findall(shown, text)) == 20, kind
        assert not re.search(r"(wants|enters with|releases|request|release) \d", text)


def test_a_story_says_how_many_of_each_kind_a_message_has() -> None:
    words = ("check", "--mutant", "direct/looks-at-one-kind", "--nodes", "3")
    asks = ("--request", "0:gpu:1+licence:1@1", "--request", "1:gpu:1+licence:1@0")
    told = meshlock(*words, "--permits", "gpu:2,licence:1", *asks).stdout
    assert "GRANT(number 4, count gpu:1,licence:1, grants 2, hop 0)" in told
    assert "want gpu:1,licence:1, priority 0" in told
