"""The parts of the chaos harness that need no processes: plan, resource, judge.

The records here are made by hand, so that it is known what the judge must say of them.
"""

from __future__ import annotations

from itertools import combinations, pairwise
from pathlib import Path

import pytest

from meshlock.errors import Refused
from meshlock.live.chaos import plan as plans
from meshlock.live.chaos.figures import figures
from meshlock.live.chaos.judge import RecordVerdict, judge
from meshlock.live.chaos.majority import able, across
from meshlock.live.chaos.record import (
    AskedLine,
    Changed,
    ChangingLine,
    Continued,
    CutLine,
    Died,
    Down,
    End,
    Expired,
    FailedLine,
    FaultLine,
    Follower,
    GrantedLine,
    Healed,
    LostLine,
    NotServed,
    Quiet,
    ReadyLine,
    RecordLine,
    Released,
    ReleasedSome,
    RenewedLine,
    Resized,
    Resizing,
    SettledLine,
    SetUpLine,
    Stopped,
    Untold,
    Up,
    VoteLine,
    Writer,
    Wrote,
    read,
)
from meshlock.live.chaos.resource import ACCEPTED, BUSY, REFUSED, Resource

# -- the plan ------------------------------------------------------------------------------------


def test_a_seed_is_a_plan_and_another_seed_another():
    assert plans.make(3) == plans.make(3)
    assert plans.make(3).events != plans.make(4).events


def test_a_plan_comes_back_from_its_file(tmp_path: Path):
    plan = plans.make(5, seconds=60)
    plans.save(plan, tmp_path / "plan.json")
    assert plans.load(tmp_path / "plan.json") == plan


def test_a_plan_that_names_strangers_is_refused(tmp_path: Path):
    plan = plans.make(5, nodes=5)
    plan.nodes = plan.nodes[:2]
    plans.save(plan, tmp_path / "plan.json")
    with pytest.raises(Refused, match="not all of which exist: correct the plan"):
        plans.load(tmp_path / "plan.json")


def test_half_an_hour_has_every_kind_of_fault_in_plenty():
    for auto in (False, True):
        events = plans.make(1, seconds=1800, auto=auto).events
        counts = {kind: sum(event.fault == kind for event in events) for kind in plans.KINDS}
        assert counts.pop("rivals" if auto else "reset") == 0  # not possible there
        assert min(counts.values()) >= 2
    assert counts["kill-holder"] >= 25
    assert any(event.wiped for event in events)
    cuts = {(e.silent, e.one_way) for e in events if e.fault == "partition"}
    assert cuts == {(True, False), (True, True), (False, False)}


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("nodes", [3, 5, 6])
def test_a_majority_is_left_alone_whoever_the_holder_is(seed: int, nodes: int):
    """Judged anew from the events, with none of the code that drew them but ``able``."""
    plan = plans.make(seed, nodes=nodes, seconds=400)
    assert len(plan.events) > 20
    silence = plan.lease * 1.03

    def over(event: plans.PlannedFault) -> float:
        kills = ("kill-holder", "kill-agent", "kill-node", "leave", "birth")
        killed = event.fault in kills
        return event.at + event.seconds + (silence if killed else 0.0)

    for event in plan.events:
        if event.fault == "restart":
            continue  # some are paused meanwhile
        if event.fault == "no-majority":
            left = [node for node in plan.nodes if node not in event.nodes]
            whole = set(plan.links) - set(across(plan.links, event.sides or [plan.nodes]))
            assert not able(plan.nodes, left, whole)
            continue
        now = [e for e in plan.events if e.at <= event.at < over(e)]
        assert all(e.fault not in ("no-majority", "restart") for e in now)
        named = {node for e in now for node in e.nodes}
        unknown = sum(e.fault in ("kill-holder", "pause-holder") for e in now)
        cut = {link for e in now if e.sides for link in across(plan.links, e.sides)}
        cut |= {e.link for e in now if e.link is not None}
        whole = set(plan.links) - cut
        for holders in combinations(set(plan.nodes) - named, unknown):
            left = [node for node in plan.nodes if node not in named | set(holders)]
            assert able(plan.nodes, left, whole), event


@pytest.mark.parametrize("seed", range(6))
def test_a_minority_that_is_cut_off_is_connected_and_nothing_disturbs_a_crowd(seed: int):
    plan = plans.make(seed, seconds=3600)
    for event in plan.events:
        if event.fault == "strand":
            assert tuple(sorted(event.sides[1])) in plan.links
            assert event.seconds >= 2 * plan.lease
        if event.fault == "crowd":
            end = event.at + event.seconds
            assert not [e for e in plan.events if e is not event and event.at <= e.at < end]
    # some last so long that a node that is cut off must not call itself ready
    assert max(e.seconds for e in plan.events if e.fault in ("strand", "no-majority")) > 30


@pytest.mark.parametrize("seed", range(6))
def test_most_disks_are_lost_only_when_nothing_else_is_out_of_order(seed: int):
    plan = plans.make(seed, seconds=3600, auto=True)
    resets = [event for event in plan.events if event.fault == "reset"]
    assert resets and all(len(event.nodes) == 3 and event.wiped for event in resets)
    for event in resets:
        end = event.at + event.seconds
        assert not [e for e in plan.events if e is not event and event.at <= e.at < end]
        assert not [e for e in plan.events if e.at < event.at < e.at + e.seconds]
    assert not [e for e in plans.make(seed, seconds=3600).events if e.fault == "reset"]


@pytest.mark.parametrize("seed", range(20))
def test_nobody_forgets_within_two_leases_of_another(seed: int):
    plan = plans.make(seed, seconds=1800)
    back = sorted(event.at + event.seconds for event in plan.events if event.wiped)
    assert back
    assert all(after - before > 2 * plan.lease for before, after in pairwise(back))


def test_what_was_changed_is_forgotten_by_nobody():
    """A lost disk and a change of members are more than is promised to be survived together."""
    for seed in range(12):
        events = plans.make(seed, seconds=600).events
        wiped = [event.at + event.seconds for event in events if event.wiped]
        changed = [event.at for event in events if event.fault in plans.CHANGES]
        assert changed and max(wiped, default=0.0) < min(changed)


def test_clocks_keep_within_their_bound_and_differ_at_every_start():
    plan = plans.make(1)
    rates = [plan.rate(node, start) for node in plan.nodes for start in range(200)]
    assert 0.99 <= min(rates) < 0.991 and 1.009 < max(rates) <= 1.01
    assert len(set(rates)) > 900


def test_where_nobody_can_be_missed_the_plan_spares_them():
    """The hub of a star may be the holder, so the holder is never killed there."""
    faults = {event.fault for event in plans.make(1, topology="star", seconds=300).events}
    assert "kill-holder" not in faults and "kill-client" in faults


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [({"nodes": 2}, "--nodes 3"), ({"lease": 0.1}, "--lease"), ({"permits": 0}, "--permits")],
)
def test_an_impossible_plan_is_refused_with_a_sentence(settings: dict[str, int], sentence: str):
    with pytest.raises(Refused, match=sentence):
        plans.make(1, **settings)  # type: ignore[arg-type]


# -- the resource --------------------------------------------------------------------------------


@pytest.fixture
def resource(tmp_path: Path) -> Resource:
    return Resource.make(tmp_path)


def test_the_resource_refuses_a_lower_fence_from_holders_of_everything(resource: Resource):
    assert resource.write(5, "a", 3, True) == ACCEPTED
    assert resource.write(5, "a", 3, True) == ACCEPTED
    assert resource.write(9, "b", 3, True) == ACCEPTED
    assert resource.write(5, "a", 3, True) == REFUSED
    assert resource.accepted() == [5, 5, 9]


def test_holders_of_fewer_permits_interleave(resource: Resource):
    assert resource.write(9, "b", 1, False) == ACCEPTED
    assert resource.write(5, "a", 2, False) == ACCEPTED
    assert resource.accepted() == []


def test_a_resource_in_the_middle_of_a_write_is_busy(resource: Resource, tmp_path: Path):
    other = Resource(tmp_path)
    other.base.execute("BEGIN IMMEDIATE")
    assert resource.write(5, "a", 3, True) == BUSY
    other.base.execute("ROLLBACK")
    assert resource.write(5, "a", 3, True) == ACCEPTED


# -- the record ----------------------------------------------------------------------------------


def test_a_record_is_appended_to_followed_and_read(tmp_path: Path):
    path = tmp_path / "record.jsonl"
    one, other = Writer(path), Writer(path)
    follower = Follower(path)
    one.write(Released(t=2.0, c="a", n=1))
    other.write(Died(t=1.0, c="b"))
    assert follower.news() == [Released(t=2.0, c="a", n=1), Died(t=1.0, c="b")]
    assert follower.news() == []
    one.write(CutLine(t=3.0, links=[("n0", "n1")]))
    assert follower.news() == [CutLine(t=3.0, links=[("n0", "n1")])]
    assert [line.t for line in read(path)] == [1.0, 2.0, 3.0]


# -- the judge -----------------------------------------------------------------------------------

NODES = ["n0", "n1", "n2"]
LINKS = [("n0", "n1"), ("n0", "n2"), ("n1", "n2")]


def story(
    *lines: RecordLine,
    took_all: list[str] = NODES,
    accepted: list[int] | None = None,
    quiet=90.0,
    slots: list[str] | None = None,
) -> RecordVerdict:
    """A run of three nodes and two permits, leases of 3 s, that goes well but for ``lines``.

    All is quiet from 90 on, and over at 100.
    """
    set_up = SetUpLine(0.0, NODES, LINKS, permits=2, lease=3.0, silence=3.1, within=15.0)
    set_up.slots = slots or []
    record: list[RecordLine] = [
        set_up,
        *[Up(t=0.1, node=node) for node in NODES],
        *lines,
        Quiet(t=quiet),
        End(t=100.0, accepted=accepted or [], took_all=took_all),
    ]
    return judge(sorted(record, key=lambda line: line.t))


def use(
    c: str, asked: float, begin: float, end: float, fence: int, want: int = 1, node: str = "n0"
) -> list[RecordLine]:
    """A client asks, is granted with a lease that would last, and gives back."""
    return [
        AskedLine(t=asked, c=c, n=fence, node=node, want=want, priority=0),
        GrantedLine(t=begin, c=c, n=fence, want=want, fence=fence, until=begin + 1000),
        Released(t=end, c=c, n=fence),
    ]


def test_a_good_run_is_called_good():
    verdict = story(*use("a", 1, 2, 4, 1), *use("b", 1, 3, 5, 2), *use("c", 4, 5, 6, 3, want=2))
    assert verdict.violated == []


def test_too_many_permits_are_noticed():
    verdict = story(*use("a", 1, 2, 4, 1), *use("b", 1, 3, 5, 2, want=2))
    assert verdict.violated == ["permits"]
    (violation,) = verdict.violations
    assert violation.at == 3.0
    assert violation.sentence == ("3 of 2 permits are valid: a/1 (1, fence 1), b/2 (2, fence 2)")


def named(*slots: str, begin: float, end: float, fence: int) -> list[RecordLine]:
    asked, granted, released = use(f"c{fence}", 1, begin, end, fence, want=len(slots))
    assert isinstance(granted, GrantedLine)
    granted.slots = list(slots)
    return [asked, granted, released]


def test_two_valid_grants_that_name_one_permit_are_noticed():
    left, right = named("s0", begin=2, end=4, fence=1), named("s0", begin=3, end=5, fence=2)
    verdict = story(*left, *right, slots=["s0", "s1"])
    assert [found.sentence for found in verdict.violations] == [
        "c2/2 (1, fence 2) and c1/1 (1, fence 1) both have s0"
    ]
    later = named("s0", "s1", begin=4, end=5, fence=2)
    assert story(*left, *later, slots=["s0", "s1"]).violated == []


@pytest.mark.parametrize("slots", [[], ["s0"], ["s0", "s0"], ["s0", "x"], ["s0", "s1", "x"]])
def test_a_grant_that_does_not_name_its_permits_is_noticed(slots: list[str]):
    asked, granted, released = use("a", 1, 2, 4, 1, want=2)
    assert isinstance(granted, GrantedLine)
    granted.slots = slots
    assert story(asked, granted, released, slots=["s0", "s1"]).violated == ["slots"]


def test_after_the_pool_was_made_smaller_old_grants_go_on_and_new_ones_wait():
    def after(begin: float) -> list[RecordLine]:
        """Granted when there was one permit."""
        asked, granted, released = use("b", 1, begin, 9, 2)
        assert isinstance(granted, GrantedLine)
        granted.permits = 1
        return [Resizing(t=1.5, permits=1), asked, granted, released]

    assert story(*use("a", 1, 2, 4, 1, want=2), *after(4)).violated == []
    verdict = story(*use("a", 1, 2, 4, 1, want=2), *after(3))
    assert [found.sentence for found in verdict.violations] == [
        "3 of 1 permits are valid: a/1 (2, fence 1), b/2 (1, fence 2)"
    ]
    assert story(*after(3)[1:]).violated == ["permits"]  # nobody wanted that


def test_what_is_released_of_a_grant_may_be_granted_and_nothing_else():
    asked, granted, released = named("s0", "s1", begin=2, end=9, fence=1)
    whole = [asked, granted, ReleasedSome(t=4.0, c="c1", n=1, left=1), released]
    slots = ["s0", "s1"]
    assert story(*whole, *named("s1", begin=4.5, end=6, fence=2), slots=slots).violated == []
    early = story(*whole, *named("s1", begin=3.5, end=6, fence=2), slots=slots)
    assert early.violated == ["permits", "slots"]
    other = story(*whole, *named("s0", begin=4.5, end=6, fence=2), slots=slots)
    assert other.violated == ["slots"]
    both = story(*whole, *named("s1", begin=4.5, end=6, fence=2), *use("d", 4, 5, 6, 3))
    assert both.violated == ["permits"]


def test_permits_given_back_at_one_instant_may_be_taken_in_the_same():
    assert story(*use("a", 1, 2, 4, 1, want=2), *use("b", 1, 4, 5, 2, want=2)).violated == []


def granted(c: str, fence: int, begin: float, until: float, want: int = 2) -> list[RecordLine]:
    return [
        AskedLine(t=begin - 1, c=c, n=fence, node="n0", want=want, priority=0),
        GrantedLine(t=begin, c=c, n=fence, want=want, fence=fence, until=until),
    ]


def test_a_lease_ends_validity_though_nobody_says_so():
    next_one = use("b", 1, 5, 6, 2, want=2)
    assert story(*granted("a", 1, 2, until=5), Died(t=80, c="a"), *next_one).violated == []
    late = story(*granted("a", 1, 2, until=5.001), Died(t=80, c="a"), *next_one)
    assert late.violated == ["permits"]


@pytest.mark.parametrize(
    "end",
    [
        Released(t=4.9, c="a", n=1),
        LostLine(t=4.9, c="a", n=1),
        Expired(t=4.9, c="a", n=1),
        Died(t=4.9, c="a"),
    ],
)
def test_whatever_ends_a_grant_ends_its_validity(end: RecordLine):
    next_one = use("b", 1, 5, 6, 2, want=2)
    assert story(*granted("a", 1, 2, until=50), end, *next_one).violated == []
    end.t = 5.1
    assert story(*granted("a", 1, 2, until=50), end, *next_one).violated == ["permits"]


def test_a_renewal_prolongs_and_a_late_one_begins_anew():
    first = [*granted("a", 1, 2, until=5), Released(t=20, c="a", n=1)]
    renewed = RenewedLine(t=4, c="a", n=1, until=9)
    assert story(*first, renewed, *use("b", 1, 6, 7, 2)).violated == ["permits"]
    too_late = RenewedLine(t=6, c="a", n=1, until=9)
    assert story(*first, too_late, *use("b", 1, 5, 5.9, 2)).violated == []
    assert story(*first, too_late, *use("b", 1, 6.5, 7, 2)).violated == ["permits"]


def test_a_client_whose_agent_died_still_counts():
    """Its agent is down, it is not: until its lease ends the permits are not free."""
    verdict = story(
        *granted("a", 1, 2, until=5),
        Down(t=3, node="n0"),
        Expired(t=5, c="a", n=1),
        *use("b", 1, 4.9, 6, 2, node="n1"),
    )
    assert verdict.violated == ["permits"]


def test_equal_fences_are_noticed():
    assert story(*use("a", 1, 2, 3, 7), *use("b", 1, 4, 5, 7)).violated == ["fences"]


def test_a_fence_that_falls_is_noticed():
    assert story(*use("a", 1, 2, 3, 7), *use("b", 4, 5, 6, 6)).violated == ["fences"]


def test_fences_of_requests_that_overlap_may_arrive_in_any_order():
    """b was asked for before a was in anybody's hands: nobody can say which came first."""
    assert story(*use("a", 1, 2, 3, 7), *use("b", 1.9, 5, 6, 6)).violated == []


def wrote(c: str, n: int, t: float, end: float, outcome: str) -> Wrote:
    return Wrote(t=t, end=end, c=c, n=n, fence=n, exclusive=True, outcome=outcome)


def test_a_refusal_of_a_valid_holder_is_noticed():
    held = use("a", 1, 2, 4, 1, want=2)
    assert story(*held, wrote("a", 1, 3.0, 3.1, REFUSED)).violated == ["resource"]
    assert story(*held, wrote("a", 1, 3.9, 4.1, REFUSED)).violated == []  # it was late
    assert story(*held, wrote("a", 1, 3.0, 3.1, BUSY)).violated == []
    assert story(*held, wrote("a", 1, 3.0, 3.1, ACCEPTED)).violated == []


def test_a_resource_that_accepts_a_lower_fence_is_noticed():
    assert story(accepted=[1, 1, 4]).violated == []
    assert story(accepted=[1, 4, 3]).violated == ["resource"]


def test_a_permit_that_is_not_there_in_the_end_is_noticed():
    assert story(took_all=["n0", "n2"]).violated == ["returned"]


def test_an_agent_that_fails_by_itself_is_noticed():
    assert story(FailedLine(t=5, node="n1", why="ended by itself")).violated == ["agents"]


def asks(c: str, t: float, node: str = "n0", want: int = 1) -> AskedLine:
    return AskedLine(t=t, c=c, n=1, node=node, want=want, priority=0)


def gives_up(c: str, t: float, why: str = "timeout") -> NotServed:
    return NotServed(t=t, c=c, n=1, why=why)


def test_a_request_that_is_open_at_the_end_is_noticed():
    assert story(asks("a", 95)).violated == ["served"]
    assert story(asks("a", 95), gives_up("a", 99)).violated == []


def test_whoever_is_overtaken_for_too_long_in_the_quiet_is_noticed():
    others = [line for n in range(8) for line in use("b", 60 + 5 * n, 61 + 5 * n, 64 + 5 * n, n)]
    assert story(*others, asks("a", 62), gives_up("a", 79), quiet=60.0).violated == ["served"]
    assert story(*others, asks("a", 62), gives_up("a", 76), quiet=60.0).violated == []
    assert story(*others, asks("a", 62), gives_up("a", 79), quiet=70.0).violated == []


def test_whoever_was_killed_need_not_be_served():
    assert story(asks("a", 80), Died(t=85, c="a")).violated == []


def test_a_stall_without_excuse_is_noticed():
    verdict = story(*use("a", 5, 6, 7, 1), asks("b", 8), gives_up("b", 24))
    assert verdict.violated == ["resumed"]
    assert verdict.violations[0].sentence == (
        "no grant for 16.0 s (promised: 15 s) although b/1 waited, permits were free and a "
        "quorum was up"
    )
    assert story(*use("a", 5, 6, 7, 1), asks("b", 8), gives_up("b", 22)).violated == []


FIRST = use("a", 5, 6, 7, 1)
WAITS = [asks("b", 8), gives_up("b", 24)]


@pytest.mark.parametrize(
    "excuse",
    [
        [Down(t=9, node="n1"), Down(t=9, node="n2"), Up(t=12, node="n1")],  # silent till 15.1
        [Stopped(t=9, who="n1"), Stopped(t=9, who="n2"), Continued(t=11, who="n1")],
        [CutLine(t=9, links=LINKS), Healed(t=11, links=LINKS)],
        [CutLine(t=9, links=LINKS[:2]), Healed(t=11, links=LINKS[:1])],  # it waits alone
        [Stopped(t=9, who="b"), Continued(t=11, who="b")],
        [FaultLine(t=11, kind="holder killed")],
        use("c", 8.5, 9, 12, 2, want=2),  # all are taken meanwhile
        [*use("c", 8.5, 9, 12, 2), Resizing(t=8.6, permits=1)],  # of those that there may be
        [ChangingLine(t=9), SettledLine(t=11)],
    ],
)
def test_what_excuses_a_stall(excuse: list[RecordLine]):
    assert story(*FIRST, *WAITS, *excuse).violated == []


@pytest.mark.parametrize(
    "no_excuse",
    [
        [Down(t=9, node="n1"), Up(t=12, node="n1")],
        [Stopped(t=9, who="n1"), Continued(t=11, who="n1")],
        [CutLine(t=9, links=LINKS[1:])],  # n2 alone; the one who waits is with the majority
        [Healed(t=11, links=LINKS)],
        [asks("d", 8.5, want=2), gives_up("d", 24)],
        [Resizing(t=8.5, permits=1), Resized(t=9, permits=1)],
        [ChangingLine(t=7.5), SettledLine(t=8)],
    ],
)
def test_what_does_not(no_excuse: list[RecordLine]):
    assert "resumed" in story(*FIRST, *WAITS, *no_excuse).violated


def test_figures_tell_how_long_recovery_took():
    record: list[RecordLine] = [
        SetUpLine(t=0.0, nodes=NODES, links=LINKS, permits=2, lease=3.0, silence=3.1, within=15.0),
        *[Up(t=0.1, node=node) for node in NODES],
        *use("a", 5, 6, 7, 1),
        Down(t=10.0, node="n2"),
        FaultLine(t=10.0, kind="holder killed"),
        *use("b", 9, 10.01, 10.02, 2),  # was under way
        *use("a", 9, 14, 15, 3),
        FaultLine(t=20.0, kind="client killed", held=1),
        *use("b", 19, 21, 23, 4),
        *use("a", 19, 22, 24, 5),
        FaultLine(t=30.0, kind="holder killed"),  # struck by the next before it was over
        FaultLine(t=31.0, kind="agent paused"),
        *use("a", 29, 33, 34, 6),
        Quiet(t=90.0),
        End(t=100.0, accepted=[], took_all=NODES),
    ]
    record.sort(key=lambda line: line.t)
    found = figures(record, judge(record))
    assert found["kills"] == 3 and found["pauses"] == 1 and found["partitions"] == 0
    assert found["grants"] == 6 and found["leases_lost"] == 0
    assert found["recovery"]["holder killed"] == {
        "measured": 1,
        "median": 4.0,
        "worst": 4.0,
        "idle": {"measured": 1, "median": 3.99, "worst": 3.99},
    }
    assert found["recovery"]["client killed"]["worst"] == 1.0
    assert found["recovery"]["agent paused"]["measured"] == 0  # it came too soon after another
    assert found["permits_back"]["client killed"] == {"measured": 1, "median": 2.0, "worst": 2.0}
    assert found["permits_back"]["node killed"]["measured"] == 0
    assert found["longest_stall"] == 4.0  # from 29 to 33, two faults or not
    assert found["longest_without_grant"] == 67.0  # to the end of the record
    assert found["most_permits"] == 2


def passed(
    times: int, *between: RecordLine, priority: int = 0, deadline: float | None = None
) -> list[RecordLine]:
    """One waits with priority 5 from 5 on; others ask with this priority and are served."""
    lines: list[RecordLine] = [AskedLine(5.0, "urgent", 1, "n0", 1, 5), *between]
    for number in range(times):
        t = 20.0 + number * 4 / times
        lines.append(AskedLine(t, "other", number + 1, "n1", 1, priority, None, deadline))
        lines.append(GrantedLine(t + 0.001, "other", number + 1, 1, 100 + number, t + 4))
        lines.append(Released(t + 0.002, "other", number + 1))
    lines.append(GrantedLine(40.0, "urgent", 1, 1, 9000, 44.0))
    lines.append(Released(41.0, "urgent", 1))
    return lines


def test_whoever_is_passed_by_later_requests_that_are_not_more_urgent_is_noticed():
    verdict = story(*passed(1))
    assert [one.sentence for one in verdict.violations if one.property == "order"] == [
        "urgent waits with priority 5 and is overtaken by who asked later at n1"
    ]
    assert "order" in story(*passed(1, priority=5)).violated  # first come, first served
    raised = passed(4, Changed(10.0, "urgent", 1, 7), priority=6)
    assert "order" in story(*raised).violated
    assert "order" not in story(*passed(4, priority=6)).violated


def test_a_deadline_goes_before_its_priority_and_after_the_next():
    assert "order" not in story(*passed(4, priority=5, deadline=3.0)).violated
    assert "order" in story(*passed(1, priority=4, deadline=3.0)).violated
    lowered = Changed(10.0, "urgent", 1, 4)
    assert "order" not in story(*passed(4, lowered, priority=4, deadline=3.0)).violated


def test_whoever_waits_becomes_more_urgent():
    """A hundred grants count for a step, and as many are allowed for what nobody can know."""
    assert "order" not in story(*passed(200, priority=6)).violated
    assert "order" in story(*passed(202, priority=6)).violated
    assert "order" not in story(*passed(202, priority=7)).violated
    grant = GrantedLine(40.0, "urgent", 1, 1, 99, 44.0)  # made before all of those, and told late
    assert "order" not in story(*passed(202, priority=6)[:-2], grant).violated


@pytest.mark.parametrize(
    "good",
    [
        passed(9, priority=6),
        passed(4, FaultLine(19.0, "kill")),
        passed(4, CutLine(15.0, [("n0", "n1"), ("n0", "n2")])),  # it cannot be reached
        passed(4, Changed(10.0, "urgent", 1, 0), priority=1),  # it is not any more
        passed(4, Changed(18.0, "urgent", 1, 7)),  # nobody need know that yet
        passed(4, Resizing(6.0, 1)),  # there may be too few for it
        passed(4, ChangingLine(6.0)),
    ],
)
def test_what_excuses_that(good: list[RecordLine]):
    assert "order" not in story(*good).violated


def expired(*between: RecordLine) -> list[RecordLine]:
    """Its lease ends at 5, and it hears nothing of that until 8."""
    end = [Expired(t=5.0, c="a", n=1), Untold(t=8.0, c="a", n=1)]
    return [*granted("a", 1, 2, until=5), *end, *between]


def test_an_agent_that_does_not_say_that_a_lease_is_over_is_noticed():
    verdict = story(*expired())
    assert [one.sentence for one in verdict.violations] == [
        "a/1 was not told that its lease is over"
    ]
    for who in ("n0", "a"):  # either may have been asleep when the other spoke
        assert story(*expired(Stopped(t=3.0, who=who), Continued(t=6.0, who=who))).violated == []
    assert story(*expired(Down(t=4.0, node="n0"), Up(t=6.0, node="n0"))).violated == []
    assert story(*expired(Stopped(t=2.5, who="n1"))).violated == ["told"]


def unserved(ready: bool, *between: RecordLine, last: float = 45.0) -> RecordVerdict:
    """At n2, which is cut off, one asks every 5 s from 10 on, and gives up each time."""
    lines: list[RecordLine] = [CutLine(t=9.0, links=LINKS[1:])]
    for number, t in enumerate(range(10, 60, 5)):
        lines.append(AskedLine(t=t, c="a", n=number, node="n2", want=1, priority=0))
        lines.append(NotServed(t=t + 4.5, c="a", n=number, why="timeout"))
    return story(*lines, ReadyLine(t=last, node="n2", ready=ready), *between)


def test_an_agent_that_calls_itself_ready_and_serves_nobody_is_noticed():
    verdict = unserved(True)
    assert [one.sentence for one in verdict.violations] == [
        "n2 says that it is, and nobody was served for 35 s before and 3 s after"
    ]
    assert unserved(False).violated == []
    assert unserved(True, last=39.0).violated == []  # not yet for 30 s
    assert unserved(True, *use("b", 20, 20.5, 21, 1, node="n2")).violated == []
    assert unserved(True, *use("b", 20, 20.5, 41, 1, node="n1", want=2)).violated == []  # all taken
    assert unserved(True, Down(t=30, node="n2"), Up(t=31, node="n2")).violated == []
    assert unserved(True, FaultLine(t=46, kind="kill")).violated == []  # nobody can say
    first = [AskedLine(t=13, c="d", n=1, node="n1", want=2, priority=9)]  # and one is in use
    first += [NotServed(t=61, c="d", n=1, why="timeout"), *use("b", 11, 12, 60, 1, node="n1")]
    assert unserved(True, *first).violated == []


def test_a_node_that_can_be_served_again_is_ready_before_it_was():
    """A long cut is over: the token is near, others are served, and soon a client here, too."""
    healed = Healed(t=44.5, links=LINKS[1:])
    assert unserved(True, healed, *use("b", 44.6, 44.7, 46, 1, node="n1")).violated == []
    assert unserved(True, healed, *use("b", 47, 47.5, 48, 1, node="n1")).violated == []
    assert unserved(True, healed, *use("b", 47, 48.5, 49, 1, node="n1")).violated == ["ready"]
    assert unserved(True, *use("b", 44.6, 44.7, 46, 1, node="n1")).violated == ["ready"]  # cut off


def without_disk(*between: RecordLine) -> list[RecordLine]:
    """n1 comes back without its disk, and then n2 is cut off; b waits for 20 s."""
    back = [Down(t=8.0, node="n1"), Up(t=9.0, node="n1", wiped=True)]
    cut = [FaultLine(t=13.0, kind="cut"), CutLine(t=13.0, links=LINKS[1:])]
    return [*back, *cut, Healed(t=33.0, links=LINKS[1:]), *use("b", 13, 33.5, 34, 2), *between]


def test_a_node_that_lost_its_disk_counts_when_it_says_that_it_has_a_vote():
    assert story(*without_disk()).violated == ["resumed"]  # in the end it is to have one
    assert story(*without_disk(VoteLine(t=34.0, node="n1"))).violated == []
    assert story(*without_disk(VoteLine(t=12.5, node="n1"))).violated == ["resumed"]
    (late,) = story(*without_disk()).violations
    assert late.sentence == "n1, which lost its disk, has no vote after 15 s"
