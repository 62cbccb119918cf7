"""The judge of virtual chaos is awake: it notices live nodes with a rule undone.

``campaigns/virtual_chaos.py --sabotage all`` tries all of them, which takes long, and makes the
table of docs/appendices/sabotages.md. Here a few are noticed again, each in the run that noticed
it there; in a process of its own, for what a seed does depends on how names are hashed.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from sabotages import SABOTAGES, sabotaged

ROOT = Path(__file__).parents[3]
TABLE = ROOT / "docs" / "appendices" / "sabotages.md"

PINNED = ["tells-no-client@0", "names-the-first@0", "gives-the-rest-away@0"]
PINNED += ["quorum-too-small@0", "tells-no-session@9100"]
"""Sabotages, and the seeds of the runs; two more runs, should a change of the nodes change them.
The last one is possible in compiled nodes, too."""


def rows() -> dict[str, list[str]]:
    lines = [line for line in TABLE.read_text().splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: row[1:] for row in cells if row[0] in SABOTAGES}


def test_sabotages_are_noticed() -> None:
    words = [word for word in PINNED if SABOTAGES[word.partition("@")[0]].possible()]
    if not words:
        pytest.skip("what they undo is compiled")
    command = [sys.executable, str(ROOT / "campaigns" / "virtual_chaos.py"), "--runs", "3"]
    done = subprocess.run([*command, "--sabotage", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("chaos: ") == len(words), done.stdout


def test_what_is_undone_is_there_and_is_put_back() -> None:
    """A rule that has moved would leave a sabotage that undoes nothing, or cannot be tried. Each
    patch fits the source once, and changes functions of this process."""
    for sabotage in SABOTAGES.values():
        if sabotage.possible():
            functions = sabotage.functions()
            before = [function.__code__ for function, _ in functions]
            with sabotaged(sabotage):
                now = [function.__code__ for function, _ in functions]
                assert now == [code for _, code in functions] != before, sabotage.name
            assert [function.__code__ for function, _ in functions] == before, sabotage.name
        if sabotage.test:
            file, _, test = sabotage.test.partition("::")
            assert f"def {test}" in (ROOT / "tests" / file).read_text(), sabotage.name


def test_the_table_has_them_all_and_none_survives() -> None:
    table = rows()
    assert set(table) == set(SABOTAGES)
    for name, (what, noticed, _) in table.items():
        assert what == SABOTAGES[name].what, name
        judges = (
            "real chaos: ",
            "virtual chaos: ",
            "chaos: ",
            "simulator: ",
            "test: ",
            "checker: ",
        )
        assert noticed.startswith(judges), name
