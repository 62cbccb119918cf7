"""A transition system in first-order logic: state, steps, invariants, and what z3 is asked of them.

A state is a set of functions. A step says what it needs (its guard) and what becomes of the
functions that it changes; all others stay. An invariant is a sentence about one state. Proved is,
for every number of nodes, permits and epochs and for every quorum system: the invariants hold in
the beginning, and every step from a state in which all of them hold leads to one in which all hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import z3

Node = z3.DeclareSort("Node")
Permit = z3.DeclareSort("Permit")
Quorum = z3.DeclareSort("Quorum")
Epoch, Time, Truth = z3.IntSort(), z3.RealSort(), z3.BoolSort()


class State:
    """The functions of a model at one moment, as attributes. ``tag`` tells two moments apart."""

    def __init__(self, signature: dict[str, tuple[Any, ...]], tag: str) -> None:
        self.signature = signature
        for name, sorts in signature.items():
            setattr(self, name, z3.Function(f"{name}{tag}", *sorts))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


@dataclass
class Step:
    """One kind of transition. ``rule`` is its number in docs/how-it-works/recovery.md."""

    name: str
    rule: str
    sentence: str
    sorts: tuple[Any, ...]
    guard: Callable[..., list[Any]]
    """Of the state before and the arguments. Each part has a name, so that it can be undone."""
    effect: Callable[..., dict[str, Callable[..., Any]]]
    """Of the same: what the functions that change are afterwards."""


@dataclass
class Invariant:
    name: str
    sentence: str
    holds: Callable[[State], Any]


@dataclass
class Lemma:
    """What follows from the invariants. ``pairs``: quorums of which a common node is named."""

    name: str
    sentence: str
    sorts: tuple[Any, ...]
    body: Callable[..., Any]
    pairs: Callable[..., list[tuple[Any, Any]]]
    by: tuple[str, ...] = ()
    """Invariants and lemmas that it follows from; none: from all."""

    def holds(self, s: State) -> Any:
        return every(*self.sorts)(lambda *a: self.body(s, *a))


@dataclass
class System:
    signature: dict[str, tuple[Any, ...]]
    axioms: list[Any]
    meet: Callable[[Any, Any], Any]
    """Two quorums have a node in common: the axiom for these two."""
    begins: Callable[[State], Any]
    steps: dict[str, Step] = field(default_factory=dict)
    invariants: dict[str, Invariant] = field(default_factory=dict)
    lemmas: dict[str, Lemma] = field(default_factory=dict)
    facts: dict[str, list[Lemma]] = field(default_factory=dict)
    """What follows from the invariants and the guard of a step."""

    def step(self, rule: str, *sorts: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Of a function that gives guard and effect. Its docstring is the sentence."""

        def declare(make: Callable[..., Any]) -> Callable[..., Any]:
            name = make.__name__
            self.steps[name] = Step(
                name,
                rule,
                (make.__doc__ or "").strip(),
                sorts,
                lambda s, *a: make(s, *a)[0],
                lambda s, *a: make(s, *a)[1],
            )
            return make

        return declare

    def invariant(self, make: Callable[[State], Any]) -> Callable[[State], Any]:
        name = make.__name__
        self.invariants[name] = Invariant(name, (make.__doc__ or "").strip(), make)
        return make

    def lemma(
        self, pairs: Callable[..., Any], *sorts: Any, by: tuple[str, ...] = ()
    ) -> Callable[..., Any]:
        def declare(body: Callable[..., Any]) -> Callable[..., Any]:
            name = body.__name__
            self.lemmas[name] = Lemma(name, (body.__doc__ or "").strip(), sorts, body, pairs, by)
            return body

        return declare

    def fact(
        self, step: str, pairs: Callable[..., Any], *sorts: Any, by: tuple[str, ...] = ()
    ) -> Callable[..., Any]:
        def declare(body: Callable[..., Any]) -> Callable[..., Any]:
            made = Lemma(body.__name__, (body.__doc__ or "").strip(), sorts, body, pairs, by)
            self.facts.setdefault(step, []).append(made)
            return body

        return declare

    def assumed(self, s: State, before: str = "", by: tuple[str, ...] = ()) -> list[Any]:
        """Axioms, invariants and lemmas; of these only those before the one that is named."""
        names = list(self.lemmas)
        lemmas = names[: names.index(before)] if before else names
        known = {**self.invariants, **{name: self.lemmas[name] for name in lemmas}}
        return [*self.axioms, *(known[name].holds(s) for name in by or known)]

    def follows(self, lemma: Lemma, timeout: int = 60_000) -> z3.CheckSatResult:
        s = State(self.signature, "")
        arguments = constants("a", lemma.sorts)
        named = [self.meet(*pair) for pair in lemma.pairs(s, *arguments)]
        goal = z3.Not(lemma.body(s, *arguments))
        return ask([*self.assumed(s, lemma.name, lemma.by), *named, goal], timeout)

    def is_fact(self, step: Step, fact: Lemma, timeout: int = 60_000) -> z3.CheckSatResult:
        s = State(self.signature, "")
        given, arguments = constants(step.name, step.sorts), constants("a", fact.sorts)
        named = [self.meet(*pair) for pair in fact.pairs(s, given, *arguments)]
        guard = [part for _, part in step.guard(s, *given)]
        goal = z3.Not(fact.body(s, given, *arguments))
        return ask([*self.assumed(s, by=fact.by), *guard, *named, goal], timeout)

    # -- what is asked ---------------------------------------------------------------------

    def begins_well(self, invariant: Invariant) -> z3.CheckSatResult:
        s = State(self.signature, "")
        return ask([*self.axioms, self.begins(s), z3.Not(invariant.holds(s))])

    def keeps(
        self, step: Step, invariant: Invariant, undone: str = "", timeout: int = 60_000
    ) -> z3.CheckSatResult:
        """Unsat: the step keeps the invariant. ``undone``: the part of its guard left out."""
        before, after = State(self.signature, ""), State(self.signature, "'")
        given = constants(step.name, step.sorts)
        assumed = self.assumed(before)
        if not undone:
            facts = self.facts.get(step.name, [])
            assumed += [every(*f.sorts)(lambda *a, f=f: f.body(before, given, *a)) for f in facts]
        assumed += transition(self.signature, step, before, after, undone)
        return ask([*assumed, z3.Not(invariant.holds(after))], timeout)


def transition(
    signature: dict[str, tuple[Any, ...]], step: Step, before: State, after: State, undone: str = ""
) -> list[Any]:
    arguments = constants(step.name, step.sorts)
    guard = [part for name, part in step.guard(before, *arguments) if name != undone]
    return [*guard, *frame(signature, step.effect(before, *arguments), before, after)]


def constants(name: str, sorts: tuple[Any, ...]) -> list[Any]:
    return [z3.Const(f"{name}_{i}", sort) for i, sort in enumerate(sorts)]


def frame(
    signature: dict[str, tuple[Any, ...]],
    effect: dict[str, Callable[..., Any]],
    before: State,
    after: State,
) -> Iterator[Any]:
    for name, (*domain, _) in signature.items():

        def equal(*here: Any, name: str = name) -> Any:
            then = effect[name](*here) if name in effect else getattr(before, name)(*here)
            return getattr(after, name)(*here) == then

        yield every(*domain)(equal) if domain else equal()


def ask(sentences: list[Any], timeout: int = 60_000) -> z3.CheckSatResult:
    solver = z3.Solver()
    solver.set("timeout", timeout)
    solver.add(*sentences)
    return solver.check()


SCOPE: dict[Any, list[Any]] = {}
"""Of a small world: all of each sort. Empty: there may be any number."""


def every(*sorts: Any) -> Callable[[Callable[..., Any]], Any]:
    """``every(Node)(lambda n: ...)``"""
    return lambda body: quantified(z3.ForAll, z3.And, sorts, body)


def some(*sorts: Any) -> Callable[[Callable[..., Any]], Any]:
    return lambda body: quantified(z3.Exists, z3.Or, sorts, body)


COUNT = [0]


def quantified(binder: Any, joined: Any, sorts: tuple[Any, ...], body: Callable[..., Any]) -> Any:
    if SCOPE:
        return joined(*[body(*one) for one in product(*[SCOPE[sort] for sort in sorts])])
    COUNT[0] += 1
    names = [z3.Const(f"b{COUNT[0]}_{i}", sort) for i, sort in enumerate(sorts)]
    return binder(names, body(*names))
