"""What the page's menu offers, and how the run behind an entry is made.

A run has the name of its entry, so that a link to it works again after the server was restarted.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

from meshlock.algorithms.mutants import catalogue
from meshlock.algorithms.mutants.mutant import Mutant
from meshlock.algorithms.registry import find
from meshlock.check.counterexample import Search
from meshlock.check.mutants import command
from meshlock.check.riddles import riddles
from meshlock.errors import Refused
from meshlock.simulate import scenario
from meshlock.simulate.player import play
from meshlock.simulate.settings import run_settings, simulation
from meshlock.simulate.whole_run import whole_run
from meshlock.trace.writer import TraceWriter
from meshlock.web.index import Index, open_trace

EXAMPLES = Path(__file__).with_name("examples.toml")

MOST_STATES = 200_000
"""Of a search for a counterexample; all but the large ones need a quarter of it at most."""

AT_ONCE = 500
"""States between two looks at the clients that wait."""


@cache
def examples() -> dict[str, dict[str, str | int]]:
    """By the name of the study: a title, and settings of a run."""
    return tomllib.loads(EXAMPLES.read_text(encoding="utf-8"))


@cache
def offered() -> dict[str, list[dict[str, Any]]]:
    """The entries by their kinds."""
    scripts = [scenario.scenario(name) for name in scenario.names()]
    return {
        "scenario": [
            {"name": script.name, "title": script.title, "algorithm": script.algorithm}
            for script in scripts
        ],
        "mutant": [
            {"name": mutant.name, "title": mutant.mistake, "breaks": mutant.breaks}
            for mutant in catalogue.MUTANTS.values()
            if mutant.breaks
        ],
        "study": [
            {"name": name, "title": example["title"]} for name, example in examples().items()
        ],
        "riddle": [
            {
                "name": str(each.number),
                "title": f"this {each.algorithm} is broken",
                "steps": each.mutant.steps,
            }
            for each in riddles()
        ],
    }


def written(name: str, write: Callable[[BinaryIO], object]) -> Index:
    """The index of a trace that is written now."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"{name.replace('/', ' ')}.jsonl"
        with path.open("wb") as file:
            write(file)
        return open_trace(path)  # keeps the file open, though it has no name any more


def scenario_run(name: str, algorithm: str) -> Index:
    if name not in scenario.names():
        raise Refused(f"There is no scenario '{name}'.")
    if algorithm:
        find(algorithm)
    return written(name, lambda file: play(name, algorithm or None, TraceWriter(file, True), {}))


def example_run(name: str) -> Index:
    if name not in examples():
        raise Refused(f"There is no study '{name}'.")
    return simulated_run({k: value for k, value in examples()[name].items() if k != "title"})


def simulated_run(settings: dict[str, str | int]) -> Index:
    def run(file: BinaryIO) -> None:
        whole_run(simulation(run_settings(settings), TraceWriter(file, True)), lambda: None)

    return written("run", run)


class Counterexample:
    """Is being looked for: go through its :meth:`progress`, then it is in ``index``."""

    def __init__(self, name: str) -> None:
        self.mutant: Mutant = catalogue.mutant(name)
        self.index: Index | None = None

    def progress(self) -> Iterator[str]:
        search = Search(self.mutant, MOST_STATES)
        while search.run(AT_ONCE):
            yield search.progress()
        found = search.found
        if found is None:
            raise Refused(
                f"It takes too long here: nothing was found among {search.progress()}. "
                f"Use {command(self.mutant)} --trace way.jsonl, and open that file."
            )
        self.index = written(self.mutant.name, search.write)
        self.index.report(found.name, found.text)
