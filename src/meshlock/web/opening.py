"""What the page asks for to open something: the menu, files, riddles, two runs to compare.

A run has the name of its entry in the menu, so that a link to it works again after the server was
restarted.
"""

from __future__ import annotations

import asyncio
import tomllib
from collections.abc import AsyncGenerator, Iterator
from functools import cache
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import msgspec

from meshlock.algorithms.mutants import catalogue
from meshlock.algorithms.mutants.mutant import Mutant
from meshlock.algorithms.registry import find
from meshlock.check.arguments import judged
from meshlock.check.mutants import command, properties_of, setup_of
from meshlock.check.retold import write_trace
from meshlock.check.riddles import riddle, riddles
from meshlock.check.setup import SetUp
from meshlock.check.verdict import Checking
from meshlock.errors import Refused
from meshlock.live.interfaces.site import HTTPError, HTTPRequest, Response, Route
from meshlock.simulate import scenario
from meshlock.simulate.player import play
from meshlock.trace.reader import BadTrace
from meshlock.trace.writer import TraceWriter
from meshlock.web.answers import HEADERS, as_json, aside, asked
from meshlock.web.comparison import TOPOLOGIES, Comparison, simulated_run, written
from meshlock.web.driving import PageRun, RiddleRun, choices
from meshlock.web.index import Index, open_trace
from meshlock.web.lessons import Lesson, lesson, titles

EXAMPLES = Path(__file__).with_name("examples.toml")

MOST_STATES = 200_000
"""Of a search for a counterexample; all but the large ones need a quarter of it at most."""

AT_ONCE = 500
"""States between two looks at the clients that wait."""


@cache
def examples() -> dict[str, dict[str, str | int]]:
    """By the name of the study: a title, and settings of a run."""
    return tomllib.loads(EXAMPLES.read_text(encoding="utf-8"))


def of_one_kind(mutant: Mutant) -> bool:
    """A riddle of permits of several kinds is for a terminal."""
    return isinstance(mutant.case.get("permits", 1), int)


@cache
def offered() -> dict[str, list[dict[str, Any]]]:
    """The entries by their kinds."""
    scripts = [scenario.scenario(name) for name in scenario.names()]
    return {
        "lesson": [{"name": name, "title": title} for name, title in titles().items()],
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
            if of_one_kind(each.mutant)
        ],
    }


def scenario_run(name: str, algorithm: str) -> Index:
    if name not in scenario.names():
        raise Refused(f"There is no scenario '{name}'.")
    if algorithm:
        find(algorithm)
    return written(name, lambda file: play(name, algorithm or None, TraceWriter(file, True), {}))


def story(name: str) -> str:
    """What a scenario says of itself: the comment at its beginning, without the title."""
    text = (scenario.FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    _, *lines = takewhile(lambda each: each.startswith("#"), text.splitlines())
    return "\n".join(each.removeprefix("#").strip() for each in lines).strip()


def example_run(name: str) -> Index:
    if name not in examples():
        raise Refused(f"There is no study '{name}'.")
    return simulated_run({k: value for k, value in examples()[name].items() if k != "title"})


class Search:
    """For a counterexample: go through its :meth:`progress`, then it is in ``index``, if there is
    one. What it violates is ``sought``, or any property."""

    def __init__(self, name: str, what: SetUp, properties: list[str], sought: str = "") -> None:
        self.name = name
        self.check = Checking(what, judged(properties), MOST_STATES)
        self.sought = sought
        self.index: Index | None = None

    def progress(self) -> Iterator[str]:
        found = self.check.explorer.violations
        while not (self.sought in found if self.sought else found) and self.check.run(AT_ONCE):
            yield self.check.progress()
        ways = [way for way in self.check.violations() if self.sought in ("", way.name)]
        if ways:
            self.index = written(
                self.name, lambda file: write_trace(self.check.model, ways[0], file)
            )
            self.index.report(ways[0].name, ways[0].text)


class Counterexample(Search):
    """Of a mutant."""

    def __init__(self, name: str) -> None:
        mutant = self.mutant = catalogue.mutant(name)
        what = setup_of(mutant, mutant.algorithm)
        super().__init__(mutant.name, what, properties_of(mutant), mutant.breaks)

    def progress(self) -> Iterator[str]:
        yield from super().progress()
        if self.index is None:
            raise Refused(
                f"It takes too long here: nothing was found among {self.check.progress()}. "
                f"Use {command(self.mutant)} --trace way.jsonl, and open that file."
            )


MOST_BYTES = 32_000_000
"""Of one trace; for larger ones there is `meshlock view`."""

Kind = TypeVar("Kind")

MOST_OPEN = 4
"""That are coming in at once; the oldest makes room."""


class Newest(dict[str, Kind]):
    """What was made last, by names with numbers; the oldest makes room."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.made = 0

    def add(self, name: str, one: Kind) -> str:
        self.made += 1
        name = f"{name}-{self.made}"
        self[name] = one
        if len(self) > self.most:
            del self[next(iter(self))]
        return name


class Uploads:
    """Traces and lessons from the reader's disk: they come in pieces, since requests are short."""

    def __init__(self) -> None:
        self.coming: Newest[bytearray] = Newest(MOST_OPEN)

    def add(self, name: str, piece: bytes) -> None:
        if name not in self.coming:
            raise Refused("This file is not being opened any more: choose it again.")
        if len(self.coming[name]) + len(piece) > MOST_BYTES:
            del self.coming[name]
            raise Refused(
                f"This file is longer than {MOST_BYTES // 1_000_000} MB: open it with meshlock "
                f"view FILE."
            )
        self.coming[name] += piece

    def end(self, name: str, called: str) -> Index | Lesson:
        """The whole file is here; ``called`` is what its owner calls it."""
        self.add(name, b"")
        text = self.coming.pop(name)
        if called.endswith(".md"):
            return Lesson(called[:100], text.decode(errors="replace"))
        with TemporaryDirectory() as folder:
            path = Path(folder) / "trace.jsonl"
            path.write_bytes(text)
            try:
                return open_trace(path)
            except BadTrace as error:
                raise Refused(str(error).replace(str(path), called[:100] or "This file")) from None


MOST_DRIVEN = 40
MOST_OPENED = 24
"""Runs from the menu, files and comparisons that are kept; the oldest makes room."""


class Shelf:
    """The runs that can be looked at, by their names."""

    def __init__(self) -> None:
        self.runs: dict[str, Index] = {}
        self.driven: Newest[PageRun] = Newest(MOST_DRIVEN)  # from the page
        self.lessons: dict[str, Lesson] = {}  # those of them that are told
        self.opened = ""  # the run to show first, if any

    def add_lesson(self, name: str, told: Lesson) -> None:
        self.lessons[name] = told
        self.add_run(name, told.index)

    def add_run(self, name: str, index: Index) -> None:
        self.runs.pop(name, None)
        self.runs[name] = index
        kept = [each for each in self.runs if each != self.opened]
        for each in kept[: max(len(kept) - MOST_OPENED, 0)]:
            del self.runs[each]

    def find(self, request: HTTPRequest) -> Index:
        return self.named(request.parameters["run"])

    def named(self, name: str) -> Index:
        if name in self.driven:
            return self.driven[name].index
        if name not in self.runs:
            raise HTTPError(404, f"There is no run {name} any more: start another.")
        return self.runs[name]

    def find_driven(self, request: HTTPRequest) -> PageRun | None:
        return self.driven.get(request.parameters["run"])

    def about(self, request: HTTPRequest) -> dict[str, Any]:
        about = (self.find_driven(request) or self.find(request)).about()
        name = request.parameters["run"]
        if name.startswith("scenario:"):
            about["story"] = story(name.split(":")[1])
        told = self.lessons.get(name)
        return about if told is None else {**about, "lesson": told.shown()}


class Opening:
    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        self.uploads = Uploads()
        self.compared = 0

    def menu(self, _request: HTTPRequest) -> Response:
        return as_json({**offered(), "algorithms": [entry["name"] for entry in choices()]})

    # -- entries of the menu -----------------------------------------------------------------

    def open(self, request: HTTPRequest) -> Response:
        """Lines of JSON: how far it is, now and then, and at last which run it is, or why not."""
        lines = self.opened(asked(request))
        return Response(kind="application/jsonl", headers=HEADERS, stream=lines)

    async def opened(self, wanted: dict[str, Any]) -> AsyncGenerator[bytes, None]:
        kind, name = str(wanted.get("kind")), str(wanted.get("name"))
        algorithm = str(wanted.get("algorithm") or "")
        try:
            run = f"{kind}:{name}"
            if kind == "riddle" and name.isdecimal():
                run = self.shelf.driven.add("driven", RiddleRun(riddle(int(name[:6]))))
            elif kind == "scenario":
                run += f":{algorithm}"
                self.shelf.add_run(run, scenario_run(name, algorithm))
            elif kind == "lesson":
                self.shelf.add_lesson(run, lesson(name))
            elif kind == "study":
                self.shelf.add_run(run, example_run(name))
            elif kind == "mutant":
                search = Counterexample(name)
                for progress in search.progress():
                    yield line({"progress": progress})
                    await asyncio.sleep(0)  # others may ask; and the client may disconnect
                assert search.index is not None
                self.shelf.add_run(run, search.index)
            else:
                raise Refused("There is no such entry in the menu.")
        except Refused as error:
            yield line({"why": str(error)})
            return
        yield line({"run": run})

    # -- files -------------------------------------------------------------------------------

    def begin_file(self, request: HTTPRequest) -> Response:
        asked(request)
        return as_json({"file": self.uploads.coming.add("file", bytearray())})

    def add_to_file(self, request: HTTPRequest) -> Response:
        if request.header("content-type") != "application/octet-stream":
            raise HTTPError(415, "Send bytes.")
        self.uploads.add(request.parameters["file"], request.body)
        return as_json({})

    async def end_file(self, request: HTTPRequest) -> Response:
        name, called = request.parameters["file"], str(asked(request).get("name", ""))
        made = await aside(self.uploads.end, name, called)
        if isinstance(made, Lesson):
            self.shelf.add_lesson(name, made)
        else:
            self.shelf.add_run(name, made)
        return as_json({"run": name})

    # -- riddles -----------------------------------------------------------------------------

    def riddle(self, request: HTTPRequest) -> RiddleRun:
        run = self.shelf.find_driven(request)
        if not isinstance(run, RiddleRun):
            raise HTTPError(404, "This is no riddle, or it is gone: choose it from the menu again.")
        return run

    def hint(self, request: HTTPRequest) -> Response:
        return as_json({"says": self.riddle(request).riddle.hint()})

    async def verdict(self, request: HTTPRequest) -> Response:
        run = self.riddle(request)
        return as_json({"says": await aside(run.riddle.verdict, run.finding)})

    async def solution(self, request: HTTPRequest) -> Response:
        asked(request)  # it changes what may be seen
        return as_json(await aside(self.riddle(request).solution))

    # -- side by side --------------------------------------------------------------------------

    def compare(self, request: HTTPRequest) -> Response:
        comparison = Comparison(asked(request))
        self.compared += 1
        names = [f"left-{self.compared}", f"right-{self.compared}"]
        for name, side in zip(names, comparison.sides, strict=True):
            self.shelf.add_run(name, side.index)
        return as_json(comparison.shown(names))

    def comparable(self, _request: HTTPRequest) -> Response:
        scenarios = offered()["scenario"]
        names = [entry["name"] for entry in choices()]
        return as_json({"scenarios": scenarios, "algorithms": names, "topologies": TOPOLOGIES})

    def routes(self) -> list[Route]:
        run = "/api/runs/{run}"
        return [
            Route("GET", "/api/menu", self.menu),
            Route("POST", "/api/menu", self.open),
            Route("POST", "/api/files", self.begin_file),
            Route("POST", "/api/files/{file}", self.add_to_file),
            Route("POST", "/api/files/{file}/end", self.end_file),
            Route("GET", f"{run}/hint", self.hint),
            Route("GET", f"{run}/verdict", self.verdict),
            Route("POST", f"{run}/solution", self.solution),
            Route("GET", "/api/compare", self.comparable),
            Route("POST", "/api/compare", self.compare),
        ]


def line(value: dict[str, Any]) -> bytes:
    return msgspec.json.encode(value) + b"\n"
