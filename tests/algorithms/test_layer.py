"""Recovery around every kind of algorithm, in random worlds where everything fails.

``campaigns/layer_worlds.py`` runs such worlds by the thousand.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from layer_liar import Liar
from layer_machines import SEVERAL, Machines, born
from layer_stories import ALGORITHMS, Story, links
from layer_world import FAST, SLOW, Clock, World, Wrong
from undone import mutant, patched

from meshlock.algorithms import direct
from meshlock.algorithms.actor import NIL
from meshlock.algorithms.recovery.inside import Participants, refuse_unrecoverable
from meshlock.algorithms.recovery.keeper import MOST_TAKEN
from meshlock.algorithms.recovery.messages import Inner
from meshlock.algorithms.recovery.records import Entry, Fence, Participant
from meshlock.algorithms.registry import find, with_defaults
from meshlock.errors import Refused
from whole import WHOLE

SEEDS = 40
OFTEN = ("direct", "jiang")
"""Those that live pools run; around the others the same layer is in fewer worlds."""


def seeds(found: int, most: int) -> Iterator[int]:
    """All below this, but first the one in whose world the mistake was found before."""
    yield found
    yield from (seed for seed in range(most) if seed != found)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_nothing_breaks_and_everybody_is_served_in_the_end(algorithm: str) -> None:
    stories = []
    count = SEEDS if WHOLE or algorithm in OFTEN else SEEDS // 2
    for seed in range(count):
        story = Story(algorithm, seed)
        try:
            story.tell()
        except Wrong as wrong:
            raise Wrong(f"seed {seed}: {wrong}") from wrong
        stories.append(story)
    worlds = [story.world for story in stories]
    # it was not for nothing: there were entries, epochs, leases lost, twins, changes, orders
    assert sum(len(world.entered) for world in worlds) > 4 * count
    assert sum(len(world.epochs) for world in worlds) > 2 * count
    assert sum(world.lost for world in worlds) > 0
    assert sum(world.mirrored for world in worlds) > 50 * count // 4
    assert any(
        node.member.members != world.terms.members for world in worlds for node in world.nodes
    )
    assert any(world.size == len(world.terms.members) == 5 for world in worlds)
    assert any(world.dead for world in worlds)
    assert sum(disk.delayed for world in worlds for disk in world.disks) > count
    assert any(story.crossed for story in stories)
    assert find(algorithm).problem != "h-of-k" or any(world.astray for world in worlds)
    if find(algorithm).serves.priorities:
        assert sum(story.probed for story in stories) > count
        assert sum(story.equals for story in stories) > count // 8
    if algorithm == "direct":  # grants to clients of other nodes, also late ones and twice
        assert sum(world.borrowed for world in worlds) > count
        assert sum(world.overtaken for world in worlds) > 0
        assert sum(world.again for world in worlds) > 0


@pytest.mark.parametrize(("algorithm", "found"), [("jiang", 0), ("naimi-trehel", 35)])
def test_a_mistake_is_found_in_some_world(algorithm: str, found: int) -> None:
    """The judge is awake."""
    undone = mutant("does-not-wait")
    with pytest.raises(Wrong, match=r"permits in use|tokens at|not in the ledger"):
        for seed in seeds(found, 5 * SEEDS):
            Story(algorithm, seed, undone).tell()


def test_a_grant_that_counts_twice_is_found_in_some_world() -> None:
    undone = patched("""
@@ recovery/keeper.py
-        taken.append(number)
""")
    with pytest.raises(Wrong, match=r"fences must grow|not in the ledger|permits in use"):
        for seed in seeds(36, 2 * SEEDS):  # 4 of the first 80 find it
            story = Story("direct", seed, undone)
            story.world.doubles = 0.9
            story.tell()


@pytest.mark.parametrize(("algorithm", "found"), [("direct", 126), ("jiang", 17)])
def test_a_part_that_counts_twice_is_found_in_some_world(algorithm: str, found: int) -> None:
    undone = patched("""
@@ recovery/keeper.py
-        owner, left = token.strike(part)
+        part = part._replace(left=max(0, token.left(fence) - part.permits))
+        owner, left = token.strike(part)
""")
    with pytest.raises(Wrong, match=r"the ledger|permits in use|slots"):
        for seed in seeds(found, 20 * SEEDS):
            Story(algorithm, seed, undone).tell()


def test_names_that_change_their_slots_are_found() -> None:
    """A name must keep its slot: else somebody holds it by its old one, and it is granted anew."""
    undone = patched("""
@@ recovery/proposal.py
-            return renamed(after, change.names, self.terms.names)
+            count = len(change.names)
+            return after._replace(permits=count, slots=tuple(range(count)), names=change.names)
""")
    with pytest.raises(Wrong, match=r"names .* in use|permits, slots"):
        for seed in seeds(29, 5 * SEEDS):
            Story("direct", seed, undone).tell()


def test_an_equal_that_is_passed_is_found_in_some_world() -> None:
    with pytest.raises(Wrong, match="of equals the later was served first"):
        for seed in seeds(600024, 0):
            Story("direct/ranks-by-its-own-count", seed).tell()


def test_a_grant_that_leaves_in_the_last_step_of_an_epoch_has_the_size_of_that_epoch() -> None:
    """The next epoch had fewer permits and was known first: the judge held 3 to be wrong."""
    story = Story("direct", 500049)
    story.tell()
    assert story.world.last_lent > 0


# -- clocks --------------------------------------------------------------------------------------


def cut_off_holder(fast: int) -> None:
    """The clock of the holder is slow, all others are fast."""
    world = World("direct", 3, links("complete", 3))
    world.run(700)
    world.clocks[0] = Clock(SLOW, world.clocks[0].at(world.now), world.now)
    for i in (1, 2):
        world.clocks[i] = Clock(fast, world.clocks[i].at(world.now), world.now)
    world.ask(0)
    world.ask(1)
    world.run(5)
    assert [client.node for client in world.entered] == [0]
    world.set_link(0, 1, False)
    world.set_link(0, 2, False)
    world.run(700)
    assert [client.node for client in world.entered] == [0, 1]


def test_clocks_may_differ_within_the_bound_and_no_more() -> None:
    cut_off_holder(FAST)
    with pytest.raises(Wrong, match=r"2 of 1 permits in use|tokens at"):
        cut_off_holder(3 * FAST)


# -- age -----------------------------------------------------------------------------------------


def grants_until_served(machines: Machines, epoch_after: int) -> int:
    """A client of priority 0 waits at node 1 behind ever new ones of priority 1 elsewhere."""
    machines.ask(0)
    machines.ask(1, client=1)
    for count in range(250):
        if count == epoch_after:
            machines.change_epoch(2)
        holder = machines.granted[-1][0]
        machines.ask(2 if holder == 0 else 0, priority=1)
        machines.leave(holder)
        if machines.clients()[-1] == (1, 1):
            break
    return len(machines.granted)


@pytest.mark.parametrize("inside", SEVERAL)
def test_a_request_keeps_its_age_through_an_epoch(inside: str) -> None:
    rejuvenates = patched("""
@@ recovery/layer.py
         member, before = self.member, self.epoch
+        before.inner = None
+        for client, (want, priority, _, arrival) in list(self.clients.waiting.items()):
+            self.clients.waiting[client] = (want, priority, 0, arrival)
""")
    undisturbed = grants_until_served(born(inside), -1)
    assert 90 < undisturbed < 110
    assert abs(grants_until_served(born(inside), 60) - undisturbed) < 10
    assert grants_until_served(born(inside, make=rejuvenates), 60) > undisturbed + 40


@pytest.mark.parametrize("inside", SEVERAL)
@pytest.mark.parametrize("waiter", (1, 2))
def test_age_does_not_grow_by_itself(inside: str, waiter: int) -> None:
    """A stand-in counts as a grant, so a kept one makes at most one per epoch; nothing doubles."""
    machines = born(inside)
    machines.ask(0)
    machines.ask(waiter, client=1)
    for epoch in range(20):
        machines.change_epoch(1 + epoch % 2)
        assert machines.nodes[waiter].clients.waiting[1][2] <= len(machines.granted) + epoch + 1


def test_clients_of_a_node_keep_their_order_through_an_epoch() -> None:
    machines = born("naimi-trehel")
    machines.ask(0)
    for client in (1, 2, 3):
        machines.ask(1, client=client)
    machines.ask(1, priority=5, client=4)
    machines.change_epoch(2)
    machines.leave(0)
    for client in (4, 1, 2):
        machines.leave(1, client=client)
    assert machines.clients() == [(0, 7), (1, 4), (1, 1), (1, 2), (1, 3)]


# -- lies ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("network", ("fixed", "changing", "open"))
@pytest.mark.parametrize("many_clients", (False, True))
def test_an_algorithm_that_lies_breaks_nothing(many_clients: bool, network: str) -> None:
    """Whether anybody is served is its business; how many at once is the layer's."""
    entries = epochs = borrowed = 0
    for seed in range(SEEDS):
        story = Story(Liar(seed).algorithm(many_clients, network), seed)
        story.world.honest = False
        story.world.twins = 0.0  # it does not even freeze
        story.happen()
        entries += len(story.world.entered)
        epochs += len(story.world.epochs)
        borrowed += story.world.borrowed
    assert entries > SEEDS and epochs > 3 * SEEDS
    assert (borrowed > 0) == (network == "open")


# -- what cannot be inside -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ("lamport", "maekawa", "ricart-agrawala", "lelann"))
def test_an_algorithm_without_a_token_or_rest_is_refused(name: str) -> None:
    with pytest.raises(Refused, match=f"{name} .*: run it without recovery, or use"):
        refuse_unrecoverable(find(name), with_defaults(find(name), {}))


@pytest.mark.parametrize(
    ("name", "options"), [("gateway", {}), ("general-scheme", {"behaviour": "gateway"})]
)
def test_what_goes_by_neighbouring_numbers_is_refused(name: str, options: dict[str, str]) -> None:
    entry = find(name)
    with pytest.raises(Refused, match=r"gateway .*: run it without recovery, or use"):
        refuse_unrecoverable(entry, with_defaults(entry, options))


def test_nodes_inside_know_who_is_linked_to_whom() -> None:
    """By their places; the pinned set-ups of shortcut show what comes of it."""
    line = {5: [7], 7: [5, 9], 9: [7]}
    network = Participants(
        tuple([Participant(node, 1, NIL) for node in (7, 5, 9)]), line.__getitem__
    )
    assert network.linked(0, 1) and network.linked(2, 0)
    assert not network.linked(1, 2)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_others_are_not(name: str) -> None:
    refuse_unrecoverable(find(name), with_defaults(find(name), {}))


def test_each_grant_that_is_lent_is_accepted_once_in_whichever_order() -> None:
    """Also long after it is forgotten which ones there were."""
    node = born("direct", size=2).nodes[1]
    node.member.holding.token = None
    numbers = [one for first in range(1, 1000, 5) for one in reversed(range(first, first + 5))]

    def is_accepted(number: int) -> bool:
        lent = Entry(1, Fence(node.member.adopted, number), 1, False, (), "")
        grant = direct.GrantMessage(1, 1, 1, number, 0)
        inner = Inner(1, node.member.adopted, 0, grant, None, 1000, (), lent)
        return node.epoch.loans.borrow(inner, lent)

    for place, number in enumerate(numbers):
        assert is_accepted(number)
        for again in (number, *numbers[: place + 1 : 7]):
            assert not is_accepted(again)
    assert len(node.epoch.loans.taken) <= 2 * MOST_TAKEN
