"""The commands: what they print, and their exit codes."""

import csv
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from commands import meshlock
from meshlock.algorithms.registry import ALGORITHMS
from waiting import LIMIT, has_worked, sooner_or_later

COMMAND = [sys.executable, "-m", "meshlock"]


def answer(*arguments):
    result = meshlock(*arguments, "--json")
    assert result.stderr == ""
    return json.loads(result.stdout)


NAIMI_TREHEL_64 = """simulate --algorithm naimi-trehel --nodes 64 --topology complete
    --permits 1 --want 1 --priority 0 --workload serial --requests 20000 --delay 1 --hold 1
    --seed 7"""

CENTRAL = "simulate --algorithm centralized --nodes 3 --requests 5 --trace"

UNORDERED = """simulate --algorithm general-scheme --nodes 6 --requests 200 --delay exp:1
    --links unordered --verify-determinism"""

SIMULATE_KEYS = {
    "algorithm",
    "nodes",
    "permits",
    "seed",
    "requested",
    "entries",
    "unserved",
    "messages",
    "messages_per_entry",
    "waiting",
    "waiting_by_priority",
    "sync_delay_mean",
    "priority_violations",
    "use_rate",
    "fairness",
    "violated",
    "connected_share",
    "sim_time",
    "cpu_s",
    "messages_per_cpu_s",
}


def test_simulate_prints_the_harmonic_number():
    result = answer(*NAIMI_TREHEL_64.split())
    assert result.keys() >= SIMULATE_KEYS
    assert result["waiting"].keys() == {"mean", "p50", "p95", "p99", "max"}
    assert result["priority_violations"].keys() == {"base", "aged", "known"}
    assert result["messages_per_entry"] == pytest.approx(sum(1 / i for i in range(1, 64)), rel=0.02)


def test_simulate_reports_to_people():
    result = meshlock("simulate", "--nodes", "7", "--topology", "tree", "--requests", "100")
    assert result.returncode == 0
    assert "REQUEST" in result.stdout
    assert "no violation" in result.stdout


def test_algorithms_lists_them_all():
    listed = answer("algorithms")
    assert [entry["name"] for entry in listed] == list(ALGORITHMS)
    promised = {"name", "title", "source", "problem", "priorities", "changing_links"}
    promised |= {"needs_fifo", "needs_complete_graph", "messages"}
    for entry in listed:
        assert entry.keys() >= promised
        assert entry["problem"] in ("mutex", "k", "h-of-k")
    people = meshlock("algorithms").stdout.splitlines()
    assert [line.split()[0] for line in people] == ["name", *ALGORITHMS]  # for grep: a line each


def test_a_scenario_file_is_a_run_and_flags_override_it(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text(
        'algorithm = "raymond"\ntopology = "line"\nnodes = 5\nrequests = 50\nseed = 3\n'
    )
    result = answer("simulate", str(path))
    assert (result["nodes"], result["entries"], result["seed"]) == (5, 50, 3)
    assert answer("simulate", str(path), "--requests", "20")["entries"] == 20


def test_trace_audit_and_convert(tmp_path):
    trace = tmp_path / "run.jsonl"
    assert meshlock(*CENTRAL.split(), str(trace)).returncode == 0
    verdict = answer("audit", str(trace))
    assert verdict["holds"]
    assert verdict["entries"] == 5
    files = {name: tmp_path / f"run.{name}" for name in ("mermaid", "shiviz", "csv", "itf")}
    for name, path in files.items():
        meshlock("convert", str(trace), "--to", name, "-o", str(path)).check_returncode()
    diagram = files["mermaid"].read_text()
    assert diagram.startswith("sequenceDiagram\n")
    assert diagram.count("note over n1: enters") == 2
    assert "n1->>n0: REQUEST origin=1" in diagram
    with files["csv"].open() as file:
        assert [row["event"] for row in csv.DictReader(file)].count("enter") == 5
    log = files["shiviz"].read_text().splitlines()
    assert log[2].startswith('n0 {"n0":1}')
    states = json.loads(files["itf"].read_text())
    assert states["vars"] == ["step", "node0", "node1", "node2"]
    assert states["states"][0]["node0"]["token_here"] is True


@pytest.mark.parametrize("links", ["complete", []])
@pytest.mark.parametrize(
    "command", ["replay", "shrink -o", "convert --to itf -o", "convert --to html -o"]
)
def test_a_short_trace_of_millions_of_nodes_is_refused(tmp_path, command, links):
    trace, out = tmp_path / "crowd.jsonl", tmp_path / "out"
    setup = {"meshlock": "trace", "format": 1, "source": "simulate", "algorithm": "jiang"}
    asks = {"t": 0, "node": 0, "event": "request", "client": 1, "want": 1, "priority": 0}
    lines = {**setup, "nodes": 10_000_000, "permits": 1, "links": links, "holder": 0}, asks
    trace.write_text("".join(json.dumps(line) + "\n" for line in lines))
    words = [*command.split(), str(out)] if command.endswith("-o") else [command]
    result = meshlock(*words, str(trace))
    assert result.returncode == 2
    assert "has 10,000,000 nodes, too many to run again" in result.stderr
    assert not out.exists()


@pytest.mark.parametrize(
    "line",
    [
        "simulate --nodes 4 --requests 20",
        "scenario J1 --algorithm jiang-printed",
        "check --nodes 3 --permits 2",
        "check --nodes 6 --topology line --max-states 100",
        "simulat",
    ],
)
def test_a_process_says_the_same(line):
    """All other tests run the command in this process."""
    process = subprocess.run([*COMMAND, *line.split()], capture_output=True, text=True)
    here = meshlock(*line.split())
    assert (process.returncode, process.stderr) == (here.returncode, here.stderr)
    told = [
        [text for text in output.splitlines() if "CPU" not in text]
        for output in (process.stdout, here.stdout)
    ]
    assert told[0] == told[1]


def test_a_violation_is_exit_1(tmp_path):
    trace = tmp_path / "bad.jsonl"
    setup = {"meshlock": "trace", "format": 1, "nodes": 1, "permits": 1, "balanced": False}
    asks = {"t": 0, "node": 0, "event": "request", "client": 1, "want": 1}
    end = {"t": 1, "event": "end", "unserved": 1}
    trace.write_text("\n".join(json.dumps(line) for line in (setup, asks, end)))
    assert meshlock("audit", str(trace)).returncode == 1


def test_who_is_cut_off_from_the_token_at_the_end_is_not_held_against_the_algorithm(tmp_path):
    """The checker does not either. Where the same network is whole at the end, all are served."""
    line = ["--nodes", "4", "--topology", "line", "--mobility", "flips:0.3", "--requests", "60"]
    line += ["--workload", "poisson:0.5", "--changes-until", "30", "--seed", "1"]
    trace = str(tmp_path / "run.jsonl")
    parted = meshlock("simulate", *line, "--partitions", "allowed", "--json", "--trace", trace)
    found = json.loads(parted.stdout)
    assert (parted.returncode, found["violated"]) == (0, [])
    assert found["unserved"] == found["excused"] == 1
    assert meshlock("audit", trace).returncode == 0
    said = meshlock("simulate", *line, "--partitions", "allowed").stdout
    assert "1 request waits in a part of the network" in " ".join(said.split())
    whole = json.loads(meshlock("simulate", *line, "--partitions", "healed", "--json").stdout)
    assert whole["unserved"] == whole["excused"] == 0


def test_determinism_is_verified_across_hash_seeds():
    result = answer(*UNORDERED.split())
    assert result["deterministic"] is True


WRONG = {
    "--algorithm raymund": "did you mean 'raymond'?",
    "--algorithm nonsense": "choose one of",
    "--algorithm raymond --permits 3": "raymond shares one permit",
    "--permits 1 --want 2": "can never be granted",
    "--permits 0": "at least one permit",
    "--nodes 0": "at least one node",
    "--nodes 99999999999999999999": "nodes are too many",
    "--clients 99999999999999999999": "clients at every node are too many",
    "--algorithm jiang --option patience=99999999999999999999": "up to 18 digits",
    "--requests 0": "at least one request",
    "--want 3-1": "must not be above",
    "--want x": "takes a number or LOW-HIGH",
    "--delay -1": "takes a time",
    "--delay nan": "takes a time",
    "--delay normal:1,2": "takes a time",
    "--workload sometimes": "serial, saturated or poisson:RATE",
    "--delay 1e308": "below 1e+18",
    "--delay inf": "below 1e+18",
    f"--priority 1-{'9' * 400}": "up to 18 digits",
    f"--priority {'9' * 5000}": "takes a number or LOW-HIGH",
    "--workload poisson:0": "rate above 0",
    "--workload poisson:1e-320": "from 1e-12 to below 1e+18",
    "--workload poisson:1e-300": "from 1e-12 to below 1e+18",
    "--workload poisson:1e308": "from 1e-12 to below 1e+18",
    "--workload poisson:inf": "from 1e-12 to below 1e+18",
    "--range x": "--range takes a number above 0",
    "--range nan": "--range takes a number above 0",
    "--partitions foo": "prevented, allowed, healed",
    "--changes-until nan": "--changes-until takes a time",
    "--members=": "--members takes 'auto', 'all' or a number",
    "--algorithm /": "/ is a folder",
    "--links lossy": "fifo or unordered",
    "--topology grid:3x3 --nodes 7": "grid",
    "--topology klein-bottle": "topology",
    "--topology missing.graphml": "missing.graphml",
    "--algorithm raymond --behaviour proxy": "raymond has no option 'behaviour'",
    "--algorithm general-scheme --behaviour rude": "is one of",
    "--algorithm gateway --option networks=none": "whole number",
    "--option colour=blue": "There is no setting 'colour'",
    "--algorithm gateway --members all": "run it without recovery",
    "--algorithm raymond --mobility flips:1": "do not change",
    "--mobility flop:1": "flips",
    "--mobility flips:1 --failures lose": "drain, return or custody",
    "--links unordered": "keep the order",
    "--algorithm singhal --topology line": "--topology complete",
    "no-such.toml": "Cannot read no-such.toml",
}


@pytest.mark.parametrize("arguments", WRONG, ids=lambda text: text[:40])
def test_a_wrong_request_is_exit_2_and_one_sentence(arguments):
    result = meshlock("simulate", *arguments.split())
    assert result.returncode == 2
    assert WRONG[arguments] in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("bad.toml", "algorithm = [", "is not valid TOML"),
        ("list.toml", "nodes = [1]", "'nodes' must be a number or a text"),
        ("word.toml", 'nodes = "many"', "nodes takes a whole number"),
        ("typo.toml", "node = 3", "did you mean 'nodes'?"),
    ],
)
def test_a_broken_scenario_is_exit_2(tmp_path, name, text, sentence):
    path = tmp_path / name
    path.write_text(text)
    result = meshlock("simulate", str(path))
    assert result.returncode == 2
    assert sentence in result.stderr


def test_a_trace_that_cannot_be_written_is_exit_2(tmp_path):
    result = meshlock("simulate", "--trace", str(tmp_path / "no" / "such" / "folder.jsonl"))
    assert result.returncode == 2
    assert "Cannot write the trace" in result.stderr
    if Path("/dev/full").exists():
        result = meshlock("simulate", "--trace", "/dev/full")
        assert result.returncode == 2
        assert "No space left" in result.stderr


def test_ctrl_c_prints_what_was_measured_so_far_and_exits_130():
    arguments = ["simulate", "--nodes", "50", "--requests", "100000000"]
    running = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, text=True)
    sooner_or_later(lambda: has_worked(running.pid, 2.0))
    running.send_signal(signal.SIGINT)
    output, _ = running.communicate(timeout=LIMIT)
    assert running.returncode == 130
    assert "figures so far" in output


def test_audit_of_several_traces_says_what_is_wrong_with_them(tmp_path):
    simulated, garbage = tmp_path / "simulated.jsonl", tmp_path / "garbage.jsonl"
    answer("simulate", "--nodes", "3", "--requests", "5", "--trace", str(simulated))
    garbage.write_text("no trace\n")
    for given, sentence in (
        ("nothing.jsonl", "Cannot read nothing.jsonl: No such file or directory."),
        (str(garbage), "is not a trace"),
        (str(simulated), "was not written by a live node"),
    ):
        run = meshlock("audit", given, given)
        assert run.returncode == 2
        assert sentence in run.stderr and "Traceback" not in run.stderr


def test_compare_marks_what_is_broken(monkeypatch):
    few = ["--set", "nodes=13", "--set", "requests=100"]
    names = ["maekawa", "maekawa-bare", "jiang:moves=broadcast"]
    done = meshlock("compare", *names, *few, "--json")
    assert done.returncode == 1
    result = json.loads(done.stdout)
    assert result["scenario"] == {"nodes": 13, "requests": 100}
    assert list(result["results"]) == names
    assert all(set(figures) >= SIMULATE_KEYS for figures in result["results"].values())
    assert result["results"]["jiang:moves=broadcast"]["options"]["moves"] == "broadcast"
    monkeypatch.setenv("COLUMNS", "200")
    shown = meshlock("compare", *names, *few)
    assert shown.returncode == 1
    assert "✗ maekawa-bare violates served and leaves 13 requests unserved" in shown.stdout
