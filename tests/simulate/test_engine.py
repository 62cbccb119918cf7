"""The event loop: order on links, the end of a run, what the measures say."""

import io
from hashlib import sha256
from random import Random

import msgspec
import pytest

from meshlock.simulate.engine import Order
from meshlock.trace.writer import TraceWriter
from runs import finished, sync_delay


def trace_of(**given):
    sink = io.BytesIO()
    finished(TraceWriter(sink, True), **given)
    return sink.getvalue()


def lines(**given):
    return [msgspec.json.decode(line) for line in trace_of(**given).splitlines()]


BUSY = {
    "algorithm": "raymond",
    "nodes": 5,
    "topology": "tree",
    "requests": 500,
    "delay": "exp:1",
    "hold": "0.1",
}


def in_order(events):
    """Are messages between the same two nodes delivered in the order they were sent?"""
    sent, delivered = {}, {}
    for event in events:
        if event.get("event") == "send":
            sent.setdefault((event["node"], event["to"]), []).append(event["id"])
        elif event.get("event") == "deliver":
            delivered.setdefault((event["from"], event["node"]), []).append(event["id"])
    return all(sent[link][: len(ids)] == ids for link, ids in delivered.items())


NAIMI = {**BUSY, "algorithm": "naimi-trehel", "clients": 3}


@pytest.mark.parametrize("settings", [BUSY, NAIMI])
def test_fifo_links_keep_the_order(settings):
    assert in_order(lines(**settings, links="fifo"))


def test_unordered_links_do_not():
    assert not in_order(lines(**NAIMI, links="unordered"))


def test_same_seed_same_trace_other_seed_other_trace():
    assert trace_of(**BUSY, seed=3) == trace_of(**BUSY, seed=3)
    assert trace_of(**BUSY, seed=3) != trace_of(**BUSY, seed=4)


def test_the_trace_is_the_one_it_has_always_been():
    """Pinned, so that both flavours and every later version write the same bytes."""
    text = trace_of(**BUSY, seed=3).split(b"\n", 1)[1]  # the set-up names the version
    assert len(text.splitlines()) == PINNED[0]
    assert sha256(text).hexdigest()[:16] == PINNED[1]


PINNED = (2237, "687edfc74e3345b5")


def test_a_routed_message_takes_one_delay_per_link():
    run = finished(
        algorithm="centralized", topology="line", nodes=5, workload="serial", requests=200
    )
    # From node d the request climbs d links, the token comes down d links: 2d in all.
    assert set(run.measures.waits) == {0.0, 2.0, 4.0, 6.0, 8.0}


def test_messages_to_one_receiver_do_not_overtake_whatever_goes_to_others_meanwhile():
    chance, order, last, now = Random(1), Order(), {}, 0.0
    held_up = 0
    for _ in range(5_000):
        now += chance.choice([0.0, 0.0, 0.3])
        receiver = chance.randrange(4)
        if chance.random() < 0.05:
            order.forget(receiver)
            last.pop(receiver, None)
        drawn = now + chance.random()
        arrival = last[receiver] = max(drawn, last.get(receiver, 0.0))
        if receiver != order.receiver:
            order.turn(receiver, now)
        order.last = max(drawn, order.last)
        assert order.last == arrival
        held_up += arrival > drawn
    assert 1_000 < held_up < 4_000


def test_clients_of_a_node_wait_for_each_other_where_the_algorithm_knows_only_one():
    run = finished(**{**BUSY, "clients": 4, "nodes": 2})
    assert run.measures.entries == 500
    assert run.monitor.violated == {}


def test_use_rate_and_synchronisation_delay_add_up_at_saturation():
    run = finished(algorithm="raymond", topology="star", nodes=5, requests=5000, hold="3")
    used = run.measures.used / run.now
    assert used == pytest.approx(3 / (3 + sync_delay(run)), rel=0.01)


def test_poisson_clients_think_as_long_as_they_should():
    run = finished(algorithm="raymond", nodes=1, workload="poisson:0.5", requests=5000, hold="1")
    assert run.now / 5000 == pytest.approx(1 + 2, rel=0.05)


def test_deadlines_are_priorities_and_are_counted_when_missed():
    run = finished(
        algorithm="raymond", nodes=5, topology="star", requests=1000, priority="deadline:10"
    )
    waits = list(run.measures.waits)
    assert run.measures.missed == sum(wait > 10 for wait in waits) > 0
