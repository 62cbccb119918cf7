"""All mutants, and how to find one by its name."""

from __future__ import annotations

import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from meshlock.algorithms.mutants.mutant import Mutant
from meshlock.errors import Refused

PREFIX = "jiang/without-"


def read(path: Path) -> list[Mutant]:
    """Those of a file. One patch may have several ``cases``, each with a name of its own."""
    entries: list[dict[str, Any]] = tomllib.loads(path.read_text(encoding="utf-8"))["mutants"]
    found: list[Mutant] = []
    for entry in entries:
        for one in entry.pop("cases", [{}]):
            given = {**entry, **one}
            case = dict(given.pop("case"))
            if "requests" in case:
                case["requests"] = case["requests"].split()
            if "lead" in given:
                case["lead"] = given.pop("lead").split(", ")
            found.append(Mutant(case=case, **given))
    families = [mutant.family for mutant in found]
    return sorted(found, key=lambda mutant: families.index(mutant.family))


FILES = sorted(Path(__file__).parent.glob("*.toml"))

MUTANTS: dict[str, Mutant] = {mutant.name: mutant for file in FILES for mutant in read(file)}

REPAIRS: dict[str, Mutant] = {
    name.removeprefix(PREFIX): mutant for name, mutant in MUTANTS.items() if name.startswith(PREFIX)
}
"""Of jiang, R1 and so on: what undoes each."""


def mutant(name: str) -> Mutant:
    """The mutant of this name; ``jiang/without-R4+R10`` undoes several repairs at once."""
    if name in MUTANTS:
        return MUTANTS[name]
    if name.startswith(PREFIX):
        return without(name.removeprefix(PREFIX).split("+"))
    close = get_close_matches(name, MUTANTS, n=1)
    hint = f"did you mean '{close[0]}'?" if close else "meshlock mutants lists them all."
    raise Refused(f"There is no mutant '{name}': {hint}")


def without(rules: list[str]) -> Mutant:
    """Several repairs undone at once, in the set-up of the first of them."""
    known = list(REPAIRS)
    for rule in rules:
        if rule not in REPAIRS:
            raise Refused(
                f"There is no repair '{rule}' of jiang to be undone: choose among "
                f"{known[0]} to {known[-1]}."
            )
    chosen = [rule for rule in known if rule in rules]
    undone = [REPAIRS[rule] for rule in chosen]
    if len(undone) == 1:
        return undone[0]
    return Mutant(
        PREFIX + "+".join(chosen),
        "; ".join([one.mistake for one in undone]),
        "".join([one.patch for one in undone]),
        undone[0].case,
    )
