"""One central queue with perfect knowledge predicts every grant, where nothing is hidden."""

from random import Random

import pytest
from central_queue import Quiet, wander

AGES = {
    "none": {"ageing": "none"},
    "usual": {},
    "patience 3": {"patience": "3"},
    "patience 1": {"patience": "1"},
}
PRIORITIES = [(5, 5), (0, 2), (1, 9)]
RUNS = 12


@pytest.mark.parametrize("topology", ["line", "ring", "star", "complete"])
@pytest.mark.parametrize("age", AGES)
@pytest.mark.parametrize("permits", [1, 3, 8])
def test_direct_grants_what_the_queue_grants(topology, age, permits):
    """With as many clients at each node as it may have in the queue."""
    for seed in range(RUNS):
        chance = Random(f"{seed}:{topology}:{age}:{permits}")
        quiet = Quiet("direct", topology, chance.randint(2, 6), permits, **AGES[age])
        wander(quiet, chance, 150, min(permits, 8), permits, chance.choice(PRIORITIES))


@pytest.mark.parametrize(
    ("algorithm", "age"), [*[("direct", age) for age in AGES], ("jiang", "none")]
)
@pytest.mark.parametrize("permits", [1, 3])
def test_deadlines_are_served_as_the_queue_serves_them(algorithm, age, permits):
    """Priorities 0 to 2 with all that deadlines add to them, which changes while they wait. In
    jiang all want one permit, and nobody ages: what is hidden there has no age of its own."""
    for seed in range(RUNS):
        chance = Random(f"{seed}:{algorithm}:{age}:{permits}")
        quiet = Quiet(algorithm, "complete", chance.randint(2, 6), permits, True, **AGES[age])
        most = permits if algorithm == "direct" else 1
        wander(quiet, chance, 150, min(most, permits), most, (0, 299))


@pytest.mark.parametrize("topology", ["star", "complete"])
@pytest.mark.parametrize("age", AGES)
@pytest.mark.parametrize("permits", [1, 3])
def test_jiang_serves_equal_priorities_in_turn(topology, age, permits):
    for seed in range(RUNS):
        chance = Random(f"{seed}:{topology}:{age}:{permits}")
        quiet = Quiet("jiang", topology, chance.randint(2, 6), permits, **AGES[age])
        wander(quiet, chance, 150, 1, permits, (5, 5))


@pytest.mark.parametrize("topology", ["star", "complete"])
@pytest.mark.parametrize("age", ["none", "usual"])
@pytest.mark.parametrize("permits", [1, 3])
def test_jiang_grants_what_the_queue_grants_if_all_want_one(topology, age, permits):
    """While nobody has waited for a whole step of priority."""
    for seed in range(RUNS):
        chance = Random(f"{seed}:{topology}:{age}:{permits}")
        quiet = Quiet("jiang", topology, chance.randint(2, 6), permits, **AGES[age])
        wander(quiet, chance, 150, 1, 1, chance.choice(PRIORITIES))


def test_raised_among_others_nobody_is_let_in():
    for algorithm in ("jiang", "direct"):
        quiet = Quiet(algorithm, "complete", 3, 3)
        quiet.request(0, 1, 2, 9)
        quiet.request(1, 2, 2, 5)
        quiet.request(2, 3, 1, 3)
        quiet.change(2, 9)
        quiet.change(2, 2)  # now the other one is first, and fits


def test_in_jiang_the_token_does_not_know_what_is_hidden():
    """3 is behind 2 at node 0, and ages by the grants that node 0 has heard of. So it goes before
    5, which the queue would prefer."""
    quiet = Quiet("jiang", "star", 4, 1, patience="3")
    quiet.request(3, 1, 1, 1)
    quiet.request(0, 2, 1, 1)
    quiet.request(1, 3, 1, 1)
    quiet.request(2, 4, 1, 2)
    quiet.release(1, 1)
    quiet.release(4, 1)
    quiet.request(2, 5, 1, 2)
    with pytest.raises(AssertionError, match=r"enter: \[3\]\n *expected: \[5\]"):
        quiet.release(2, 1)


def test_in_jiang_a_request_follows_the_token_that_left_it():
    """The token leaves node 2, whose request waits for more permits, for a more urgent one. At node
    0 that request comes behind one of the same priority, which is younger and wants less."""
    quiet = Quiet("jiang", "star", 4, 3, ageing="none")
    quiet.request(1, 1, 1, 1)
    quiet.request(2, 2, 3, 0)
    quiet.request(0, 3, 1, 0)
    with pytest.raises(AssertionError, match=r"enter: \[4, 3\]\n *expected: \[4\]"):
        quiet.request(3, 4, 1, 1)
