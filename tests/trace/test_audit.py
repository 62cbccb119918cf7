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
    assert "1 request(s) wait" in verdict.monitor.violated["served"]


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


def test_time_does_not_run_backwards(tmp_path, events):
    events[-1]["t"] = -1.0
    with pytest.raises(BadTrace, match="goes back in time"):
        audit(tmp_path, events)
