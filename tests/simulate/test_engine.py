"""The event loop: order on links, the end of a run, what the measures say."""

import io
from hashlib import sha256
from random import Random

import msgspec
import pytest

from meshlock.errors import Refused
from meshlock.simulate.engine import ArrivalOrder
from meshlock.simulate.measures import RunMeasures
from meshlock.simulate.report import figures, spread
from meshlock.simulate.settings import run_settings, simulation
from meshlock.trace.writer import TraceWriter
from meshlock.world.clients import SimulatedClient
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
    chance, order, last, now = Random(1), ArrivalOrder(), {}, 0.0
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


@pytest.mark.parametrize(
    "load",
    [
        {"nodes": 6, "permits": 3, "want": "1-3", "workload": "poisson:0.005", "hold": "20"},
        {"nodes": 12, "permits": 3, "workload": "saturated", "delay": "exp:1"},
        {"nodes": 6, "workload": "poisson:0.01", "delay": "exp:1", "hold": "30"},
    ],
)
def test_synchronisation_delay_is_from_a_release_to_the_next_entry(tmp_path, load):
    """However many permits there are: a release that lets nobody in, since who waits wants more
    than that, is over when somebody enters, and is not charged to a much later entry."""
    path = tmp_path / "run.jsonl"
    with path.open("wb") as file:
        run = finished(TraceWriter(file, False), algorithm="jiang", requests=500, **load)
    waiting, free, delays = 0, [], []
    for line in path.read_bytes().splitlines()[1:]:
        event = msgspec.json.decode(line)
        if event["event"] == "request":
            waiting += 1
        elif event["event"] == "leave" and waiting:
            free.append(event["t"])
        elif event["event"] == "enter":
            waiting -= 1
            delays += [event["t"] - since for since in free]
            free = []
    assert run.measures.sync_count == len(delays) > 100
    assert sync_delay(run) == pytest.approx(sum(delays) / len(delays))


def test_a_release_that_nobody_waits_for_any_more_delays_nobody():
    measures = RunMeasures(2, {}, ranked=False, sized=False, ageing=0.0)
    first, gone, last = SimulatedClient(0, 1, 0), SimulatedClient(1, 1, 0), SimulatedClient(0, 1, 0)
    measures.asks(first)
    measures.enters(first, 0.0, None)
    measures.asks(gone)
    measures.leaves(first, 1.0)
    measures.gives_up(gone)
    measures.asks(last)
    measures.enters(last, 50.0, None)
    assert measures.sync_count == 0


@pytest.mark.parametrize(
    ("times", "median", "most"),
    [([6, 0], 0, 6), ([3, 1, 2], 2, 3), (range(1, 101), 50, 95), ([7], 7, 7)],
)
def test_percentiles_are_those_of_the_nearest_rank(times, median, most):
    """The smallest time that this share of all does not exceed."""
    found = spread(times)
    assert (found["p50"], found["p95"]) == (median, most)


def test_poisson_clients_think_as_long_as_they_should():
    run = finished(algorithm="raymond", nodes=1, workload="poisson:0.5", requests=5000, hold="1")
    assert run.now / 5000 == pytest.approx(1 + 2, rel=0.05)


def test_deadlines_are_priorities_and_are_counted_when_missed():
    run = finished(
        algorithm="raymond", nodes=5, topology="star", requests=1000, priority="deadline:10"
    )
    waits = list(run.measures.waits)
    assert run.measures.missed == sum(wait > 10 for wait in waits) > 0


RAISING = {"nodes": 6, "priority": "1-9", "permits": 4, "want": "1-4", "requests": 2_000}


def test_a_share_of_requests_changes_and_a_share_of_grants_is_released_in_parts():
    for algorithm in ("jiang", "direct"):
        given = {"algorithm": algorithm, "raise": "0.4", "release-part": "0.6", **RAISING}
        run = finished(**given)
        assert run.monitor.violated == {}
        assert run.measures.entries == 2_000
        assert 600 < run.measures.changed <= 900  # some were in by then
        assert 800 < run.measures.parts < 1_000  # of three in four grants
        assert run.measures.held == 0
        assert run.measures.base.ranks == run.measures.aged.ranks == []
        found = figures(run, 1, 1.0)
        assert found["priority_changes"] == run.measures.changed
        assert found["part_releases"] == run.measures.parts


def test_who_does_neither_draws_nothing_for_it():
    plain = finished(**RAISING)
    found = figures(plain, 1, 1.0)
    assert "priority_changes" not in found and "part_releases" not in found
    for name in ("raise", "release-part"):
        run = finished(**RAISING, **{name: "0"})
        assert figures(run, 1, 1.0)["entries"] == found["entries"]
        assert run.now == plain.now


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"algorithm": "raymond", "raise": "0.1"}, "raymond has no priorities that could change"),
        ({"raise": "0.1"}, "draws other priorities from --priority: give a range"),
        ({"raise": "2", "priority": "1-9"}, "--raise takes a share from 0 to 1"),
        ({"algorithm": "raymond", "release-part": "1"}, "raymond grants one permit at a time"),
        ({"algorithm": "jiang-printed", "release-part": "1"}, "releases all permits .* at once"),
        ({"release-part": "0.1"}, "for requests for several permits: add --want"),
        ({"release-part": "half"}, "--release-part takes a share from 0 to 1"),
    ],
)
def test_what_cannot_change_or_be_parted_is_refused(given, sentence):
    with pytest.raises(Refused, match=sentence):
        simulation(run_settings(given), None)


def test_overtakings_are_counted_by_the_priority_of_the_moment():
    """A client that waits with a higher priority when another enters, whichever asked first."""
    measures = RunMeasures(1, {}, True, False, 0.0)
    low, high = SimulatedClient(0, 1, 1), SimulatedClient(0, 1, 5)
    for client in (low, high):
        measures.asks(client)
    measures.changes(low, 9)
    low.priority = 9
    measures.enters(high, 0.0, None)
    assert measures.base.pairs == measures.aged.pairs == 1
    measures.enters(low, 0.0, None)
    assert measures.base.pairs == 1
