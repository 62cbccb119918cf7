"""Algorithms of files, modules and installed packages."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from meshlock.algorithms import outside
from meshlock.algorithms.outside import load
from meshlock.algorithms.registry import ALGORITHMS, find
from meshlock.errors import Refused

LOCK = """
from meshlock.algorithms.general_scheme import Request, Token
from meshlock.algorithms.scheme_instances import instance

def named(name):
    return instance(name, "A lock", "transit")

MINE = named("mine")
ALGORITHMS = [MINE]
"""


@pytest.fixture(autouse=True)
def nothing_stays(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    known, modules = dict(ALGORITHMS), set(sys.modules)
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.chdir(tmp_path)
    yield
    ALGORITHMS.clear()
    ALGORITHMS.update(known)
    outside.LOADED.clear()
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def written(text: str, name: str = "own_lock.py") -> str:
    Path(name).write_text(text, encoding="utf-8")
    return name


def test_a_file_is_loaded_once_and_found_by_its_algorithms_name() -> None:
    path = written(LOCK)
    assert load(path) == "mine"
    first = find("mine")
    Path(path).unlink()
    assert load(path) == "mine"
    assert find("mine") is first


def test_of_several_algorithms_one_is_named() -> None:
    path = written(LOCK + 'ALGORITHMS.append(named("yours"))\n')
    with pytest.raises(Refused, match="several algorithms: say which, as in own_lock"):
        load(path)
    assert load(f"{path}:yours") == "yours"
    with pytest.raises(Refused, match="no algorithm 'ours': it has mine, yours"):
        load(f"{path}:ours")


def test_a_module_is_found_where_the_command_is_given() -> None:
    written(LOCK)
    assert load("own_lock:mine") == "mine"
    with pytest.raises(Refused, match="no module 'own_lick' here"):
        load("own_lick:mine")


def test_names_of_our_own_are_left_alone() -> None:
    for name in ("jiang", "raymond/keeps-and-sends", "no-such-thing", "jiang:moves"):
        assert load(name) == name


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("x = 1\n", "has no list of algorithms"),
        ("ALGORITHMS = [1]\n", "ALGORITHMS has a int in it"),
        ("x = 1\ny = (\n", "does not run: line 2"),
        ("x = 1\n\ny = 1 / 0\n", "does not run: line 3, ZeroDivisionError: division by zero"),
        ("import sys\nsys.exit(0)\n", r"does not run: line 2, it ends the program \(sys.exit\)\."),
        ("x = 1\0\n", "does not run: source code"),
        (LOCK.replace('"mine"', '"raymond"'), "calls its algorithm 'raymond', as meshlock calls"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_in_a_sentence(text: str, sentence: str) -> None:
    path = written(text)
    with pytest.raises(Refused, match=sentence):
        load(path)


def test_a_folder_is_no_algorithm(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="is a folder: name an algorithm"):
        load(str(tmp_path))


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(Refused, match="There is no file nowhere"):
        load("nowhere.py")


def test_nobody_loads_a_file_by_asking_for_an_algorithm() -> None:
    """Peers, pages and traces do that."""
    path = written("open('was-run', 'w').close()\n" + LOCK)
    for name in (path, "own_lock:mine"):
        with pytest.raises(Refused, match="There is no"):
            find(name)
    assert not Path("was-run").exists()


def announced(value: str, tmp_path: Path) -> None:
    """A package that is installed in this folder."""
    written(LOCK, "lock_package.py")
    info = tmp_path / "lock_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lock-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[meshlock.algorithms]\nmine = {value}\n")
    sys.path.insert(0, str(tmp_path))


def test_an_installed_package_announces_its_algorithm(tmp_path: Path) -> None:
    announced("lock_package:MINE", tmp_path)
    assert list(outside.installed()) == ["mine"]
    assert "lock_package" not in sys.modules
    assert find("mine").title == "A lock"
    assert find("mine") is ALGORITHMS["mine"]


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("lock_package:YOURS", "does not load: AttributeError"),
        ("lock_package:ALGORITHMS", "is to be an Algorithm of that name"),
    ],
)
def test_a_package_that_announces_what_it_has_not(
    value: str, sentence: str, tmp_path: Path
) -> None:
    announced(value, tmp_path)
    with pytest.raises(Refused, match=sentence):
        find("mine")
