"""The table of findings names tests, mutants, sabotages and campaigns that there are."""

from __future__ import annotations

import re

from pages import ROOT

from meshlock.algorithms.mutants.catalogue import MUTANTS

PAGE = ROOT / "docs" / "appendices" / "findings.md"
NAMED = re.compile(r"`([^`]+)`")
SABOTAGES = re.compile(r"sabotages? ((?:`[\w-]+`(?:, )?)+)")


def test_what_the_table_names_is_there() -> None:
    text = PAGE.read_text(encoding="utf-8")
    tests = [path for path in (ROOT / "tests").rglob("*.py") if path.name != "test_findings.py"]
    tests.append(ROOT / "tests" / "live" / "sabotages.toml")
    files = {path.name for path in tests}
    source = "\n".join(path.read_text(encoding="utf-8") for path in tests)
    names = {name for line in text.splitlines() if line[0:1] == "|" for name in NAMED.findall(line)}
    gone = [name for name in names if name.startswith("test_") and name.endswith(".py")]
    gone = [name for name in gone if name not in files]
    gone += [name for name in names if re.fullmatch(r"test_\w+", name) and name not in source]
    gone += [
        name for name in names if re.fullmatch(r"[a-z-]+/[a-z-]+", name) and name not in MUTANTS
    ]
    gone += [
        name for name in names if re.fullmatch(r"\w+/\w+\.py", name) and not (ROOT / name).exists()
    ]
    sabotages = {name for found in SABOTAGES.findall(text) for name in NAMED.findall(found)}
    assert len(sabotages) > 5
    gone += [name for name in sabotages if f'"{name}"' not in source]
    assert gone == []
