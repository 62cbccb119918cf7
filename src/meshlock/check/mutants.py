"""A mutant's own small set-up, ready to be explored."""

from __future__ import annotations

from typing import Any

from meshlock.algorithms.interface import Algorithm
from meshlock.algorithms.mutants.mutant import Mutant
from meshlock.check.arguments import setup
from meshlock.check.setup import SetUp
from meshlock.check.ties import TIES


def words_of(mutant: Mutant, algorithm: Algorithm) -> dict[str, Any]:
    """The set-up in the words of the flags, for the mutant's own algorithm or the original.

    Links are unordered wherever the algorithm allows it: that is more to find.
    """
    case = mutant.case
    return {
        "algorithm": algorithm.name,
        "nodes": case.nodes,
        "topology": case.topology,
        "permits": case.permits,
        "requests": case.requests,
        "changes": case.changes,
        "links": "fifo" if algorithm.needs_fifo else "unordered",
        "failures": case.failures,
        "clients": case.clients,
        "repeat": case.repeat,
        "stay": case.stay,
        "raises": case.raises,
        "release_parts": case.release_parts,
        "options": case.options,
        **case.faults,
        **({"lead": case.lead} if case.lead else {}),
    }


def setup_of(mutant: Mutant, algorithm: Algorithm) -> SetUp:
    return setup(**words_of(mutant, algorithm))


def properties_of(mutant: Mutant) -> list[str]:
    """Those to be named where it is judged: ties, if it breaks them; else none, which is all."""
    return [TIES] if mutant.breaks == TIES else []
