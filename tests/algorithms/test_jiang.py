"""The repaired algorithm: what each option promises, and what partitions may not do."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from meshlock.algorithms.actor import Message
from meshlock.simulate.link_changes import MobileSimulation
from meshlock.simulate.settings import run_settings, simulation
from runs import finished, per_entry

BUSY = {
    "algorithm": "jiang",
    "nodes": 8,
    "topology": "links:14",
    "permits": 3,
    "want": "1-3",
    "priority": "1-9",
    "delay": "exp:1",
    "requests": 1500,
}


# -- ageing -----------------------------------------------------------------------------


def grants_before_the_low_one(ageing, patience, grants):
    """One client of priority 0 among a stream of priority 5 that never ends: who is first?

    Node 0 holds the token; a client of priority 5 always waits at both ends of a line, so
    without ageing the low one at node 1 never has the highest rank.
    """
    from meshlock.algorithms.registry import find, with_defaults
    from meshlock.topology.specification import network

    entry = find("jiang")
    options = with_defaults(entry, {"ageing": ageing, "patience": str(patience)})
    out = []
    nodes = entry.make(network("line", 3, 1), 1, options, out)
    flying, inside, number, count = [], [], 0, 0
    low = None

    def carry_out(node):
        nonlocal count, low
        for effect in out:
            if isinstance(effect, Message):
                flying.append(effect)
            else:
                count += 1
                inside.append((node.me, effect.client))
                if effect.client == 1:
                    low = count
        out.clear()

    def ask(place, priority):
        nonlocal number
        number += 1
        nodes[place].request(number, 1, priority)
        carry_out(nodes[place])

    def settle_down():
        while flying:
            message = flying.pop(0)
            nodes[message.receiver].receive(message)
            carry_out(nodes[message.receiver])

    ask(1, 0)  # client 1, the low one ...
    ask(0, 5)
    ask(2, 5)
    while count < grants and low is None:
        settle_down()
        if inside and inside[0][1] != 1:
            place, client = inside.pop(0)
            ask(place, 5)  # the stream never ends: the next is here before this one leaves
            nodes[place].release(client)
            carry_out(nodes[place])
    return low


# Jiang, Prioritized h-out of-k Resource Allocation, section 4, Theorem 3: "Thus, every node's
# request will eventually be of the highest priority and be at the front of the queue to have the
# opportunity to own the token."
def test_with_stamped_ageing_the_lowest_is_served_within_the_stated_bound():
    # Messages are faster than clients: (5 - 0) * patience grants, one to each of the two others
    # that wait, and its own.
    for patience in (1, 10, 40):
        assert grants_before_the_low_one("stamped", patience, 10_000) <= 5 * patience + 3


def test_with_printed_ageing_it_is_served_too():
    assert grants_before_the_low_one("printed", 10, 10_000) is not None


# Jiang, Prioritized h-out of-k Resource Allocation, section 1: "Furthermore, we adopt the concept
# of aging to prevent a node from being always preempted by nodes with higher priorities."
def test_without_ageing_it_is_not():
    assert grants_before_the_low_one("none", 10, 2_000) is None


# Jiang, Prioritized h-out of-k Resource Allocation, section 4, Theorem 3: "According to the
# proposed algorithm, the node with the highest priority will hold the token and enter the CS when
# t >= h"
@pytest.mark.parametrize("ageing", ["stamped", "printed", "none"])
def test_two_that_wait_for_permits_do_not_overtake_each_other_for_ever(ageing):
    """Constant delays, several permits: the token must stand still for RELEASE to reach it."""
    run = simulation(
        run_settings({**BUSY, "nodes": 20, "topology": "links:40", "delay": "1", "ageing": ageing}),
        None,
    )
    run.start()
    while run.run(10_000):
        assert run.events < 200_000
    assert run.measures.entries == 1500


# -- requests that are resumed in a new pool ------------------------------------------------


def alone(ageing, patience=10):
    """A holder without neighbours."""
    from meshlock.algorithms.registry import find, with_defaults

    entry = find("jiang")
    options = with_defaults(entry, {"ageing": ageing, "patience": str(patience)})
    return entry.newcomers.join(0, True, 1, options, [])


@pytest.mark.parametrize(("ageing", "waited"), [("stamped", 4), ("printed", 4), ("none", 0)])
def test_a_resumed_request_keeps_the_rank_that_it_has_waited_for(ageing, waited):
    holder, heir = alone(ageing), alone(ageing)
    holder.request(1, 1, 5)
    holder.request(2, 1, 3)
    for inside, client in [(1, 11), (11, 12), (12, 13), (13, 14)]:
        holder.request(client, 1, 5)
        holder.release(inside)
    assert (holder.waited(2), holder.waited(14), holder.waited(99)) == (waited, 0, 0)  # 14: inside

    heir.request(9, 1, 0)  # inside
    heir.request(3, 1, 3)
    heir.resume(2, 1, 3, holder.waited(2))
    first, second = (2, 3) if waited else (3, 2)
    assert [entry.client for entry in heir.queue.entries] == [first, second]
    assert (heir.waited(2), heir.waited(3)) == (waited, 0)


def test_one_that_has_waited_longer_than_a_step_of_priority_goes_first():
    heir = alone("stamped")
    heir.request(9, 1, 0)  # inside
    heir.request(1, 1, 4)
    heir.resume(2, 1, 3, 11)
    heir.release(9)
    assert list(heir.clients) == [2]


# -- reductions -------------------------------------------------------------------------


# Jiang, Prioritized h-out of-k Resource Allocation, section 5: "The prioritized algorithm can be
# regarded as a non-prioritized one if we assume that each node has the same priority."
def test_equal_priorities_are_served_in_the_order_in_which_they_came():
    run = finished(
        algorithm="jiang", nodes=10, topology="star", permits=1, requests=500, workload="saturated"
    )
    waits = list(run.measures.waits)[50:]
    assert max(waits) - min(waits) <= 4  # everybody waits for the same nine others
    assert set(run.measures.entries_by_node) <= {49, 50, 51}  # the last round is not complete
    assert run.measures.messages.get("UPDATE", 0) == 0


# Jiang, Prioritized h-out of-k Resource Allocation, section 1: "If we restrict h to be 1, then
# the h-out of-k resource allocation problem becomes the k-mutual exclusion problem"
@pytest.mark.parametrize(("permits", "want"), [(1, "1"), (4, "1"), (4, "1-4")])
def test_mutual_exclusion_k_exclusion_and_h_of_k_fall_out_by_parameters(permits, want):
    run = finished(**{**BUSY, "permits": permits, "want": want})
    assert run.monitor.violated == {}
    assert run.measures.entries == 1500


# Jiang, Prioritized h-out of-k Resource Allocation, section 3: "If node i holds TOKEN(t), i then
# checks if t >= h."
def test_the_holder_lets_its_own_client_in_without_a_message():
    run = finished(algorithm="jiang", nodes=1, permits=2, requests=100)
    assert run.measures.messages == {}


# -- options --------------------------------------------------------------------------------


def test_quiet_moves_change_no_entry_at_light_load_but_save_most_links():
    light = {"algorithm": "jiang", "nodes": 24, "topology": "complete", "workload": "serial"}
    quiet = finished(**light, requests=2000)
    loud = finished(**light, requests=2000, moves="broadcast")
    assert per_entry(loud) == pytest.approx(24.1, rel=0.05)
    assert per_entry(quiet) == pytest.approx(5.6, rel=0.05)
    silent = finished(**light, requests=2000, moves="silent")
    assert silent.measures.messages == {
        kind: count for kind, count in quiet.measures.messages.items() if kind != "LINK"
    }


def test_backfill_lets_the_small_go_sooner_and_still_serves_the_large():
    large = {**BUSY, "permits": 4, "want": "1-4", "priority": "0", "requests": 3000, "hold": "20"}
    strict, filled = finished(**large), finished(**large, backfill="on")
    assert filled.monitor.violated == {}

    def mean(run, want):
        times = run.measures.by_want[want]
        return sum(times) / len(times)

    assert mean(filled, 1) < 0.9 * mean(strict, 1)
    assert mean(filled, 4) < 1.25 * mean(strict, 4)
    assert max(filled.measures.by_want[4]) < 2 * max(strict.measures.by_want[4])


def test_deadlines_are_met_more_often_than_by_chance():
    urgent = {**BUSY, "permits": 1, "want": "1", "priority": "deadline:uniform:5,80"}
    by_deadline = finished(**urgent, ageing="none")
    by_arrival = finished(**{**urgent, "algorithm": "raymond", "topology": "tree"})
    assert by_deadline.measures.missed < by_arrival.measures.missed


# -- partitions -------------------------------------------------------------------------------


# Jiang, Prioritized h-out of-k Resource Allocation, section 2, assumption 6, which we do without:
# "Partitions of the network do not occur."
def test_a_part_without_the_token_falls_silent_and_is_served_when_it_rejoins():
    """Two triangles joined by one link; the link fails, the far triangle asks, it comes back."""
    from meshlock.algorithms.registry import find, with_defaults
    from meshlock.topology.graphs import Graph

    entry = find("jiang")
    out = []
    triangles = [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5), (2, 3)]
    nodes = entry.make(Graph(6, triangles), 1, with_defaults(entry, {}), out)
    flying, entered, sent = [], [], 0

    def carry_out():
        nonlocal sent
        for effect in out:
            if isinstance(effect, Message):
                sent += 1
                flying.append(effect)
            else:
                entered.append(effect.client)
        out.clear()

    def settle_down(most):
        nonlocal sent
        sent = 0
        while flying:
            message = flying.pop(0)
            nodes[message.receiver].receive(message)
            carry_out()
            assert sent < most, "a storm"
        return sent

    for here, there in ((2, 3), (3, 2)):
        nodes[here].link_down(there)
        carry_out()
    settle_down(2000)
    nodes[5].request(1, 1, 0)
    nodes[4].request(2, 1, 9)
    carry_out()
    settle_down(2000)
    assert entered == []
    nodes[3].request(3, 1, 5)  # another one makes no new storm
    carry_out()
    assert settle_down(200) < 100
    for here, there in ((2, 3), (3, 2)):
        nodes[here].link_up(there)
        carry_out()
    settle_down(2000)
    assert len(entered) == 1
    for place, client in ((4, 2), (3, 3), (5, 1)):
        assert entered[-1] == client
        nodes[place].release(client)
        carry_out()
        settle_down(500)
    assert entered == [2, 3, 1]


# Jiang, Prioritized h-out of-k Resource Allocation, section 3, forwardRelease: "A non-token
# holding node i selects its lowest-height neighbor to be next and sends a release message
# RELEASE(r) to next."
def test_a_release_waits_while_its_node_is_alone():
    from meshlock.algorithms.registry import find, with_defaults
    from meshlock.topology.graphs import Graph

    entry = find("jiang")
    out = []
    nodes = entry.make(Graph(2, [(0, 1)]), 3, with_defaults(entry, {}), out)

    def settle_down():
        while out:
            effect = out.pop(0)
            if isinstance(effect, Message):
                nodes[effect.receiver].receive(effect)

    nodes[1].request(1, 2, 0)
    settle_down()
    nodes[0].request(2, 1, 0)
    settle_down()
    holder = 0 if nodes[0].tokens() else 1
    away = 1 - holder
    for node in nodes:
        node.link_down(1 - node.me)
    settle_down()
    nodes[away].release(1 if away == 1 else 2)
    assert out == []
    assert nodes[away].free_permits() > 0
    for node in nodes:
        node.link_up(1 - node.me)
    settle_down()
    assert nodes[away].free_permits() == 0
    nodes[holder].release(2 if away == 1 else 1)
    assert nodes[holder].free_permits() == 3


# -- random networks --------------------------------------------------------------------------

MOBILITY = ["none", "flips:0.1", "flips:2", "waypoint:0.05,0.7", "walk:0.05,0.7"]


# Jiang, Prioritized h-out of-k Resource Allocation, section 4, Theorem 1: "Thus, no more than k
# resources can be accessed concurrently."
@settings(max_examples=150, deadline=None)
@given(
    nodes=some.integers(2, 10),
    permits=some.integers(1, 4),
    clients=some.integers(1, 3),
    mobility=some.sampled_from(MOBILITY),
    failures=some.sampled_from(["drain", "return", "custody"]),
    healed=some.booleans(),
    ageing=some.sampled_from(["stamped", "printed", "none"]),
    moves=some.sampled_from(["quiet", "broadcast", "silent"]),
    backfill=some.sampled_from(["off", "on"]),
    seed=some.integers(0, 2**32),
)
def test_random_runs_are_safe_live_and_lose_nothing(
    nodes, permits, clients, mobility, failures, healed, ageing, moves, backfill, seed
):
    changing = {"mobility": mobility, "failures": failures}
    if mobility != "none" and healed:
        changing |= {"partitions": "healed", "changes-until": "40"}
    run = simulation(
        run_settings(
            {
                "algorithm": "jiang",
                "nodes": nodes,
                "topology": f"links:{min(nodes * (nodes - 1) // 2, nodes + 2)}",
                "permits": permits,
                "want": f"1-{permits}",
                "priority": "1-5",
                "clients": clients,
                "requests": 40,
                "delay": "exp:1",
                "hold": "exp:1",
                "ageing": ageing,
                "moves": moves,
                "backfill": backfill,
                "seed": seed,
                **(changing if mobility != "none" else {}),
            }
        ),
        None,
    )
    run.start()
    while run.run(10_000):
        assert run.events < 500_000, "it never comes to rest"
    run.finish()
    assert run.monitor.violated == {}
    assert run.measures.entries == 40
    assert sum(node.tokens() for node in run.nodes) == 1 or run.in_flight
    if run.in_flight == 0:
        assert sum(node.free_permits() for node in run.nodes) == permits
    assert isinstance(run, MobileSimulation) == (mobility != "none")
