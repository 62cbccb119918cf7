"""Reverse Link against its laws, and while links come and go."""

import io
import json
from random import Random

import networkx
import pytest
from random_walk import walk

from meshlock.algorithms.actor import Enter
from meshlock.algorithms.registry import find
from meshlock.algorithms.reverse_link import ReverseLinkNode, Token
from meshlock.simulate.player import play
from meshlock.simulate.settings import run_settings, simulation
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
    run = simulation(run_settings({**settings, "requests": 1_000}), None)
    visits, seen = 0, set()
    run.start()
    while run.run(1):
        for event in run.agenda.events:
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
        assert len(done.entries) == 12


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
    giver = ReverseLinkNode(0, [], (0, 0, 0), True, {1: (0, 1, 1), 2: (0, 1, 2)})
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


# -- nodes that join ------------------------------------------------------------------------


class Newcomers:
    """Nodes that are born without links, get them one by one, and ask whenever they like."""

    def __init__(self, numbers, chance):
        self.chance = chance
        self.out = []
        join = find("reverse-link").newcomers.join
        self.nodes = {n: join(n, n == numbers[0], 1, {}, self.out) for n in numbers}
        self.lines = {}  # (sender, receiver): messages on their way
        self.inside = []
        self.entered = []

    def call(self, number, handler, *given):
        getattr(self.nodes[number], handler)(*given)
        for effect in self.out:
            if isinstance(effect, Enter):
                self.inside.append(number)
                self.entered.append(number)
            else:
                self.lines.setdefault((number, effect.receiver), []).append(effect)
        self.out.clear()
        assert len(self.inside) <= 1
        on_the_way = [each for line in self.lines.values() for each in line]
        assert sum(each.tokens() for each in [*self.nodes.values(), *on_the_way]) == 1

    def link(self, one, other):
        self.call(one, "link_up", other)
        self.call(other, "link_up", one)

    def settle(self):
        for _ in range(10_000):
            busy = [pair for pair, line in sorted(self.lines.items()) if line]
            if not busy and not self.inside:
                return
            if self.inside and (not busy or self.chance.random() < 0.2):
                self.call(self.inside[0], "release", self.inside.pop(0))
            else:
                sender, receiver = self.chance.choice(busy)
                self.call(receiver, "receive", self.lines[sender, receiver].pop(0))
        raise AssertionError("they climb for ever")


def test_a_founder_is_served_alone_and_a_newcomer_waits_for_its_first_link():
    pool = Newcomers([7, 3], Random(0))
    pool.call(7, "request", 7, 1, 0)
    pool.call(3, "request", 3, 1, 0)
    assert pool.entered == [7]
    pool.settle()
    pool.link(7, 3)
    pool.settle()
    assert pool.entered == [7, 3]


def test_nodes_that_join_a_pool_one_by_one_are_all_served():
    for seed in range(200):
        chance = Random(seed)
        numbers = chance.sample(range(100), 6)
        pool = Newcomers(numbers, chance)
        for place, number in enumerate(numbers):
            for other in chance.sample(numbers[:place], min(place, chance.randint(1, 2))):
                pool.link(other, number)
            pool.call(number, "request", number, 1, 0)
        pool.settle()
        assert sorted(pool.entered) == sorted(numbers), seed
