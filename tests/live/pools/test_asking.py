"""What people ask of a lock: which permits, now or not at all, why not yet, who has it."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from test_leases import LEASE, NAMES, described, holder, holds_token, run, three

from meshlock import Grant, Node, NotInTime, Pool, Refused
from meshlock.live.machine import clock
from meshlock.live.pools import views
from meshlock.live.pools.grants import Acquire
from meshlock.live.pools.status import GrantView
from meshlock.live.pools.views import picture
from waiting import LIMIT, a_while, eventually

GPUS = ["gpu0", "gpu1", "gpu2"]


def gpus(node: Node) -> Pool:
    return node.pool("gpus", GPUS, members=NAMES, lease=LEASE)


async def ready(nodes: list[Node]) -> tuple[Node, list[Node]]:
    """Who has the token of docks, and the others."""
    await eventually(lambda: holds_token(nodes))
    found = holder(nodes)
    await eventually(lambda: all(described(node)["epoch"] for node in nodes))
    return found, [node for node in nodes if node is not found]


# -- which permits ----------------------------------------------------------------------------


def test_no_two_grants_have_a_permit_in_common() -> None:
    async def story() -> None:
        async with three() as nodes:
            pools = [gpus(node) for node in nodes]
            held: list[Grant] = [await pool.acquire(timeout=LIMIT) for pool in pools]
            assert sorted(name for grant in held for name in grant.slots) == GPUS
            held[1].release()
            [freed] = held[1].slots
            async with pools[2].acquire(timeout=LIMIT) as again:
                assert again.slots == (freed,)

    run(story)


def test_they_survive_the_death_of_the_holder() -> None:
    async def story() -> None:
        async with three() as nodes:
            pools = [gpus(node) for node in nodes]
            await pools[2].acquire(timeout=LIMIT)
            kept = await pools[0].acquire(timeout=LIMIT)
            assert gpus(nodes[2])._source.describe()["token_here"]
            await nodes[2]._local.vanish()
            async with pools[1].acquire(2, timeout=LIMIT) as rest:
                assert kept.held and sorted([*kept.slots, *rest.slots]) == GPUS

    run(story)


def test_what_lapses_keeps_its_permits_until_its_lease_is_over() -> None:
    async def story() -> None:
        async with three() as nodes:
            pools = [gpus(node) for node in nodes]
            kept = await pools[0].acquire(timeout=LIMIT)  # and the token stays with it
            lapses = await pools[2].acquire(timeout=LIMIT)
            until = clock.seconds() + LEASE
            await nodes[2]._local.vanish()
            async with pools[1].acquire(timeout=LIMIT) as third:
                if clock.seconds() < until:
                    assert sorted([*lapses.slots, *kept.slots, *third.slots]) == GPUS
                async with pools[0].acquire(timeout=LIMIT) as fourth:
                    assert clock.seconds() > until - 0.1 and fourth.slots == lapses.slots

    run(story)


def test_permits_without_names_have_none_and_names_need_leases() -> None:
    async def story() -> None:
        async with Node("a") as a:
            async with a.pool("docks", permits=2).acquire() as grant:
                assert grant.slots == ()
            with pytest.raises(Refused, match="Named permits need leases"):
                a.pool("gpus", GPUS, recovery="none")
            with pytest.raises(Refused, match="names 'gpu0' twice"):
                a.pool("gpus", ["gpu0", "gpu0"])
            with pytest.raises(Refused, match="not a valid name for a permit"):
                a.pool("gpus", ["gpu 0"])

    run(story)


# -- now or not at all ------------------------------------------------------------------------


def test_a_try_asks_the_holder_wherever_it_is() -> None:
    async def story() -> None:
        async with three(permits=3) as nodes:
            _, others = await ready(nodes)
            docks = others[0].pool("docks")
            grant = await docks.try_acquire(2)
            assert grant is not None and grant.want == 2
            assert await others[1].pool("docks").try_acquire(2) is None
            with pytest.raises(NotInTime, match="No permits of docks at once: 1 free, 2 wanted"):
                await others[1].pool("docks").acquire(2, timeout=0)
            assert not others[1].pool("docks")._source.adapter.clients  # it left nothing behind
            grant.release()
            async with others[1].pool("docks").acquire(3, timeout=0):
                pass

    run(story)


@pytest.mark.parametrize("algorithm", ["direct", "raymond", "naimi-trehel", "reverse-link"])
def test_whatever_the_algorithm_inside(algorithm: str) -> None:
    async def story() -> None:
        async with three(algorithm=algorithm) as nodes:
            _, others = await ready(nodes)
            grant = await others[0].pool("docks").try_acquire()
            assert grant is not None
            assert await others[1].pool("docks").try_acquire() is None
            grant.release()
            await eventually(lambda: holds_token(nodes))
            assert await others[1].pool("docks").try_acquire() is not None

    run(story)


def test_a_try_passes_nobody_who_waits_for_more() -> None:
    async def story() -> None:
        async with three(permits=3) as nodes:
            found, others = await ready(nodes)
            grant = await found.pool("docks").acquire(2)
            waiting = asyncio.ensure_future(others[0].pool("docks").acquire(3, timeout=LIMIT))
            cores = [node.pool("docks")._source.adapter.before() for node in nodes]
            await eventually(lambda: any(c.tokens() and c.known_priority() == 0 for c in cores))
            with pytest.raises(NotInTime, match="1 free, 1 wanted, and other requests are ahead"):
                await others[1].pool("docks").acquire(timeout=0)
            grant.release()
            (await waiting).release()

    run(story)


def test_a_try_says_that_there_is_no_quorum_or_no_such_pool() -> None:
    async def story() -> None:
        async with three() as nodes:
            found, others = await ready(nodes)
            with pytest.raises(Refused, match="No pool 'doks'; known: docks"):
                await found.pool("doks").acquire(timeout=0)
            for node in others:
                await node._local.vanish()
            await eventually(lambda: not described(found)["token_here"])
            with pytest.raises(NotInTime, match="quorum lost: 1 of 3 members reachable"):
                await found.pool("docks").acquire(timeout=0)

    run(story)


def test_without_leases_a_try_follows_the_token_too() -> None:
    async def story() -> None:
        async with Node("a") as a, Node("b", peers=[a.address]) as b:
            here = a.pool("docks", permits=2, recovery="none")
            there = b.pool("docks", recovery="none")
            await there._source.ready.wait()
            await eventually(lambda: "a" in there._source.peers.near)
            grant = await there.try_acquire(2)
            assert grant is not None
            assert await here.try_acquire() is None
            grant.release()
            assert await here.try_acquire() is not None

    run(story)


# -- why not yet, and who has it ----------------------------------------------------------------


def test_a_timeout_says_why() -> None:
    async def story() -> None:
        async with three(permits=3) as nodes:
            found, others = await ready(nodes)
            grant = await found.pool("docks").acquire()
            ahead = asyncio.ensure_future(
                others[0].pool("docks").acquire(3, priority=1, timeout=LIMIT)
            )
            await eventually(lambda: others[0].pool("docks")._source.adapter.clients)
            with pytest.raises(NotInTime, match="2 free, 3 wanted, one request ahead of you"):
                await others[1].pool("docks").acquire(3, timeout=0.1)
            many = [
                asyncio.ensure_future(others[0].pool("docks").acquire(3, priority=1, timeout=LIMIT))
                for _ in range(views.MOST_TOLD + 5)
            ]
            await eventually(
                lambda: len(others[0].pool("docks")._source.adapter.clients) > views.MOST_TOLD + 5
            )
            least = f"wanted, at least {views.MOST_TOLD} requests ahead of you"
            with pytest.raises(NotInTime, match=least):
                await others[1].pool("docks").acquire(3, timeout=0.5)
            for one in many:
                one.cancel()
            with pytest.raises(Refused, match="No pool 'doks'; known: docks"):
                await found.pool("doks").acquire(timeout=LIMIT)
            grant.release()
            (await ahead).release()
            for node in others:
                await node._local.vanish()
            with pytest.raises(NotInTime, match="quorum lost: 1 of 3 members reachable"):
                await found.pool("docks").acquire(timeout=3 * LEASE)

    run(story)


def test_everybody_sees_who_holds_and_who_waits() -> None:
    async def story() -> None:
        async with three() as nodes:
            pools = [gpus(node) for node in nodes]
            one = await pools[0].acquire(2, timeout=LIMIT, label="training")
            waiting = asyncio.ensure_future(
                pools[1].acquire(2, priority=5, timeout=LIMIT, label="inference")
            )
            await a_while(0.2)
            for pool in pools:
                found = await pool.picture()
                [holds], [waits] = found["holding"], found["waiting"]
                assert (holds["node"], holds["label"], holds["want"]) == ("a", "training", 2)
                assert holds["slots"] == list(one.slots) and holds["fence"] == str(one.fence)
                assert (waits["node"], waits["label"], waits["priority"]) == ("b", "inference", 5)
                assert (found["held"], found["free"], found["permits"]) == (2, 1, 3)
            one.release()
            (await waiting).release()

    run(story)


def is_named(pool: Pool, label: str) -> bool:
    """Does the ledger here say so?"""
    assert pool._source.adapter.members is not None
    token = pool._source.adapter.members.node.member.holding.token
    return token is not None and any(one.label.endswith(label) for one in token.ledger)


def test_they_see_whom_another_node_granted_to() -> None:
    """Who has the token learns from the client's node what to say of it, and since when."""

    async def story() -> None:
        async with three() as nodes:
            pools = [gpus(node) for node in nodes]
            one = await pools[0].acquire(timeout=LIMIT, label="at the token")
            others = [
                await pools[place].acquire(timeout=LIMIT, label=f"from afar {place}")
                for place in (1, 2)
            ]
            assert pools[0]._source.describe()["token_here"]
            for place in (1, 2):
                await eventually(lambda place=place: is_named(pools[0], f"from afar {place}"))
            expected = [
                ("a", "at the token", list(one.slots), str(one.fence)),
                *[
                    (NAMES[place], f"from afar {place}", list(grant.slots), str(grant.fence))
                    for place, grant in enumerate(others, 1)
                ],
            ]
            for pool in pools:
                found = await pool.picture()
                shown = [
                    (held["node"], held["label"], held["slots"], held["fence"])
                    for held in found["holding"]
                ]
                assert sorted(shown) == expected
                assert (found["held"], found["free"]) == (3, 0)
            for grant in (one, *others):
                grant.release()

    run(story)


def test_no_more_is_ever_shown_as_held_than_there_is() -> None:
    async def story() -> None:
        async with three(permits=3) as nodes:
            _, (near, far) = await ready(nodes)
            out = await near.pool("docks").acquire(3, timeout=LIMIT, label="all of it")
            await near.pool("docks").set_permits(1, timeout=LIMIT)
            await eventually(lambda: far.pool("docks").permits == 1)
            for node in nodes:
                found = await node.pool("docks").picture()
                assert (found["permits"], found["held"], found["free"]) == (1, 1, 0)
                assert found["surplus"] == 2
                assert [one["label"] for one in found["holding"]] == ["all of it"]
            out.release(2)
            while (await far.pool("docks").picture())["surplus"]:
                await a_while(0.02)
            assert (await far.pool("docks").picture())["held"] == 1

    run(story)


def test_where_the_holder_does_not_answer_nothing_is_said_to_be_held() -> None:
    async def story() -> None:
        async with three() as nodes:
            found, others = await ready(nodes)
            others.remove(gone := others[0])
            await gone.pool("docks").acquire(timeout=LIMIT)
            await gone._local.vanish()
            await found._local.vanish()
            seen = await others[0].pool("docks").picture()
            while seen["held"] is not None or not seen["why"].startswith("quorum lost"):
                await a_while(0.02)
                seen = await others[0].pool("docks").picture()
            assert seen["why"].startswith("quorum lost: 1 of 3 members reachable")
            # and, once a node has noticed, why it cannot be linked
            assert (seen["free"], seen["holding"]) == (None, [])

    run(story)


def grant(node: str, want: int, fence: str | None = None, **more: Any) -> GrantView:
    plain = {"label": "", "slots": [], "seconds": 0.0, "lapsing": False, "client": 0}
    return GrantView(**plain | {"node": node, "want": want, "fence": fence} | more)  # type: ignore


def test_what_nodes_told_at_different_moments_is_never_too_much() -> None:
    def told(name: str, seconds: float) -> views.View:
        held = grant(name, 2, seconds=seconds)
        return views.View(True, permits=3, token_here=True, free_here=1, holding=[held])

    found = picture({"a": told("a", 9.0), "b": told("b", 1.0)})
    assert (found["held"], found["free"], found["permits"]) == (2, 1, 3)
    assert [one["node"] for one in found["holding"]] == ["b"]


def test_a_grant_that_its_node_has_not_acknowledged_yet_has_the_label_that_its_node_tells() -> None:
    entries = [grant("b", 1, "7"), grant("b", 1, "8", client=4, label="known")]
    ledger = views.LedgerView((1, 1), 1, 2, entries)
    at_the_token = views.View(True, members=3, token_here=True, ledger=ledger)
    held = [grant("b", 1, fence, label=f"of b {fence}", client=3) for fence in ("6", "7", "8")]
    at_b = views.View(True, members=3, holding=held)
    found = picture({"a": at_the_token, "b": at_b})
    assert [one["label"] for one in found["holding"]] == ["of b 7", "known"]
    assert [one["label"] for one in picture({"a": at_the_token})["holding"]] == ["", "known"]


def test_what_is_too_long_to_tell_is_counted() -> None:
    slots = ["x" * 60] * 300
    held = grant("a", 300, slots=slots)
    ledger = views.LedgerView((1, 1), 0, 300, [grant("a", 300, "1", slots=slots, label="training")])
    view = views.View(True, members=3, holding=[held], waits=7, ledger=ledger)
    data = views.packed(view)
    assert len(data) < views.MOST_BYTES
    found = picture({"a": msgspec.msgpack.decode(data, type=views.View)})
    assert (found["permits"], found["held"], found["queued"]) == (300, 300, 7)


def test_what_lapses_is_shown_with_its_label() -> None:
    async def story() -> None:
        async with three() as nodes:
            pools = [gpus(node) for node in nodes]
            async with pools[0].acquire(timeout=LIMIT):  # so the token stays at a living node
                await pools[2].acquire(timeout=LIMIT, label="gone")
            await eventually(lambda: is_named(pools[0], "gone"))
            await nodes[2]._local.vanish()
            seen: list[dict[str, object]] = []
            while not any(one["lapsing"] for one in seen):
                seen = (await pools[0].picture())["holding"]
                await a_while(0.02)
            assert [one["label"] for one in seen] == ["gone"]

    run(story)


def test_a_request_is_known_by_its_process_unless_it_says_otherwise() -> None:
    async def story() -> None:
        async with Node("a") as a:
            docks = a.pool("docks", permits=2)
            async with docks.acquire(), docks.acquire(label="x\ny" * 100):
                labels = [one["label"] for one in docks._source.describe()["holding"]]
                assert "@" in labels[0] and labels[0].endswith("]")
                assert labels[1].startswith("x?yx") and len(labels[1]) < 100
            with pytest.raises(Refused, match="label must be a text"):
                await docks.acquire(label=3)  # type: ignore[arg-type]

    run(story)


# -- change while waiting and while holding -----------------------------------------------------


@pytest.mark.parametrize("recovery", [None, "none"])
def test_some_permits_go_back_and_the_rest_stays(recovery: str | None) -> None:
    async def story() -> None:
        async with Node("a") as a, Node("b", peers=[a.address]) as b:
            here = a.pool("docks", permits=3, recovery=recovery)
            there = b.pool("docks", recovery=recovery)
            grant = await there.acquire(3, timeout=LIMIT)
            grant.release(1)
            async with here.acquire(timeout=LIMIT):
                assert grant.held and grant.want == 2
                assert await here.try_acquire() is None
            grant.release(1)
            with pytest.raises(Refused, match="Cannot release 2 permits: this grant has 1"):
                grant.release(2)
            grant.release(1)
            assert not grant.held
            async with here.acquire(3, timeout=LIMIT):
                pass

    run(story)


def test_the_last_slots_go_back_even_over_an_epoch() -> None:
    async def story() -> None:
        async with three() as nodes:
            pools = [gpus(node) for node in nodes]
            grant = await pools[0].acquire(3, timeout=LIMIT)
            grant.release(1)
            assert grant.slots == ("gpu0", "gpu1")
            async with pools[1].acquire(timeout=LIMIT) as other:
                assert other.slots == ("gpu2",)
                await nodes[2]._local.vanish()
                await nodes[1]._local.vanish()
                assert grant.held

    run(story)


def test_so_do_those_of_a_grant_that_another_node_made() -> None:
    async def story() -> None:
        async with three() as nodes:
            pools = [gpus(node) for node in nodes]
            async with pools[1].acquire(timeout=LIMIT) as first:
                grant = await pools[0].acquire(2, timeout=LIMIT)
                assert pools[1]._source.describe()["token_here"]
                assert (first.slots, grant.slots) == (("gpu0",), ("gpu1", "gpu2"))
                grant.release(1)
                assert grant.slots == ("gpu1",)
                async with pools[2].acquire(timeout=LIMIT) as other:
                    assert other.slots == ("gpu2",)
            await nodes[1]._local.vanish()  # with the token
            async with pools[2].acquire(2, timeout=LIMIT) as rest:
                assert grant.held and rest.slots == ("gpu0", "gpu2")
            grant.release()
            async with pools[2].acquire(3, timeout=LIMIT) as rest:
                assert list(rest.slots) == GPUS

    run(story)


def test_priorities_change_while_one_waits() -> None:
    async def story() -> None:
        async with three() as nodes:
            found, others = await ready(nodes)
            order: list[str] = []

            async def use(request: Acquire, name: str) -> None:
                async with request:
                    order.append(name)

            holds = await found.pool("docks").acquire()
            first = others[0].pool("docks").acquire(priority=5)
            second = others[1].pool("docks").acquire(priority=1)
            tasks = [asyncio.create_task(use(first, "first"))]
            tasks.append(asyncio.create_task(use(second, "second")))
            await a_while(0.1)
            second.priority = 9
            assert second.priority == 9
            await a_while(0.1)
            holds.release()
            await asyncio.gather(*tasks)
            assert order == ["second", "first"]
            second.priority = 3  # of no more use, and no harm
            with pytest.raises(Refused, match="priority"):
                second.priority = 2**40

    run(story)


def test_the_earliest_deadline_goes_first() -> None:
    async def story() -> None:
        async with three() as nodes:
            found, others = await ready(nodes)
            order: list[float] = []

            async def use(pool: Pool, deadline: float) -> None:
                async with pool.acquire(deadline=deadline):
                    order.append(deadline)

            holds = await found.pool("docks").acquire()
            pools = [node.pool("docks") for node in (*others, found)]
            tasks = [
                asyncio.create_task(use(pools[i % 3], deadline))
                for i, deadline in enumerate([9.0, 3.0, 30.0, 1.0, 20.0])
            ]
            await a_while(0.1)
            holds.release()
            await asyncio.gather(*tasks)
            assert order == sorted(order)
            with pytest.raises(
                Refused, match=r"deadline -1\.0 is out of range: use 0 to 31,536,000 s"
            ):
                pools[0].acquire(deadline=-1.0)

    run(story)


# -- who came first ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("permits", "heard", "first"), [(2, True, "others"), (2, False, "client"), (1, True, "client")]
)
def test_where_the_token_rests_what_others_said_is_read_first(
    permits: int, heard: bool, first: str
) -> None:
    """Else a client that asks without end would be served before requests that are there."""

    async def story() -> None:
        async with Node("a") as node:
            pool = node.pool("pens", permits)
            await eventually(pool._source.ready.is_set)
            async with pool.acquire(timeout=LIMIT):
                pass
            order: list[str] = []
            pool._source.adapter.heard = heard
            node._local.mesh.loop.call_soon(order.append, "others")
            async with pool.acquire():
                order.append("client")
            assert order[0] == first and not (pool._source.adapter.heard and permits > 1)

    run(story)
