"""Explore a set-up to the end, or as far as one is let, and say what came of it."""

from __future__ import annotations

from typing import Any

from meshlock.check.abstraction import Compared, applies
from meshlock.check.changing_links import plain
from meshlock.check.crashing_nodes import Crashing
from meshlock.check.disk import Space
from meshlock.check.explorer import Explorer, Violation
from meshlock.check.lasso import Lassos, components
from meshlock.check.model import Model
from meshlock.check.outgrowing import Outgrowing
from meshlock.check.persistent import Reduced
from meshlock.check.plain import Plain
from meshlock.check.serving import SHORTEST, Sample
from meshlock.check.setup import SetUp
from meshlock.check.shared import Shared
from meshlock.check.story import steps
from meshlock.check.symmetry import Asymmetric, Symmetric
from meshlock.check.system import System
from meshlock.errors import setting
from meshlock.properties.sentences import counted


class Checking:
    """One check under way: call :meth:`run` until it says False.

    With a reduction, the reduced graph is explored first. If it shows nothing wrong and no
    cycle, that is the verdict. Otherwise the full graph is explored after it: only there are
    ways shortest and cycles complete.

    Where nodes crash, faults stop in a sample of the states when the search is over: from there on
    everybody must be served.
    """

    def __init__(
        self,
        setup: SetUp,
        judged: set[str],
        most: int,
        reduction: str = "none",
        workers: int = 1,
        space: Space | None = None,
    ) -> None:
        self.setup = setup
        self.judged = judged
        self.most = most
        self.space = space  # for states that outgrow memory
        self.model = system(setup, judged)  # it tells what happened
        self.remark = ""  # why a reduction, or more than one process, was not used
        self.full: Model = self.model
        self.compared: Compared | None = None
        if setup.repeat and isinstance(self.model, Plain) and applies(self.model):
            self.compared = self.full = Compared(self.model)
        self.lassos_sought = False
        self.sample: Sample | None = None
        chosen = self.reduce(reduction)
        self.reduced = chosen is not self.full
        if workers > 1 and (self.reduced or setup.repeat):
            self.remark = (
                f"One process is used: with a reduction, or with {setting('repeat')}, the search "
                f"is not shared."
            )
            workers = 1
        self.live = "liveness" in judged and setup.faults is None
        self.explorer = self.begin(chosen, workers)

    def begin(self, model: Model, workers: int) -> Explorer:
        if workers > 1 and isinstance(model, System):
            return Shared(model, self.most, workers, self.live, self.space)
        if self.space is not None and not model.numbered:
            return Outgrowing(model, self.most, self.live, self.space)
        return Explorer(model, self.most, self.live)

    def cpu(self) -> float:
        """What other processes have spent."""
        return self.explorer.cpu if isinstance(self.explorer, Shared) else 0.0

    def complete(self) -> bool:
        return self.explorer.complete()

    def holds(self) -> bool:
        """Every state was seen and none is wrong; a partial look never says so."""
        return self.complete() and not self.explorer.violations

    def progress(self) -> str:
        explorer = self.explorer
        todo = explorer.count() - explorer.expanded
        return f"{explorer.count():,} states, {todo:,} to expand, depth {explorer.depth}"

    def summary(self) -> str:
        """The verdict in one sentence."""
        name = self.setup.algorithm.name
        broken = ", ".join(sorted(self.explorer.violations))
        if self.holds():
            return f"{name}: every state was seen, and all properties hold{self.proviso()}."
        if self.complete():
            return f"{name}: every state was seen; violated: {broken}."
        seen = f"only {self.explorer.count():,} states were seen, there are more"
        if broken:
            return f"{name}: {seen}; violated: {broken}."
        return f"{name}: {seen}; no violation among these, which proves nothing about the rest."

    def figures(self, cpu: float) -> dict[str, Any]:
        explorer = self.explorer
        return {
            "algorithm": self.setup.algorithm.name,
            "states": explorer.count(),
            "transitions": explorer.transitions,
            "depth": explorer.depth,
            "complete": self.complete(),
            "holds": self.holds(),
            "violations": [
                {
                    "property": found.name,
                    "what": found.text,
                    "length": len(found.labels),
                    "steps": steps(self.model, found),
                }
                for found in self.violations()
            ],
            "cpu_s": round(cpu, 4),
            "states_per_cpu_s": round(explorer.count() / cpu) if cpu > 0 else 0,
        }

    def reduce(self, reduction: str) -> Model:
        """The smaller model that was asked for, or the full one with a remark."""
        model = self.model
        if not isinstance(model, Plain):
            if reduction != "none":
                self.remark = "No reduction is used: it does not apply where nodes crash."
        elif self.full is not model:
            if reduction != "none":
                self.remark = (
                    "No reduction is used: it does not apply where heights and counts are compared."
                )
        elif reduction in ("por", "auto"):
            setup = self.setup
            changing = setup.withdrawals or model.standings.change or model.ties is not None
            if model.changing or setup.capacity or changing:
                self.remark = (
                    "No reduction of steps is used: it does not apply where links change or "
                    "have a capacity, requests are withdrawn, change or are released in parts, or "
                    "ties are judged."
                )
                return self.full
            reduced = Reduced(model)
            if reduction == "por" or reduced.saves_time():
                return reduced
            self.remark = (
                "No reduction of steps is used: it seldom saves time unless removing some node "
                "splits the network, as in a line, a tree or a star."
            )
        elif reduction == "symmetry":
            try:
                return Symmetric(model)
            except Asymmetric as error:
                self.remark = f"Symmetry is not used: {error}."
        return self.full

    def run(self, batch: int) -> bool:
        try:
            if self.explorer.run(batch):
                return True
        except Asymmetric as error:
            self.remark = f"Symmetry is not used: {error}."
            return self.fall_back()
        if self.setup.faults is not None:
            return self.serve()
        if not self.complete() or not self.live or self.lassos_sought:
            return self.fall_back() if self.reduced and self.explorer.violations else False
        if self.reduced or isinstance(self.explorer, Shared):
            cyclic = self.explorer.backward > 0 and self.has_cycles()
            wrong = self.reduced and self.explorer.violations
            return self.fall_back() if cyclic or wrong else False
        self.lassos_sought = True
        found = Lassos(self.explorer).find()
        if found is not None:
            self.explorer.violations["liveness"] = found
        return False

    def serve(self) -> bool:
        """Let faults stop; False when that was tried often enough."""
        model = self.model
        assert isinstance(model, Crashing)
        if "served" not in self.judged or model.bounds.lease < SHORTEST:
            return False
        if self.sample is None:
            self.sample = Sample(model, self.explorer)
        return self.sample.run()

    def has_cycles(self) -> bool:
        """Or may have: where transitions are not known."""
        if isinstance(self.explorer, Shared):
            return self.explorer.may_have_cycles()
        return bool(components(self.explorer.count(), *self.explorer.adjacency()))

    def fall_back(self) -> bool:
        """Explore the full graph after the reduced one."""
        self.explorer.close()
        self.reduced = False
        self.explorer = self.begin(self.full, 1)
        return True

    def violations(self) -> list[Violation]:
        found = self.explorer.violations.values()
        ways, compared = sorted(found, key=lambda way: len(way.labels)), self.compared
        return ways if compared is None else [compared.as_it_is(way) for way in ways]

    def proviso(self) -> str:
        """What "all properties" leaves out, or means."""
        if self.sample is not None:
            return (
                f"; when faults stop in {self.sample.tried:,} of these states, every "
                f"request is served within {counted(self.sample.worst, 'tick')}"
            )
        model = self.model
        if not isinstance(model, Plain):
            return ""
        capacity = self.setup.capacity
        text = f" with at most {capacity} messages on a link" if capacity else ""
        if model.sound is not None and isinstance(self.explorer.model, Reduced):
            names = ", ".join(model.sound.structure.names())
            text += f", {names} left out, which a reduction of steps cannot judge"
        judged = model.ordered or "order" not in self.judged
        if judged or not self.setup.algorithm.serves.priorities:
            return text
        if model.promises.ordered:
            return f"{text} but order, which cannot be judged of endless requests that age"
        return f"{text} but order, which is not promised"


def system(setup: SetUp, judged: set[str]) -> System:
    """The set-up as a state machine, with what can happen in it."""
    if setup.faults is not None:
        return Crashing(setup, judged)
    return plain(setup, judged)
