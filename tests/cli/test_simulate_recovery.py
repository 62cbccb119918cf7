"""meshlock simulate with members: what it prints, and its exit codes."""

import json

import pytest

from commands import meshlock
from whole import WHOLE

POOL = """simulate --nodes 5 --permits 2 --want 1-2 --members all --workload poisson:0.02
    --requests 200 --crashes 500 --cuts 1000,300 --seed 3"""


def test_a_pool_that_recovers_is_reported_traced_and_judged(tmp_path):
    trace = tmp_path / "run.jsonl"
    more = ["--json", "--verify-determinism", "--trace", str(trace)]
    result = meshlock(*POOL.split(), *more)
    assert (result.returncode, result.stderr) == (0, "")
    figures = json.loads(result.stdout)
    assert figures["algorithm"] == "jiang"
    found = figures["recovery"]
    assert figures["violated"] == [] and figures["deterministic"]
    assert figures["requested"] == 200 == figures["entries"] + found["lost_requests"]
    assert found["crashes"] > 0 and found["partitions"] > 0 and found["epochs"] > 1
    assert found["outages"].keys() == found["time_to_recover"].keys()
    assert found["time_to_recover"].keys() == {"count", "median", "worst"}
    assert len(found["served_share"]["nodes"]) == 5
    promised = {"majority_share", "idle_share", "lost_grants", "orphaned_grants"}
    promised |= {
        "lease_messages_at_rest",
        "map_crossings_per_entry",
        "unserved_with_path",
        "requests_with_path",
    }
    assert found.keys() >= promised
    verdict = json.loads(meshlock("audit", str(trace), "--json").stdout)
    assert verdict["holds"] and verdict["not_judged"] == []
    assert verdict["algorithm"] == "jiang"
    assert verdict["entries"] == figures["entries"]
    for kind in ("mermaid", "shiviz", "csv"):
        written = tmp_path / f"run.{kind}"
        assert meshlock("convert", str(trace), "--to", kind, "-o", str(written)).returncode == 0
        assert written.stat().st_size > 1000


def test_people_are_told_what_runs():
    result = meshlock(*POOL.split(), "--algorithm", "direct")
    words = " ".join(result.stdout.split())
    assert "Requests straight to the token" in words
    assert "direct, with recovery by 5 members" in words
    assert "no violation of safety, leases, slots, fences" in words


TOKENS = ["jiang", "reverse-link", "naimi-trehel", "raymond", "centralized"]
TOKENS += ["suzuki-kasami", "neilsen-mizuno", "direct"]


@pytest.mark.parametrize("algorithm", TOKENS)
def test_every_token_algorithm_survives_crashes_and_cuts(algorithm):
    given = f"simulate --algorithm {algorithm} --nodes 9 --topology grid:3x3 --members all --json"
    faults = "--crashes 2000 --cuts 3000,500 --workload poisson:0.01 --requests 600 --clients 2"
    result = meshlock(*given.split(), *faults.split())
    assert (result.returncode, result.stderr) == (0, "")
    figures = json.loads(result.stdout)
    assert figures["algorithm"] == algorithm
    assert figures["violated"] == [] and figures["unserved"] == 0
    assert figures["recovery"]["unserved_with_path"] == 0
    assert figures["recovery"]["late_with_path"] == 0
    assert figures["entries"] + figures["recovery"]["lost_requests"] == 600


def test_a_run_with_states_is_played_again(tmp_path):
    trace = tmp_path / "run.jsonl"
    result = meshlock(*POOL.split(), "--trace", str(trace), "--trace-states")
    assert result.returncode == 0
    assert '"state":{' in trace.read_text()
    again = meshlock("replay", str(trace), "--json")
    assert (again.returncode, again.stderr) == (0, "")
    assert len(json.loads(again.stdout)["entries"]) > 150


def test_a_token_is_needed():
    result = meshlock("simulate", "--algorithm", "maekawa", "--nodes", "4", "--members", "all")
    assert result.returncode == 2
    assert "maekawa has no token that recovery could replace" in result.stderr


def test_crashes_need_members():
    result = meshlock("simulate", "--nodes", "5", "--crashes", "500")
    assert result.returncode == 2
    assert result.stderr.startswith("meshlock: --crashes is only for nodes that recover")


def test_without_members_nothing_recovers():
    found = json.loads(meshlock("simulate", "--algorithm", "direct", "--json").stdout)
    assert found["algorithm"] == "direct" and found["recovery"] is None


def test_a_mistake_of_recovery_is_run_and_seen():
    given = "simulate --algorithm direct --mutant recovery/does-not-wait --nodes 5 --seed 2"
    faults = "--topology complete --members all --crashes 500 --workload poisson:0.01 --json"
    result = meshlock(*given.split(), *faults.split())
    assert result.returncode == 1
    assert "safety" in json.dumps(json.loads(result.stdout)["violated"])


@pytest.mark.parametrize(
    ("algorithm", "topology"),
    [("jiang", "complete"), ("direct", "grid:3x3")]
    + [("jiang", "grid:3x3"), ("direct", "complete")] * WHOLE,
)
def test_members_that_choose_themselves_survive_crashes_and_cuts(algorithm, topology, tmp_path):
    trace = tmp_path / "run.jsonl"
    given = f"simulate --algorithm {algorithm} --nodes 9 --topology {topology} --members auto"
    faults = "--crashes 300,600 --cuts 3000,500 --workload poisson:0.01 --requests 400 --lease 100"
    result = meshlock(*f"{given} {faults} --json --verify-determinism --seed 1".split())
    assert result.returncode == 0, result.stdout + result.stderr
    figures = json.loads(result.stdout)
    found = figures["recovery"]
    assert figures["violated"] == [] and figures["deterministic"]
    assert found["member_changes"] >= 4 and found["crashes"] > 3
    assert found["birth"] == 0.0  # nothing had to be waited for
    assert found["unserved_with_path"] == found["late_with_path"] == 0
    short = f"{given} --requests 60 --workload poisson:0.01 --lease 100 --trace {trace}"
    assert meshlock(*short.split()).returncode == 0
    assert json.loads(meshlock("audit", str(trace), "--json").stdout)["holds"]
    assert meshlock("replay", str(trace)).returncode == 0
