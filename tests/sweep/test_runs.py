"""Runs are kept, made where one likes, and marked if they are broken."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from meshlock.errors import Refused
from meshlock.sweep import runs as runs_module
from meshlock.sweep.report import report, runs_table, write_tables
from meshlock.sweep.runs import Kept, command, line_of, read_line
from meshlock.sweep.study import study
from meshlock.sweep.sweep import make_all
from meshlock.sweep.workers import TRIES, WorkerProcesses, on_cores, one_by_one
from waiting import LIMIT, sooner_or_later

PROGRAM = [sys.executable, "-m", "meshlock"]
TABLE = {
    "nodes": [4, 8],
    "algorithm": ["raymond", "naimi-trehel"],
    "requests": 50,
    "repetitions": 3,
    "measures": ["messages_per_entry", "waiting.mean"],
}
DEADLOCKS = {**TABLE, "nodes": 13, "algorithm": ["maekawa", "maekawa-bare"]}


def nobody(done: int, of: int) -> None:
    pass


def without_time(text: bytes) -> tuple[str, object]:
    line = read_line(text)
    figures = dict(line.figures)
    del figures["cpu_s"], figures["messages_per_cpu_s"]
    return line.key, figures


def test_a_second_start_makes_only_what_is_missing(tmp_path):
    made = study(TABLE, "s")
    path = tmp_path / "runs.jsonl"
    given = []

    def stops(runs, events):
        given.append(len(runs))
        for number, text in enumerate(one_by_one(runs, events)):
            if number == 5:
                raise KeyboardInterrupt
            yield text

    with pytest.raises(KeyboardInterrupt):
        make_all(made, stops, nobody, path)
    found = make_all(made, counting(given), nobody, path)
    assert given == [12, 7]
    assert runs_table(made, found) == runs_table(made, make_all(made, one_by_one, nobody))
    more = study({**TABLE, "repetitions": 4}, "s")
    make_all(more, counting(given), nobody, path)
    assert given[-1] == 4  # the same study with another seed


def counting(given):
    def make(runs, events):
        given.append(len(runs))
        return one_by_one(runs, events)

    return make


@pytest.mark.parametrize("rest", [b"", b'{"key": "7', b'{"key": "7"}', b"\0\0\0\0\n"])
def test_what_was_torn_is_made_again(tmp_path, rest):
    made = study(TABLE, "s")
    path = tmp_path / "runs.jsonl"
    make_all(made, one_by_one, nobody, path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]) + (rest or lines[-1][:40]))
    given = []
    found = make_all(made, counting(given), nobody, path)
    assert given == [1]
    assert all(not summary.broken for summary in found)
    make_all(made, counting(given), nobody, path)
    assert given == [1, 0]


def test_results_of_another_program_are_not_used(tmp_path, monkeypatch):
    made = study(TABLE, "s")
    path = tmp_path / "runs.jsonl"
    make_all(made, one_by_one, nobody, path)
    monkeypatch.setattr(runs_module, "code", lambda: "another version")
    given = []
    make_all(made, counting(given), nobody, path)
    assert given == [12]


def test_a_program_that_changes_meanwhile_is_refused(tmp_path, monkeypatch):
    def make(runs, events):
        monkeypatch.setattr(runs_module, "code", lambda: "another version")
        return one_by_one(runs, events)

    with pytest.raises(Refused, match="unchanged while the sweep runs"):
        make_all(study(TABLE, "s"), make, nobody, tmp_path / "runs.jsonl")


def test_a_file_that_changed_is_another_run(tmp_path):
    graph = tmp_path / "net.edgelist"
    graph.write_text("0 1\n1 2\n")
    values = {"topology": str(graph), "seed": 1}
    before = runs_module.key_of(values, 0)
    graph.write_text("0 1\n0 2\n")
    assert runs_module.key_of(values, 0) != before


def test_one_sweep_at_a_time_writes(tmp_path):
    with closing(Kept(tmp_path / "runs.jsonl")), pytest.raises(Refused, match="Another sweep"):
        Kept(tmp_path / "runs.jsonl")


def test_a_full_disk_is_a_sentence(tmp_path):
    with (
        closing(Kept(tmp_path / "runs.jsonl")) as kept,
        Path("/dev/full").open("wb", buffering=0) as full,
    ):
        kept.add(line_of({"nodes": 3, "requests": 5}, 0))
        kept.file.close()
        kept.file = full
        with pytest.raises(Refused, match="0 runs are kept; the same command goes on"):
            kept.add(line_of({"nodes": 3, "requests": 6}, 0))


def test_broken_runs_are_marked_and_part_of_no_mean():
    made = study({**DEADLOCKS, "measures": ["waiting.mean", "broken_share"]}, "s")
    found = make_all(made, one_by_one, nobody)
    good, bad = found
    assert good.broken == 0 and bad.broken == 3
    assert bad.estimates["waiting.mean"] is None
    assert bad.estimates["broken_share"].mean == 1.0
    _, rows = runs_table(made, found)
    assert {row[2] for row in rows[3:]} == {"violates served and leaves 13 requests unserved"}
    text = report(made, found, "meshlock sweep s.toml", [])
    assert "**3 runs are broken**" in text
    assert "| maekawa-bare | **✗ 3 of 3 broken** |" in text
    replay = "--nodes 13 --algorithm maekawa-bare --requests 50 --seed 1"
    assert f"meshlock simulate {replay}`" in text
    done = subprocess.run(
        [*PROGRAM, "simulate", *replay.split()], capture_output=True, text=True, timeout=LIMIT
    )
    assert done.returncode == 1 and "served: at 1: 13 requests wait" in done.stdout


def test_a_failing_run_is_a_row_that_says_why(monkeypatch):
    made = study({"nodes": [4], "algorithm": ["singhal"], "topology": ["line", "complete"]}, "s")
    found = make_all(made, one_by_one, nobody)
    assert [summary.broken for summary in found] == [1, 0]
    assert "use --topology complete" in found[0].results[0].broken

    def fails(settings, trace):
        raise ZeroDivisionError("by chance")

    monkeypatch.setattr(runs_module, "simulation", fails)
    line = read_line(line_of({"nodes": 3}, 0))
    assert line.failed.startswith("ZeroDivisionError: by chance (test_runs.py, line ")


def test_a_run_that_does_not_end_is_broken_off():
    line = read_line(line_of({"nodes": 8, "requests": 100_000}, 60_000))
    assert line.failed == "Broken off: it did not end within 60000 events."


def test_the_command_of_a_run_has_its_options():
    values = {"algorithm": "jiang", "moves": "broadcast", "workload": "poisson:0.1", "seed": 3}
    assert command(values) == (
        "meshlock simulate --algorithm jiang --option moves=broadcast --workload poisson:0.1"
        " --seed 3"
    )


def test_processes_give_what_one_process_gives_and_a_killed_one_loses_only_its_run():
    made = study({**TABLE, "requests": 400}, "s")
    runs = [{**point.values, "seed": seed} for point in made.points for seed in made.seeds]
    lines = []
    for text in on_cores(runs, 0, 2):
        if not lines:
            victim = int(read_line(text).where.rpartition(":")[2])
            os.kill(victim, signal.SIGKILL)
        lines.append(text)
    expected = sorted(without_time(text) for text in one_by_one(runs, 0))
    assert sorted(map(without_time, lines)) == expected
    assert len({read_line(text).where for text in lines}) >= 2


def start_with(tmp_path, monkeypatch, code):
    """Have every process that is started run this first."""
    (tmp_path / "sitecustomize.py").write_text(code)
    source = str(Path(runs_module.__file__).parents[2])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), source]))


def test_a_run_that_kills_every_process_is_given_up(tmp_path, monkeypatch):
    start_with(
        tmp_path,
        monkeypatch,
        "import os\n"
        "from meshlock.sweep import runs\n"
        "make = runs.simulation\n"
        "def simulation(settings, trace):\n"
        "    if settings.seed == 2:\n"
        "        os._exit(9)\n"
        "    return make(settings, trace)\n"
        "runs.simulation = simulation\n",
    )
    runs = [{"nodes": 4, "requests": 20, "seed": seed} for seed in (1, 2, 3, 4, 5)]
    lines = {line.values["seed"]: line for line in map(read_line, on_cores(runs, 0, 2))}
    assert len(lines) == 5
    assert lines[2].failed == f"Its process died {TRIES} times." and lines[2].again
    assert all(lines[seed].figures for seed in (1, 3, 4, 5))


def test_ctrl_c_while_a_process_starts_is_left_to_its_parent(tmp_path, monkeypatch):
    start_with(
        tmp_path,
        monkeypatch,
        "import os, signal, sys\n"
        "of_ours = os.getpgid(os.getppid()) == os.getpgrp()\n"
        "if 'meshlock.sweep.workers' in sys.orig_argv and of_ours:\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n",
    )
    runs = [{"nodes": 4, "requests": 20, "seed": seed} for seed in (1, 2)]
    assert all(read_line(text).figures for text in on_cores(runs, 0, 2))


def test_tables_for_other_programs(tmp_path):
    made = study(TABLE, "s")
    write_tables(made, make_all(made, one_by_one, nobody), tmp_path)
    with (tmp_path / "results.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 12
    assert float(rows[0]["messages_per_entry"]) > 0 and rows[0]["broken"] == ""
    with (tmp_path / "summary.csv").open() as file:
        points = list(csv.DictReader(file))
    assert len(points) == 4
    low, high = float(points[3]["waiting.mean low"]), float(points[3]["waiting.mean high"])
    assert low <= float(points[3]["waiting.mean"]) <= high


STUDY = """
title = "Cost"
nodes = [4, 8]
algorithm = ["raymond", "naimi-trehel"]
requests = 60
repetitions = 3
[laws.messages_per_entry]
naimi-trehel = "H(nodes - 1)"
"""


LONG_STUDY = STUDY.replace("60", "2_000").replace("repetitions = 3", "repetitions = 3000")
"""However late it is told to end, it is not done."""


def sweep(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, "sweep", "cost.toml", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )


def test_the_command_writes_tables_plot_and_report(tmp_path):
    pytest.importorskip("matplotlib")
    (tmp_path / "cost.toml").write_text(STUDY)
    done = sweep(tmp_path, "--workers", "1")
    assert done.returncode == 0, done.stderr
    assert "`meshlock sweep cost.toml`\n" in done.stdout
    assert "| *naimi-trehel, law* | *1.833* | *2.593* |" in done.stdout
    names = {path.name for path in (tmp_path / "cost.sweep").iterdir()}
    assert {"runs.jsonl", "results.csv", "summary.csv", "report.md", "cost.svg"} <= names
    files = ("results.csv", "summary.csv", "report.md", "cost.svg")
    before = [(tmp_path / "cost.sweep" / name).read_bytes() for name in files]
    done = sweep(tmp_path, "--workers", "2", "--out", "again")
    assert done.returncode == 0, done.stderr
    assert [(tmp_path / "again" / name).read_bytes() for name in files] == before


def test_ctrl_c_keeps_what_is_done(tmp_path):
    (tmp_path / "cost.toml").write_text(LONG_STUDY)
    kept = tmp_path / "out" / "runs.jsonl"
    process = subprocess.Popen(
        [*PROGRAM, "sweep", "cost.toml", "--out", "out", "--workers", "2"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    sooner_or_later(lambda: kept.exists() and kept.read_bytes().count(b"\n") >= 2)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=LIMIT)
    assert process.returncode == 130
    assert "the same command goes on" in said
    assert "Traceback" not in said
    lines = kept.read_bytes().splitlines()
    assert 2 <= len(lines) < 4 * 3000 and all(read_line(line) for line in lines)


def test_processes_end_when_the_sweep_is_killed(tmp_path):
    (tmp_path / "cost.toml").write_text(LONG_STUDY)
    kept = tmp_path / "out" / "runs.jsonl"
    process = subprocess.Popen(
        [*PROGRAM, "sweep", "cost.toml", "--out", "out", "--workers", "2"], cwd=tmp_path
    )
    sooner_or_later(lambda: kept.exists() and kept.read_bytes().count(b"\n") >= 1)
    line = read_line(kept.read_bytes().splitlines()[0])
    worker = int(line.where.rpartition(":")[2])
    process.kill()
    process.wait()
    sooner_or_later(lambda: not is_running(worker))


def is_running(process: int) -> bool:
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def test_ctrl_c_at_the_terminal_does_not_reach_a_process():
    """A terminal signals its foreground group, of which no worker is."""
    workers = WorkerProcesses(0, 2)
    try:
        assert all(os.getpgid(process.pid) != os.getpgrp() for process in workers.all)
    finally:
        workers.kill()
