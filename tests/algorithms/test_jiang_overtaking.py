"""How often a request is overtaken: the bound that docs/algorithms/jiang.md states.

With m clients, a request of priority p sees, since its age began, at most (highest - p) * patience
grants to anybody, then 2 * (patience - 1) + m - 1 more, and besides only grants of holders that do
not know of it, or of its node by one of lower rank. If messages are faster than clients and every
node has one, 2 * (patience - 1) falls away too.
"""

from random import Random

import pytest
from overtaking import LOW, Pool

NETWORKS = [("line", 2), ("line", 3), ("line", 5), ("star", 5), ("complete", 4), ("complete", 5)]


def harass(pool, seed, prompt=False, flips=False, most_want=1):
    """Whatever can happen next happens by chance, until the low one has entered.

    Every link and client has a pace of its own, fast or slow by factors of up to 1000, and
    now and then all are drawn again. ``prompt``: no client moves while a message is on its way.
    """
    chance = Random(seed)
    pace = {}
    for _ in range(5_000):
        if chance.random() < 0.01:
            pace.clear()
        moves = pool.moves()
        if flips:
            moves += [("flip", pair) for pair in pool.linked]
        if prompt and moves[0][0] == "deliver":
            moves = [move for move in moves if move[0] == "deliver"]
        for move in moves:
            if move not in pace:
                pace[move] = chance.choice([1, 1, 0.1, 0.01, 0.001])
        move = chance.choices(moves, [pace[move] for move in moves])[0]
        lowly = move[1] == LOW or chance.random() < 0.1
        want = chance.randint(1, most_want)
        pool.do(*move, priority=0 if lowly else pool.highest, want=want)
        if LOW in pool.inside:
            return
    assert flips, "the low one is never served"


def some_pool(topology, size, seed, patience, permits=1, clients=2):
    moves = ("quiet", "silent", "broadcast")[seed % 3]
    return Pool(topology, size, clients, seed % size, patience, permits=permits, moves=moves)


# -- by chance ------------------------------------------------------------------------------


@pytest.mark.parametrize("patience", [1, 2, 5])
@pytest.mark.parametrize(("topology", "size"), NETWORKS)
def test_holders_that_know_of_a_request_keep_the_bound(topology, size, patience):
    for seed in range(30):
        permits, most_want = ((1, 1), (3, 1), (3, 3))[seed % 3]
        pool = some_pool(topology, size, seed, patience, permits)
        harass(pool, seed, most_want=most_want)
        assert pool.before - pool.unknown <= pool.bound()


@pytest.mark.parametrize("patience", [1, 5])
def test_they_keep_it_while_links_form_and_fail(patience):
    for seed in range(20):
        pool = some_pool("complete", 4, seed, patience, permits=1 + seed % 3)
        harass(pool, seed, flips=True)
        assert pool.before - pool.unknown <= pool.bound()


@pytest.mark.parametrize("patience", [1, 2, 5])
@pytest.mark.parametrize(("topology", "size"), NETWORKS)
def test_with_prompt_messages_nothing_comes_on_top(topology, size, patience):
    worst = 0
    for seed in range(60):
        pool = some_pool(topology, size, seed, patience, permits=1 + seed % 2, clients=1)
        harass(pool, seed, prompt=True)
        assert pool.before <= pool.allowance() + len(pool.homes) - 1
        worst = max(worst, pool.before - pool.allowance())
    assert worst >= 0, "even the allowance is not reached"


# -- all schedules ----------------------------------------------------------------------------


def worst(pool):
    """The most grants before the low one since its age began, over all schedules in which at most
    one grant is made before it asks, and one by a holder that does not know of it."""
    start = pool.snapshot()
    seen, open_ends, most = {start[0]}, [start], 0
    while open_ends:
        here = open_ends.pop()
        pool.restore(here)
        for action, what in pool.moves():
            for priority in {0, 0 if what == LOW or action != "ask" else pool.highest}:
                pool.restore(here)
                pool.do(action, what, priority)
                unknown = sum(known is None for *_, known in pool.passed)
                earlier = pool.grants - len(pool.passed) - pool.inside.count(LOW)
                if unknown > 1 or earlier > 1:
                    continue
                most = max(most, pool.before)
                there = pool.snapshot()
                if LOW not in pool.inside and there[0] not in seen:
                    seen.add(there[0])
                    open_ends.append(there)
    return most


@pytest.mark.parametrize(("place", "patience"), [(2, 1), (2, 2)])
def test_over_all_schedules_of_three_clients_on_a_line_the_bound_is_kept(place, patience):
    pool = Pool("line", 3, 1, place, patience)
    assert worst(pool) == pool.allowance() + patience - 1 <= pool.bound()


# -- by hand ----------------------------------------------------------------------------------


@pytest.mark.parametrize("moves", ["quiet", "silent", "broadcast"])
@pytest.mark.parametrize("patience", [5, 100])
def test_who_has_not_heard_of_the_grants_overtakes_once_at_the_most(patience, moves):
    """Five nodes with two clients each, of which one node makes all the grants."""
    pool = Pool("star", 5, 2, 0, patience, moves=moves)
    sibling, one, other, *rest = [client for client in pool.homes if client != LOW]
    pool.ask(sibling)
    pool.ask(LOW, 0)
    pool.ask(one)
    pool.ask(other)
    pool.leave()
    while len(pool.passed) < pool.allowance() - 1:  # one and other take turns at node 1
        pool.ask(pool.leave())
    pool.ask(sibling)  # its node, like those of the rest, has not heard of the grants
    pool.ask(pool.leave())
    for client in rest:
        pool.ask(client)
    while LOW not in pool.inside:
        pool.leave()
    assert len(pool.passed) <= pool.allowance() + 1 + len(rest)


def test_nothing_limits_the_grants_while_a_request_is_on_its_way():
    pool = Pool("line", 2, 2, 1, patience=2)
    pool.held = {(1, 0)}
    pool.ask(LOW, 0)
    for _ in range(1000):
        pool.ask(1)
        pool.leave()
    pool.ask(1)
    assert len(pool.passed) == 1001
    pool.held = set()
    pool.settle()
    pool.leave()
    assert LOW in pool.inside


def test_a_token_with_free_permits_arrives_before_the_request_behind_it():
    """Node 0 knows of the low one, which waits for all permits, and passes the token to node 1
    for a higher one. There the young one, of lower rank, enters with what is left."""
    pool = Pool("line", 2, 3, 0, patience=5, permits=3)
    first, _, high, higher, young = [client for client in pool.homes if client != LOW]
    pool.ask(first, want=3)
    pool.ask(LOW, 0, want=3)
    pool.ask(high)
    pool.leave()
    assert pool.inside == [high]
    assert pool.nodes[0].holder
    pool.ask(young, 0)
    assert pool.inside == [high]
    assert pool.waiting[young] < pool.waiting[LOW]
    pool.ask(higher)
    assert pool.inside == [high, higher, young]
