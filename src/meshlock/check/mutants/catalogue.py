"""All mutants, by algorithm."""

from __future__ import annotations

from meshlock.check.mutants import (
    general_scheme,
    jiang,
    lamport,
    lelann,
    maekawa,
    neilsen_mizuno,
    reverse_link,
    ricart_agrawala,
    singhal,
    suzuki_kasami,
)
from meshlock.check.mutants.mutant import Mutant

PARTS: list[list[Mutant]] = [
    general_scheme.MUTANTS,
    singhal.MUTANTS,
    suzuki_kasami.MUTANTS,
    neilsen_mizuno.MUTANTS,
    lelann.MUTANTS,
    lamport.MUTANTS,
    ricart_agrawala.MUTANTS,
    maekawa.MUTANTS,
    reverse_link.MUTANTS,
    jiang.MUTANTS,
]

MUTANTS: list[Mutant] = [mutant for part in PARTS for mutant in part]
