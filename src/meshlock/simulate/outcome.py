"""What came of a driven run."""

from __future__ import annotations

from typing import Any

from meshlock.algorithms.actor import Algorithm
from meshlock.simulate.scenario import Scenario


class ScenarioOutcome:
    def __init__(self, scenario: Scenario, algorithm: Algorithm, options: dict[str, str]) -> None:
        self.scenario = scenario
        self.algorithm = algorithm
        self.options = options
        self.entries: list[int] = []  # nodes, in the order in which their clients entered
        self.unserved: list[int] = []  # nodes whose client waits for ever
        self.violated: dict[str, str] = {}
        self.unmet: list[str] = []  # the expectations that were not met
        self.transcript = ""

    @property
    def good(self) -> bool:
        return not (self.unserved or self.violated or self.unmet)

    def figures(self) -> dict[str, Any]:
        first = self.scenario.first
        return {
            "scenario": self.scenario.name,
            "title": self.scenario.title,
            "algorithm": self.algorithm.name,
            "options": self.options,
            "entries": [node + first for node in self.entries],
            "unserved": [node + first for node in self.unserved],
            "violated": self.violated,
            "unmet": self.unmet,
            "good": self.good,
            "transcript": self.transcript.splitlines(),
        }
