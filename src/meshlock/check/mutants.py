"""A mutant's own small set-up, ready to be explored."""

from __future__ import annotations

from typing import Any

from meshlock.algorithms.actor import Algorithm
from meshlock.algorithms.mutants.mutant import Mutant
from meshlock.check.arguments import records, setup
from meshlock.check.setup import SetUp
from meshlock.check.ties import TIES


def words_of(mutant: Mutant, algorithm: Algorithm) -> dict[str, Any]:
    """The set-up in the words of the flags, for the mutant's own algorithm or the original.

    Links are unordered wherever the algorithm allows it: that is more to find.
    """
    links = "fifo" if algorithm.assumes.fifo else "unordered"
    return {"algorithm": algorithm.name, "links": links, **mutant.case}


def setup_of(mutant: Mutant, algorithm: Algorithm) -> SetUp:
    return setup(**words_of(mutant, algorithm))


def properties_of(mutant: Mutant) -> list[str]:
    """Those to be named where it is judged: ties, if it breaks them; else none, which is all."""
    return [TIES] if mutant.breaks == TIES else []


def command(mutant: Mutant) -> str:
    """The command that shows what the mistake breaks, its set-up in full."""
    case = dict(mutant.case)
    if (mutant.unordered or not mutant.origin.assumes.fifo) and "members" not in case:
        case["links"] = "unordered"
    words = [f"meshlock check --mutant {mutant.name}"]
    words += [record.flags() for record in records(case)]
    words += [f"--property {name}" for name in properties_of(mutant)]
    return " ".join(filter(None, words))
