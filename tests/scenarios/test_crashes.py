"""C1 to C3: nodes crash and come back, and the others are served again."""

import pytest

from meshlock.algorithms.registry import find
from meshlock.errors import Refused
from meshlock.simulate.player import Player, play
from meshlock.simulate.scenario import Scenario, names
from meshlock.simulate.schedule import read
from meshlock.trace.audit import Audit
from meshlock.trace.reader import Trace
from meshlock.trace.writer import TraceWriter

CRASHES = ["C1", "C2", "C3"]
ONE_PERMIT = ["reverse-link", "naimi-trehel", "raymond", "centralized", "suzuki-kasami"]
ONE_PERMIT += ["neilsen-mizuno"]


def test_these_are_all():
    assert [name for name in names() if name.startswith("C")] == CRASHES


@pytest.mark.parametrize("name", CRASHES)
@pytest.mark.parametrize("algorithm", ["jiang", "direct"])
def test_everybody_is_served(name, algorithm, tmp_path):
    path = tmp_path / "run.jsonl"
    with path.open("wb") as file:
        outcome = play(name, algorithm, TraceWriter(file, True))
    assert outcome.good, outcome.transcript
    verdict = Audit(Trace(path))
    assert verdict.monitor.violated == {}
    assert verdict.entries == len(outcome.entries)
    schedule, entries = read(Trace(path))
    assert schedule.play(strict=True).outcome().entries == entries == outcome.entries


@pytest.mark.parametrize("name", ["C1", "C3"])
@pytest.mark.parametrize("algorithm", ONE_PERMIT)
def test_algorithms_for_one_permit_too(name, algorithm):
    outcome = play(name, algorithm)
    assert outcome.good, outcome.transcript


def played(text, algorithm="jiang"):
    return Player(Scenario("here", text), find(algorithm)).play()


def test_without_members_the_same_crash_is_refused():
    with pytest.raises(Refused, match="Only nodes of a pool with members can crash"):
        played("nodes 3\nrequest 1\ncrash 1\n")


@pytest.mark.parametrize(
    ("actions", "said"),
    [
        ("restart 0", "line 3: Node 0 is up"),
        ("crash 0\nrequest 0", "line 4: Node 0 is down"),
        ("crash 0\ncrash 0", "line 4: Node 0 is down"),
        ("crash 0\nwake 0", "line 4: Node 0 is down"),
        ("wait long", "line 3: 'long' should be a number"),
        ("wait 5\ntime 4", "line 4: It is 5 already"),
        ("restart 0 without brakes", "line 3: cannot do 'restart 0 without brakes'"),
        ("lose 0->1 4", "line 3: Less than 4 are on the way 0->1"),
        ("expect messages RENEW 0 HEARTBEAT 1", "jiang has no message HEARTBEAT"),
        ("expect slots 0 first", "line 3: 'first' should be a whole number"),
    ],
)
def test_what_cannot_be_done_is_refused_with_its_line(actions, said):
    with pytest.raises(Refused, match=said):
        played(f"nodes 2\nmembers all\n{actions}\n")


def test_members_go_with_token_algorithms_only():
    with pytest.raises(Refused, match="maekawa has no token"):
        played("nodes 3\nmembers all\nrequest 0\n", "maekawa")


def test_clients_of_one_node_queue_behind_an_algorithm_that_takes_one():
    text = "nodes 2\nlinks 0-1\nrequest 1\nrequest 1 priority 1\nrequest 1 priority 2\nsettle\n"
    text += "expect inside 1\nleave 1\nsettle\nwithdraw 1\nleave 1\nsettle\nexpect served\n"
    outcome = played(text + "expect entries 1 1\n", "raymond")
    assert outcome.good, outcome.transcript
    assert "asks for 1 with priority 2" in outcome.transcript  # before the one with priority 1
    assert "asks for 1 with priority 1" not in outcome.transcript


CHANGES = """
nodes 4
permits 3
members 2
deadlines
wait 300
request 0 want 2
expect slots 0 0 1
release 0 1
expect slots 0 0
member 0 add 2
member 1 add 3
wait 1000
request 1 want 2 priority 1
request 2 want 2 deadline 5
wait 10
expect slots 1 1 2
raise 2 0.99
wait 10
expect inside 0 1
leave 1
wait 10
expect slots 2 1 2
resize 0 1
wait 1000
leave 2
wait 10
request 3
wait 10
expect inside 0
leave 0
wait 10
expect slots 3 0
finish
expect served
"""
"""Two changes of members at once, slots, parts, deadlines, a changed one, fewer permits."""


@pytest.mark.parametrize("algorithm", ["jiang", "direct"])
def test_everything_that_changes_is_an_action(algorithm):
    player = Player(Scenario("here", CHANGES), find(algorithm))
    outcome = player.play()
    assert outcome.good, outcome.transcript
    config = player.run.recovering.layers[0].member.config
    assert (config.members, config.permits) == ((0, 1, 2, 3), 1)


def test_other_slots_than_expected_are_named():
    outcome = played(
        "nodes 2\npermits 3\nmembers all\nwait 300\nrequest 0 want 2\nexpect slots 0 1\n"
    )
    assert "slots 0 1: no, slots: 0 1" in outcome.unmet
