"""A mutant's own small set-up, ready to be explored."""

from __future__ import annotations

from meshlock.algorithms.interface import Algorithm
from meshlock.algorithms.mutants.mutant import Mutant
from meshlock.check.questions import setup
from meshlock.check.setup import SetUp


def setup_of(mutant: Mutant, algorithm: Algorithm) -> SetUp:
    """The set-up for the mutant's own algorithm, or, to compare, for the original.

    Links are unordered wherever the algorithm allows it: that is more to find.
    """
    case = mutant.case
    return setup(
        algorithm=algorithm.name,
        nodes=case.nodes,
        topology=case.topology,
        permits=case.permits,
        requests=case.requests,
        changes=case.changes,
        flips=0,
        links="fifo" if algorithm.needs_fifo else "unordered",
        failing=case.failures,
        clients=case.clients,
        repeat=case.repeat,
        stay=case.stay,
        options=case.options,
    )
