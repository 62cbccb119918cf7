"""Requests straight to the token: what its trail of pointers costs, and whom it serves."""

from __future__ import annotations

import pytest
from laboratory import run
from prompt import Scene

from meshlock.algorithms.actor import Effect, Enter
from meshlock.algorithms.conflicts import LINES
from meshlock.algorithms.direct import (
    REST,
    DirectNode,
    GrantMessage,
    Release,
    Request,
    Token,
)
from meshlock.algorithms.mutants.mutant import Mutant
from meshlock.algorithms.ranked import LATER

STAMPED = {"ageing": "stamped", "patience": "10"}


def ramanujan(n: int) -> float:
    """Q(n) = 1 + (n-1)/n + (n-1)(n-2)/n^2 + ... (Knuth, TAOCP 1, 1.2.11.3)."""
    total, term = 0.0, 1.0
    for j in range(n):
        total += term
        term *= (n - 1 - j) / n
    return total


@pytest.mark.parametrize("nodes", [2, 3, 8, 32])
def test_the_trail_to_the_token_has_ramanujans_length(nodes: int) -> None:
    light = run("direct", nodes, "serial", 20_000)
    assert light.violated == {}
    assert light.messages_per_entry == pytest.approx(ramanujan(nodes) - 1 / nodes, rel=0.02)


@pytest.mark.parametrize("nodes", [4, 16, 64])
def test_at_saturation_an_entry_costs_two_messages(nodes: int) -> None:
    heavy = run("direct", nodes, "saturated", 100 * nodes, hold="5")
    assert heavy.violated == {}
    assert heavy.messages_per_entry == pytest.approx(2.0, rel=0.02)
    assert heavy.synchronisation_delay == 1.0
    assert max(heavy.shares) - min(heavy.shares) <= 2


@pytest.mark.parametrize(("nodes", "permits"), [(8, 2), (8, 5), (32, 3)])
def test_at_saturation_with_more_permits_the_token_rests(nodes: int, permits: int) -> None:
    """A node that is not its holder needs REQUEST, GRANT and RELEASE. When the token moves on, the
    permits that are out, and requests that are under way, need one more."""
    heavy = run("direct", nodes, "saturated", 100 * nodes, permits=permits, hold="5")
    assert heavy.violated == {}
    resting = 3 * (nodes - 1) / nodes
    assert resting < 1.02 * heavy.messages_per_entry < resting + 2 * permits / REST + 0.1
    assert heavy.messages.get("TOKEN", 0) <= 1 + 100 * nodes // REST
    assert min(heavy.shares) >= 0.96 * max(heavy.shares)


# -- fairness -------------------------------------------------------------------------------


@pytest.mark.parametrize("leases", [{}, {"members": "2", "lease": "1000"}])
@pytest.mark.parametrize(("nodes", "permits", "hold"), [(8, 3, "1"), (8, 3, "4"), (2, 2, "1")])
def test_all_who_ask_alike_enter_alike_often(
    nodes: int, permits: int, hold: str, leases: dict[str, str]
) -> None:
    """A client of the node with the token needs no message, so the token moves on."""
    asked: dict[str, str | int] = {"permits": permits, "hold": hold, "delay": "uniform:0.6,1.4"}
    clients = 1 if nodes > permits else 3
    heavy = run("direct", nodes, "saturated", 5_000, clients=clients, **asked, **leases)
    assert heavy.violated == {}
    assert min(heavy.shares) >= 0.9 * max(heavy.shares)
    never = run("direct", nodes, "saturated", 5_000, clients=clients, **asked, rest=10**6)
    assert min(never.shares) < 0.9 * max(never.shares)
    if not leases:
        assert heavy.messages_per_entry < 1.06 * never.messages_per_entry


def test_a_token_that_moves_on_takes_no_node_for_granted() -> None:
    """Nodes that are served in turn: it is not always the turn of the holder when it moves on."""
    for nodes in range(2, 12):
        heavy = run("direct", nodes, "saturated", 3_000, permits=2, hold="1", clients=2)
        assert heavy.violated == {}
        assert heavy.messages["TOKEN"] >= 3_000 // REST // 4
        assert min(heavy.shares) >= 0.8 * max(heavy.shares)


def test_what_is_released_follows_the_token_and_may_be_ahead_of_it() -> None:
    out: list[Effect] = []
    before = DirectNode(0, out, 3, {**STAMPED, "rest": "2"})
    before.request(1, 1, 5)
    before.receive(Request(0, 1, 1, 1, 1, 5, 50, 0, True))
    [token] = [effect for effect in out if isinstance(effect, Token)]
    assert (token.receiver, token.free, token.hop) == (1, 2, 1)
    said(out)
    before.release(1)
    before.receive(Release(0, 1, 0))  # of a node that does not know yet where the token is
    assert said(out) == [("RELEASE", 1, 1), ("RELEASE", 1, 1)]
    after = DirectNode(1, out, 3, STAMPED)
    after.receive(Release(1, 1, 1))
    assert (after.free, after.holder, said(out)) == (1, False, [])
    after.receive(token)
    assert (after.free, after.holder) == (3, True)


def test_a_token_that_moves_on_waits_for_grants_to_be_acknowledged() -> None:
    out: list[Effect] = []
    holder = DirectNode(0, out, 3, {**STAMPED, "rest": "3"})
    holder.unsure = 0  # as in recovery
    holder.request(1, 1, 5)
    holder.receive(Request(0, 1, 1, 1, 1, 5, 50, 0, True))
    holder.receive(Request(0, 2, 1, 1, 1, 5, 50, 0, True))
    assert [effect.kind for effect in out[1:]] == ["GRANT"]
    holder.ask_again()
    assert len(out) == 2 and holder.holder
    holder.unacknowledged(0)
    holder.ask_again()
    assert isinstance(out[2], Token) and out[2].receiver == 2


def test_links_that_keep_no_order_harm_nobody() -> None:
    for seed in range(100):
        mixed = run(
            "direct",
            2 + seed % 6,
            "poisson:0.2",
            60,
            permits=1 + seed % 3,
            want=f"1-{1 + seed % 3}",
            priority="1-9",
            clients=1 + seed % 2,
            delay="uniform:0,5",
            links="unordered",
            topology=["complete", "line", "star"][seed % 3],
            seed=seed,
        )
        assert (mixed.entries, mixed.violated) == (60, {})


def test_a_withdrawal_that_overtakes_its_request_is_remembered() -> None:
    """Else the request holds up the one behind it until all that it wants is free."""
    out: list[Effect] = []
    holder = DirectNode(0, out, 2, {"ageing": "none"})
    holder.request(1, 1, 1)
    holder.receive(Request(0, 1, 3, 3, 0, 0, 0, 0, False))  # node 1 wants nothing any more ...
    holder.receive(Request(0, 1, 1, 1, 2, 9, 9, 0, False))  # ... than these two permits
    holder.request(2, 1, 1)
    assert [effect.client for effect in out if isinstance(effect, Enter)] == [1, 2]


# -- grants to others -----------------------------------------------------------------------


def asker(out: list[Effect]) -> DirectNode:
    """Node 1 of three permits, of which the holder, node 0, has sent it one."""
    return DirectNode(1, out, 3, STAMPED)


def said(out: list[Effect]) -> list[tuple[object, ...]]:
    """And forget it."""
    told = [
        (effect.client,) if isinstance(effect, Enter) else effect.freeze()
        for effect in out
        if isinstance(effect, Enter | Request | Release)
    ]
    out.clear()
    return told


def test_all_permits_move_with_the_token_and_some_are_sent() -> None:
    out: list[Effect] = []
    holder = DirectNode(0, out, 3, STAMPED)
    holder.receive(Request(0, 1, 1, 1, 1, 5, 50, 0, True))
    assert [effect.freeze()[:3] for effect in out if isinstance(effect, Token)] == [("TOKEN", 1, 3)]
    out.clear()
    holder = DirectNode(0, out, 3, STAMPED)
    holder.request(1, 1, 5)
    holder.receive(Request(0, 1, 1, 1, 1, 5, 50, 0, True))
    holder.receive(Request(0, 2, 1, 1, 2, 5, 50, 0, True))
    grants = [effect for effect in out if isinstance(effect, GrantMessage)]
    assert [(one.receiver, *one.freeze()) for one in grants] == [(1, "GRANT", 1, 1, 2, 0)]
    holder.receive(Release(0, 1, 0))
    grants = [effect for effect in out if isinstance(effect, GrantMessage)]
    assert (grants[-1].receiver, grants[-1].count, holder.free, holder.holder) == (2, 2, 0, True)


def test_a_grant_is_for_whom_it_was_made() -> None:
    """Else a client could get a lower fence than there was when it asked."""
    out: list[Effect] = []
    node = asker(out)
    for client in (1, 2, 3):
        node.request(client, 1, 2)
    first, second, third = (asked[2] for asked in said(out))
    assert len({number % 3 for number in (first, second, third)}) == 3
    node.request(4, 1, 9)  # it takes the line of the last
    [asked] = said(out)
    assert asked[2] == third + 3
    node.receive(GrantMessage(1, third, 1, 4, 0))
    assert said(out) == [(3,)]
    node.request(5, 2, 1)
    assert said(out) == []  # the others are first, and have asked
    node.receive(GrantMessage(1, asked[2], 1, 5, 0))
    entered, asked = said(out)
    assert entered == (4,)
    assert (asked[2], *asked[4:6]) == (third + 6, 2, 1)
    node.receive(GrantMessage(1, second, 1, 6, 0))
    assert said(out) == [(2,)]


def test_whatever_comes_free_at_once_finds_whom_it_is_for() -> None:
    """Two urgent clients of one node go before a less urgent one of another."""
    scene = Scene("direct", 3, "complete", permits=3, patience="100")
    scene.ask(0, 1, 5)  # and stays
    scene.ask(0, 2, 5, want=2)
    for node, client, priority in [(1, 3, 1), (2, 4, 7), (2, 5, 6), (2, 6, 2), (2, 7, 0)]:
        scene.ask(node, client, priority)
    scene.leave(2)
    assert scene.inside == [1, 4, 5]
    for inside, client in [(4, 6), (5, 3), (6, 7)]:
        scene.leave(inside)
        assert scene.inside[-1] == client


def test_a_crowd_of_one_node_has_no_more_entries_than_lines() -> None:
    out: list[Effect] = []
    node = DirectNode(1, out, 1000, STAMPED)
    for client in range(1, 101):
        node.request(client, 1, client % 7)
    assert len({asked[2] % LINES for asked in said(out)}) == LINES
    assert all(node.own.own[client].priority == 6 for client in node.lines.placed)
    for client in list(node.lines.placed):
        assert node.withdraw(client)
        [asked] = said(out)
        assert asked[5] >= 5
    for client in list(node.own.own):
        node.withdraw(client)
    assert node.lines.placed == [-1] * LINES and not node.lines.asked_for
    assert [asked[4] for asked in said(out)][-LINES:] == [0] * LINES


def test_a_grant_that_nobody_wants_any_more_goes_back() -> None:
    out: list[Effect] = []
    node = asker(out)
    node.request(1, 1, 2)
    [asked] = said(out)
    node.withdraw(1)
    node.request(2, 1, 2)
    said(out)
    node.receive(GrantMessage(1, asked[2], 1, 4, 0))
    assert said(out) == [("RELEASE", 1, 0)]
    assert node.free_permits() == 0 and not node.clients


@pytest.mark.parametrize("displaced", [False, True])
def test_a_grant_that_the_token_overtakes_is_for_whom_it_was_made(displaced: bool) -> None:
    """Also if a more urgent one has taken its line since, which the holder did not know yet."""
    out: list[Effect] = []
    node = DirectNode(1, out, 1, STAMPED)
    node.request(1, 1, 2)
    [asked] = said(out)
    granted = (1, asked[2], 0, 0, 0, 0)
    if displaced:
        node.request(2, 1, 5)
        said(out)
    node.receive(Token(1, 1, 0, 4, (granted, (2, 9, 1, 5, 46, 1))))
    assert said(out) == []
    assert [one[2] for one in node.queue if one[0] == 1] == ([1] if displaced else [0])
    node.receive(GrantMessage(1, asked[2], 1, 4, 0))
    assert said(out) == [(1,)]
    assert node.clients == {1: 1} and node.free_permits() == 0


def test_a_grant_that_the_token_overtakes_goes_back_if_nobody_wants_it() -> None:
    out: list[Effect] = []
    node = DirectNode(1, out, 1, STAMPED)
    node.request(1, 1, 2)
    [asked] = said(out)
    node.receive(Token(1, 1, 0, 4, ((1, asked[2], 0, 0, 0, 0),)))
    node.change_priority(1, 1, 3)
    assert [one[2] for one in node.queue] == [0]
    node.withdraw(1)
    node.request(2, 1, 2)
    node.receive(GrantMessage(1, asked[2], 1, 4, 0))
    assert said(out) == [(2,)]
    assert node.clients == {2: 1} and node.free_permits() == 0


def test_a_grant_for_a_former_life_goes_back() -> None:
    out: list[Effect] = []
    node = DirectNode(1, out, 3, STAMPED, holder=0, hop=0, number=1 << LATER | 7)
    node.request(1, 1, 2)
    [asked] = said(out)
    assert asked[2] > 2 << LATER
    node.receive(GrantMessage(1, 1 << LATER | 7, 1, 4, 0))
    assert said(out) == [("RELEASE", 1, 0)]
    node.receive(GrantMessage(1, asked[2], 1, 5, 0))
    assert said(out) == [(1,)]


def test_who_has_heard_of_no_grants_does_not_go_first_while_permits_are_out() -> None:
    scene = Scene("direct", 3, "complete", permits=2, patience="100")
    scene.ask(0, 1, 5)  # and stays
    for client in range(2, 1001):
        scene.ask(1, client, 5)
        scene.leave(client)
    scene.ask(0, 2000, 5)
    for client, node, priority in [(2001, 2, 1), (2002, 2, 3), (2003, 0, 5), (2004, 1, 2)]:
        scene.ask(node, client, priority)
    for client in (2000, 2003, 2002, 2004, 2001):
        assert scene.inside == [1, client]
        scene.leave(client)


# -- requests that are resumed in a new pool ------------------------------------------------


def test_a_resumed_request_keeps_the_rank_that_it_has_waited_for() -> None:
    out: list[Effect] = []
    holder = DirectNode(0, out, 1, STAMPED)
    holder.request(1, 1, 5)
    holder.request(2, 1, 3)
    for inside, client in [(1, 11), (11, 12), (12, 13)]:
        holder.request(client, 1, 5)
        holder.release(inside)
    assert (holder.waited(2), holder.waited(13), holder.waited(99)) == (3, 0, 0)  # 13 is inside

    heir = DirectNode(0, [], 1, STAMPED)
    heir.request(9, 1, 0)  # inside
    heir.request(3, 1, 3)
    heir.resume(2, 1, 3, holder.waited(2))
    assert [entry.client for entry in heir.own.entries] == [2, 3]
    assert (heir.waited(2), heir.waited(3)) == (3, 0)


def test_what_it_has_waited_for_counts_when_the_holder_hears_of_it() -> None:
    out: list[Effect] = []
    asker = DirectNode(1, out, 1, STAMPED)
    asker.resume(1, 1, 2, 7)
    assert [asker.waited(1)] == [7]
    request = out[0]
    assert isinstance(request, Request) and (request.rank, request.fresh) == (2 * 10 + 7, True)
    holder = DirectNode(0, [], 1, STAMPED)
    holder.request(1, 1, 0)
    holder.grants = 1000
    holder.receive(request)
    assert holder.queue[0][4] == 2 * 10 + 7 - 1000


@pytest.mark.parametrize("algorithm", ["direct", "jiang"])
def test_of_an_age_that_nobody_knows_less_than_a_step_goes_along_into_an_epoch(
    algorithm: str,
) -> None:
    scene = Scene(algorithm, 3, "line", patience="100")
    scene.ask(0, 1, 5)
    scene.ask(2, 2, 1)
    idle = scene.nodes[2]
    assert [idle.waited(2, grants) for grants in (1, 60, 1000)] == [1, 60, 99]
    assert idle.waited(2) == 0


@pytest.mark.parametrize("algorithm", ["direct", "jiang"])
def test_who_has_heard_of_no_grants_does_not_go_first(algorithm: str) -> None:
    """Its age counts from when it asked, however many grants were made before."""
    scene = Scene(algorithm, 3, "line", patience="100")
    for client in range(1, 1001):
        scene.ask(0, client, 5)
        scene.leave(client)
    scene.ask(0, 2000, 5)
    for client, node, priority in [(2001, 2, 1), (2002, 2, 3), (2003, 0, 5), (2004, 1, 2)]:
        scene.ask(node, client, priority)
    for client in (2000, 2003, 2002, 2004, 2001):
        assert scene.inside == [client]
        scene.leave(client)


HEARS_OF_NO_GRANTS = """@@ direct.py
             self.grants = m.grants
-            self.begin_ages()
"""
"""Clients without a line do not age while the token rests elsewhere."""


@pytest.mark.parametrize("served", [True, False], ids=["sound", "undone"])
def test_who_has_no_line_is_served_though_the_token_rests_elsewhere(served: bool) -> None:
    """Two permits; one stays with the holder, and of the other node three clients that are more
    urgent ask again and again."""
    undone = Mutant("direct/mistaken", "", HEARS_OF_NO_GRANTS, {}).algorithm.make
    scene = Scene("direct", 2, "complete", 2, None if served else undone, patience="3")
    scene.ask(0, 1, 9)
    for client, priority in [(2, 1), (3, 1), (4, 1), (100, 0)]:
        scene.ask(1, client, priority)
    for client in range(5, 50):
        if 100 in scene.inside:
            break
        scene.ask(1, client, 1)
        scene.leave(scene.inside[-1])
    assert (100 in scene.inside) == served


def test_nothing_is_resumed_where_requests_do_not_age() -> None:
    node = DirectNode(1, [], 1, {"ageing": "none"})
    node.resume(1, 1, 2, 7)
    assert (node.waited(1), node.own.first().rank) == (0, 2)


# -- nodes that come and go -----------------------------------------------------------------


def busy_holder(out: list[Effect]) -> DirectNode:
    """Its client holds the only permit."""
    holder = DirectNode(0, out, 1, STAMPED)
    holder.request(1, 1, 5)
    return holder


def asking(out: list[Effect], node: DirectNode, client: int) -> Request:
    node.request(client, 1, 5)
    request = out.pop()
    assert isinstance(request, Request)
    return request


@pytest.mark.parametrize("latest", [True, False], ids=["sound", "undone"])
def test_a_late_request_of_a_former_life_does_not_take_the_place_of_a_new_one(
    latest: bool,
) -> None:
    """The holder forgot the numbers of a node that was gone, the new life began with the same
    ones, and a late request of the former one was taken for the latest."""
    out: list[Effect] = []
    holder, former = busy_holder(out), DirectNode(1, out, 1, STAMPED, 0, 0)
    first = asking(out, former, 7)
    former.withdraw(7)
    out.clear()
    late = asking(out, former, 8)
    holder.receive(first)
    assert holder.forget(1)
    if not latest:  # nothing stays of a node that is gone
        holder.queue = [asked for asked in holder.queue if asked[0] != 1]
    present = DirectNode(1, out, 1, STAMPED, 0, 0, holder.number_of(1))
    holder.receive(asking(out, present, 9))
    holder.receive(late)
    known = [asked[1] for asked in holder.queue if asked[0] == 1]
    assert (known == present.lines.numbers) == latest
    holder.release(1)
    present.receive(out[-1])  # type: ignore[arg-type]
    assert [effect.client for effect in out if isinstance(effect, Enter)] == [9]


def test_what_a_node_that_was_struck_out_asks_for_again_counts() -> None:
    out: list[Effect] = []
    holder, gone = busy_holder(out), DirectNode(1, out, 1, STAMPED)
    asked = asking(out, gone, 7)
    holder.receive(asked)
    assert holder.forget(1) and not holder.forget(1)
    assert all(want == 0 for _, _, want, *_ in holder.queue)
    gone.ask_again()
    again = out.pop()
    assert isinstance(again, Request) and again.freeze() == asked.freeze()
    holder.receive(again)
    assert holder.queue[0][:3] == (1, asked.number, 1)


# -- changed priorities ---------------------------------------------------------------------


@pytest.mark.parametrize("ahead", [False, True])
def test_what_was_changed_and_struck_out_counts_when_it_is_asked_for_again(ahead: bool) -> None:
    """It has another number than at first, and was taken for one that had been granted."""
    out: list[Effect] = []
    holder, gone = busy_holder(out), DirectNode(1, out, 1, STAMPED)
    first = asking(out, gone, 7)
    assert gone.change_priority(7, 1, 9)
    changed = out.pop()
    assert isinstance(changed, Request)
    there = DirectNode(2, out, 1, STAMPED) if ahead else holder
    first.hop = changed.hop = 1 if ahead else 0
    there.receive(first)
    there.receive(changed)
    assert there.forget(1)
    if ahead:
        there.receive(Token(2, 1, 0, 1, ()))
    gone.ask_again()
    again = out.pop()
    assert isinstance(again, Request)
    there.receive(again)
    assert there.queue[0][:4] == (1, changed.number, 1, 9)


def test_a_grant_that_crosses_a_change_is_for_the_same_request() -> None:
    out: list[Effect] = []
    holder, node = DirectNode(0, out, 2, STAMPED), DirectNode(1, out, 2, STAMPED)
    holder.request(1, 1, 5)
    holder.receive(asking(out, node, 7))
    grant = out.pop()
    assert isinstance(grant, GrantMessage)
    assert node.change_priority(7, 1, 9)
    change = out.pop()
    assert isinstance(change, Request)
    node.receive(grant)
    assert [effect.client for effect in out if isinstance(effect, Enter)] == [1, 7]
    holder.receive(change)
    assert all(want == 0 for _, _, want, *_ in holder.queue)
    assert not node.change_priority(7, 1, 1)


def test_a_change_that_overtakes_its_request_counts() -> None:
    out: list[Effect] = []
    holder, node = busy_holder(out), DirectNode(1, out, 1, STAMPED)
    first = asking(out, node, 7)
    node.change_priority(7, 1, 9)
    change = out.pop()
    assert isinstance(change, Request)
    for message in (change, first):
        holder.receive(message)
    assert [(number, priority) for _, number, _, priority, *_ in holder.queue if priority] == [
        (change.number, 9)
    ]
