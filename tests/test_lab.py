"""The laboratory as functions: the figures of the command line, and sentences for what is wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from commands import meshlock
from meshlock import lab
from meshlock.algorithms.registry import find
from meshlock.errors import Refused
from meshlock.sweep.measures import Estimate, estimate

OF_THE_CLOCK = {"cpu_s", "messages_per_cpu_s", "states_per_cpu_s"}


def printed(*words: str) -> dict[str, Any]:
    """What the command line says, but the time that it took."""
    found = json.loads(meshlock(*words, "--json").stdout)
    return {name: value for name, value in found.items() if name not in OF_THE_CLOCK}


@pytest.fixture(autouse=True)
def _in_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests have run commands in this process, which calls settings flags."""
    monkeypatch.setattr("meshlock.errors._before", "")


@pytest.mark.parametrize(
    ("words", "flags"),
    [
        ({"nodes": 5, "requests": 50}, "--nodes 5 --requests 50"),
        (
            {"algorithm": "jiang", "topology": "line", "nodes": 8, "permits": 3, "want": "1-3",
             "release_part": 0.5, "raise_": 0.2, "priority": "1-5", "patience": 4,
             "requests": 60, "hold": 2, "seed": 3},
            "--algorithm jiang --topology line --nodes 8 --permits 3 --want 1-3 --release-part 0.5 "
            "--raise 0.2 --priority 1-5 --option patience=4 --requests 60 --hold 2 --seed 3",
        ),
        (
            {"nodes": 4, "members": 3, "requests": 40, "workload": "poisson:0.01",
             "crashes": "500,200"},
            "--nodes 4 --members 3 --requests 40 --workload poisson:0.01 --crashes 500,200",
        ),
        (
            {"algorithm": "reverse-link", "nodes": 6, "mobility": "flips:0.05", "requests": 40},
            "--algorithm reverse-link --nodes 6 --mobility flips:0.05 --requests 40",
        ),
        ({"mutant": "raymond/keeps-and-sends"}, "--mutant raymond/keeps-and-sends"),
    ],
)  # fmt: skip
def test_a_run_has_the_figures_of_the_command_line(words: dict[str, Any], flags: str) -> None:
    run = lab.simulate(**words)
    expected = printed("simulate", *flags.split())
    assert {name: getattr(run, name) for name in expected} == expected
    assert run.row()["waiting.mean"] == expected["waiting"]["mean"]
    assert list(run.sentences) == expected["violated"]
    assert all(not isinstance(value, dict | list) for value in run.row().values())
    assert f"{expected['entries']:,} entries" in repr(run)


THREE = ["0:1@1", "1:1@3", "2:1@2"]


@pytest.mark.parametrize(
    ("words", "flags"),
    [
        ({"nodes": 3}, "--nodes 3"),
        ({"without": "R4"}, "--without R4"),
        ({"mutant": "arbiter/keeps-its-quorum"}, "--mutant arbiter/keeps-its-quorum"),
        (
            {"algorithm": "raymond", "nodes": 3, "topology": "line", "requests": THREE,
             "reduction": "por", "stay": 1, "permits": 1},
            "--algorithm raymond --nodes 3 --topology line --request 0:1@1 --request 1:1@3 "
            "--request 2:1@2 --reduction por --stay 1 --permits 1",
        ),
        (
            {"algorithm": "general-scheme", "nodes": 3, "behaviour": "transit", "repeat": True},
            "--algorithm general-scheme --nodes 3 --option behaviour=transit --repeat",
        ),
        (
            {"topology": "line", "nodes": 2, "request": "1", "members": "all", "crashes": 1,
             "forgets": 1,
             "no_wall_clock": True, "max_states": 3000},
            "--topology line --nodes 2 --request 1 --members all --crashes 1 --forgets 1 "
            "--no-wall-clock --max-states 3000",
        ),
    ],
)  # fmt: skip
def test_a_check_has_the_figures_of_the_command_line(words: dict[str, Any], flags: str) -> None:
    found = lab.check(**words)
    expected = printed("check", *flags.split())
    said = [
        {name: getattr(way, name) for name in ("property", "what", "length", "steps")}
        for way in found.violations
    ]
    assert said == expected.pop("violations")
    assert {name: getattr(found, name) for name in expected} == expected
    assert found.row()["states"] == expected["states"]
    assert found.summary in repr(found)


def test_a_counterexample_can_be_replayed(tmp_path: Path) -> None:
    found = lab.check("jiang-printed", topology="line", nodes=3, requests=THREE)
    assert (found.states, found.holds, found.complete) == (701, False, True)
    way = found.violations[-1]
    assert "Nothing can arrive" in repr(way)
    way.trace(tmp_path / "way.jsonl")
    assert meshlock("audit", str(tmp_path / "way.jsonl")).returncode == 1


def few_ask(seen: Any) -> str:
    waiting = [node.number for node in seen.nodes if node.waiting]
    return f"nodes {waiting} wait at once" if len(waiting) > 2 else ""


def test_a_property_is_a_function(tmp_path: Path) -> None:
    found = lab.check("raymond", topology="star", nodes=4, property=few_ask)
    assert [one.heading for one in found.violations] == [
        "few-ask VIOLATED after 3 steps: nodes [1, 2, 3] wait at once"
    ]
    both = lab.check("raymond", topology="line", nodes=2, property=[few_ask, "safety"])
    assert both.holds
    path = tmp_path / "run.jsonl"
    run = lab.simulate("raymond", nodes=9, requests=50, property=few_ask, trace=path)
    assert run.violated == ["few-ask"]
    assert "wait at once" in run.sentences["few-ask"]
    assert path.read_bytes()


def test_an_algorithm_is_an_object_or_a_file_that_may_change(tmp_path: Path) -> None:
    own = find("raymond")._replace(name="of-a-cell")
    assert lab.check(own, nodes=3).states == lab.check("raymond", nodes=3).states
    later = find("suzuki-kasami")._replace(name="of-a-cell")
    run = lab.simulate(later, nodes=4, requests=20)
    assert run.messages == lab.simulate("suzuki-kasami", nodes=4, requests=20).messages
    text = (
        "from meshlock.algorithms.registry import find\n"
        "ALGORITHMS = [find({!r})._replace(name='it')]\n"
    )
    (tmp_path / "it.py").write_text(text.format("raymond"))
    first = lab.simulate(tmp_path / "it.py", nodes=4, requests=20).messages
    (tmp_path / "it.py").write_text(text.format("suzuki-kasami"))
    assert lab.simulate(tmp_path / "it.py", nodes=4, requests=20).messages == run.messages != first
    with pytest.raises(Refused, match="as meshlock calls one of its own"):
        lab.simulate(later._replace(name="jiang"))


STUDY: dict[str, Any] = {
    "algorithm": ["raymond", "jiang"],
    "nodes": range(3, 6, 2),
    "requests": 30,
    "repetitions": 2,
}


def test_a_sweep_has_the_figures_of_the_command_line(tmp_path: Path) -> None:
    study, out = tmp_path / "it.toml", str(tmp_path / "out")
    study.write_text(
        'algorithm = ["raymond", "jiang"]\nnodes = [3, 5]\nrequests = 30\nrepetitions = 2\n'
    )
    said = printed("sweep", str(study), "--out", out, "--workers", "1")["points"]
    for points in (lab.sweep(STUDY, workers=1), lab.sweep(study, workers=2)):
        rows = [point.row() for point in points]
        for row, point in zip(rows, said, strict=True):
            for measure, found in point.pop("measures").copy().items():
                assert (row[measure], row[f"{measure} half"]) == (found["mean"], found["half"])
            assert {name: row[name] for name in point} == point
        runs = [run.row() for point in points for run in point.results]
        assert [(run["algorithm"], run["nodes"], run["seed"]) for run in runs[:3]] == [
            ("raymond", 3, 1),
            ("raymond", 3, 2),
            ("raymond", 5, 1),
        ]
        assert "algorithm jiang, nodes 5, runs 2, broken 0" in repr(points)
        said = printed("sweep", str(study), "--out", out, "--workers", "1")["points"]
    again = lab.sweep(study, out=tmp_path / "kept", workers=1)
    assert [point.row() for point in again] == rows
    for name in ("results.csv", "summary.csv"):
        assert (tmp_path / "kept" / name).read_text() == (tmp_path / "out" / name).read_text()


def test_points_are_compared_seed_by_seed() -> None:
    table = {"algorithm": ["raymond", "maekawa"], "nodes": 13, "delay": "exp:1", "requests": 60}
    slow, fast = lab.sweep({**table, "seed": [1, 2, 3], "hold": 2}, workers=1)
    values = [
        one.line.figures["waiting"]["mean"] - other.line.figures["waiting"]["mean"]
        for one, other in zip(slow.results, fast.results, strict=True)
        if one.line.figures and other.line.figures
    ]
    found = slow.difference(fast, "waiting.mean")
    assert found == estimate(values)
    assert found is not None
    assert found.half is not None
    assert slow.difference(slow, "waiting.mean") == Estimate(0.0, 0.0)
    (later,) = lab.sweep({**table, "algorithm": ["maekawa"], "seed": [3, 4]}, workers=1)
    one = slow.difference(later, "entries")
    assert one == Estimate(0.0, None), "one seed is in both"
    (broken,) = lab.sweep({**table, "algorithm": ["maekawa-bare"], "seed": [1, 2]}, workers=1)
    assert broken.broken == 2
    assert slow.difference(broken, "waiting.mean") is None


def test_a_sweep_of_an_object_stays_in_this_process() -> None:
    own = find("raymond")._replace(name="of-a-study")
    table = {**STUDY, "algorithm": [own, "maekawa-bare"], "nodes": 13}
    points = lab.sweep(table)
    assert [point.broken for point in points] == [0, 2]
    assert "unserved" in points[1].results[0].row()["broken"]
    with pytest.raises(Refused, match="of-a-study is an Algorithm in this process only"):
        lab.sweep(table, workers=2)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: lab.simulate(noddes=3), "no setting 'noddes': did you mean 'nodes'"),
        (lambda: lab.simulate("jing"), "no algorithm 'jing': did you mean 'jiang'"),
        (lambda: lab.simulate(nodes="many"), "nodes does not take 'many'"),
        (lambda: lab.simulate("raymond", permits=2), "use permits 1"),
        (lambda: lab.simulate(patiencee=2), "did you mean 'patience'"),
        (lambda: lab.check(nodes=3, no_wall_clok=True), "did you mean 'no_wall_clock'"),
        (lambda: lab.check(nodes=3, max_states=0), "max_states must be at least 1"),
        (lambda: lab.check(nodes=3, request="0", requests=["1"]), "'requests' is given twice"),
        (lambda: lab.check(nodes=3, changes=["down 0-1"]), "changes does not take"),
        (lambda: lab.check(nodes=3, property="safe"), "property is one of safety"),
        (lambda: lab.check("raymond", mutant="jiang/without-R4"), "leave out algorithm"),
        (lambda: lab.sweep({"noddes": [3, 4]}), "did you mean 'nodes'"),
        (lambda: lab.sweep({"nodes": [3, 4]}, workers=0), "workers takes how many processes"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(call: Any, sentence: str) -> None:
    with pytest.raises(Refused, match=sentence) as said:
        call()
    assert "--" not in str(said.value)


def test_ctrl_c_ends_the_callers_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    def pressed(*_: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr("meshlock.check.verdict.Checking.run", pressed)
    with pytest.raises(KeyboardInterrupt):
        lab.check(nodes=3)
    monkeypatch.setattr("meshlock.simulate.whole_run.goes_on", pressed)
    with pytest.raises(KeyboardInterrupt):
        lab.simulate(nodes=3)


def test_numbers_of_numpy_are_numbers() -> None:
    numpy = pytest.importorskip("numpy")
    run = lab.simulate(nodes=numpy.int64(3), requests=numpy.int32(10), hold=numpy.float64(0.5))
    assert run.row() | {"cpu_s": 0, "messages_per_cpu_s": 0} == lab.simulate(
        nodes=3, requests=10, hold=0.5
    ).row() | {"cpu_s": 0, "messages_per_cpu_s": 0}


def test_it_is_imported_only_where_it_is_asked_for() -> None:
    program = "import sys, meshlock; sys.exit('meshlock.lab' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)
