"""Prove the recovery layer: `make prove`, or

    python proofs/prove.py                  # everything, on all cores
    python proofs/prove.py --only safety    # the obligations of one invariant, lemma or step
    python proofs/prove.py --quick          # without the small worlds

Exit 0 if all is proved, every step can happen, and every part of a rule that is undone is missed,
or is listed in NOT_NEEDED.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import product

import invariants  # noqa: F401  # declares them
import z3
from recovery import SIGNATURE, system
from small import RUNS, can_happen, missed, small_world
from system import SCOPE, State, constants

THEOREMS = {
    "safety": "Never two holders of one permit under leases that run.",
    "fences_grow": "The fence of a grant is above those of all grants before it.",
    "usable_tokens_are_the_latest": "While a token can be used, no higher epoch has one.",
    "usable_tokens_name_all": "The ledger of a token that can be used names every valid grant.",
    "ledger": "Every later ledger names the grants that it did not make itself.",
}

NOT_NEEDED = {
    ("answer", "not-quiet"): "promises are on disk; the quiet period is for reports",
    ("vote", "reported"): "what was not reported is not counted",
    ("confirm", "closed"): "members answer for closed epochs only",
    ("confirm", "runs"): "no quorum answers for an epoch that is over",
    ("mint", "closed"): "only closed proposals are confirmed",
    ("renew_token", "runs"): "no quorum answers for an epoch that is over",
    ("borrow", "runs"): "a grant whose lease is over is not valid",
    ("lapse", "there"): "a ledger without its token grants nothing",
}
"""Parts of rules that safety does not need, and why."""

Asked = tuple[str, str, str]
"""What kind of question, and about what."""


def questions() -> list[Asked]:
    asked = [("begins", name, "") for name in system.invariants]
    asked += [("lemma", name, "") for name in system.lemmas]
    for step, facts in system.facts.items():
        asked += [("fact", step, fact.name) for fact in facts]
    return asked + [("keeps", step, name) for step in system.steps for name in system.invariants]


def guards() -> list[Asked]:
    with small_world():
        return [
            ("undone", step.name, part)
            for step in system.steps.values()
            for part, _ in step.guard(State(SIGNATURE, ""), *constants(step.name, step.sorts))
        ]


def answer(asked: Asked) -> tuple[Asked, str, float]:
    begin = time.process_time()
    kind, one, other = asked
    if kind == "begins":
        told = str(system.begins_well(system.invariants[one]))
    elif kind == "lemma":
        told = str(system.follows(system.lemmas[one]))
    elif kind == "fact":
        fact = next(f for f in system.facts[one] if f.name == other)
        told = str(system.is_fact(system.steps[one], fact))
    elif kind == "keeps":
        told = str(system.keeps(system.steps[one], system.invariants[other]))
    elif kind == "undone":
        found = missed(system.steps[one], other)
        told = ", ".join(found.broken) if found else "-"
    else:
        told = "can happen" if can_happen(RUNS[one]) is not None else "CANNOT HAPPEN"
    return asked, told, time.process_time() - begin


def story(step: str, part: str = "") -> Iterator[str]:
    """Before, step, after: in a small world, where the proof fails."""
    found = missed(system.steps[step], part)
    if found is None:
        yield "No small world shows it: it may be true, and need another invariant or lemma."
        return
    yield f"In a world of three nodes this breaks {', '.join(found.broken)}:"
    yield from described(found.model, "", "before")
    words = [str(found.model.eval(one, True)) for one in constants(step, system.steps[step].sorts)]
    yield f"  step    {step}({', '.join(words)})"
    yield from described(found.model, "'", "after", "")


def described(model: z3.ModelRef, tag: str, title: str, but: str | None = None) -> Iterator[str]:
    """What is true or a number in that state; ``but``: only what is otherwise in that one."""
    with small_world():
        state, other = State(SIGNATURE, tag), State(SIGNATURE, but or "")
        for name, (*domain, _) in SIGNATURE.items():
            for here in product(*[SCOPE[sort] for sort in domain]):
                value = model.eval(getattr(state, name)(*here), True)
                if but is None:
                    shown = not z3.is_false(value)
                else:
                    shown = not z3.eq(value, model.eval(getattr(other, name)(*here), True))
                if shown:
                    yield f"  {title:<7} {name}({', '.join(map(str, here))}) = {value}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", help="the name of an invariant, a lemma or a step")
    parser.add_argument("--quick", action="store_true", help="without the small worlds")
    given = parser.parse_args()
    begin = time.monotonic()
    small = [] if given.quick else [*guards(), *[("run", name, "") for name in RUNS]]
    asked = [one for one in [*questions(), *small] if given.only in (None, one[1], one[2])]
    told: dict[Asked, str] = {}
    spent = 0.0
    with ProcessPoolExecutor() as workers:
        for done, (one, word, seconds) in enumerate(workers.map(answer, asked), start=1):
            told[one] = word
            spent += seconds
            if sys.stderr.isatty():
                print(f"\r{done} of {len(asked)}", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    failed = [one for one, word in told.items() if one[0] in KINDS and word != "unsat"]
    for name, sentence in THEOREMS.items():
        print(f"{name:<30}{sentence}")
    obligations = [one for one in told if one[0] in KINDS]
    print(
        f"\n{len(obligations) - len(failed)} of {len(obligations)} obligations proved, of "
        f"{len(system.invariants)} invariants, {len(system.lemmas)} lemmas and "
        f"{len(system.steps)} steps, in {time.monotonic() - begin:.0f} s ({spent:.0f} s of CPU)"
    )
    for one in failed:
        print(f"\nnot proved: {' '.join(one)} ({told[one]})")
        if one[0] == "keeps":
            print("\n".join(story(one[1])))
    undone = {one[1:]: word for one, word in told.items() if one[0] == "undone"}
    teeth = [one for one, word in undone.items() if word != "-"]
    if undone:
        print(f"\n{len(teeth)} of {len(undone)} parts of rules are missed when they are undone:\n")
    for (step, part), word in undone.items():
        why = NOT_NEEDED.get((step, part), "NOT MISSED")
        print(f"{step:<13}{part:<18}{word if word != '-' else f'not needed: {why}'}")
    stuck = [one[1] for one, word in told.items() if one[0] == "run" and word != "can happen"]
    runs = [one for one in told if one[0] == "run"]
    if runs:
        print(f"\n{len(runs) - len(stuck)} of {len(runs)} runs can happen from the beginning")
    wrong = {one for one, word in undone.items() if (word == "-") != (one in NOT_NEEDED)}
    for one in sorted(wrong):
        print(f"{' '.join(one)}: NOT_NEEDED is not true of it")
    return 1 if failed or stuck or wrong else 0


KINDS = ("begins", "lemma", "fact", "keeps")

if __name__ == "__main__":
    sys.exit(main())
