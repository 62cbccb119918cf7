"""Algorithms from outside the package: of a file, of a module, or of a package that is installed.

A file or module has a list ``ALGORITHMS``, as every file here has. Loading it runs it, so only what
a person names on the command line or in a study is loaded; never what a peer, a page or a trace
names.

A package announces its algorithms as entry points of the group ``meshlock.algorithms``: the name
is the algorithm's, the object is its :class:`~meshlock.algorithms.actor.Algorithm`. Those are
found by their names like those of meshlock itself.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import extract_tb
from types import ModuleType
from typing import TYPE_CHECKING

from meshlock.algorithms.actor import Algorithm
from meshlock.algorithms.registry import ALGORITHMS
from meshlock.errors import Refused

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "meshlock.algorithms"

LOADED: dict[str, str] = {}
"""What was loaded, as a person wrote it, and the name of the algorithm."""


def load(text: str, again: bool = False) -> str:
    """The name of the algorithm that is written as ``mine.py``, ``mine.py:name`` or
    ``module:name``; any other text is a name already. With ``again`` a file that was loaded is
    read once more: it may have changed."""
    where, colon, name = text.partition(":")
    outside = where.endswith(".py") or (colon and where not in ALGORITHMS)
    if not outside and "/" in text and Path(text).is_dir():
        raise Refused(f"{text} is a folder: name an algorithm, or a file of one, such as mine.py.")
    if (text in LOADED and not again) or not outside:
        return LOADED.get(text, text)
    module = of_file(Path(where)) if where.endswith(".py") else of_name(where)
    found = {entry.name: entry for entry in offered(module, where)}
    if not name and len(found) > 1:
        first = next(iter(found))
        raise Refused(f"{where} has several algorithms: say which, as in {where}:{first}.")
    name = name or next(iter(found))
    if name not in found:
        raise Refused(f"{where} has no algorithm '{name}': it has {', '.join(found)}.")
    for entry in found.values():
        register(entry, where)
    LOADED[text] = name
    return name


def of_object(entry: Algorithm) -> str:
    """The name of an algorithm that a program made; a later one of that name replaces it."""
    if ALGORITHMS.get(entry.name) is not entry:
        register(entry, "This program")
        LOADED[f"object:{entry.name}"] = entry.name
    return entry.name


def register(entry: Algorithm, where: str) -> None:
    if entry.name in ALGORITHMS and entry.name not in LOADED.values():
        raise Refused(
            f"{where} calls its algorithm '{entry.name}', as meshlock calls one of its own: give "
            f"it another name."
        )
    ALGORITHMS[entry.name] = entry


def offered(module: ModuleType, where: str) -> list[Algorithm]:
    found = getattr(module, "ALGORITHMS", None)
    if not isinstance(found, list) or not found:
        raise Refused(
            f"{where} has no list of algorithms: end it with ALGORITHMS = [Algorithm(...)], as in "
            f"docs/laboratory/own-algorithm.md."
        )
    for entry in found:
        if not isinstance(entry, Algorithm):
            raise Refused(f"In {where}, ALGORITHMS has a {type(entry).__name__} in it.")
    return found


def of_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise Refused(f"There is no file {path}.")
    name = f"meshlock_outside_{path.stem}"
    spec = spec_from_file_location(name, path.resolve())
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module  # where the page finds its text
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)  # it may import what is beside it
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        if "cannot inherit from compiled" in str(error):
            raise Refused(
                f"{path} extends a class that is compiled in this meshlock ({error}): extend "
                f"Actor, Message or TokenMessage, or install it uncompiled."
            ) from error
        raise Refused(f"{path} does not run: {said(error, path)}.") from error
    return module


def of_name(name: str) -> ModuleType:
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.append(folder)  # as with python -m
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise Refused(f"There is no module '{error.name}' here or among those installed.") from None
    except (Exception, SystemExit) as error:
        raise Refused(f"The module {name} does not run: {said(error, Path(name))}.") from error


def said(error: BaseException, path: Path) -> str:
    """What is wrong, and in which line of the file, if it is text at all."""
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}, {error.msg}" if error.lineno else error.msg
    frames = extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if path.name in frame.filename]
    place = f"line {lines[-1]}, " if lines else ""
    if isinstance(error, SystemExit):
        return f"{place}it ends the program (sys.exit)"
    return f"{place}{type(error).__name__}: {error}"


# -- installed packages ---------------------------------------------------------------------


def installed() -> dict[str, EntryPoint]:
    """What installed packages announce, by name; nothing of it is imported yet."""
    from importlib.metadata import entry_points  # takes longer to load than all algorithms

    return {point.name: point for point in entry_points(group=GROUP)}


def of_package(name: str) -> Algorithm | None:
    """The algorithm of this name that an installed package has, if any."""
    point = installed().get(name)
    if point is None:
        return None
    try:
        entry = point.load()
    except (Exception, SystemExit) as error:
        raise Refused(
            f"The algorithm {name} of {point.value} does not load: {type(error).__name__}: {error}."
        ) from error
    if not isinstance(entry, Algorithm) or entry.name != name:
        raise Refused(f"The entry point {name} is to be an Algorithm of that name: {point.value}.")
    ALGORITHMS[name] = entry
    return entry
