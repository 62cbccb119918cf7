"""Audit: what the simulator calls clean is clean, and every kind of lie is found."""

import msgspec
import pytest

from meshlock.trace.audit import Audit
from meshlock.trace.reader import BadTrace, Trace
from meshlock.trace.writer import TraceWriter
from runs import finished

RUN = {"algorithm": "raymond", "topology": "line", "nodes": 3, "requests": 6, "delay": "exp:1"}


@pytest.fixture
def events(tmp_path):
    path = tmp_path / "run.jsonl"
    with path.open("wb") as file:
        finished(TraceWriter(file, False), **RUN)
    return [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]


def audit(tmp_path, events):
    path = tmp_path / "told.jsonl"
    path.write_bytes(b"\n".join(msgspec.json.encode(event) for event in events) + b"\n")
    return Audit(Trace(path))


def first(events, **wanted):
    return next(i for i, event in enumerate(events) if wanted.items() <= event.items())


def test_a_clean_run_is_clean(tmp_path, events):
    verdict = audit(tmp_path, events)
    assert verdict.monitor.violated == {}
    assert verdict.ended
    assert verdict.entries == verdict.requested == 6


def test_more_in_use_than_there_are(tmp_path, events):
    place = first(events, event="enter")
    asks = {"t": 0.0, "node": 0, "event": "request", "client": 99, "want": 1, "priority": 0}
    enters = {"t": 0.0, "node": 0, "event": "enter", "client": 99, "want": 1}
    verdict = audit(tmp_path, [*events[: place + 1], asks, enters, *events[place + 1 :]])
    assert "2 permits are in use" in verdict.monitor.violated["safety"]
    assert "conservation" in verdict.monitor.violated


def test_a_token_that_is_kept_and_sent(tmp_path, events):
    giver = first(events, event="send", message="TOKEN")
    cause = max(i for i in range(giver) if events[i].get("tokens") == 0)
    del events[cause]["tokens"]  # says nothing of having lost it
    verdict = audit(tmp_path, events)
    assert "made 1 token" in verdict.monitor.violated["one-token"]


def test_a_permit_that_vanishes(tmp_path, events):
    leave = max(i for i, event in enumerate(events) if event.get("event") == "leave")
    events[leave].pop("free", None)
    verdict = audit(tmp_path, events)
    assert "lost 1 permit" in verdict.monitor.violated["conservation"]


def test_somebody_who_waits_for_ever(tmp_path, events):
    asks = {"t": events[-1]["t"], "node": 2, "event": "request", "client": 99, "want": 1}
    verdict = audit(tmp_path, [*events[:-1], asks, events[-1]])
    assert "1 request waits" in verdict.monitor.violated["served"]


def test_a_trace_without_an_end_is_not_blamed_for_whoever_waits(tmp_path, events):
    place = first(events, event="request")
    verdict = audit(tmp_path, events[: place + 1])
    assert not verdict.ended
    assert verdict.monitor.violated == {}


def test_the_lower_priority_first_although_nothing_was_in_flight(tmp_path):
    setup = {"meshlock": "trace", "format": 1, "nodes": 1, "permits": 1, "holder": 0}
    setup |= {"ordered": True, "balanced": False}

    def asks(client, priority):
        return {"event": "request", "client": client, "want": 1, "priority": priority}

    told = [asks(1, 0), {"event": "enter", "client": 1}, asks(2, 3), asks(3, 9)]
    told += [{"event": "leave", "client": 1}, {"event": "enter", "client": 2}]
    verdict = audit(tmp_path, [setup, *({"t": 0, "node": 0, **event} for event in told)])
    assert "priority 3" in verdict.monitor.violated["order"]


def test_order_is_not_judged_while_one_end_of_a_link_has_not_been_told(tmp_path):
    """The request that it waits for may have been lost, and nobody knows."""
    setup = {"meshlock": "trace", "format": 1, "nodes": 2, "permits": 1, "holder": 0}
    setup |= {"ordered": True, "balanced": False, "links": [[0, 1]]}
    down = [{"event": "link-down", "node": node, "peer": 1 - node} for node in (0, 1)]
    up = [{"event": "link-up", "node": node, "peer": 1 - node} for node in (0, 1)]

    def asks(node, client, priority):
        return {"event": "request", "node": node, "client": client, "priority": priority, "want": 1}

    def judged(changes):
        told = [asks(0, 1, 0), {"event": "enter", "client": 1}, asks(0, 2, 3), asks(1, 3, 9)]
        told += [*changes, {"event": "leave", "client": 1}, {"event": "enter", "client": 2}]
        lines = [setup, *({"t": 0, "node": 0, **event} for event in told)]
        return set(audit(tmp_path, lines).monitor.violated)

    assert judged([]) == {"order"}
    assert judged([down[0]]) == judged([*down, up[1]]) == set()
    assert judged([*down, *up]) == judged([*down, up[0], up[1]]) == {"order"}
    assert judged([*down, *up, down[1], up[1]]) == {"order"}


@pytest.mark.parametrize(
    ("broken", "sentence"),
    [
        (b"", "is empty"),
        (b"\x00\xff\xfe binary", "Line 1 of .* is not JSON"),
        (b'{"some": "json"}\n', "is not a meshlock trace"),
        (b'{"meshlock":"trace","format":99}\n', "reads format 1"),
        (b'{"meshlock":"trace","format":1,"nodes":-1,"permits":1}\n', "no valid 'nodes'"),
    ],
)
def test_what_is_not_a_trace_is_refused_in_a_sentence(tmp_path, broken, sentence):
    path = tmp_path / "broken.jsonl"
    path.write_bytes(broken)
    with pytest.raises(BadTrace, match=sentence):
        Audit(Trace(path))


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (b'{"t": 1, "node": 0, "eve', r"Line 2 .* cut short"),
        (b"[1, 2]", r"Line 2 .* is not an event"),
        (b'{"t": 1, "node": 7, "event": "leave"}', r"Line 2 .* does not exist: 7"),
        (b'{"t": 1, "node": 0, "event": "leave", "client": 1}', r"Line 2 .* is not inside"),
        (b'{"t": 1, "node": 0, "event": "deliver", "id": 4}', r"Line 2 .* not on its way"),
        (b'{"t": 1, "node": 0, "event": "send", "id": 4, "to": 1}', r"Line 2 .* without a cause"),
    ],
)
def test_a_broken_line_is_named(tmp_path, events, line, sentence):
    path = tmp_path / "broken.jsonl"
    path.write_bytes(msgspec.json.encode(events[0]) + b"\n" + line)
    with pytest.raises(BadTrace, match=sentence):
        Audit(Trace(path))


# -- one line that says something else than the others -------------------------------------

RING = {"topology": "ring", "nodes": 4, "permits": 2, "want": "1-2", "requests": 15, "seed": 3}


@pytest.fixture
def told(tmp_path):
    path = tmp_path / "ring.jsonl"
    with path.open("wb") as file:
        finished(TraceWriter(file, False), algorithm="jiang", priority="1-3", **RING)
    return [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]


def refused(tmp_path, events, place, sentence):
    with pytest.raises(BadTrace, match=f"Line {place + 1} of .*{sentence}"):
        audit(tmp_path, events)


@pytest.mark.parametrize(
    ("of", "change", "sentence"),
    [
        ("enter", {"want": 99}, "in with 99 permits; it asked for"),
        ("enter", {"want": 0}, "in with 0 permits; it asked for"),
        ("enter", {"want": -1}, "in with -1 permits; it asked for"),
        ("enter", {"want": "1"}, "needs a whole number as 'want'"),
        ("enter", {"want": 1.5}, "needs a whole number as 'want'"),
        ("enter", {"fence": -1}, "needs a fence above 0"),
        ("enter", {"fence": "x"}, "needs a whole number as 'fence'"),
        ("request", {"want": 0}, "ask for 0 permits"),
        ("request", {"priority": "high"}, "needs a number as 'priority'"),
        ("request", {"node": -1}, "needs a node"),
        ("request", {"free": "all"}, "needs a whole number as 'free'"),
        ("deliver", {"tokens": None}, "needs a whole number as 'tokens'"),
        ("send", {"permits": []}, "needs a whole number as 'permits'"),
        ("send", {"tokens": "x"}, "needs a whole number as 'tokens'"),
        ("deliver", {"from": 2}, "not as it was sent"),
        ("deliver", {"from": None}, "not as it was sent"),
        ("deliver", {"message": "GOSSIP"}, "not as it was sent"),
        ("deliver", {"args": {}}, "not as it was sent"),
        ("deliver", {"event": "undelivered"}, "to the wrong node"),
        ("deliver", {"event": "bogus"}, "unknown kind of event: bogus"),
        ("deliver", {"event": "crash"}, "needs a set-up with 'recovery'"),
        ("deliver", {"event": "timer"}, "needs a set-up with 'recovery'"),
        ("deliver", {"event": "lease-lost", "client": 1}, "which is not inside"),
        ("deliver", {"event": "start"}, "going after the run has begun"),
        ("deliver", {"event": "move"}, "needs a number as 'x'"),
        ("deliver", {"event": "link-up", "peer": 9}, "does not exist: 9"),
        ("deliver", {"event": "drop", "id": 9999}, "drops message 9999, which is not on its way"),
    ],
)
def test_a_line_that_contradicts_others_is_refused(tmp_path, told, of, change, sentence):
    place = first(told, event=of)
    told[place].update(change)
    refused(tmp_path, told, place, sentence)


def test_nothing_comes_after_the_end(tmp_path, told):
    place = first(told, event="deliver")
    told[place]["event"] = "end"
    refused(tmp_path, told, place + 1, "comes after the end")


def test_who_enters_does_so_where_it_asked(tmp_path, told):
    place = first(told, event="enter")
    told[place]["client"] = 2  # of another node
    refused(tmp_path, told, place, "does not wait")
    asks = {"t": 0.0, "node": 3, "event": "request", "client": 99, "want": 1, "priority": 1}
    told[place]["client"] = 99
    refused(tmp_path, [told[0], asks, *told[1:]], place + 1, "at node 0; it asked at 3")


@pytest.mark.parametrize(
    "links", ["foo", 5, None, [[0, 99]], [["a", "b"]], [[0, 0]], [[0]], [0, 1], {}, [[True, 2]]]
)
def test_links_that_are_none_are_refused(tmp_path, told, links):
    told[0]["links"] = links
    refused(tmp_path, told, 0, "has no valid 'links'")
    told[0]["recovery"] = {"members": [0, 1, 2]}
    refused(tmp_path, told, 0, "has no valid 'links'")


@pytest.mark.parametrize("links", [[], [[0, 1], [1, 2], [2, 3]]])
def test_messages_go_over_links_where_these_stay_too(tmp_path, told, links):
    assert audit(tmp_path, told).monitor.violated == {}
    told[0]["links"] = "complete"
    assert audit(tmp_path, told).monitor.violated == {}
    told[0]["links"] = links
    assert set(audit(tmp_path, told).monitor.violated) == {"neighbours"}


def test_a_dropped_token_is_lost(tmp_path, told):
    place = first(told, event="send", message="TOKEN")
    lost = {"t": told[place]["t"], "node": 0, "event": "drop", "id": told[place]["id"]}
    verdict = audit(tmp_path, [*told[: place + 1], lost])
    assert set(verdict.monitor.violated) == {"one-token", "conservation"}


def test_time_does_not_run_backwards(tmp_path, events):
    events[-1]["t"] = -1.0
    with pytest.raises(BadTrace, match="goes back in time"):
        audit(tmp_path, events)
