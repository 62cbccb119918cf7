"""Reverse Link against its laws, and while links come and go."""

import io
import json

import networkx
import pytest
from random_walk import walk

from meshlock.algorithms.reverse_link import ReverseLinkNode, Token
from meshlock.simulate.director import play
from meshlock.simulate.settings import Settings, simulation
from meshlock.trace.writer import TraceWriter
from runs import finished, per_entry

ALL_LINKS = 30 * 29 // 2


@pytest.mark.parametrize("share", [10, 20, 80])
def test_a_saturated_round_takes_the_same_time_whatever_the_links(share):
    links = round(ALL_LINKS * share / 100)
    run = finished(algorithm="reverse-link", nodes=30, topology=f"links:{links}", requests=3_000)
    assert not run.monitor.violated
    rounds = run.measures.entries / 30
    assert run.now / rounds == pytest.approx(30 * 1 + 2 * 29 * 1, rel=0.05)
    assert 3.8 < per_entry(run, "REQUEST", "TOKEN") < 4
    assert list(run.measures.entries_by_node) == [100] * 30


def test_link_messages_are_token_hops_times_the_degree_of_the_visited_node():
    settings = {"algorithm": "reverse-link", "nodes": 30, "topology": "links:87"}
    run = simulation(Settings({**settings, "requests": 1_000}), None)
    visits, seen = 0, set()
    run.start()
    while run.run(1):
        for _, _, event in run.heap:
            if isinstance(event, Token) and event.serial not in seen:
                seen.add(event.serial)
                visits += len(run.network.neighbours(event.receiver))
    assert run.measures.messages["LINK"] == visits


def test_one_request_at_a_time_costs_twice_the_way_on_a_tree():
    run = finished(
        algorithm="reverse-link", topology="line", nodes=15, workload="serial", requests=20_000
    )
    far = dict(networkx.all_pairs_shortest_path_length(networkx.path_graph(15)))
    mean = sum(sum(row.values()) for row in far.values()) / 15**2
    assert per_entry(run, "REQUEST", "TOKEN") == pytest.approx(2 * mean, rel=0.02)


def test_everybody_is_served_once_links_stop_changing():
    for seed in range(300):
        done = walk("reverse-link", seed, changes=25, most_permits=1)
        assert not done.monitor.violated, seed
        assert len(done.outcome.entries) == 12


@pytest.mark.parametrize("failures", ["drain", "return"])
def test_everybody_is_served_while_links_flip(failures):
    """Seeds 3, 40 and 70 would climb without end, were new links not waited for."""
    for seed in (3, 40, 70, *range(100, 120)):
        run = finished(
            algorithm="reverse-link",
            nodes=3 + seed % 10,
            topology="random:0.4",
            workload="poisson:0.1",
            requests=40,
            delay="exp:1",
            hold="exp:1",
            mobility="flips:0.2",
            failures=failures,
            seed=seed,
        )
        assert not run.monitor.violated, seed
        assert run.measures.entries == 40


def test_a_node_that_knew_no_neighbour_asks_as_soon_as_it_knows_one():
    """J7, which Jiang has from here."""
    assert play("J7", "reverse-link").good


def test_a_token_that_could_not_be_delivered_goes_to_the_next_in_line():
    giver = ReverseLinkNode(0, [], (0, 0, 0), {1: (0, 1, 1), 2: (0, 1, 2)})
    giver.request(7, 1, 0)
    for sender in (1, 2):
        giver.requested(sender, (0, 1, sender))
    giver.release(7)
    token = next(each for each in giver.out if isinstance(each, Token))
    assert token.receiver == 1
    giver.out.clear()
    giver.undelivered(token)
    giver.link_down(1)
    assert [(each.kind, each.receiver) for each in giver.out] == [("TOKEN", 2)]


def test_a_frozen_node_thaws_to_the_same_node():
    def swap(director):
        for each in director.nodes:
            state = each.freeze()
            hash(state)
            other = walk("reverse-link", 0, requests=0, most_permits=1).nodes[0].freeze()
            each.thaw(other)
            each.thaw(state)
            assert each.freeze() == state

    for seed in range(10):
        plain = walk("reverse-link", seed, changes=10, most_permits=1)
        swapped = walk("reverse-link", seed, changes=10, most_permits=1, look=swap)
        assert swapped.lines == plain.lines


def entries(**given):
    """Who entered and when, and what was sent."""
    sink = io.BytesIO()
    run = finished(TraceWriter(sink, False), **given)
    events = map(json.loads, sink.getvalue().splitlines())
    entered = [(each["t"], each["node"]) for each in events if each.get("event") == "enter"]
    return entered, run.measures.messages


@pytest.mark.parametrize("workload", ["saturated", "serial", "poisson:0.05"])
def test_jiang_with_one_permit_and_equal_priorities_is_reverse_link(workload):
    for seed in range(1, 6):
        given = {"nodes": 12, "topology": "random:0.3", "workload": workload, "requests": 200}
        given |= {"delay": "exp:1", "hold": "exp:1", "seed": seed}
        base = entries(algorithm="reverse-link", **given)
        assert len(base[0]) == 200
        assert entries(algorithm="jiang", moves="broadcast", ageing="none", **given) == base
