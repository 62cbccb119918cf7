"""All mutants, and how to find one by its name."""

from __future__ import annotations

from difflib import get_close_matches

from meshlock.algorithms.mutants import (
    arbiter,
    chandy_misra,
    direct,
    general_scheme,
    goscinski,
    jiang,
    jiang_without,
    lamport,
    lelann,
    maekawa,
    mueller,
    naimi_trehel,
    neilsen_mizuno,
    raynal,
    recovery,
    reverse_link,
    ricart_agrawala,
    sanders,
    singhal,
    singhal_dynamic,
    suzuki_kasami,
)
from meshlock.algorithms.mutants.mutant import Mutant
from meshlock.errors import Refused

PARTS: list[list[Mutant]] = [
    general_scheme.MUTANTS,
    naimi_trehel.MUTANTS,
    singhal.MUTANTS,
    suzuki_kasami.MUTANTS,
    goscinski.MUTANTS,
    mueller.MUTANTS,
    neilsen_mizuno.MUTANTS,
    lelann.MUTANTS,
    lamport.MUTANTS,
    ricart_agrawala.MUTANTS,
    singhal_dynamic.MUTANTS,
    raynal.MUTANTS,
    maekawa.MUTANTS,
    arbiter.MUTANTS,
    sanders.MUTANTS,
    chandy_misra.MUTANTS,
    reverse_link.MUTANTS,
    direct.MUTANTS,
    jiang.MUTANTS,
    jiang_without.MUTANTS,
    recovery.MUTANTS,
]

MUTANTS: dict[str, Mutant] = {mutant.name: mutant for part in PARTS for mutant in part}


def mutant(name: str) -> Mutant:
    """The mutant of this name; ``jiang/without-R4+R10`` undoes several repairs at once."""
    if name in MUTANTS:
        return MUTANTS[name]
    if name.startswith(jiang_without.PREFIX):
        return jiang_without.without(name.removeprefix(jiang_without.PREFIX).split("+"))
    close = get_close_matches(name, MUTANTS, n=1)
    hint = f"did you mean '{close[0]}'?" if close else "meshlock mutants lists them all."
    raise Refused(f"There is no mutant '{name}': {hint}")
