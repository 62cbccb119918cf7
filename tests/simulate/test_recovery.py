"""Recovery in virtual time: what crashes and partitions cost, and that nothing is unsafe.

A time unit is a second here: 5 ms per hop, leases of 3 s.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from meshlock.errors import Refused
from meshlock.simulate.recovery import RecoverySimulation
from meshlock.simulate.report import figures
from meshlock.topology.mobility.changes import LinkChange, NetworkChange, Planned
from meshlock.trace.audit import Audit
from meshlock.trace.reader import UNSAID, Trace
from meshlock.trace.writer import TraceWriter
from meshlock.web.index import open_trace
from whole import WHOLE

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import recovery_sim
from recovery_sim import prepared, replaced_after

EVERYBODY = [(one, other) for one in range(5) for other in range(one + 1, 5)]
LEASE = 3.0


def finished(run: RecoverySimulation) -> RecoverySimulation:
    recovery_sim.finished(run)
    assert run.monitor.violated == {}
    measures, found = run.measures, run.recovery
    assert measures.requested == measures.entries + measures.waiting + found.lost_requests
    return run


@pytest.mark.parametrize("algorithm", ["jiang", "direct"])
def test_k_changes_while_nodes_crash(algorithm: str, tmp_path: Path) -> None:
    path = tmp_path / "told.jsonl"
    given = {"algorithm": algorithm, "want": "1-2", "crashes": "30,10", "until": "200", "hold": "2"}
    with path.open("wb") as file:
        trace = TraceWriter(file, False)
        run = prepared(trace, **given, **{"permits-change": "40:2,80:5,120:3"})
        finished(run)
    assert run.figures()["permits"] == 3
    assert {layer.member.config.permits for layer in run.lives.layers} == {3}
    verdict = Audit(Trace(path))
    assert verdict.monitor.violated == {} and verdict.monitor.permits == 3


def test_what_nodes_choose_is_drawn_under_leases_too() -> None:
    """All proxy is the central lock, in which the token always comes back to one node."""
    given = {"permits": 1, "want": "1", "workload": "saturated", "until": "20"}
    central = finished(prepared(algorithm="centralized", **given))
    drawn = finished(prepared(algorithm="general-scheme", **given))
    assert central.measures.messages["TOKEN"] > 1.4 * central.measures.entries
    assert drawn.measures.messages["TOKEN"] != central.measures.messages["TOKEN"]


def test_two_changes_of_members_at_once_are_made_by_two_members(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with path.open("wb") as file:
        given = {"members-change": "30:+2,30:+3"}
        run = finished(
            prepared(TraceWriter(file, False), nodes=6, members="2", until="100", **given)
        )
    asked = [(line.t, line.node) for line in Trace(path).events() if line.add != UNSAID]
    assert [me for time, me in asked if time == asked[0][0]] == [0, 1]
    assert set(run.lives.members) == {0, 1, 2, 3}
    assert run.monitor.violated == {}


def test_order_is_judged_while_nodes_crash() -> None:
    given = {
        "priority": "1-9",
        "clients": 6,
        "workload": "saturated",
        "crashes": "100,5",
        "until": "300",
    }
    run = prepared(algorithm="recovery/serves-the-least-urgent", **given)
    recovery_sim.finished(run)
    assert set(run.monitor.violated) == {"order"}
    assert "which waits with priority" in run.monitor.violated["order"]
    finished(prepared(**given))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"permits-change": "5"}, "--permits-change takes TIME:K"),
        ({"permits-change": "5:0"}, "--permits-change takes TIME:K"),
        ({"permits-change": "x:2", "want": "1"}, "--permits-change takes a time"),
        ({"permits-change": "5:2"}, "A request for 3 of 2 permits can never be granted"),
        ({"permits-change": "5:2", "algorithm": "raymond", "permits": 1, "want": "1"}, "raymond"),
    ],
)
def test_impossible_changes_of_k_are_refused(given: dict[str, str | int], sentence: str) -> None:
    with pytest.raises(Refused, match=sentence):
        prepared(**given)


def test_birth_takes_a_lease_of_silence_and_one_to_wait():
    run = finished(prepared(until="60"))
    found = run.figures()
    assert 2 * LEASE < found["birth"] < 2.2 * LEASE
    assert found["outages"]["count"] == 0
    assert found["epochs"] == 1
    assert found["majority_share"] == 1.0


def test_an_idle_pool_says_nothing_but_renewals():
    run = finished(prepared(workload="poisson:0.0001", until="300"))
    renewals = run.measures.messages["RENEW"] + run.measures.messages["CONFIRM"]
    assert renewals > 0.9 * sum(run.measures.messages.values())
    at_rest = run.figures()["lease_messages_at_rest"]
    assert at_rest == pytest.approx(8 / (LEASE / 3), rel=0.15)  # asked four, answered four


@pytest.mark.parametrize("permits", [1, 3])
def test_crashes_cost_time_but_nothing_else(permits: int):
    run = finished(prepared(permits=permits, want=f"1-{permits}", crashes="10,5", until="300"))
    assert run.recovery.crashes == 20
    assert run.measures.entries > 200
    assert max(run.measures.waits) < 10 * LEASE


def test_cuts_stop_the_smaller_part_only():
    run = finished(prepared(cuts="30,30", until="600"))
    found = run.figures()
    assert found["partitions"] > 5
    assert found["majority_share"] == 1.0  # of five, one side has three
    assert found["majority_served_share"] > 0.85
    assert found["time_to_recover"]["worst"] < 3 * LEASE
    assert found["served_share"]["worst"] < found["majority_served_share"]


def test_the_smaller_part_waits_and_is_served_again_when_the_parts_join():
    between = [(a, b) for a, b in EVERYBODY if a < 2 <= b]
    changes: list[NetworkChange] = [LinkChange(60.0, False, a, b) for a, b in between]
    changes += [LinkChange(120.0, True, a, b) for a, b in between]
    run = prepared(permits=2, want="1-2", until="180")
    run.changes = Planned(changes)
    found = finished(run).figures()
    nodes = found["served_share"]["nodes"]
    assert max(nodes[:2]) < 0.7 < 0.85 < min(nodes[2:])
    assert 55 < max(run.measures.waits) < 70


def test_nobody_is_served_while_no_part_has_a_majority():
    run = prepared(until="180")
    run.changes = Planned([LinkChange(60.0, False, a, b) for a, b in EVERYBODY])
    found = finished(run).figures()
    assert found["majority_share"] == pytest.approx(1 / 3, abs=0.01)
    assert run.measures.waiting == 5
    assert found["unserved_with_path"] == 0


@pytest.mark.parametrize("seed", range(1, 6))
def test_a_killed_holder_is_replaced_within_two_leases(seed: int):
    run = prepared(until="120", seed=seed)
    replaced = replaced_after(run, "holder", at=60.0)
    assert run.recovery.crashes == 1
    assert run.monitor.violated == {}
    assert LEASE < replaced < 2 * LEASE


@pytest.mark.parametrize("seed", range(1, 6))
def test_a_killed_clients_permits_are_back_within_two_leases_and_others_go_on(seed: int):
    run = prepared(until="120", seed=seed)
    replaced = replaced_after(run, "client", at=60.0)
    assert run.recovery.orphaned_grants >= 1
    assert replaced < 2 * LEASE
    assert run.monitor.violated == {}
    assert run.recovery.lost_grants == 0
    assert max(run.recovery.outages, default=0) < LEASE / 3


def test_nodes_that_are_no_members_are_served_too():
    run = finished(prepared(nodes=8, members="3", crashes="20,5", cuts="60,20", until="350"))
    assert min(run.measures.entries_by_node) > 10


def test_urgent_requests_wait_less():
    run = finished(prepared(workload="saturated", priority="1-3", requests=700))
    levels = figures(run, 1, 1.0)["waiting_by_priority"]
    assert levels["3"]["p50"] < levels["2"]["p50"] < levels["1"]["p50"]
    assert levels["1"]["max"] < run.paths.recover + run.paths.queue


def test_one_request_at_a_time():
    run = finished(prepared(workload="serial", requests=200, crashes="20,5"))
    assert run.measures.requested == 200
    assert run.measures.entries + run.recovery.lost_requests == 200


HARD: list[dict[str, str | int]] = [
    {"nodes": 7, "topology": "ring", "clients": 2, "priority": "1-3", "members": "5"},
    {"nodes": 4, "delay": "exp:0.01", "links": "unordered", "clock-skew": "0.2"},
    {"nodes": 6, "topology": "line", "workload": "saturated", "requests": 400},
    {"nodes": 9, "mobility": "waypoint:0.002,0.45", "partitions": "allowed"},
    {"nodes": 8, "topology": "tree", "mobility": "flips:0.5", "members": "4"},
    {"nodes": 6, "members": "2", "members-change": "20:+2,20:+3,60:-0", "permits-change": "30:4"},
    {"nodes": 6, "priority": "1-9", "raise": "0.5", "release-part": "0.5", "algorithm": "direct"},
    {"nodes": 6, "priority": "1-9", "raise": "0.5", "release-part": "0.5", "clients": 2},
]


UNTIL = "150" if WHOLE else "75"


@pytest.mark.parametrize("given", HARD)
def test_the_audit_agrees_with_the_run(tmp_path: Path, given: dict[str, str | int]):
    path = tmp_path / "run.jsonl"
    trouble: dict[str, str | int] = {"crashes": "15,5", "cuts": "40,15", "until": UNTIL}
    with path.open("wb") as file:
        run = finished(prepared(TraceWriter(file, False), **{**trouble, **given}))
    verdict = Audit(Trace(path))
    assert verdict.monitor.violated == {}
    assert verdict.ended
    assert verdict.requested == run.measures.requested
    assert verdict.entries == run.measures.entries
    assert verdict.leases is not None
    assert verdict.leases.monitor.epochs == run.lives.monitor.epochs > 1
    assert verdict.leases.waits.late == verdict.leases.waits.unserved == 0
    index = open_trace(path)  # as the page does
    assert index.violated == [] and index.unjudged == ""
    assert len(index.now.clients) == run.measures.waiting + index.now.served


def test_one_seed_one_run():
    def seen(seed: int) -> dict[str, object]:
        run = finished(prepared(crashes="10,5", cuts="30,10", until="80", seed=seed))
        return figures(run, seed, 1.0)

    assert seen(7) == seen(7) != seen(8)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"members": "", "crashes": "10"}, "--lease is .* add --members, such as --members all"),
        ({"members": "6"}, "'all' or a number up to 5"),
        ({"members": "few"}, "'all' or a number up to"),
        ({"algorithm": "maekawa", "permits": 1, "want": "1"}, "has no token that recovery could"),
        ({"algorithm": "lelann", "permits": 1, "want": "1"}, "never rests, so recovery cannot"),
        ({"algorithm": "raymond"}, "raymond shares one permit, not 3"),
        ({"algorithm": "jaing"}, "There is no algorithm 'jaing': did you mean 'jiang'"),
        ({"algorithm": "direct", "moves": "quiet"}, "direct has no option 'moves'"),
        ({"disks-lost": "2"}, "--disks-lost takes a share of crashes"),
        ({"failures": "return"}, "leave out --failures"),
        ({"lease": "0.04"}, "too short to be renewed .* --lease 0.05"),
        ({"lease": "-1"}, "--lease takes a time, above 0"),
        ({"crashes": "1,2,3"}, "--crashes takes EVERY or EVERY,DOWN"),
        ({"cuts": "5"}, "--cuts takes EVERY,LASTS"),
        ({"clock-skew": "0.9"}, "from 0 to 0.5"),
        ({"want": "4"}, "4 of 3 permits can never be granted"),
        ({"members-change": "5:2"}, r"takes TIME:\+NODE or TIME:-NODE.* from 0 to 4, not '5:2'"),
        ({"members-change": "5:+9"}, "with nodes from 0 to 4"),
        ({"members-change": "x:+1"}, "--members-change takes a time"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(given: dict[str, str | int], sentence: str):
    with pytest.raises(Refused, match=sentence):
        prepared(**given)
