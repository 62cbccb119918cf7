"""Disks that hang, and nodes that stop for good: what leaves, what is remembered, what goes on."""

from __future__ import annotations

import pytest
from checks import ask

from meshlock.algorithms.recovery.records import Epoch
from meshlock.check.arguments import judged
from meshlock.check.crashing_nodes import Crashing
from meshlock.check.serving import ticks_to_serve
from meshlock.check.world import World

FIRST, SECOND = Epoch(1, 0, 1), Epoch(2, 0, 1)


def model(**words: object) -> Crashing:
    faults = {"members": "all", "proposals": 1, "crashes": 1, **words}
    return Crashing(ask("direct", "complete", 3, requests=["2"], **faults), judged([]))


def after(model: Crashing, *steps: str) -> World:
    world = model.beginning()
    for step in steps:
        world = model.lead(world, step)
    return world


def possible(model: Crashing, world: World) -> list[str]:
    return [model.step_name(*step) for step in model.steps(world)]


def on_disk(model: Crashing, world: World, node: int) -> Epoch:
    disk = model.at(world, node).disk
    assert disk is not None
    return disk[0]


def test_a_promise_leaves_when_it_is_on_disk() -> None:
    hanging = model(slow_disks=1)
    world = after(hanging, "hang 1", "propose 0", "deliver PROPOSE 0>1")
    assert hanging.at(world, 1).promised == SECOND
    assert on_disk(hanging, world, 1) == FIRST
    assert "deliver PROMISE 1>0" not in possible(hanging, world)
    written = hanging.lead(world, "write 1")
    assert on_disk(hanging, written, 1) == SECOND
    assert "deliver PROMISE 1>0" in possible(hanging, written)


def test_who_crashes_before_has_promised_nothing() -> None:
    hanging = model(slow_disks=1)
    world = after(hanging, "hang 1", "propose 0", "deliver PROPOSE 0>1", "crash 1")
    assert "deliver PROMISE 1>0" not in possible(hanging, world)
    world = hanging.lead(world, "restart 1")
    assert hanging.at(world, 1).promised == FIRST
    assert world.rest.hanging == ()


def test_a_proposal_does_not_wait_but_its_ledger_does() -> None:
    hanging = model(slow_disks=1)
    world = after(hanging, "hang 0", "propose 0", "deliver PROPOSE 0>1", "deliver PROMISE 1>0")
    world = hanging.lead(world, "close 0")
    assert "deliver LEDGER 0>1" not in possible(hanging, world)
    world = hanging.lead(world, "write 0")  # the promise
    assert on_disk(hanging, world, 0) == SECOND
    assert "deliver LEDGER 0>1" not in possible(hanging, world)  # it stands behind the next one
    world = hanging.lead(world, "write 0")
    assert "deliver LEDGER 0>1" in possible(hanging, world)


@pytest.mark.parametrize("ticks", [1, 2])
def test_an_answer_that_waits_for_the_disk_is_worth_nothing_after_a_lease(ticks: int) -> None:
    hanging = model(slow_disks=1)
    world = after(hanging, "propose 0", "deliver PROPOSE 0>1", "deliver PROMISE 1>0", "close 0")
    for step in ("hang 1", "deliver LEDGER 0>1", *["tick"] * ticks, "write 1"):
        world = hanging.lead(world, step)
    assert ("deliver CONFIRM 1>0" in possible(hanging, world)) == (ticks < 2)


@pytest.mark.parametrize("kind", ["crash", "die"])
def test_who_is_dead_never_restarts(kind: str) -> None:
    mortal = model(stay_dead=1)
    world = after(mortal, "propose 0", f"{kind} 1")
    assert ("restart 1" in possible(mortal, world)) == (kind == "crash")
    world = mortal.lead(world, "deliver PROPOSE 0>2")
    world = mortal.lead(world, "deliver PROMISE 2>0")
    world = mortal.lead(world, "close 0")
    assert not [step for step in possible(mortal, world) if step.endswith(">1")]
    assert ticks_to_serve(mortal, world) >= 0


def test_nothing_is_promised_where_too_many_are_dead() -> None:
    mortal = model(stay_dead=2)
    assert ticks_to_serve(mortal, after(mortal, "die 0", "die 1")) == 0
