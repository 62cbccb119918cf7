"""What happens on a link that fails, and when changes come to an end."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from meshlock.algorithms.actor import Actor, Algorithm, Effect, Network, Serves
from meshlock.simulate import link_changes
from meshlock.simulate.engine import RunSetup
from meshlock.simulate.link_changes import MobileSimulation
from meshlock.simulate.settings import run_settings, simulation
from meshlock.simulate.workload import Workload
from meshlock.topology.mobility.specification import mobility
from meshlock.topology.specification import network
from meshlock.trace.audit import Audit
from meshlock.trace.reader import Trace
from meshlock.trace.writer import TraceWriter

if not (link_changes.__file__ or "").endswith(".py"):
    pytest.skip("the talk extends Duration, which is compiled", allow_module_level=True)

from talk import Play, Talker, Word, constant

LINE = [(0, 1), (1, 2)]


def test_drain_delivers_all_that_is_on_the_link_before_it_fails() -> None:
    play = Play(LINE, ["3 down 0-1"], {"0 asks": "a>1 B>1 c>1", "1 gets a": "d>0 e>2"})
    assert play.heard == [
        "0 asks",
        "1 gets a",
        "1 gets B",
        "1 gets c",
        "0 gets d",  # sent over the failing link in answer, so it still gets through
        "0 loses 1",
        "1 loses 0",
        "2 gets e",
    ]
    assert play.run.monitor.violated == {}
    assert play.run.in_flight == 0


def test_return_gives_permits_back_and_loses_the_rest() -> None:
    play = Play(
        LINE,
        ["3 down 0-1"],
        {"0 asks": "a>1 B>1", "1 meets 2": "", "0 loses 1": ""},
        failures="return",
    )
    assert play.heard == ["0 asks", "0 keeps B", "0 loses 1", "1 loses 0"]
    assert play.run.nodes[0].free_permits() == 9
    assert (play.run.returned, play.run.dropped) == (1, 1)
    assert play.run.monitor.violated == {}


def test_a_link_forms_fails_and_forms_again() -> None:
    play = Play(
        LINE,
        ["5 up 0-2", "7 down 0-2", "30 up 0-2"],
        {"0 meets 2": "a>2"},
    )
    assert play.heard == [
        "0 asks",
        "0 meets 2",
        "2 meets 0",
        "2 gets a",
        "0 loses 2",
        "2 loses 0",
        "0 meets 2",
        "2 meets 0",
        "2 gets a",
    ]
    assert (play.run.ups, play.run.downs) == (2, 1)


def test_what_arrived_before_the_failure_is_not_delivered_again() -> None:
    play = Play(LINE, ["30 down 0-1"], {"0 asks": "a>1"})
    assert play.heard == ["0 asks", "1 gets a", "0 loses 1", "1 loses 0"]


def test_a_message_to_where_there_is_no_link_is_a_fault() -> None:
    play = Play(LINE, ["20 up 0-2"], {"0 asks": "a>2"})
    assert play.heard == ["0 asks", "0 meets 2", "2 meets 0"]
    assert play.run.monitor.violated == {
        "neighbours": "at 0: node 0 sends WORD to node 2, to which it has no link"
    }


def test_nodes_that_answer_each_other_for_ever_are_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(link_changes, "ENDLESS", 2_000)
    play = Play(LINE, ["3 down 0-1"], {"0 asks": "a>1", "1 gets a": "b>0", "0 gets b": "a>1"})
    assert list(play.run.monitor.violated) == ["neighbours"]
    assert "answer each other for ever" in play.run.monitor.violated["neighbours"]


def test_the_connected_share_of_time() -> None:
    play = Play(LINE, ["20 down 1-2", "30 down 0-1", "50 up 0-2", "60 up 0-1", "90 up 1-2"], {})
    assert play.run.now == 100.0
    assert play.run.connected_share() == pytest.approx(0.6)
    assert Play(LINE, [], {}).run.connected_share() == 1.0
    assert Play([(0, 1)], [], {}).run.connected_share() == 0.0


@pytest.mark.parametrize("failures", ["drain", "return"])
def test_the_trace_tells_it_all_and_passes_the_audit(tmp_path: Path, failures: str) -> None:
    file = tmp_path / "run.jsonl"
    with file.open("wb") as sink:
        play = Play(
            LINE,
            ["3 down 0-1", "4 up 0-1", "5 up 0-2", "6 down 1-2"],
            {"0 asks": "a>1 B>1", "0 meets 2": "C>2"},
            failures=failures,
            trace=TraceWriter(sink, False),
        )
    assert play.run.monitor.violated == {}
    audit = Audit(Trace(file))
    assert audit.monitor.violated == {}
    events = [event.event for event in Trace(file).events()]
    assert events.count("link-up") == 4
    assert events.count("link-down") == 4
    assert events.count("undelivered") == (failures == "return")
    assert events.count("drop") == (failures == "return")
    parted = [event for event in Trace(file).events() if event.components == 2]
    assert [event.t for event in parted] == [3, 3]


def moving(says: dict[str, str], requests: int, spec: str, *, sink: io.BytesIO) -> list[str]:
    heard: list[str] = []

    def make(
        network: Network, permits: int, options: dict[str, str], out: list[Effect]
    ) -> list[Actor]:
        return [Talker(me, out, says, heard) for me in range(network.size)]

    found = mobility(spec, network("links:9", 6, 1), 6, 7, moves=True)
    assert found is not None
    setup = RunSetup(
        Algorithm("talk", "Talk", "here", "k", make, (Word,), serves=Serves(token=False)),
        {},
        found.graph,
        9,
        Workload(requests, 1, False, None, ((1, 1),), (0, 0), None, 1),
        constant(1.0),
        constant(1.0),
        changes=found.changes,
        trace=TraceWriter(sink, False),
    )
    run = MobileSimulation(setup, "drain")
    run.start()
    while run.run(1000):
        pass
    run.finish()
    return list(run.monitor.violated)


@pytest.mark.parametrize("spec", ["flips:3", "waypoint:0.05,0.5"])
def test_a_run_ends_when_all_are_served_though_changes_would_go_on(spec: str) -> None:
    once, again = io.BytesIO(), io.BytesIO()
    assert moving({}, 60, spec, sink=once) == []
    assert moving({}, 60, spec, sink=again) == []
    assert once.getvalue() == again.getvalue()
    assert once.getvalue().count(b'"link-up"') > 10
    assert (b'"move"' in once.getvalue()) == spec.startswith("waypoint")


def test_a_run_ends_when_nobody_is_ever_served() -> None:
    assert moving({"never": ""}, 60, "flips:3", sink=io.BytesIO()) == ["served"]


def test_a_stalled_flip_still_cuts_only_what_it_may():
    """Links that change faster than messages travel: the run stops them, in one piece."""
    run = simulation(
        run_settings(
            {
                "algorithm": "jiang",
                "nodes": 3,
                "topology": "links:2",
                "permits": 4,
                "want": "1-3",
                "clients": 2,
                "workload": "poisson:0.650",
                "requests": 141,
                "hold": "0",
                "mobility": "flips:3",
                "failures": "return",
                "priority": "deadline:uniform:1,50",
                "ageing": "printed",
                "seed": 4332,
            }
        ),
        None,
    )
    run.start()
    while run.run(1):
        assert run.graph.components == 1
    assert run.measures.entries == 141
