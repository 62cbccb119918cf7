"""All mutants, and how to find one by its name."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from meshlock.algorithms.mutants import direct, jiang, jiang_without
from meshlock.algorithms.mutants.mutant import Case, Mutant
from meshlock.errors import Refused


def read(name: str) -> list[Mutant]:
    """Those of a file; what all ``cases`` of a mistake have in common is said once."""
    path = Path(__file__).with_name(f"{name}.toml")
    entries: list[dict[str, Any]] = tomllib.loads(path.read_text(encoding="utf-8"))["mutants"]
    found: list[Mutant] = []
    for entry in entries:
        for one in entry.pop("cases", [{}]):
            given = {**entry, **one}
            lead = given.pop("lead", "")
            case = Case(lead=lead.split(", ") if lead else [], **given.pop("case"))
            found.append(Mutant(case=case, **given))
    return found


PARTS: list[Sequence[Mutant]] = [
    read("general_scheme"),
    read("naimi_trehel"),
    read("singhal"),
    read("suzuki_kasami"),
    read("goscinski"),
    read("mueller"),
    read("neilsen_mizuno"),
    read("lelann"),
    read("lamport"),
    read("ricart_agrawala"),
    read("singhal_dynamic"),
    read("raynal"),
    read("maekawa"),
    read("arbiter"),
    read("sanders"),
    read("chandy_misra"),
    read("reverse_link"),
    direct.MUTANTS,
    jiang.MUTANTS,
    jiang_without.MUTANTS,
    read("recovery"),
]


MUTANTS: dict[str, Mutant] = {}
for one in [mutant for part in PARTS for mutant in part]:
    MUTANTS[one.name] = one
origins = list(dict.fromkeys([name.partition("/")[0] for name in MUTANTS]))
MUTANTS = dict(sorted(MUTANTS.items(), key=lambda item: origins.index(item[0].partition("/")[0])))


def mutant(name: str) -> Mutant:
    """The mutant of this name; ``jiang/without-R4+R10`` undoes several repairs at once."""
    if name in MUTANTS:
        return MUTANTS[name]
    if name.startswith(jiang_without.PREFIX):
        return jiang_without.without(name.removeprefix(jiang_without.PREFIX).split("+"))
    close = get_close_matches(name, MUTANTS, n=1)
    hint = f"did you mean '{close[0]}'?" if close else "meshlock mutants lists them all."
    raise Refused(f"There is no mutant '{name}': {hint}")
