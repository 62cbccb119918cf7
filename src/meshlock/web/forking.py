"""Leave a run at one of its steps and go on by hand from there."""

from __future__ import annotations

from typing import Any

from meshlock.errors import Refused
from meshlock.properties.sentences import broken_off
from meshlock.simulate.schedule import Schedule, read
from meshlock.web.driving import MOST_NODES, DrivenSetUp, PageRun
from meshlock.web.index import Index, TraceJudge

MOST_LEAD = 5_000
"""Steps of a run that are played again before it goes on by hand."""


class Left(DrivenSetUp):
    """The set-up of a run that was left at a step."""

    def __init__(self, index: Index, step: int) -> None:
        if not 0 <= step <= min(index.steps, MOST_LEAD) or index.nodes > MOST_NODES:
            raise Refused(
                f"Runs of up to {MOST_NODES} nodes can be left for another step, up to step "
                f"{MOST_LEAD:,}."
            )
        trace = TraceJudge(index.setup)
        trace.lines = (line + b"\n" for lines in index.read(1, step) for line in lines)
        self.schedule: Schedule = read(trace)[0]
        self.names = index.setup.get("names")
        self.algorithm = self.schedule.algorithm
        self.topology = "given"
        self.nodes, self.permits, self.seed = index.nodes, index.setup["permits"], 1
        self.members = self.nodes if self.schedule.leased else 0
        self.changing = self.algorithm.assumes.changing_links or self.members > 0

    def script(self, places: list[tuple[float, float]]) -> str:
        return self.schedule.script("left", actions=False)


class LeftRun(PageRun):
    """What happened up to the step happens again, and belongs to the beginning."""

    def __init__(self, left: Left) -> None:
        self.left = left
        super().__init__(left)

    def again(self) -> PageRun:
        return LeftRun(self.left)

    def begin(self) -> None:
        super().begin()
        if self.left.names:
            self.index.setup["names"] = self.left.names
        for line in self.left.schedule.actions_with_choices():
            try:
                self.player.attempt(0, line.split())
            except Refused as error:
                raise Refused(f"This run cannot be played again: {error}") from None
            except Exception as error:
                self.failure = broken_off(error)


def fork(parent: PageRun | Index, step: int) -> PageRun:
    """A run that goes on from this step of another one."""
    if isinstance(parent, Index):
        return LeftRun(Left(parent, step))
    run = parent.again()
    for action, end in zip(parent.actions, parent.lasts, strict=True):
        missing = step - run.index.steps
        if end > step and action.get("do") == "all":
            for _ in range(missing):
                run.perform({"do": "next"})
        if end > step:
            break
        run.perform(action)
    return run


def wanted(asked: dict[str, Any]) -> tuple[str, int]:
    """Which run, and which step of it, the page asks for."""
    name, step = asked["fork"], asked.get("step")
    if not isinstance(name, str) or not isinstance(step, int):
        raise Refused("Name a run and one of its steps.")
    return name, step
