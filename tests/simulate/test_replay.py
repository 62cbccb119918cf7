"""A counterexample plays again in the simulator; a failing simulation shrinks to a few lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from meshlock.check.arguments import judged, setup
from meshlock.check.retold import write_trace
from meshlock.check.verdict import Checking
from meshlock.errors import Refused
from meshlock.simulate.engine import Simulation
from meshlock.simulate.player import play
from meshlock.simulate.rerun import give_states
from meshlock.simulate.run_settings import RunSettings
from meshlock.simulate.schedule import read, shrink, violated
from meshlock.simulate.settings import run_settings, simulation
from meshlock.trace.reader import Trace
from meshlock.trace.writer import TraceWriter


def counterexample(path: Path, algorithm: str, name: str, **more: object) -> int:
    """Let the checker find one; returns how many steps it has."""
    words: dict[str, object] = {
        "topology": "line",
        "nodes": 3,
        "permits": 1,
        "requests": ["0:1@1", "1:1@3", "2:1@2"],
        "changes": [],
        "flips": 0,
        "links": "fifo",
        "failures": "drain",
        "clients": 1,
        "repeat": False,
        "options": {},
        **more,
    }
    what = setup(algorithm=algorithm, **words)  # type: ignore[arg-type]
    checking = Checking(what, judged([name]), 100_000)
    while checking.run(10_000):
        pass
    (found,) = checking.violations()
    with path.open("wb") as file:
        write_trace(checking.model, found, file)
    return len(found.labels)


def recorded(path: Path, settings: RunSettings) -> Simulation:
    """A whole run, with its trace."""
    with path.open("wb") as file:
        run = simulation(settings, TraceWriter(file, False))
        run.start()
        while run.run(10_000):
            pass
        run.finish()
    return run


@pytest.mark.parametrize(("name", "steps"), [("served", 20), ("order", 19)])
def test_the_printed_algorithm_fails_again_by_hand(tmp_path: Path, name: str, steps: int) -> None:
    path = tmp_path / "way.jsonl"
    assert counterexample(path, "jiang-printed", name) == steps
    schedule, entries = read(Trace(path))
    assert len(schedule.actions) == steps
    outcome = schedule.play(strict=True).outcome()
    assert outcome.entries == entries
    assert name in outcome.violated


def test_a_counterexample_becomes_a_scenario_that_the_repaired_edition_passes(
    tmp_path: Path,
) -> None:
    path = tmp_path / "way.jsonl"
    counterexample(path, "jiang-printed", "served")
    schedule, _ = read(Trace(path))
    small, wrong = shrink(schedule)
    assert wrong >= {"served"}
    script = tmp_path / "small.txt"
    script.write_text(small.script("shrunk") + "finish\n", encoding="utf-8")
    assert play(str(script), "jiang-printed").unserved
    assert play(str(script), "jiang").good


def test_a_long_failing_simulation_shrinks_to_a_few_lines(tmp_path: Path) -> None:
    path = tmp_path / "failed.jsonl"
    settings = run_settings(
        {
            "algorithm": "jiang-printed",
            "nodes": 6,
            "topology": "random:0.5",
            "requests": 20,
            "priority": "1-9",
            "delay": "uniform:0.5,1.5",
            "mobility": "flips:0.3",
            "seed": 2,
        }
    )
    run = recorded(path, settings)
    assert "served" in run.monitor.violated
    schedule, _ = read(Trace(path))
    small, wrong = shrink(schedule)
    assert "served" in wrong
    assert len(small.actions) <= 8
    assert small.size <= 4
    for left_out in range(len(small.actions)):
        fewer = small.actions[:left_out] + small.actions[left_out + 1 :]
        assert not violated(small.but(fewer)) & wrong


def test_a_run_without_a_failure_is_not_shrunk(tmp_path: Path) -> None:
    path = tmp_path / "good.jsonl"
    recorded(path, run_settings({"nodes": 3, "requests": 3}))
    schedule, entries = read(Trace(path))
    assert schedule.play(strict=True).outcome().entries == entries
    with pytest.raises(Refused, match="This run violates no property"):
        shrink(schedule)


def test_whatever_a_node_chose_is_chosen_again(tmp_path: Path) -> None:
    """Arbitrary behaviour: the choices are part of the trace."""
    what = setup(
        algorithm="general-scheme",
        topology="complete",
        nodes=3,
        permits=1,
        requests=[],
        changes=[],
        flips=0,
        links="fifo",
        failures="drain",
        clients=1,
        repeat=False,
        options={},
    )
    checking = Checking(what, judged([]), 100_000)
    while checking.run(10_000):
        pass
    from meshlock.check.explorer import Violation

    states, labels = checking.explorer.way(checking.explorer.count() - 1)
    path = tmp_path / "way.jsonl"
    with path.open("wb") as file:
        write_trace(checking.model, Violation("none", "", states, labels), file)
    schedule, entries = read(Trace(path))
    assert {action.choice for action in schedule.actions} == {0, 1}
    assert schedule.play(strict=True).outcome().entries == entries


def test_a_run_with_returned_messages_shrinks_to_one_in_a_whole_network(tmp_path: Path) -> None:
    """That somebody cut off waits would be a smaller failure, but none of the algorithm."""
    path = tmp_path / "returned.jsonl"
    with path.open("wb") as file:
        play("R11", "jiang/without-R11", TraceWriter(file, False))
    schedule, _ = read(Trace(path))
    assert "failures return" in schedule.setup
    small, wrong = shrink(schedule)
    assert wrong == {"served"}
    assert small.size == 4
    assert {"link up 0-3", "link down 0-1"} <= {action.text() for action in small.actions}
    script = tmp_path / "small.txt"
    script.write_text(small.script("shrunk") + "finish\n", encoding="utf-8")
    assert play(str(script)).unserved == [2]
    assert play(str(script), "jiang").good


@pytest.mark.parametrize("seed", range(1, 9))
def test_a_run_of_links_with_custody_plays_again(tmp_path: Path, seed: int) -> None:
    """Each end notices by itself; what comes late or is lost does so again."""
    path = tmp_path / "run.jsonl"
    given = {"nodes": 5, "topology": "ring", "mobility": "flips:1", "requests": 40, "seed": seed}
    recorded(path, run_settings({**given, "failures": "custody"}))
    schedule, entries = read(Trace(path))
    assert {"notice", "lose"} <= {action.verb for action in schedule.actions}
    outcome = schedule.play(strict=True).outcome()
    assert outcome.entries == entries
    assert len(entries) == 40
    assert outcome.good
    script = tmp_path / "again.txt"
    script.write_text(schedule.script("again"), encoding="utf-8")
    assert play(str(script)).entries == entries
    with pytest.raises(Refused, match="cannot be shrunk"):
        shrink(schedule)


@pytest.mark.parametrize("failures", ["drain", "return", "custody"])
@pytest.mark.parametrize("seed", [3, 4])
def test_a_run_whose_network_starts_in_parts_plays_again(
    tmp_path: Path, failures: str, seed: int
) -> None:
    """Nodes that have no way to node 0 start as they did, and nobody else is to blame."""
    path = tmp_path / "run.jsonl"
    given = {"nodes": 8, "mobility": "waypoint:0.02,0.3", "partitions": "allowed"}
    more = {"failures": failures, "requests": 60, "priority": "1-5", "seed": seed}
    run = recorded(path, run_settings({**given, **more}))
    assert not run.monitor.violated
    trace = Trace(path)
    assert trace.setup["components"] > 1
    schedule, entries = read(trace)
    outcome = schedule.play(strict=True).outcome()
    assert outcome.entries == entries
    assert len(entries) == 60
    assert not outcome.violated
    assert give_states(Trace(path))
    with pytest.raises(Refused, match=r"cannot be shrunk|violates no property"):
        shrink(schedule)


def test_a_trace_whose_links_were_taken_away_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    recorded(path, run_settings({"nodes": 3, "requests": 3}))
    first, _, rest = path.read_text().partition("\n")
    path.write_text(json.dumps({**json.loads(first), "links": []}) + "\n" + rest)
    with pytest.raises(Refused, match=r"Step \d+ of the trace, '.*', cannot be done"):
        read(Trace(path))[0].play(strict=True)
    assert not give_states(Trace(path))


def test_whoever_gave_up_gives_up_again(tmp_path: Path) -> None:
    """Not the one beside it that has waited longer."""
    script = tmp_path / "patience.txt"
    asks = "request 0\nrequest 1 priority 1\nrequest 1 priority 9\nsettle\n"
    script.write_text(f"nodes 2\n{asks}withdraw 1 2\nrequest 0 priority 5\nfinish\n")
    path = tmp_path / "run.jsonl"
    with path.open("wb") as file:
        assert play(str(script), None, TraceWriter(file, False)).entries == [0, 0, 1]
    schedule, entries = read(Trace(path))
    assert "withdraw 1 2" in [action.text() for action in schedule.actions]
    assert schedule.play(strict=True).outcome().entries == entries


def test_one_end_notices_alone_only_with_custody(tmp_path: Path) -> None:
    script = tmp_path / "alone.txt"
    script.write_text("nodes 2\nnotice 0->1 down\n")
    with pytest.raises(Refused, match="Both ends notice at once"):
        play(str(script))
    script.write_text("nodes 2\nfailures custody\nrequest 1\nlink down 0-1\nlink up 0-1\nfinish\n")
    assert play(str(script)).entries == [1]
    script.write_text("nodes 2\nfailures custody\nnotice 0->1 up\n")
    with pytest.raises(Refused, match="has noticed this change already"):
        play(str(script))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"algorithm": "raymond"}, "raymond is for fixed networks"),
        ({"algorithm": "jiang", "recovery": {"members": [0]}}, "only clients are recorded"),
    ],
)
def test_live_traces_that_do_not_tell_enough_are_refused(
    tmp_path: Path, more: dict[str, object], said: str
) -> None:
    path = tmp_path / "merged.jsonl"
    setup = {"meshlock": "trace", "format": 1, "source": "live", "nodes": 2, "permits": 1}
    path.write_text(json.dumps({**setup, "links": [], "holder": 1, **more}) + "\n")
    with pytest.raises(Refused, match=said):
        read(Trace(path))[0].play(strict=True)


INTENTS = {
    "nodes": 5,
    "permits": 3,
    "want": "1-3",
    "priority": "1-9",
    "clients": 2,
    "requests": 200,
    "raise": "0.5",
    "release-part": "0.5",
    "workload": "poisson:0.1",
    "hold": "exp:5",
}


@pytest.mark.parametrize("algorithm", ["jiang", "direct", "jiang-printed", "mueller"])
def test_changed_priorities_and_released_parts_play_again(tmp_path: Path, algorithm: str) -> None:
    """Where an algorithm cannot change a priority, nothing is written."""
    given = {**INTENTS, "algorithm": algorithm}
    if algorithm in ("mueller", "jiang-printed"):
        given |= {"permits": 1, "want": "1", "release-part": "0", "clients": 1}
    run = recorded(tmp_path / "run.jsonl", run_settings(given))
    schedule, entries = read(Trace(tmp_path / "run.jsonl"))
    verbs = [action.verb for action in schedule.actions]
    assert verbs.count("raise") == run.measures.changed
    assert (run.measures.changed > 20) == (algorithm in ("jiang", "direct"))
    assert verbs.count("release") == run.measures.parts
    assert schedule.play(strict=True).outcome().entries == entries
    assert give_states(Trace(tmp_path / "run.jsonl"))


def test_a_run_that_raises_and_parts_is_shrunk(tmp_path: Path) -> None:
    given = {**INTENTS, "algorithm": "direct/grants-without-counting", "requests": 40}
    assert "conservation" in recorded(tmp_path / "run.jsonl", run_settings(given)).monitor.violated
    small, wrong = shrink(read(Trace(tmp_path / "run.jsonl"))[0])
    assert "conservation" in wrong
    assert len(small.actions) < 10


def test_deadlines_play_again(tmp_path: Path) -> None:
    """They rise while they wait."""
    given = {"nodes": 3, "requests": 20, "priority": "deadline:uniform:1,9", "raise": "0.5"}
    recorded(tmp_path / "run.jsonl", run_settings(given))
    schedule, entries = read(Trace(tmp_path / "run.jsonl"))
    assert schedule.play(strict=True).outcome().entries == entries
