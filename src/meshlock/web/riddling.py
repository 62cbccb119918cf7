"""A riddle in the page: somebody drives a broken algorithm, and the referee of ``meshlock riddle``
judges the same actions, written as a schedule."""

from __future__ import annotations

from collections import Counter
from typing import Any

from meshlock.check.riddles import Finding, Riddle
from meshlock.errors import Refused
from meshlock.web.driving import DrivenSetUp, PageRun


class Given(DrivenSetUp):
    """The riddle's own set-up."""

    def __init__(self, riddle: Riddle) -> None:
        self.riddle = riddle
        self.algorithm = riddle.mutant.algorithm
        self.topology = "riddle"
        self.nodes = riddle.setup.network.size
        self.permits = riddle.setup.permits
        self.seed = 1
        self.members = 0
        self.changing = bool(riddle.changes)

    def script(self, places: list[tuple[float, float]]) -> str:
        return self.riddle.script()


class RiddleRun(PageRun):
    def __init__(self, riddle: Riddle) -> None:
        self.riddle = riddle
        self.solved = False  # or given up: what is wrong is no secret any more
        super().__init__(Given(riddle))

    def begin(self) -> None:
        self.schedule: list[str] = []
        self.finding = Finding({}, 0, "")
        super().begin()

    # -- actions ----------------------------------------------------------------------------

    def act(self, verb: str, action: dict[str, Any]) -> None:
        if verb not in ("ask", "leave", "behaviour", "deliver", "next", "all", "cut", "join"):
            raise Refused("This does not happen in a riddle.")
        if self.finding.violated:
            raise Refused("It is found: take the last step back, or choose another riddle.")
        schedule = list(self.schedule)
        try:
            super().act(verb, action)
        except Refused as error:
            self.schedule = schedule
            raise Refused(self.riddle.hidden(str(error))) from None
        self.finding = self.riddle.judge("\n".join(self.schedule) + "\n")
        self.solved = self.solved or bool(self.finding.violated)

    def drawn(self, action: dict[str, Any]) -> dict[str, Any]:
        if str(action.get("do")).startswith("random"):
            raise Refused("A riddle has no random steps.")
        return action

    def play(self, line: str) -> None:
        if line.startswith("request") and self.left()[line] < 1:
            raise Refused(f"'{line}' is not in this riddle, or not so often.")
        if line.startswith("link") and self.changes_left()[:1] != [line]:
            order = ", ".join(self.riddle.changes) or "never"
            raise Refused(f"Links change in this order only: {order}.")
        self.schedule.append(line)
        super().play(line)

    def left(self) -> Counter[str]:
        """Requests that may still be made, as actions."""
        return Counter(self.riddle.requests) - Counter(self.schedule)

    def changes_left(self) -> list[str]:
        done = sum(line.startswith("link ") for line in self.schedule)
        return self.riddle.changes[done:]

    # -- for the page ---------------------------------------------------------------------------

    def hidden(self) -> bool:
        """Would its name and its code give the mistake away?"""
        return not self.solved

    def about(self) -> dict[str, Any]:
        about = super().about()
        riddle, finding = self.riddle, self.finding
        about["setup"] = {**about["setup"], "algorithm": riddle.algorithm}
        about["violated"] = [
            {"property": name, "sentence": riddle.hidden(text), "step": finding.steps}
            for name, text in finding.violated.items()
        ]
        left, requests = self.left(), dict.fromkeys(riddle.requests)
        about["riddle"] = {
            "number": riddle.number,
            "algorithm": riddle.algorithm,
            "requests": [{"text": request, "left": left[request]} for request in requests],
            "changes": self.changes_left(),
            "found": bool(finding.violated),
            "hidden": self.hidden(),
        }
        return about

    def solution(self) -> dict[str, Any]:
        """The mistake and the checker's story; from now on nothing is hidden."""
        actions, story = self.riddle.solution
        self.solved = True
        return {"mistake": self.riddle.mistake(), "story": story, "schedule": actions.splitlines()}
