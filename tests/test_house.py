"""Limits of what one person can hold in the head: lines of a file, of a function and of the whole,
methods of a class, and imports that hide a cycle.

The lists of exceptions only become shorter: a test fails where an entry is stale.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import meshlock

ROOT = Path(meshlock.__file__).parent

LINES_OF_ALL = 61_000
"""Most lines of Python in src/. A change that saves lines lowers this number; only a capability
raises it: kinds of permits, lessons, properties of one's own, drop-in locks came last. The aim is
48,000."""

LINES_OF_A_FILE = 600
LONG_FILES: set[str] = set()

LINES_OF_A_FUNCTION = 80
LONG_FUNCTIONS: set[str] = set()

METHODS_OF_A_CLASS = 40
LARGE_CLASSES: set[str] = set()

ROOMS_WITH_CYCLES = {"live"}
"""Where modules name each other, at times for types only."""


def sources(root: Path) -> dict[str, str]:
    return {
        path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(root.rglob("*.py"))
    }


def long_files(root: Path) -> set[str]:
    return {file for file, text in sources(root).items() if text.count("\n") > LINES_OF_A_FILE}


def long_functions(root: Path) -> set[str]:
    """Those of which the lines from the first decorator to the end are too many."""
    found = set()
    for file, text in sources(root).items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = min([node.lineno, *(mark.lineno for mark in node.decorator_list)])
                if node.end_lineno is not None and node.end_lineno - first >= LINES_OF_A_FUNCTION:
                    found.add(f"{file}: {node.name}")
    return found


def large_classes(root: Path) -> set[str]:
    """Those with too many methods of their own; a setter is one, as its property is."""
    return {
        f"{file}: {node.name}"
        for file, text in sources(root).items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef)
        and sum(isinstance(line, ast.FunctionDef | ast.AsyncFunctionDef) for line in node.body)
        > METHODS_OF_A_CLASS
    }


def imports(node: ast.AST) -> Iterator[str]:
    """What a module names when it is read, for types only included; not what a function imports."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ImportFrom):
            yield str(child.module)
            yield from (f"{child.module}.{alias.name}" for alias in child.names)
        elif isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from imports(child)


def cycles(root: Path) -> set[tuple[str, ...]]:
    """Modules that import each other, one ring after the other, each without its last arrow."""
    names = {
        file.removesuffix(".py").removesuffix("/__init__").replace("/", "."): text
        for file, text in sources(root).items()
    }
    arrows = {
        name: {found.removeprefix("meshlock.") for found in imports(ast.parse(text))} & set(names)
        for name, text in names.items()
    }
    rings: set[tuple[str, ...]] = set()
    while True:
        try:
            TopologicalSorter(arrows).prepare()
        except CycleError as error:
            ring = error.args[1]  # each imports the one before
            rings.add(tuple(sorted(set(ring))))
            arrows[ring[1]].discard(ring[0])
        else:
            return rings


def test_no_file_is_long() -> None:
    assert long_files(ROOT) == LONG_FILES


def test_no_function_is_long() -> None:
    assert long_functions(ROOT) == LONG_FUNCTIONS


def test_no_class_has_many_methods() -> None:
    assert large_classes(ROOT) == LARGE_CLASSES


def test_the_whole_becomes_shorter() -> None:
    lines = sum(text.count("\n") for text in sources(ROOT).values())
    assert lines <= LINES_OF_ALL, f"{lines - LINES_OF_ALL:,} lines too many"


def test_no_import_hides_a_cycle() -> None:
    """Most of all in algorithms/: the base does not know its extension."""
    found = cycles(ROOT)
    assert {name.split(".")[0] for ring in found for name in ring} == ROOMS_WITH_CYCLES, found


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A house that breaks every limit by one."""
    (tmp_path / "one.py").write_text(
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from meshlock.two import Two\n"
        "def long():\n" + "    pass\n" * LINES_OF_A_FUNCTION
    )
    (tmp_path / "two.py").write_text(
        "from meshlock import one\nclass Two:\n"
        + "    def same(self): ...\n" * (METHODS_OF_A_CLASS + 1)
        + "#\n" * LINES_OF_A_FILE
    )
    return tmp_path


def test_what_breaks_a_limit_is_found(tree: Path) -> None:
    assert long_files(tree) == {"two.py"}
    assert long_functions(tree) == {"one.py: long"}
    assert large_classes(tree) == {"two.py: Two"}
    assert cycles(tree) == {("one", "two")}


def test_what_keeps_the_limits_is_not(tree: Path) -> None:
    one, two = tree / "one.py", tree / "two.py"
    one.write_text(
        one.read_text().replace("    pass\n", "", 1).replace("if TYPE", "def late():\n#")
    )
    two.write_text("class Two:\n" + "    def same(self): ...\n" * METHODS_OF_A_CLASS)
    found = long_files(tree), long_functions(tree), large_classes(tree)
    assert found == (set(), set(), set())
