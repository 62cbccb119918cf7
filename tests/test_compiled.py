"""What the compiled flavour needs of the source, seen without compiling it."""

from __future__ import annotations

import ast
import tomllib
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

from meshlock.algorithms.mutants.catalogue import MUTANTS
from meshlock.algorithms.mutants.mutant import Mutant
from meshlock.algorithms.mutants.patches import Remade

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "meshlock"
OPEN = "mypyc_attr(allow_interpreted_subclasses=True)"

if not SOURCE.is_dir():
    pytest.skip("the source is not here", allow_module_level=True)


@cache
def hook() -> dict[str, list[str]]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return settings["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["mypyc"]


def among(path: str, patterns: list[str]) -> bool:
    return any(path.startswith(f"{each}/") or fnmatch(path, each) for each in patterns)


def is_compiled(path: Path) -> bool:
    name = path.relative_to(ROOT).as_posix()
    return among(name, hook()["include"]) and not among(name, hook()["exclude"])


FILES = {
    f"meshlock.{'.'.join(path.relative_to(SOURCE).with_suffix('').parts)}": path
    for path in sorted(SOURCE.rglob("*.py"))
}


@cache
def tree_of(module: str) -> ast.Module:
    return ast.parse(FILES[module].read_text(encoding="utf-8"))


def closed_bases(module: str) -> list[str]:
    """Of the classes here: what they extend that lies in a compiled file and is not open."""
    homes = {
        alias.asname or alias.name: (node.module or "", alias.name)
        for node in ast.walk(tree_of(module))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    found = []
    for kind in ast.walk(tree_of(module)):
        for base in kind.bases if isinstance(kind, ast.ClassDef) else []:
            home, name = homes.get(ast.unparse(base), ("", ""))
            if home in FILES and is_compiled(FILES[home]) and not is_open(home, name):
                found.append(f"{module}: {kind.name} extends {home}.{name}")
    return found


def is_open(module: str, name: str) -> bool:
    return any(
        OPEN in [ast.unparse(decorator) for decorator in kind.decorator_list]
        for kind in tree_of(module).body
        if isinstance(kind, ast.ClassDef) and kind.name == name
    )


def test_what_is_left_to_python_extends_only_compiled_classes_that_are_open() -> None:
    """Others cannot be extended by Python: importing the file would fail, once compiled."""
    python = [module for module, path in FILES.items() if not is_compiled(path)]
    assert [each for module in python for each in closed_bases(module)] == []


@cache
def compiled_annotations() -> list[tuple[str, str, set[str], set[str]]]:
    """Of each function and class in a compiled file: its file, its name, the names in annotations,
    and the modules from which the file imports."""
    found = []
    for module, path in FILES.items():
        if not is_compiled(path):
            continue
        nodes = ast.walk(tree_of(module))
        homes = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
        for part in tree_of(module).body:
            notes = [getattr(node, "annotation", None) for node in ast.walk(part)]
            names = [n for note in notes if note is not None for n in ast.walk(note)]
            known = {name.id for name in names if isinstance(name, ast.Name)}
            found.append((module, getattr(part, "name", ""), known, homes | {module}))
    return found


def expected(module: str, kind: str, remade: dict[str, Remade]) -> list[str]:
    """Where compiled code that still runs says in an annotation that it takes only this class."""
    return [
        f"{other}: {part}"
        for other, part, names, homes in compiled_annotations()
        if module in homes and kind in names and part not in made_anew(other, remade)
    ]


def made_anew(module: str, remade: dict[str, Remade]) -> set[str]:
    """What is not the real one, nor extends it."""
    found = remade.get(module)
    return set() if found is None else found.anew - found.extended


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=list(MUTANTS))
def test_a_class_that_a_patch_makes_anew_is_not_expected_by_compiled_code(mutant: Mutant) -> None:
    """It would refuse it: let the patch change another place, or mark the class as open."""
    assert mutant.algorithm
    remade = mutant.patched.made
    for module in [module for module in remade if is_compiled(FILES[module])]:
        classes = {part.name for part in tree_of(module).body if isinstance(part, ast.ClassDef)}
        for kind in classes & made_anew(module, remade):
            assert expected(module, kind, remade) == []


def test_every_file_that_is_left_to_python_exists() -> None:
    for name in hook()["exclude"][1:]:
        assert (ROOT / name).exists(), name
