"""Arrows between the packages point one way."""

import ast
from pathlib import Path

import meshlock

ROOT = Path(meshlock.__file__).parent

MAY_IMPORT = {
    "algorithms": set(),
    "topology": {"algorithms"},
    "properties": {"algorithms", "topology"},
    "trace": {"algorithms", "topology", "properties"},
    "simulate": {"algorithms", "topology", "properties", "trace"},
    "check": {"algorithms", "topology", "properties", "trace", "simulate"},
    "live": {"algorithms", "topology", "properties", "trace"},
    "web": {"algorithms", "topology", "properties", "trace", "simulate", "check", "live"},
    "cli": {"algorithms", "topology", "properties", "trace", "simulate", "check", "live", "web"},
}


def imported_parts(path: Path) -> set[str]:
    parts = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
            if node.module == "meshlock":
                names = [f"meshlock.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        parts |= {name.split(".")[1] for name in names if name.startswith("meshlock.")}
    return parts - {"__version__"}


def test_every_package_imports_only_what_lies_below_it():
    wrong = []
    for path in ROOT.rglob("*.py"):
        package = path.relative_to(ROOT).parts[0]
        if package in MAY_IMPORT:
            forbidden = imported_parts(path) - MAY_IMPORT[package] - {package}
            wrong += [f"{path.relative_to(ROOT)} imports {name}" for name in forbidden]
    assert not wrong


def test_every_package_has_a_place_in_the_order():
    packages = {path.name for path in ROOT.iterdir() if (path / "__init__.py").exists()}
    assert packages <= set(MAY_IMPORT)
