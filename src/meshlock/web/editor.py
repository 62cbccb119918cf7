"""Algorithms that the reader of the page changes, or writes.

Their text runs where this runs. So only a browser tab offers it, which has Python to itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from traceback import extract_tb
from typing import Any

import msgspec

from meshlock.algorithms import outside
from meshlock.algorithms.actor import Algorithm, Newcomers
from meshlock.algorithms.mutants.patches import PACKAGE, Patched, text_of
from meshlock.algorithms.registry import ALGORITHMS, MODULES, find
from meshlock.check.arguments import setup
from meshlock.errors import Refused
from meshlock.live.interfaces.site import HTTPRequest, Response, Route
from meshlock.web.answers import HEADERS, as_json, json_of
from meshlock.web.handlers import classes
from meshlock.web.opening import Search, Shelf, line

OWN = "mine.py"
SKELETON = Path(__file__).with_name("skeleton.txt")
MOST_TEXT = 1_000_000
SHARED = ("actor", "subclassing", "variables")
"""Modules that every algorithm stands on; they are not shown."""


class Edited(msgspec.Struct):
    """What the page sends: an algorithm, the files of it that are changed, and a set-up."""

    algorithm: str
    files: dict[str, str] = {}
    setup: dict[str, Any] = {}


def home(algorithm: Algorithm) -> str:
    """The module that declares it."""
    (module,) = [one for one in MODULES if algorithm in one.ALGORITHMS]
    return module.__name__


def files(name: str) -> dict[str, str]:
    """The texts that make this algorithm what it is, that of its nodes first."""
    if name == OWN:
        return {OWN: SKELETON.read_text(encoding="utf-8")}
    algorithm = find(name)
    if all(algorithm not in one.ALGORITHMS for one in MODULES):
        raise Refused(f"{name} cannot be changed here: choose the algorithm that it comes from.")
    modules = [kind.__module__ for kind in reversed(classes(algorithm))] + [home(algorithm)]
    known = {name: name.removeprefix(f"{PACKAGE}.") for name in modules if PACKAGE in name}
    return {f"{file}.py": text_of(name) for name, file in known.items() if file not in SHARED}


class Broken(Refused):
    """A text that does not run; the page shows where."""

    def __init__(self, error: BaseException, names: list[str]) -> None:
        frames = [(frame.filename, frame.lineno) for frame in extract_tb(error.__traceback__)]
        if isinstance(error, SyntaxError):
            frames.append((error.filename or names[0], error.lineno))
        self.place: dict[str, Any] = {}
        for file, number in frames:
            for name in names:
                if name in file:
                    self.place = {"file": name, "line": number}
        said = error.msg if isinstance(error, SyntaxError) else str(error)
        where = "{file}, line {line}: ".format(**self.place) if self.place else ""
        super().__init__(f"{where}{type(error).__name__}: {said}")


class Editor:
    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        self.made = 0

    def sources(self, request: HTTPRequest) -> Response:
        name = request.parameters["algorithm"]
        complete = name != OWN and find(name).assumes.complete_graph
        return as_json({"files": files(name), "topology": "complete" if complete else "line"})

    def make(self, edited: Edited) -> str:
        """The name of the algorithm with these texts, from now on."""
        if not edited.files:
            return find(edited.algorithm).name
        self.made += 1
        try:
            if edited.algorithm == OWN:
                return self.own(edited.files[OWN])
            return self.changed(edited)
        except Refused as error:
            cause = error.__cause__
            raise error if cause is None else Broken(cause, list(edited.files)) from None
        except (Exception, SystemExit) as error:
            raise Broken(error, list(edited.files)) from None

    def own(self, text: str) -> str:
        path = Path(f"/tmp/edited-{self.made}/{OWN}")
        path.parent.mkdir(parents=True)
        path.write_text(text, encoding="utf-8")
        return outside.load(str(path))

    def changed(self, edited: Edited) -> str:
        origin = find(edited.algorithm)
        patched = Patched(f"{origin.name}/edited-{self.made}", "")
        for file, text in edited.files.items():
            compile(text, file, "exec")  # so that an error names the file
            patched.texts[f"{PACKAGE}.{file.removesuffix('.py').replace('/', '.')}"] = text
        entries = patched.module(home(origin), "ALGORITHMS").ALGORITHMS
        for found in entries:
            if found.name == origin.name:
                title = f"{origin.title}, edited"
                entry = found._replace(name=patched.name, title=title, newcomers=Newcomers())
                ALGORITHMS[entry.name] = entry
                return str(entry.name)
        raise Refused(f"The list ALGORITHMS has no {origin.name} in it any more.")

    def edit(self, request: HTTPRequest) -> Response:
        try:
            return as_json({"algorithm": self.make(decoded(request))})
        except Broken as error:
            return as_json({"why": str(error), **error.place}, 400)

    def check(self, request: HTTPRequest) -> Response:
        """Lines of JSON: how far it is, now and then, and at last what came of it."""
        stream = self.checked(decoded(request))
        return Response(kind="application/jsonl", headers=HEADERS, stream=stream)

    async def checked(self, edited: Edited) -> AsyncGenerator[bytes, None]:
        try:
            name = self.make(edited)
            run = f"check:{self.made}"
            try:
                search = Search(run, setup(algorithm=name, **edited.setup), [])
                for progress in search.progress():
                    yield line({"progress": progress})
                    await asyncio.sleep(0)  # the page may stop it
            except (Refused, asyncio.CancelledError):
                raise
            except Exception as error:
                raise Broken(error, list(edited.files) or [OWN]) from None
        except Refused as error:
            yield line({"why": str(error), **getattr(error, "place", {})})
            return
        if search.index is None:
            yield line({"holds": search.check.summary()})
            return
        self.shelf.add_run(run, search.index)
        yield line({"run": run})

    def routes(self) -> list[Route]:
        return [
            Route("GET", "/api/sources/{algorithm}", self.sources),
            Route("POST", "/api/edited", self.edit),
            Route("POST", "/api/checks", self.check),
        ]


def decoded(request: HTTPRequest) -> Edited:
    return msgspec.json.decode(json_of(request, MOST_TEXT), type=Edited)
