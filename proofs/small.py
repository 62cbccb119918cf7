"""Small worlds: three nodes, one permit and epochs up to 3, in which every question has an answer.

Two things are asked here that a proof for every number cannot show: that each step can happen, from
the beginning; and that a rule which is undone is missed, by a state in which all invariants hold
and a step from it after which one does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any

import z3
from recovery import SIGNATURE, both, in_quorum, meet, system
from system import SCOPE, Epoch, Node, Permit, Quorum, State, Step, transition

NODES, PERMITS, QUORUMS = [
    [z3.Const(f"{sort}{i}", sort) for i in range(size)]
    for sort, size in ((Node, 3), (Permit, 1), (Quorum, 3))
]
EPOCHS = [z3.IntVal(e) for e in range(4)]
MAJORITIES = list(combinations(range(3), 2))


@contextmanager
def small_world() -> Iterator[None]:
    SCOPE.update({Node: NODES, Permit: PERMITS, Quorum: QUORUMS, Epoch: EPOCHS})
    try:
        yield
    finally:
        SCOPE.clear()


def world() -> list[Any]:
    """Nodes are different, quorums are the majorities."""
    told = [z3.Distinct(*NODES)]
    for q, majority in zip(QUORUMS, MAJORITIES, strict=True):
        told += [in_quorum(q, n) == (i in majority) for i, n in enumerate(NODES)]
    told += [meet(p, q) for p in QUORUMS for q in QUORUMS]
    told += [among(both(p, q), NODES) for p in QUORUMS for q in QUORUMS]
    return told


def among(value: Any, all_of_them: list[Any]) -> Any:
    return z3.Or(*[value == one for one in all_of_them])


def stays_inside(s: State) -> Iterator[Any]:
    """What a state speaks of is part of the small world."""
    for name, (*domain, result) in SIGNATURE.items():
        if result in (Epoch, Quorum) and name != "now":
            for here in product(*[SCOPE[sort] for sort in domain]):
                yield among(getattr(s, name)(*here), SCOPE[result])


def arguments_inside(step: Step, number: int | str = "") -> Iterator[Any]:
    for i, sort in enumerate(step.sorts):
        if sort in SCOPE:
            yield among(z3.Const(f"{step.name}{number}_{i}", sort), SCOPE[sort])


@dataclass
class Missed:
    """A state in which all invariants hold, and a step from it after which some do not."""

    model: z3.ModelRef
    broken: list[str]


def missed(step: Step, part: str) -> Missed | None:
    """What goes wrong if that part of the guard is undone."""
    with small_world():
        before, after = State(SIGNATURE, ""), State(SIGNATURE, "'")
        solver = z3.Solver()
        solver.set("timeout", 60_000)
        solver.add(*system.axioms, *world(), *stays_inside(before), *stays_inside(after))
        solver.add(*arguments_inside(step))
        solver.add(*(one.holds(before) for one in system.invariants.values()))
        solver.add(*transition(SIGNATURE, step, before, after, part))
        kept = {one.name: one.holds(after) for one in system.invariants.values()}
        solver.add(z3.Not(z3.And(*kept.values())))
        if solver.check() != z3.sat:
            return None
        model = solver.model()
        return Missed(model, [n for n, held in kept.items() if z3.is_false(model.eval(held, True))])


def can_happen(names: list[str]) -> z3.ModelRef | None:
    """These steps one after the other, from the beginning."""
    with small_world():
        states = [State(SIGNATURE, f"@{i}") for i in range(len(names) + 1)]
        solver = z3.Solver()
        solver.set("timeout", 60_000)
        solver.add(*system.axioms, *world(), system.begins(states[0]))
        solver.add(*stays_inside(states[0]))
        for number, name in enumerate(names):
            step = renamed(system.steps[name], number)
            solver.add(*stays_inside(states[number + 1]), *arguments_inside(step))
            solver.add(*transition(SIGNATURE, step, states[number], states[number + 1]))
        return solver.model() if solver.check() == z3.sat else None


def renamed(step: Step, number: int) -> Step:
    return replace(step, name=f"{step.name}{number}")


FIRST = ["promise", "promise", "close", "answer", "answer", "confirm", "time_passes", "answer"]
FIRST += ["answer", "confirm", "time_passes", "answer", "answer", "confirm", "mint", "adopt"]
"""The first epoch: no token is found, so its own is made a lease later."""
NEXT = ["promise", "promise", "close", "answer", "answer", "confirm", "mint", "adopt"]
"""The token is surrendered: the next one is made at once."""
RUNS = {
    "grant": [*FIRST, "grant"],
    "renew_grant": [*FIRST, "grant", "renew_grant"],
    "renew_token": [*FIRST, "renew_token"],
    "borrow": [*FIRST, "lend", "borrow"],
    "decline": [*FIRST, "lend", "decline"],
    "strike": [*FIRST, "grant", "release", "strike"],
    "lose": [*FIRST, "lose"],
    "restart": ["restart"],
    "vote": ["restart", "promise", "time_passes", "vote"],
    "find_late": [*FIRST, "promise", "promise", "close", "promise", "find_late"],
    "retake": [*FIRST, "promise", "retake"],
    "lapse": [*FIRST, "adopt", "grant", *NEXT, "time_passes", "lapse"],
}
"""Each ends with a step that the others do not have."""
