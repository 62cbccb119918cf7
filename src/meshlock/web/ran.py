"""Which lines of an algorithm's file a step ran: the trace is run again up to it, and watched.

A compiled algorithm cannot be watched, nor can one that does something else than the trace says:
then nothing is sent, and the page shows which handlers a step calls (see handlers.py).
"""

from __future__ import annotations

import ast
import sys
from types import CodeType, FrameType
from typing import Any

import msgspec

from meshlock.algorithms.actor import Actor
from meshlock.algorithms.registry import find
from meshlock.errors import Refused
from meshlock.simulate.rerun import Rerun
from meshlock.web.handlers import Method, classes, layer_classes, source
from meshlock.web.index import Index

FARTHEST = 5_000
"""Steps that are run again for one answer."""
MOST_PARTS = 8
OBSERVED = {"tokens", "free_permits", "permits", "lends"}
"""What the run itself asks nodes and messages, besides calling a handler."""


class Ran:
    """What the steps of one run ran."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self.rerun: Rerun | None = None
        self.done = 0
        self.methods: dict[tuple[str, int], Method] = {}
        for kind in self.kinds():
            if text := source(kind.__module__):
                for part in ast.walk(ast.parse("\n".join(text[1]))):
                    if isinstance(part, ast.FunctionDef):
                        method = Method(part.name, part, *text)
                        self.methods[str(text[0]), part.lineno] = method

    def kinds(self) -> list[type]:
        try:
            algorithm = find(str(self.index.setup.get("algorithm")))
        except Refused:
            return []
        kinds = classes(algorithm)
        kinds += layer_classes(algorithm) if "recovery" in self.index.setup else []
        return [kind for kind in kinds if kind not in (object, Actor)]

    def step(self, step: int) -> list[dict[str, Any]]:
        """The methods that ran in this step, in the order of their calls, and which lines."""
        try:
            return self.watched(step)
        except Exception:  # whatever an algorithm makes of a trace that is not its own
            self.rerun = None
            return []

    def watched(self, step: int) -> list[dict[str, Any]]:
        if self.rerun is None or step <= self.done:
            self.rerun, self.done = Rerun(self.index.setup), 0
        if not self.done < step <= min(self.index.steps, self.done + FARTHEST):
            return []
        *before, last = (
            [msgspec.json.decode(line) for line in lines]
            for lines in self.index.read(self.done + 1, step)
        )
        for lines in before:
            self.rerun.step(lines)
        watch = Watch({path for path, _ in self.methods})
        found = sys.gettrace()
        sys.settrace(watch.called)
        try:
            self.rerun.step(last)
        finally:
            sys.settrace(found)
        self.done = step
        parts = [
            self.methods[key].shown(sorted(lines))
            for code, lines in watch.lines.items()
            if (key := (code.co_filename, code.co_firstlineno)) in self.methods
            and code.co_name not in ("freeze", "__init__")
        ]
        return parts[:MOST_PARTS]


class Watch:
    """Notes the lines that run in these files."""

    def __init__(self, files: set[str]) -> None:
        self.files = files
        self.lines: dict[CodeType, set[int]] = {}

    def called(self, frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename not in self.files:
            return None
        caller = frame.f_back
        asked = caller is not None and caller.f_code.co_filename not in self.files
        if asked and frame.f_code.co_name in OBSERVED:
            return None
        self.lines.setdefault(frame.f_code, set())
        return self.line

    def line(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            self.lines[frame.f_code].add(frame.f_lineno)
        return self.line
