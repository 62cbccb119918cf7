"""The lines of an algorithm's file that ran in a step, to be shown beside it.

:class:`Ran` runs the trace again up to a step, and watches. A compiled algorithm cannot be watched,
nor can one that does something else than the trace says: of these the page shows which
:func:`handlers` a step calls.
"""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import msgspec

from meshlock.algorithms.actor import Actor, Algorithm, Effect, Message
from meshlock.algorithms.recovery.layer import LAYERS, Layer
from meshlock.algorithms.recovery.messages import KINDS
from meshlock.algorithms.registry import find, with_defaults
from meshlock.errors import Refused
from meshlock.simulate.rerun import Rerun
from meshlock.topology.graphs import Complete
from meshlock.web.index import Index

CALLED = {
    "start": "start",
    "request": "request",
    "leave": "release",
    "give-back": "release_some",
    "priority": "change_priority",
    "withdraw": "withdraw",
    "deliver": "receive",
    "undelivered": "undelivered",
    "link-up": "link_up",
    "link-down": "link_down",
    "timer": "wake",
    "restart": "restart",
}
"""Which handler a cause calls."""


class Method(NamedTuple):
    name: str
    tree: ast.FunctionDef
    path: Path
    text: list[str]

    def shown(self, lit: list[int]) -> dict[str, Any]:
        """Its lines without indentation; ``lit`` are those that matter."""
        first, last = self.tree.lineno, self.tree.end_lineno or self.tree.lineno
        lines = self.text[first - 1 : last]
        margin = self.tree.col_offset
        return {
            "name": self.name,
            "file": self.path.name,
            "first": first,
            "lines": [line[margin:] for line in lines],
            "lit": lit,
        }


def source(module: str) -> tuple[Path, list[str]] | None:
    """The text of a module; a compiled one has it beside itself, a patched one in the cache."""
    place = getattr(sys.modules.get(module), "__file__", None)
    if not place:
        return None
    path = Path(place)
    if path.suffix == ".so":
        path = path.with_name(path.name.partition(".")[0] + ".py")
    linecache.checkcache(str(path))
    lines = linecache.getlines(str(path))
    return (path, [line.rstrip("\n") for line in lines]) if lines else None


def layer_classes(algorithm: Algorithm) -> list[type]:
    """Of a node under the recovery layer, around that of its algorithm."""
    kind: Any = LAYERS.get(algorithm.name, Layer)
    names = vars(sys.modules[kind.__module__])
    epoch: Any = names["EpochState"]
    within = vars(sys.modules[epoch.__module__])
    timers: Any = names["Timers"]
    autopilot = vars(sys.modules[timers.__module__])["Autopilot"]
    parts = [autopilot, timers, *[names[name] for name in ("CatchingUp", "PoolMember")]]
    parts += [within[name] for name in ("Loans", "TokenKeeper", "Gate")]
    return [*parts, epoch, *reversed(kind.__mro__)]


def classes(algorithm: Algorithm) -> list[type]:
    """Whose handlers run at a node, later ones before earlier ones."""
    out: list[Effect] = []
    nodes = algorithm.make(Complete(3), 1, with_defaults(algorithm, {}), out)
    return [*reversed(type(nodes[0]).__mro__)]


def read(classes: list[type]) -> Iterator[tuple[type, ast.Module, Path, list[str]]]:
    """The modules of these, parsed, and their texts."""
    for kind in classes:
        if kind not in (object, Actor) and (text := source(kind.__module__)):
            yield kind, ast.parse("\n".join(text[1])), *text


def methods(classes: list[type]) -> dict[str, Method]:
    """The methods of these by their names; later ones hide earlier ones."""
    return {
        member.name: Method(member.name, member, path, text)
        for kind, tree, path, text in read(classes)
        for part in tree.body
        if isinstance(part, ast.ClassDef) and part.name == kind.__name__
        for member in part.body
        if isinstance(member, ast.FunctionDef)
    }


def branch(receive: Method, kind: str) -> list[ast.stmt]:
    """What ``receive`` does with messages of this class only."""
    for part in ast.walk(receive.tree):
        if isinstance(part, ast.If) and isinstance(part.test, ast.Call):
            call = part.test
            if isinstance(call.func, ast.Name) and call.func.id == "isinstance":
                tested = call.args[1]
                if isinstance(tested, ast.Name) and tested.id == kind:
                    return part.body
    return []


def source_of(setup: dict[str, Any]) -> dict[str, Any]:
    """What is shown beside a run with this set-up."""
    name = str(setup.get("algorithm"))
    return {"handlers": handlers(name, "recovery" in setup), "constants": constants(name)}


def handlers(name: str, leased: bool = False) -> dict[str, list[dict[str, Any]]]:
    """For every cause, and every kind of message delivered, the methods that it runs; ``leased``:
    at nodes under the recovery layer, with the layer's own beside them."""
    try:
        algorithm = find(name)
    except Refused:
        return {}
    shown = run_by(methods(classes(algorithm)), algorithm.kinds)
    if leased:
        known = methods(layer_classes(algorithm))
        handled = run_by(known, ())
        for message in KINDS:
            parts = [known[f"receive_{message.kind.lower()}"], known["receive"]]
            handled[f"deliver {message.kind}"] = [part.shown([]) for part in parts]
        for cause, lines in handled.items():
            shown[cause] = [*lines, *shown.get(cause, [])]
    return shown


def run_by(
    known: dict[str, Method], kinds: tuple[type[Message], ...]
) -> dict[str, list[dict[str, Any]]]:
    shown: dict[str, list[dict[str, Any]]] = {}
    for cause, called in CALLED.items():
        if called in known and cause != "deliver":
            shown[cause] = [known[called].shown([])]
    receive = known.get("receive")
    if receive is None:
        return shown
    for kind in kinds:
        body = branch(receive, kind.__name__)
        lit = [line for part in body for line in range(part.lineno, (part.end_lineno or 0) + 1)]
        calls = [
            part.func.attr
            for statement in body
            for part in ast.walk(statement)
            if isinstance(part, ast.Call)
            and isinstance(part.func, ast.Attribute)
            and isinstance(part.func.value, ast.Name)
            and part.func.value.id == "self"
        ]
        parts = [known[call].shown([]) for call in calls if call in known]
        shown[f"deliver {kind.kind}"] = [*parts, receive.shown(lit)]
    return shown


def constants(name: str) -> dict[str, list[str]]:
    """Variables that hold one of the file's numbered constants, and what those are called: where
    the file says ``OUT, IN = 0, 1`` and a node ``self.state = OUT``, ``state`` is OUT or IN."""
    try:
        kinds = classes(find(name))
    except Refused:
        return {}
    found: dict[str, list[str]] = {}
    for _, tree, _, _ in read(kinds):
        rows = [
            row for part in tree.body if isinstance(part, ast.Assign) and (row := numbered(part))
        ]
        for part in ast.walk(tree):
            if isinstance(part, ast.Assign) and isinstance(part.value, ast.Name):
                for target in part.targets:
                    if isinstance(target, ast.Attribute):
                        for row in rows:
                            if part.value.id in row:
                                found[target.attr] = row
    return found


def numbered(part: ast.Assign) -> list[str]:
    """The names of ``A, B, C = 0, 1, 2``; none for anything else."""
    target, value = part.targets[0], part.value
    if not isinstance(target, ast.Tuple) or not isinstance(value, ast.Tuple):
        return []
    names = [one.id for one in target.elts if isinstance(one, ast.Name)]
    numbers = [one.value for one in value.elts if isinstance(one, ast.Constant)]
    return names if numbers == list(range(len(names))) else []


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
        for _, tree, path, text in read(self.kinds()):
            for part in ast.walk(tree):
                if isinstance(part, ast.FunctionDef):
                    self.methods[str(path), part.lineno] = Method(part.name, part, path, text)

    def kinds(self) -> list[type]:
        try:
            algorithm = find(str(self.index.setup.get("algorithm")))
        except Refused:
            return []
        leased = "recovery" in self.index.setup
        return classes(algorithm) + (layer_classes(algorithm) if leased else [])

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
