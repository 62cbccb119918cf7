"""Explore a set-up to the end, or as far as one is let, and say what came of it."""

from __future__ import annotations

from typing import Any

from meshlock.check.abstraction import Compared, applies
from meshlock.check.changing_links import system
from meshlock.check.crashing_nodes import Crashing
from meshlock.check.disk import Space
from meshlock.check.explorer import Explorer, Violation
from meshlock.check.lasso import Lassos, components
from meshlock.check.model import Model
from meshlock.check.outgrowing import Outgrowing
from meshlock.check.persistent import Reduced
from meshlock.check.serving import SHORTEST, Sample
from meshlock.check.setup import SetUp
from meshlock.check.shared import Shared
from meshlock.check.story import steps
from meshlock.check.symmetry import Asymmetric, Symmetric
from meshlock.errors import setting


class Verdict:
    """One check under way: call :meth:`run` until it says False."""

    def __init__(
        self, setup: SetUp, judged: set[str], most: int, model: Model, space: Space | None
    ) -> None:
        self.setup = setup
        self.judged = judged
        self.most = most
        self.space = space  # for states that outgrow memory
        self.model = model  # it tells what happened
        self.remark = ""  # why a reduction, or more than one process, was not used
        self.explorer: Explorer

    def run(self, batch: int) -> bool:
        """Go on for this number of states; False when the verdict is there."""
        raise NotImplementedError

    def begin(self, model: Model, workers: int, graph: bool = False) -> Explorer:
        if workers > 1:
            return Shared(model, self.most, workers, graph, self.space)
        if self.space is not None and not model.numbered:
            return Outgrowing(model, self.most, graph, self.space)
        return Explorer(model, self.most, graph)

    def cpu(self) -> float:
        """What other processes have spent."""
        return self.explorer.cpu if isinstance(self.explorer, Shared) else 0.0

    def complete(self) -> bool:
        return self.explorer.complete()

    def holds(self) -> bool:
        """Every state was seen and none is wrong; a partial look never says so."""
        return self.complete() and not self.explorer.violations

    def violations(self) -> list[Violation]:
        return sorted(self.explorer.violations.values(), key=lambda found: len(found.labels))

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

    def proviso(self) -> str:
        """What "all properties" leaves out."""
        return ""

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


class Checking(Verdict):
    """Nothing crashes.

    With a reduction, the reduced graph is explored first. If it shows nothing wrong and no
    cycle, that is the verdict. Otherwise the full graph is explored after it: only there are
    ways shortest and cycles complete.
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
        self.system = system(setup, judged)
        super().__init__(setup, judged, most, self.system, space)
        self.full: Model = self.system
        self.compared: Compared | None = None
        if setup.repeat and applies(self.system):
            self.compared = self.full = Compared(self.system)
        self.lassos_sought = False
        chosen = self.reduce(reduction)
        self.reduced = chosen is not self.full
        if workers > 1 and (self.reduced or setup.repeat):
            self.remark = (
                f"One process is used: with a reduction, or with {setting('repeat')}, the search "
                f"is not shared."
            )
            workers = 1
        self.live = "liveness" in judged
        self.explorer = self.begin(chosen, workers, self.live)

    def reduce(self, reduction: str) -> Model:
        """The smaller model that was asked for, or the full one with a remark."""
        if self.full is not self.system:
            if reduction != "none":
                self.remark = (
                    "No reduction is used: it does not apply where heights and counts are compared."
                )
        elif reduction in ("por", "auto"):
            setup = self.setup
            changing = setup.withdrawals or self.system.standings.change
            changing = changing or self.system.ties is not None
            if self.system.changing or setup.capacity or changing:
                self.remark = (
                    "No reduction of steps is used: it does not apply where links change or "
                    "have a capacity, requests are withdrawn, change or are released in parts, or "
                    "ties are judged."
                )
                return self.full
            reduced = Reduced(self.system)
            if reduction == "por" or reduced.saves_time():
                return reduced
            self.remark = (
                "No reduction of steps is used: it seldom saves time unless removing some node "
                "splits the network, as in a line, a tree or a star."
            )
        elif reduction == "symmetry":
            try:
                return Symmetric(self.system)
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

    def has_cycles(self) -> bool:
        """Or may have: where transitions are not known."""
        if isinstance(self.explorer, Shared):
            return self.explorer.may_have_cycles()
        return bool(components(self.explorer.count(), *self.explorer.adjacency()))

    def fall_back(self) -> bool:
        """Explore the full graph after the reduced one."""
        self.explorer.close()
        self.reduced = False
        self.explorer = self.begin(self.full, 1, self.live)
        return True

    def violations(self) -> list[Violation]:
        ways, compared = super().violations(), self.compared
        return ways if compared is None else [compared.as_it_is(way) for way in ways]

    def proviso(self) -> str:
        capacity = self.setup.capacity
        text = f" with at most {capacity} messages on a link" if capacity else ""
        if self.system.sound is not None and isinstance(self.explorer.model, Reduced):
            names = ", ".join(self.system.sound.structure.names())
            text += f", {names} left out, which a reduction of steps cannot judge"
        judged = self.system.ordered or "order" not in self.judged
        if judged or not self.setup.algorithm.serves.priorities:
            return text
        if self.system.promises.ordered:
            return f"{text} but order, which cannot be judged of endless requests that age"
        return f"{text} but order, which is not promised"


class CrashChecking(Verdict):
    """Nodes crash and recover. When the search is over, faults stop in a sample of its states:
    from there on everybody must be served."""

    def __init__(
        self,
        setup: SetUp,
        judged: set[str],
        most: int,
        reduction: str = "none",
        workers: int = 1,
        space: Space | None = None,
    ) -> None:
        self.crashing = Crashing(setup, judged)
        super().__init__(setup, judged, most, self.crashing, space)
        if reduction != "none":
            self.remark = "No reduction is used: it does not apply where nodes crash."
        self.explorer = self.begin(self.crashing, workers)
        self.sample: Sample | None = None

    def run(self, batch: int) -> bool:
        if self.explorer.run(batch):
            return True
        if "served" not in self.judged or self.crashing.bounds.lease < SHORTEST:
            return False
        if self.sample is None:
            self.sample = Sample(self.crashing, self.explorer)
        return self.sample.run()

    def proviso(self) -> str:
        if self.sample is None:
            return ""
        return (
            f"; when faults stop in {self.sample.tried:,} of these states, every "
            f"request is served within {self.sample.worst} ticks"
        )


def checking(
    setup: SetUp,
    judged: set[str],
    most: int,
    reduction: str = "none",
    workers: int = 1,
    space: Space | None = None,
) -> Verdict:
    """``space``: where states go that outgrow memory."""
    if setup.faults is None:
        return Checking(setup, judged, most, reduction, workers, space)
    return CrashChecking(setup, judged, most, reduction, workers, space)
