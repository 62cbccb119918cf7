"""Costs of the token-and-tree family, against their exact laws."""

import networkx
import pytest

from meshlock.algorithms.actor import Message
from meshlock.simulate.settings import run_settings, simulation
from runs import finished, per_entry, sync_delay


def harmonic(n):
    return sum(1 / i for i in range(1, n + 1))


# Hélary, Mostefaoui, Raynal, RR-1692, section 4.2: "Recall that its complexity, in term of number
# of messages, is O(log(n)) in the mean and O(n) in the worst case."
@pytest.mark.parametrize(("nodes", "requests"), [(8, 40_000), (64, 20_000), (512, 20_000)])
def test_naimi_trehel_serial_costs_the_harmonic_number(nodes, requests):
    run = finished(algorithm="naimi-trehel", nodes=nodes, workload="serial", requests=requests)
    assert per_entry(run) == pytest.approx(harmonic(nodes - 1), rel=0.02)


# Hélary, Mostefaoui, Raynal, RR-1692, section 4.2: "In Naimi and Trehel's, the tree can meet any
# possible configuration, leading to a worst case message complexity O(n)"
def test_naimi_trehel_serial_never_costs_more_than_n():
    run = finished(algorithm="naimi-trehel", nodes=16, workload="serial", requests=5_000)
    # With delay 1 and one request at a time, a wait is the number of messages it took.
    assert max(run.measures.waits) <= 16


def mean_distance(graph):
    n = graph.number_of_nodes()
    total = sum(sum(far.values()) for _, far in networkx.all_pairs_shortest_path_length(graph))
    return total / (n * n)  # the requester is drawn from all nodes, the holder too


TREES = {
    "line": networkx.path_graph(15),
    "star": networkx.star_graph(14),
    "tree": networkx.Graph([(i, (i - 1) // 2) for i in range(1, 15)]),
}


# Hélary, Mostefaoui, Raynal, RR-1692, section 4.2, of Raymond's: "A CSC issued by a node i
# follows the unique path connecting i to the root and the token follows the reverse path,
# changing the direction when it traverses the edge"
@pytest.mark.parametrize("topology", TREES)
def test_raymond_serial_costs_twice_the_mean_distance(topology):
    run = finished(
        algorithm="raymond", topology=topology, nodes=15, workload="serial", requests=40_000
    )
    assert per_entry(run) == pytest.approx(2 * mean_distance(TREES[topology]), rel=0.02)


@pytest.mark.parametrize("topology", ["line", "star", "tree"])
@pytest.mark.parametrize("nodes", [7, 40])
def test_raymond_saturated_costs_just_under_four(topology, nodes):
    run = finished(algorithm="raymond", topology=topology, nodes=nodes, requests=20_000)
    assert per_entry(run) == pytest.approx(4 * (nodes - 1) / nodes, rel=0.01)
    assert sync_delay(run) == pytest.approx(2 * (nodes - 1) / nodes, rel=0.01)


# Hélary, Mostefaoui, Raynal, RR-1692, section 4.2, all proxies: "when i leaves the critical
# section, it returns the token to r (see for example the star network example in 2.1)."
def test_the_central_lock_costs_three_messages_or_none():
    run = finished(algorithm="centralized", nodes=10, workload="serial", requests=10_000)
    others = run.measures.entries - run.measures.entries_by_node[0]
    assert run.measures.messages == {"REQUEST": others, "TOKEN": 2 * others}


def test_short_cuts_make_the_way_shorter_than_raymonds_tree():
    waits = {}
    for name in ("shortcut", "raymond"):
        run = finished(algorithm=name, topology="grid:6x6", workload="serial", requests=3_000)
        waits[name] = sum(run.measures.waits)
    assert waits["shortcut"] < 0.8 * waits["raymond"]


def test_nobody_sends_to_an_ordinary_node_of_another_network():
    run = simulation(
        run_settings({"algorithm": "gateway", "nodes": 12, "networks": "3", "requests": 3_000}),
        None,
    )
    gateways = {0, 4, 8}
    borders = 0
    run.start()
    while run.run(1):
        for event in run.agenda.events:
            if isinstance(event, Message) and event.sender // 4 != event.receiver // 4:
                borders += 1
                assert event.receiver in gateways
    assert borders > 0
