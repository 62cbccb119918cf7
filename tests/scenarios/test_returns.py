"""Failing links that return messages: token and permits come back, the rest is lost."""

import io

from meshlock.algorithms.registry import find
from meshlock.simulate.player import Player
from meshlock.simulate.scenario import Scenario
from meshlock.simulate.schedule import read
from meshlock.trace.audit import Audit
from meshlock.trace.reader import Trace
from meshlock.trace.writer import TraceWriter

RING = "nodes 3\nlinks 0-1 1-2 0-2\npermits 2\nfailures return\n"


def played(actions, trace=None):
    return Player(Scenario("returns", RING + actions), find("jiang"), trace).play()


def test_a_token_comes_back_and_goes_another_way():
    outcome = played("request 1\ndeliver 1->0\nlink down 0-1\nfinish\nexpect served\n")
    assert outcome.good, outcome.transcript
    (back,) = [line for line in outcome.transcript.splitlines() if "comes back" in line]
    assert back.startswith("  0: TOKEN ") and back.endswith(" to 1 comes back")


def test_a_request_is_lost_and_asked_again_elsewhere():
    outcome = played("request 1\nlink down 0-1\nexpect inside\nfinish\nexpect served\n")
    assert outcome.good, outcome.transcript
    assert (
        "REQUEST height=(0,1,1) grants=0 priority=0 rank=0 want=1 fresh=True from 1 to 0 is lost"
        in (outcome.transcript)
    )


def test_permits_on_their_way_home_come_back():
    actions = (
        "request 1\nsettle\nrequest 0\nsettle\nleave 1\nlink down 0-1\nfinish\nexpect served\n"
    )
    outcome = played(actions)
    assert outcome.good, outcome.transcript
    assert "RELEASE" in outcome.transcript and "comes back" in outcome.transcript


def test_drained_links_are_as_before():
    script = RING.replace("failures return\n", "")
    actions = "request 1\ndeliver 1->0\nlink down 0-1\nexpect inside 1\n"
    outcome = Player(Scenario("drains", script + actions), find("jiang")).play()
    assert "comes back" not in outcome.transcript and not outcome.unmet


def test_the_trace_is_judged_good_and_plays_again(tmp_path):
    sink = io.BytesIO()
    actions = "request 1\ndeliver 1->0\nrequest 2\nlink down 0-1\nfinish\nlink up 0-1\nsettle\n"
    outcome = played(actions, TraceWriter(sink, False))
    path = tmp_path / "returned.jsonl"
    path.write_bytes(sink.getvalue())
    assert Audit(Trace(path)).monitor.violated == {}
    schedule, entries = read(Trace(path))
    assert "failures return" in schedule.script("again")
    again = schedule.play(strict=True).outcome()
    assert again.entries == entries == outcome.entries
