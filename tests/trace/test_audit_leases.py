"""Audit of traces with recovery: every way of being unsafe or unfair is found in them."""

import msgspec
import pytest

from meshlock.trace.audit import Audit
from meshlock.trace.reader import BadTrace, Trace

SETUP = {
    "meshlock": "trace",
    "format": 1,
    "source": "simulate",
    "algorithm": "jiang",
    "nodes": 3,
    "permits": 2,
    "links": "complete",
    "holder": -1,
    "recovery": {"members": [0, 1, 2], "lease": 10, "recover": 30, "queue": 5},
}
ONE, TWO = [1, 0, 1], [2, 2, 1]


def audit(tmp_path, *events, **setup):
    path = tmp_path / "told.jsonl"
    lines = [{**SETUP, **setup}, *events]
    path.write_bytes(b"\n".join(msgspec.json.encode(line) for line in lines) + b"\n")
    return Audit(Trace(path))


def at(time, node, event, **more):
    return {"t": time, "node": node, "event": event, **more}


def birth(time=0.0, node=0, epoch=ONE):
    """The first token, with both permits free."""
    return [
        at(time, node, "timer", tokens=1, free=2),
        at(time, node, "recover", epoch=epoch),
    ]


def grant(time, node, client, count, epoch=ONE, want=1, until=None):
    """Asked for and granted at once, where the token is."""
    return [
        at(time, node, "request", client=client, want=want, priority=0),
        at(
            time,
            node,
            "enter",
            client=client,
            want=want,
            fence=[epoch, count],
            until=time + 10 if until is None else until,
        ),
    ]


def end(time, unserved=0):
    return {"t": time, "event": "end", "unserved": unserved}


def test_a_quiet_life_is_clean(tmp_path):
    told = [
        *birth(),
        *grant(1, 0, 1, 1),
        at(5, 0, "lease", client=1, until=15),
        at(12, 0, "leave", client=1),
        end(20),
    ]
    verdict = audit(tmp_path, *told)
    assert verdict.monitor.violated == {}
    assert (verdict.requested, verdict.entries, verdict.ended) == (1, 1, True)


def test_what_a_crashed_node_held_is_in_use_until_its_lease_ends(tmp_path):
    dead = [*birth(), *grant(1, 0, 1, 1, want=2), at(2, 0, "crash", tokens=0, free=0)]
    anew = birth(9, 2, TWO)
    too_soon = audit(tmp_path, *dead, *anew, *grant(9, 2, 2, 1, TWO))
    assert "3 permits are in use" in too_soon.monitor.violated["safety"]
    in_time = audit(tmp_path, *dead, *anew, *grant(11, 2, 2, 1, TWO))
    assert in_time.monitor.violated == {}


def test_saying_that_a_crashed_nodes_lease_is_lost_does_not_end_it(tmp_path):
    dead = [*birth(), *grant(1, 0, 1, 1, want=2), at(2, 0, "crash", tokens=0)]
    said = at(3, 0, "lease-lost", client=1)
    verdict = audit(tmp_path, *dead, said, *birth(4, 2, TWO), *grant(4, 2, 2, 1, TWO))
    assert "safety" in verdict.monitor.violated


def test_a_client_that_was_told_that_its_lease_is_lost_holds_nothing(tmp_path):
    told = [*birth(), *grant(1, 0, 1, 1, want=2), at(3, 0, "timer")]
    told += [at(3, 0, "lease-lost", client=1), *grant(4, 0, 2, 2, want=2)]
    assert audit(tmp_path, *told).monitor.violated == {}


def test_staying_beyond_the_lease(tmp_path):
    verdict = audit(tmp_path, *birth(), *grant(1, 0, 1, 1), at(12, 0, "leave", client=1))
    assert "still inside although its lease ended at 11" in verdict.monitor.violated["leases"]


def test_a_lease_that_ran_out_is_dead(tmp_path):
    renewal = at(12, 0, "lease", client=1, until=22)
    verdict = audit(tmp_path, *birth(), *grant(1, 0, 1, 1), renewal)
    assert "given more time" in verdict.monitor.violated["leases"]


@pytest.mark.parametrize("count", [1, 2])
def test_a_fence_that_does_not_grow(tmp_path, count):
    verdict = audit(tmp_path, *birth(), *grant(1, 0, 1, 2), *grant(2, 0, 2, count))
    assert "fences" in verdict.monitor.violated


def test_fences_grow_by_epoch_first(tmp_path):
    told = [*birth(), *grant(1, 0, 1, 7), *birth(3, 2, TWO), *grant(3, 2, 2, 1, TWO)]
    assert audit(tmp_path, *told).monitor.violated == {}


def test_two_tokens_of_one_epoch(tmp_path):
    verdict = audit(tmp_path, *birth(), *birth(1, 1))
    assert "there was one of (1, 0, 1)" in verdict.monitor.violated["one-token"]


def test_a_token_out_of_nothing(tmp_path):
    verdict = audit(tmp_path, *birth(), at(1, 1, "timer", tokens=1, free=2), end(2))
    assert "node 1 made 1 token" in verdict.monitor.violated["one-token"]


def test_a_token_that_is_sent_and_kept(tmp_path):
    sent = at(1, 0, "send", id=1, to=1, message="TOKEN", args={}, tokens=1)
    verdict = audit(tmp_path, *birth(), at(1, 0, "timer"), sent, end(2))
    assert "node 0 made 1 token" in verdict.monitor.violated["one-token"]


def test_that_a_token_is_lost_is_why_there_are_epochs(tmp_path):
    sent = at(1, 0, "send", id=1, to=1, message="TOKEN", args={}, tokens=1)
    gives = [at(1, 0, "timer", tokens=0, free=0), sent, at(2, 1, "drop", id=1)]
    assert audit(tmp_path, *birth(), *gives, *birth(40, 2, TWO), end(50)).monitor.violated == {}


def handed_over(time, number, to=1, hop=1):
    """The token of the first epoch, from node 0 to node 1."""
    message = {
        "message": "TOKEN",
        "args": {},
        "seal": [ONE, 1, [ONE, hop, 2, [], 0], 9, [], 0],
        "tokens": 1,
    }
    sent = at(time, 0, "send", id=number, to=to, **message)
    arrives = at(time + 1, to, "deliver", id=number, **{"from": 0}, **message)
    return sent, arrives


def test_a_token_may_be_sent_again_and_is_taken_once(tmp_path):
    (one, arrives), (two, again) = handed_over(1, 1), handed_over(3, 2)
    gone = {"tokens": 0, "free": 0}
    first = [*birth(), at(1, 0, "timer", **gone), one, {**arrives, "tokens": 1, "free": 2}]
    repeated = [*first, at(3, 0, "timer"), two, at(3.5, 1, "timer", tokens=0, free=0)]
    refused = audit(tmp_path, *repeated, {**again, "tokens": 0}, end(9))
    assert refused.monitor.violated == {}
    taken = audit(tmp_path, *repeated, {**again, "tokens": 1, "free": 2}, end(9))
    assert "node 1 made 1 token" in taken.monitor.violated["one-token"]


def test_a_token_sent_to_two_nodes(tmp_path):
    (one, _), (two, _) = handed_over(1, 1), handed_over(1, 2, to=2)
    verdict = audit(tmp_path, *birth(), at(1, 0, "timer", tokens=0, free=0), one, two, end(9))
    assert "node 0 made 1 token" in verdict.monitor.violated["one-token"]


def test_a_ledger_that_does_not_add_up(tmp_path):
    told = [*birth(), at(1, 0, "timer", free=1, lent=2), end(2)]
    assert "1 free and 2 lent" in audit(tmp_path, *told).monitor.violated["conservation"]


def resized(permits, free, lent):
    """A second epoch, for this number of permits."""
    made = [at(5, 1, "timer", tokens=1, free=free, lent=lent)]
    return [*made, at(5, 1, "recover", epoch=TWO, permits=permits)]


WISH = at(4, 0, "timer", resize=1)


def test_after_k_fell_old_grants_go_on_and_new_ones_wait(tmp_path):
    held = [*birth(), *grant(1, 0, 1, 1), *grant(1, 0, 2, 2), WISH, *resized(1, 0, 2)]
    assert audit(tmp_path, *held, end(6)).monitor.violated == {}
    one_back = [*held, at(6, 0, "leave", client=1)]
    early = audit(tmp_path, *one_back, *granted_of(7, 3, 1), end(8))
    assert "2 permits are in use, but there are 1" in early.monitor.violated["safety"]
    late = audit(tmp_path, *one_back, at(7, 0, "leave", client=2), *granted_of(8, 3, 1), end(9))
    assert late.monitor.violated == {}


def granted_of(time, client, permits):
    asked, entered = grant(time, 1, client, 1, epoch=TWO)
    return [asked, {**entered, "permits": permits}]


def test_another_k_that_nobody_asked_for(tmp_path):
    told = [*birth(), *resized(3, 3, 0), end(6)]
    found = audit(tmp_path, *told).monitor.violated["conservation"]
    assert "for 3 permits, but there were 2" in found


def test_waiting_for_long_beside_a_majority(tmp_path):
    asks = at(1, 2, "request", client=1, want=1, priority=0)
    soon = audit(tmp_path, *birth(), asks, end(36, 1))
    assert soon.monitor.violated == {}  # 30 to recover and 5 to queue
    late = audit(tmp_path, *birth(), asks, end(37, 1))
    assert "1 request waited" in late.monitor.violated["served"]


def test_waiting_cut_off_is_nobodys_fault(tmp_path):
    cut = [at(1, 2, "link-down", peer=0), at(1, 2, "link-down", peer=1)]
    asks = at(1, 2, "request", client=1, want=1, priority=0)
    assert audit(tmp_path, *birth(), *cut, asks, end(500, 1)).monitor.violated == {}


def test_what_crashes_does_not_count_towards_a_majority(tmp_path):
    asks = at(1, 2, "request", client=1, want=1, priority=0)
    dead = [at(2, 0, "crash", tokens=0, free=0), at(2, 1, "crash")]
    assert audit(tmp_path, *birth(), asks, *dead, end(500, 1)).monitor.violated == {}
    back = [*dead, at(3, 1, "restart")]
    verdict = audit(tmp_path, *birth(), asks, *back, end(500, 1))
    assert "served" in verdict.monitor.violated


@pytest.mark.parametrize(
    ("event", "sentence"),
    [
        (at(1, 0, "recover", epoch=[1, 0]), "needs an epoch"),
        (at(1, 0, "lease-lost", client=4), "is not inside"),
        (at(1, 0, "lease", client=4), "needs a number as 'until'"),
    ],
)
def test_a_broken_line_is_named(tmp_path, event, sentence):
    with pytest.raises(BadTrace, match=f"Line 2 .*{sentence}"):
        audit(tmp_path, event)


def test_an_entry_needs_a_fence(tmp_path):
    asks, enters = grant(1, 0, 1, 1)
    del enters["fence"]
    with pytest.raises(BadTrace, match="needs a fence"):
        audit(tmp_path, *birth(), asks, enters)


def test_members_must_be_said(tmp_path):
    with pytest.raises(BadTrace, match="no list of 'members'"):
        audit(tmp_path, recovery={"lease": 10})


def passed(times, priority=0, *between):
    """Client 9 waits at node 1 with priority 5; others of node 0 ask later and are served."""
    told = [*birth(), at(1, 1, "request", client=9, want=2, priority=5), *between]
    for number in range(times):
        time = 40 + 2 * number
        asks, enters = grant(time, 0, 10 + number, number + 1)
        asks["priority"] = priority
        told += [asks, enters, at(time + 1, 0, "leave", client=10 + number)]
    return [*told, at(99, 1, "withdraw", client=9), end(100)]


@pytest.mark.parametrize(("algorithm", "times"), [("direct", 1), ("jiang", 4)])
def test_whoever_is_passed_by_later_and_less_urgent_requests_is_found(tmp_path, algorithm, times):
    """In jiang the token may let others in on its way, before it has heard of all."""
    words = {"algorithm": algorithm, "options": {"ageing": "stamped"}}
    found = audit(tmp_path, *passed(times), **words).monitor.violated
    assert "client 9, which waits with priority 5" in found["order"]
    assert "order" not in audit(tmp_path, *passed(times - 1), **words).monitor.violated


def test_one_that_was_granted_first_may_enter_later(tmp_path):
    """Fences give the order of grants, not the order of notifications."""
    for fence, wrong in ((1, set()), (3, {"order"})):
        told = [one for one in passed(1) if one["event"] not in ("withdraw", "end")]
        for one in told:
            if one["event"] == "enter":
                one["fence"] = [ONE, 2]
        told[-1:-1] = [
            at(40, 1, "timer"),
            at(40, 1, "enter", client=9, want=2, fence=[ONE, fence], until=60),
        ]
        found = audit(tmp_path, *told, algorithm="direct").monitor.violated
        assert {*found} & {"order"} == wrong


@pytest.mark.parametrize(("algorithm", "wrong"), [("direct", {"order"}), ("jiang", set())])
def test_equals_are_served_in_turn_where_that_is_promised(tmp_path, algorithm, wrong):
    told = [*passed(1, 5)]
    found = audit(tmp_path, *told, algorithm=algorithm).monitor.violated
    assert {*found} & {"order"} == wrong


@pytest.mark.parametrize("live", [True, False])
def test_a_step_that_raises_one_request_lets_no_other_in(tmp_path, live):
    def judged(priority):
        asks, enters = grant(2, 0, 10, 1)
        told = [*birth(), at(1, 0, "request", client=9, want=2, priority=5), asks]
        told += [at(2, 0, "priority", client=9, priority=priority), enters]
        words = {"source": "live"} if live else {}
        return {*audit(tmp_path, *told, **words).monitor.violated}

    assert judged(9) == {"order"}
    assert judged(1) == set()


@pytest.mark.parametrize(
    "told",
    [
        passed(9, 5),
        passed(4, 0, at(39, 2, "crash")),
        passed(4, 0, at(3, 1, "link-down", peer=0), at(3, 1, "link-down", peer=2)),
    ],
)
def test_what_excuses_that(tmp_path, told):
    found = audit(tmp_path, *told, options={"ageing": "stamped"}).monitor.violated
    assert "order" not in found


def test_where_order_is_not_promised_it_is_not_judged(tmp_path):
    for words in ({"algorithm": "raymond"}, {"options": {"ageing": "none", "backfill": "on"}}):
        assert "order" not in audit(tmp_path, *passed(9), **words).monitor.violated


def test_a_node_does_nothing_between_crash_and_restart(tmp_path):
    crash, restart = at(2, 1, "crash"), at(3, 1, "restart")
    asks = at(4, 1, "request", client=1, want=1)
    assert audit(tmp_path, *birth(), crash, restart, asks).requested == 1
    for wrong in ([crash, asks], [crash, crash], [restart], [crash, restart, restart]):
        with pytest.raises(BadTrace, match=r"is a step of node 1, which has (not )?crashed"):
            audit(tmp_path, *birth(), *wrong)


def test_a_message_arrives_as_it_was_sent_but_older(tmp_path):
    """Seals say how long they have been under way; where time is ticks, some messages do, too."""
    said = {"id": 1, "message": "RENEW", "args": {"round": 1, "sent": 0}, "seal": [ONE, 1, None, 0]}
    sends = [at(0, 0, "timer"), at(0, 0, "send", to=1, **said)]
    older = {**said, "from": 0, "args": {"round": 1, "sent": 2}, "seal": [ONE, 1, None, 2]}

    def arrives(source, **change):
        audit(tmp_path, *sends, at(2, 1, "deliver", **{**older, **change}), source=source)

    arrives("check")
    arrives("simulate", args=said["args"])
    for change in ({"args": {"round": 2, "sent": 2}}, {"seal": [TWO, 1, None, 2]}, {"seal": 5}):
        with pytest.raises(BadTrace, match="not as it was sent"):
            arrives("check", **change)
    with pytest.raises(BadTrace, match="not as it was sent"):
        arrives("simulate")
