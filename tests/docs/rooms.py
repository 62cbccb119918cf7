"""The rules of each room, as the first lines of its docstring say them."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import NamedTuple

import meshlock

SOURCE = Path(meshlock.__file__).parent
IMPORTS, UNKNOWN = "May import: ", "Must not know: "


class Room(NamedTuple):
    name: str
    purpose: str
    imports: str
    unknown: str


def docstring(path: Path) -> str:
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


def room(folder: Path) -> Room:
    """Its docstring begins with three lines: purpose, what it may import, what it must not know."""
    lines = docstring(folder / "__init__.py").splitlines()
    name = folder.relative_to(SOURCE).as_posix()
    said = [
        "".join(line.removeprefix(start) for line in lines if line.startswith(start)).rstrip(".")
        for start in (IMPORTS, UNKNOWN)
    ]
    assert lines[:1] and all(said), f"{name}/__init__.py does not say the rules of its room"
    return Room(name, lines[0].rstrip("."), *said)


def rooms() -> list[Room]:
    found = sorted(path.parent for path in SOURCE.rglob("__init__.py"))
    return [room(folder) for folder in found if folder != SOURCE]


def table() -> str:
    """As the page about the architecture shows it."""
    rows = [
        f"| [{one.name}/](../../src/meshlock/{one.name}/__init__.py) "
        f"| {one.purpose} | {one.imports} | {one.unknown} |"
        for one in rooms()
    ]
    return "\n".join(
        ["| room | what it is for | may import | must not know |", "|---|---|---|---|", *rows]
    )
