"""The page on writing an algorithm: its lock fails where it says so, and is mended as it says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs/laboratory/own-algorithm.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


def blocks(kind: str) -> list[str]:
    return [text for found, text in BLOCK.findall(PAGE) if found == kind]


def meshlock(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "meshlock", *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder)


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("broken")
    (folder / "mine.py").write_text(blocks("python")[0], encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def mended(broken: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    text = (broken / "mine.py").read_text(encoding="utf-8")
    old: list[str] = []
    for line in blocks("diff")[0].splitlines(keepends=True):
        if line[0] == "-":
            old.append(line[1:])
        else:
            assert text.count("".join(old)) == 1
            text = text.replace("".join(old), line[1:])
            old = []
    folder = tmp_path_factory.mktemp("mended")
    (folder / "mine.py").write_text(text, encoding="utf-8")
    return folder


def commands() -> list[tuple[str, str]]:
    """Each command of the page that checks, and what it says."""
    found = []
    for block in blocks("console"):
        first, *said = block.splitlines()
        if first.startswith("$ meshlock check --algorithm mine.py") and "--trace" not in first:
            found.append((first.removeprefix("$ meshlock "), "\n".join(said)))
    return found


def test_the_lock_fails_and_is_mended_as_the_page_says(broken: Path, mended: Path) -> None:
    two, three, four, again = commands()
    done = meshlock(broken, *two[0].split())
    assert done.returncode == 0
    for folder, (command, said), code in [
        (broken, three, 1),
        (mended, four, 0),
        (mended, again, 0),
    ]:
        done = meshlock(folder, *command.split())
        assert done.returncode == code
        assert said in done.stdout


def test_the_counterexample_plays_again(broken: Path) -> None:
    flags = ["check", "--algorithm", "mine.py", "--nodes", "3", "--trace", "way.jsonl"]
    assert meshlock(broken, *flags).returncode == 1
    played = meshlock(broken, "replay", "way.jsonl", "--algorithm", "mine.py")
    assert played.returncode == 1
    assert "served VIOLATED" in played.stdout
    without = meshlock(broken, "replay", "way.jsonl")
    assert (without.returncode, without.stdout) == (2, "")
    assert "There is no algorithm 'mine'" in without.stderr


def test_the_same_file_is_simulated_compared_and_played(mended: Path) -> None:
    flags = ["simulate", "--algorithm", "mine.py", "--nodes", "5", "--requests", "50", "--json"]
    run = json.loads(meshlock(mended, *flags).stdout)
    assert (run["algorithm"], run["entries"], run["violated"]) == ("mine", 50, [])

    settings = ["--set", "nodes=13", "--set", "workload=serial", "--set", "requests=400"]
    done = meshlock(mended, "compare", "mine.py", "centralized", *settings, "--json")
    figures = json.loads(done.stdout)["results"]
    costs = [figures[name]["messages_per_entry"] for name in ("mine.py", "centralized")]
    assert costs[0] == costs[1]

    (mended / "one.txt").write_text("nodes 2\nlinks 0-1\nrequest 1\nfinish\n", encoding="utf-8")
    played = meshlock(mended, "scenario", "one.txt", "--algorithm", "mine.py")
    assert played.returncode == 0
    assert "played by mine" in played.stdout


def test_workers_of_a_study_load_the_file_too(mended: Path) -> None:
    study = 'algorithm = ["mine.py", "centralized"]\nnodes = [3, 5]\nrequests = 50\n'
    (mended / "study.toml").write_text(study, encoding="utf-8")
    done = meshlock(mended, "sweep", "study.toml", "--workers", "2", "--json")
    assert done.returncode == 0, done.stderr
    kept = (mended / "study.sweep" / "runs.jsonl").read_text(encoding="utf-8").splitlines()
    costs: dict[int, set[float]] = {}
    for line in map(json.loads, kept):
        cost = line["figures"]["messages_per_entry"]
        costs.setdefault(line["values"]["nodes"], set()).add(cost)
    assert [len(found) for found in costs.values()] == [1, 1]


def test_a_handler_that_raises_is_shown_with_its_line(broken: Path, tmp_path: Path) -> None:
    text = (broken / "mine.py").read_text(encoding="utf-8")
    place = "    def give(self, node):\n"
    text = text.replace(place, f"{place}        self.waiting.append(node)\n")
    (tmp_path / "mine.py").write_text(text, encoding="utf-8")
    number = text[: text.index("self.waiting.append")].count("\n") + 1
    found = meshlock(tmp_path, "check", "--algorithm", "mine.py", "--nodes", "2")
    assert f"mine.py, line {number})" in found.stdout and "AttributeError: 'int'" in found.stdout


def test_an_unknown_structure_is_refused(broken: Path, tmp_path: Path) -> None:
    text = (broken / "mine.py").read_text(encoding="utf-8")
    text = text.replace(
        "(Request, Token), ROUTED", '(Request, Token), ROUTED, structure=("downhil",)'
    )
    (tmp_path / "mine.py").write_text(text, encoding="utf-8")
    found = meshlock(tmp_path, "check", "--algorithm", "mine.py", "--nodes", "2")
    assert found.returncode == 2 and "mine claims 'downhil'; a structure is one of" in found.stderr
