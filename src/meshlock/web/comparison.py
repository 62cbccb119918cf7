"""Two algorithms on the same schedule: the same script, or the same seed and workload.

Both runs are cut where the schedule is: at the lines of the script, or at the moments of the
common clock. Between two cuts they step together; the one with less to do waits for the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

from meshlock.algorithms.actor import Algorithm
from meshlock.algorithms.registry import find
from meshlock.errors import Refused
from meshlock.simulate import scenario
from meshlock.simulate.player import Player
from meshlock.simulate.scenario import Scenario
from meshlock.simulate.settings import run_settings, simulation
from meshlock.simulate.whole_run import whole_run
from meshlock.trace.writer import TraceWriter
from meshlock.web.driving import Growing, whole
from meshlock.web.index import Index, open_trace

MOST_NODES = 20
MOST_REQUESTS = 100
MOST_STEPS = 6000
"""On one side; the page holds this number at once."""
TOPOLOGIES = ("line", "ring", "star", "tree", "complete")


@dataclass
class Side:
    """One of the two runs, cut in pieces: ``cuts`` says of every step to which it belongs."""

    index: Index
    cuts: Sequence[float]  # that of step 1 first; never falling
    remarks: list[str]


class Noted(Player):
    """Notes to which line of the script each step belongs, and leaves out what this algorithm
    cannot do: a message that it never sends cannot be delivered."""

    def __init__(self, script: Scenario, algorithm: Algorithm) -> None:
        self.growing = Growing()
        super().__init__(script, algorithm, TraceWriter(self.growing, True))
        self.cuts: list[float] = [0.0] * self.index.steps
        self.remarks: list[str] = []

    @property
    def index(self) -> Index:
        assert self.growing.index is not None  # the run has written the set-up
        return self.growing.index

    def act(self, number: int, words: list[str]) -> None:
        try:
            super().act(number, words)
        except Refused as error:
            self.remarks.append(str(error))
        finally:
            self.cuts += [float(number)] * (self.index.steps - len(self.cuts))

    def side(self) -> Side:
        self.play()
        self.cuts += [float("inf")] * (self.index.steps - len(self.cuts))  # the end
        return Side(self.index, self.cuts, self.remarks)


class Comparison:
    def __init__(self, asked: dict[str, Any]) -> None:
        self.names = [str(asked.get(side, "")) for side in ("left", "right")]
        chosen = [find(name) for name in self.names]
        self.texts: dict[float, str] = {}
        if "scenario" in asked:
            name = str(asked["scenario"])
            if name not in scenario.names():
                raise Refused(f"There is no scenario '{name}'.")
            self.title = f"{name}: {scenario.scenario(name).title}"
            self.sides = [Noted(scenario.scenario(name), each).side() for each in chosen]
            for number, words in scenario.scenario(name).lines:
                self.texts[float(number)] = " ".join(words)
        else:
            values = workload(asked)
            self.title = f"the same {values['requests']} requests, seed {values['seed']}"
            self.sides = [simulated({**values, "algorithm": name}) for name in self.names]
        for name, side in zip(self.names, self.sides, strict=True):
            if side.index.steps > MOST_STEPS:
                raise Refused(
                    f"{name} takes {side.index.steps:,} steps here, more than {MOST_STEPS:,} "
                    f"cannot be compared: choose a shorter schedule."
                )

    def rows(self) -> list[tuple[int, int, str]]:
        """For every common step: the step of either side, and what both are about."""
        left, right = (Counter(side.cuts) for side in self.sides)
        rows = [(0, 0, "the start")]
        for cut in sorted({*left, *right}):
            text = self.texts.get(cut, "the end" if cut == float("inf") else f"t = {cut:g}")
            one, other, _ = rows[-1]
            here, there = left[cut], right[cut]
            for step in range(1, max(here, there) + 1):
                rows.append((one + min(step, here), other + min(step, there), text))
        return rows

    def shown(self, names: list[str]) -> dict[str, Any]:
        """For the page; ``names`` are those of the two runs."""
        return {
            "title": self.title,
            "runs": names,
            "rows": self.rows(),
            "remarks": [side.remarks for side in self.sides],
        }


def written(name: str, write: Callable[[BinaryIO], object]) -> Index:
    """The index of a trace that is written now."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"{name.replace('/', ' ')}.jsonl"
        with path.open("wb") as file:
            write(file)
        return open_trace(path)  # keeps the file open, though it has no name any more


def simulated_run(settings: dict[str, str | int]) -> Index:
    def run(file: BinaryIO) -> None:
        whole_run(simulation(run_settings(settings), TraceWriter(file, True)), lambda: None)

    return written("run", run)


def workload(asked: dict[str, Any]) -> dict[str, str | int]:
    topology = str(asked.get("topology", "tree"))
    if topology not in TOPOLOGIES:
        raise Refused(f"The topology is one of {', '.join(TOPOLOGIES)}.")
    permits = whole(asked, "permits", 1, 1, 10)
    return {
        "nodes": whole(asked, "nodes", 8, 2, MOST_NODES),
        "topology": topology,
        "permits": permits,
        "want": f"1-{min(permits, 2)}",
        "priority": "0-5",
        "workload": "poisson:0.05",
        "requests": whole(asked, "requests", 20, 1, MOST_REQUESTS),
        "seed": whole(asked, "seed", 1, 0, 1_000_000),
    }


def simulated(values: dict[str, str | int]) -> Side:
    if find(str(values["algorithm"])).assumes.complete_graph:
        values = {**values, "topology": "complete"}

    index = simulated_run(values)
    return Side(index, [round(time, 9) for time in index.times[1:]], [])
