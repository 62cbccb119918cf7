"""The search for the counterexample of a mutant."""

from __future__ import annotations

from typing import Any

from meshlock.algorithms.mutants.mutant import Mutant
from meshlock.check.arguments import judged
from meshlock.check.explorer import Violation
from meshlock.check.mutants import properties_of, setup_of
from meshlock.check.retold import write_trace
from meshlock.check.verdict import checking


class Search:
    """For the shortest way to see a mutant's mistake in its own set-up, among ``most`` states;
    call :meth:`run` until it says False."""

    def __init__(self, mutant: Mutant, most: int) -> None:
        self.mutant = mutant
        what = setup_of(mutant, mutant.algorithm)
        self.check = checking(what, judged(properties_of(mutant)), most)

    def run(self, batch: int) -> bool:
        """Go on for this number of states."""
        return self.found is None and self.check.run(batch)

    def progress(self) -> str:
        return self.check.progress()

    @property
    def found(self) -> Violation | None:
        name = self.mutant.breaks
        if name not in self.check.explorer.violations:
            return None
        return next(way for way in self.check.violations() if way.name == name)

    def write(self, sink: Any) -> None:
        found = self.found
        assert found is not None
        write_trace(self.check.model, found, sink)
