"""The recovery layer with a rule undone: by one of the mutants, or by a patch of the source."""

from __future__ import annotations

from meshlock.algorithms.mutants.catalogue import MUTANTS
from meshlock.algorithms.mutants.patches import PACKAGE, Patched
from meshlock.algorithms.recovery.layer import Layer


def mutant(name: str) -> type[Layer]:
    return patched(MUTANTS[f"recovery/{name}"].patch)


def patched(patch: str) -> type[Layer]:
    """``patch`` as in src/meshlock/algorithms/mutants/recovery.toml."""
    made: type[Layer] = Patched("tests/undone", patch).module(f"{PACKAGE}.recovery.layer").Layer
    return made
