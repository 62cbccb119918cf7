"""Arrows between the packages point one way, and so do those between the rooms of live/."""

import ast
import re
from pathlib import Path

import pytest

import meshlock
from meshlock.errors import setting

ROOT = Path(meshlock.__file__).parent

MAY_IMPORT = {
    "algorithms": set(),
    "topology": {"algorithms"},
    "properties": {"algorithms", "topology"},
    "trace": {"algorithms", "topology", "properties"},
    "world": {"algorithms", "topology", "properties", "trace"},
    "simulate": {"algorithms", "topology", "properties", "trace", "world"},
    "sweep": {"algorithms", "topology", "properties", "trace", "simulate"},
    "check": {"algorithms", "topology", "properties", "trace", "world", "simulate"},
    "live": {"algorithms", "topology", "properties", "trace"},
    "web": {"algorithms", "topology", "properties", "trace", "simulate", "check", "live"},
    "cli": {
        "algorithms",
        "topology",
        "properties",
        "trace",
        "simulate",
        "sweep",
        "check",
        "live",
        "web",
    },
}

FOR_ALL = {"__version__", "errors", "settings"}
"""Every package may import these; :func:`test_what_all_may_import_imports_nothing` says why."""

ROOMS_MAY_IMPORT = {
    "machine": set(),
    "links": {"machine"},
    "pools": {"machine", "links"},
    "interfaces": {"machine", "links", "pools"},
    "chaos": {"machine", "links", "pools", "interfaces"},
    "demo": {"machine", "links", "pools", "interfaces", "chaos"},
}


def imported(path: Path) -> set[str]:
    """The names that a file imports, in full, those within functions included."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


def parts_below(package: str, path: Path) -> set[str]:
    """Of all that a file imports: which parts of this package."""
    return {
        name.removeprefix(f"{package}.").split(".")[0]
        for name in imported(path)
        if name.startswith(f"{package}.")
    }


def upward(package: str, may_import: dict[str, set[str]], for_all: set[str]) -> list[str]:
    root = ROOT.joinpath(*package.split(".")[1:])
    return [
        f"{path.relative_to(ROOT)} imports {name}"
        for part, allowed in may_import.items()
        for path in (root / part).rglob("*.py")
        for name in sorted(parts_below(package, path) - allowed - for_all - {part})
    ]


PAGE = Path(__file__).parents[1] / "docs" / "how-it-works" / "architecture.md"


def packages_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if (path / "__init__.py").exists()}


def test_every_package_imports_only_what_lies_below_it():
    assert not upward("meshlock", MAY_IMPORT, FOR_ALL)


def test_every_package_has_a_place_in_the_order():
    assert packages_in(ROOT) == set(MAY_IMPORT)


def test_every_room_of_live_imports_only_what_lies_below_it():
    assert not upward("meshlock.live", ROOMS_MAY_IMPORT, set())


def test_every_file_of_live_is_in_a_room_that_has_a_place_in_the_order():
    assert packages_in(ROOT / "live") == set(ROOMS_MAY_IMPORT)
    assert [path.name for path in (ROOT / "live").glob("*.py")] == ["__init__.py"]


FLAG = re.compile(r"(?<![\w-])--[a-z]")
COMMAND_LINES = {
    "check/mutants.py",
    "live/pools/peers.py",
    "sweep/runs.py",
    "web/opening.py",
}
"""Files that write whole command lines, to be copied."""
DECLARATIONS = {
    "check/settings.py",
    "live/interfaces/agent_settings.py",
    "live/interfaces/pytest_plugin.py",
    "simulate/run_settings.py",
}
"""Files that declare settings, with the help of their flags."""


def names_flags(path: Path) -> bool:
    """In what users read; docstrings are for readers of the source."""
    tree = ast.parse(path.read_text())
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings
    texts = [node for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    return any(
        isinstance(text.value, str) and FLAG.search(text.value) and id(text) not in said
        for text in texts
    )


def test_flags_are_named_by_the_command_line_only():
    """Elsewhere sentences name settings, which the command line has called flags."""
    named = {
        str(path.relative_to(ROOT))
        for path in ROOT.rglob("*.py")
        if path.relative_to(ROOT).parts[0] != "cli" and names_flags(path)
    }
    assert named == COMMAND_LINES | DECLARATIONS
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("meshlock.errors._before", "")
        assert setting("max-states") == "max_states"


def test_what_all_may_import_imports_nothing():
    assert imported(ROOT / "errors.py") <= {"__future__.annotations"}
    assert not parts_below("meshlock", ROOT / "settings.py")


def test_an_upward_arrow_is_found(tmp_path, monkeypatch):
    (tmp_path / "live" / "links").mkdir(parents=True)
    (tmp_path / "live" / "links" / "mesh.py").write_text(
        "def late():\n    from meshlock.live.pools import pool\n"
    )
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    assert upward("meshlock.live", ROOMS_MAY_IMPORT, set()) == ["live/links/mesh.py imports pools"]


@pytest.mark.parametrize("package", [*MAY_IMPORT, *(f"live.{room}" for room in ROOMS_MAY_IMPORT)])
def test_a_room_says_what_it_may_import(package):
    """In the first lines of its docstring, which the page about the architecture lists."""
    folder, _, room = package.rpartition(".")
    allowed = ROOMS_MAY_IMPORT[room] if folder else MAY_IMPORT[package]
    text = ast.get_docstring(
        ast.parse((ROOT / package.replace(".", "/") / "__init__.py").read_text())
    )
    said = re.search(r"^May import: (.*)\.$", text, re.MULTILINE)
    assert said is not None
    assert set(said[1].split(", ")) - {"nothing"} == allowed


def test_what_the_page_links_to_is_there():
    for target in re.findall(r"\]\(([^)#:]+)\)", PAGE.read_text(encoding="utf-8")):
        assert (PAGE.parent / target).exists(), target


def test_live_tests_lie_in_rooms() -> None:
    """As the code does; what they share lies above the rooms."""
    assert list((Path(__file__).parent / "live").glob("test_*.py")) == []
