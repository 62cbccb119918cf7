"""Recovery in virtual time: what crashes and partitions cost, and that nothing is unsafe."""

from __future__ import annotations

import pytest

from meshlock.simulate.recovering import Figures, Plan, Recovering
from meshlock.topology.mobility.changes import Change, LinkChange, Planned

EVERYBODY = [(one, other) for one in range(5) for other in range(one + 1, 5)]


def run(plan: Plan, changes: list[Change] | None = None) -> Figures:
    return Recovering(plan, EVERYBODY, Planned(changes) if changes else None).run()


def test_five_who_all_want_to_propose_at_birth_let_one_of_them_finish():
    figures = run(Plan(5, 3, until=60_000))
    assert figures.violated == []
    assert figures.outages == [6_369]  # silent for a lease, and one to wait
    assert figures.epochs == 1
    assert (figures.requests, figures.grants, figures.waiting) == (102, 99, 3)


@pytest.mark.parametrize("permits", [1, 3])
def test_crashes_cost_time_but_nothing_else(permits: int):
    plan = Plan(5, permits, crash_every=10_000, until=300_000)
    figures = run(plan)
    assert figures.violated == []
    assert figures.crashes > 20
    assert figures.grants > 200
    assert figures.requests == figures.grants + figures.lost_requests + figures.waiting
    assert figures.longest_wait < 10 * plan.lease


def test_the_smaller_part_waits_and_is_served_again_when_the_parts_join():
    between = [(a, b) for a, b in EVERYBODY if a < 2 <= b]
    changes: list[Change] = [LinkChange(60.0, False, a, b) for a, b in between]
    changes += [LinkChange(120.0, True, a, b) for a, b in between]
    figures = run(Plan(5, 2, until=180_000), changes)
    assert figures.violated == []
    assert figures.majority_share == 1.0
    smaller, larger = figures.served_share[:2], figures.served_share[2:]
    assert max(smaller) < 0.7 < 0.85 < min(larger)
    assert figures.waiting <= 2
    assert 55_000 < figures.longest_wait < 75_000


def test_nobody_is_served_while_no_part_has_a_majority():
    apart: list[Change] = [LinkChange(60.0, False, a, b) for a, b in EVERYBODY]
    figures = run(Plan(5, 2, until=180_000), apart)
    assert figures.violated == []
    assert figures.majority_share == pytest.approx(1 / 3, abs=0.01)
    assert figures.waiting == 5


def test_one_seed_one_run():
    plan = Plan(5, 2, crash_every=10_000, until=100_000, seed=7)

    def seen(figures):
        return {name: getattr(figures, name) for name in dir(figures) if name[0] != "_"}

    first, second = seen(run(plan)), seen(run(plan))
    assert {k: v for k, v in first.items() if not callable(v)} == {
        k: v for k, v in second.items() if not callable(v)
    }


def test_a_killed_holder_is_replaced_within_two_leases():
    plan = Plan(5, 3, kill_holder_at=60_000, down_for=1_000_000_000, until=120_000)
    figures = run(plan)
    assert figures.violated == []
    assert figures.crashes == 1
    assert plan.lease < figures.replaced_after < 1.5 * plan.lease
