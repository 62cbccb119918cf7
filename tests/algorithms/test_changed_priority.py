"""A waiting request becomes more or less urgent in one step: it never stops waiting.

That is the paper's UPDATE: an entry that stays gets another priority. Withdrawn and made again
instead, it let others in between, and its age began anew.
"""

from __future__ import annotations

from random import Random

import pytest
from prompt import Scene

A, B = 10, 11


@pytest.mark.parametrize("algorithm", ["jiang", "direct"])
@pytest.mark.parametrize("homes", [(0, 0, 0), (0, 1, 2), (1, 1, 1), (1, 0, 2), (2, 2, 0)])
def test_a_request_that_becomes_more_urgent_lets_nobody_in(
    algorithm: str, homes: tuple[int, int, int]
) -> None:
    """k = 3: two are held, A waits for 2 at priority 5, B for 1 at priority 3."""
    holder, a, b = homes
    scene = Scene(algorithm, 3, "complete", permits=3)
    scene.ask(holder, 1, 5, want=2)
    scene.ask(a, A, 5, want=2)
    scene.ask(b, B, 3)
    for priority in (9, 4, 7):
        assert scene.change(A, 2, priority)
        assert scene.inside == [1]
    scene.change(B, 1, 8)  # now B is first, and fits
    assert scene.inside == [1, B]
    scene.leave(1)
    assert scene.inside == [B, A]
    assert not scene.change(A, 2, 1)


@pytest.mark.parametrize("algorithm", ["jiang", "direct"])
@pytest.mark.parametrize("home", [0, 1])
def test_a_request_that_becomes_less_urgent_lets_others_go_first(algorithm: str, home: int) -> None:
    scene = Scene(algorithm, 2, "line")
    scene.ask(0, 1, 5)
    scene.ask(home, A, 9)
    scene.ask(1 - home, B, 3)
    assert scene.change(A, 1, 1)
    scene.leave(1)
    assert scene.inside == [B]


@pytest.mark.parametrize("algorithm", ["jiang", "direct"])
@pytest.mark.parametrize("home", [0, 1, 2])
def test_a_request_keeps_its_age(algorithm: str, home: int) -> None:
    """A of priority 1 waits beside an endless stream of priority 4: with patience 10 it is served
    after 30 grants or a few more. It becomes less urgent and more urgent again with each grant."""
    counts = []
    for changes in (False, True):
        scene = Scene(algorithm, 3, "line", patience="10")
        scene.ask(1, 1, 4)
        scene.ask(home, A, 1)
        grants, client = 0, 1
        while A not in scene.inside:
            client += 1
            scene.ask(client % 3, client + 100, 4)
            if changes:
                assert scene.change(A, 1, 0) and scene.change(A, 1, 1)
            scene.leave(scene.inside[0])
            grants += 1
            assert grants < 60
        counts.append(grants)
    assert counts[0] == counts[1]


@pytest.mark.parametrize("algorithm", ["jiang", "direct"])
@pytest.mark.parametrize("seed", range(30))
def test_the_order_is_that_of_one_list(algorithm: str, seed: int) -> None:
    """Requests, changes and withdrawals at quiet moments, one client per node: each that enters is
    the first by priority, then by when it asked. jiang is asked for one permit: with more, a token
    that arrives with more than its front needs may let in another before it hears of the rest."""
    random = Random(seed)
    permits, size = random.randint(1, 3) if algorithm == "direct" else 1, random.randint(2, 6)
    topology = random.choice(["star", "complete"])
    scene = Scene(algorithm, size, topology, permits, patience="1000000")
    waiting: dict[int, tuple[int, int]] = {}  # client: priority, want
    held: dict[int, int] = {}
    for asked in range(400):
        idle = [
            node
            for node in range(size)
            if node not in [scene.homes[client] for client in [*waiting, *held]]
        ]
        chance = random.random()
        if idle and (chance < 0.4 or not held):
            waiting[asked] = (random.randint(0, 3), random.randint(1, permits))
            scene.ask(random.choice(idle), asked, *waiting[asked])
        elif waiting and chance < 0.5:
            client = random.choice(list(waiting))
            del waiting[client]
            assert scene.withdraw(client)
        elif waiting and chance < 0.7:
            client = random.choice(list(waiting))
            waiting[client] = (random.randint(0, 3), waiting[client][1])
            assert scene.change(client, waiting[client][1], waiting[client][0])
        elif held:
            client = random.choice(list(held))
            del held[client]
            scene.leave(client)
        for client in sorted(waiting, key=lambda one: (-waiting[one][0], one)):
            fits = sum(held.values()) + waiting[client][1] <= permits
            assert (client in scene.inside) == fits
            if not fits:
                break
            held[client] = waiting.pop(client)[1]
        assert sorted(scene.inside) == sorted(held)
