"""What ``pip install meshlock`` brings, without any extra: small, and enough for the laboratory."""

from __future__ import annotations

import marshal
import subprocess
import sys
import tomllib
from importlib.metadata import Distribution, distribution, packages_distributions
from importlib.util import cache_from_source
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import meshlock
from waiting import LIMIT

PROJECT = Path(__file__).parent.parent / "pyproject.toml"
MEGABYTE = 1_000_000


def base() -> set[str]:
    """The distributions that meshlock without extras needs, and those that they need."""
    needed: set[str] = set()
    texts = list(tomllib.loads(PROJECT.read_text())["project"]["dependencies"])
    while texts:
        requirement = Requirement(texts.pop())
        wanted = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if wanted and requirement.name not in needed:
            needed.add(requirement.name)
            texts += distribution(requirement.name).requires or []
    return needed


def files(package: Distribution) -> list[Path]:
    return [Path(str(package.locate_file(file))) for file in package.files or []]


def weight(paths: list[Path]) -> int:
    """Bytes of the files and of the bytecode that pip puts beside them."""
    total = 0
    for path in paths:
        if path.suffix == ".pyc" or not path.is_file():
            continue
        total += path.stat().st_size
        if path.suffix == ".py":
            cached = Path(cache_from_source(str(path)))
            if cached.is_file():
                total += cached.stat().st_size
            else:
                total += len(marshal.dumps(compile(path.read_bytes(), path, "exec")))
    return total


def test_base_and_all_it_needs_stay_under_thirty_megabytes() -> None:
    ours = [path for path in Path(meshlock.__file__).parent.rglob("*") if path.suffix != ".so"]
    weights = {name: weight(files(distribution(name))) for name in base()}
    weights["meshlock"] = weight(ours)
    assert min(weights.values()) > 1_000, weights
    assert sum(weights.values()) < 30 * MEGABYTE, weights


ONLY_THE_BASE = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in EXTRAS:
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)

sys.meta_path.insert(0, Missing())
from meshlock.cli.main import run
run()
"""


def with_base_alone(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run meshlock where every module that the base does not bring is missing."""
    brought = {name.lower().replace("-", "_") for name in {*base(), "meshlock"}}
    extras = {
        module
        for module, names in packages_distributions().items()
        if not brought & {name.lower().replace("-", "_") for name in names}
    }
    program = f"EXTRAS = {sorted(extras)!r}{ONLY_THE_BASE}"
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=LIMIT
    )


def test_the_laboratory_needs_no_extra(tmp_path: Path) -> None:
    trace, graph = str(tmp_path / "run.jsonl"), tmp_path / "net.graphml"
    graph.write_text(
        "<graphml><graph><node id='0'/><node id='1'/>"
        "<edge source='0' target='1'/></graph></graphml>"
    )
    study = tmp_path / "study.toml"
    study.write_text("nodes = [2, 3]\nrequests = 20\n")
    run = ["--requests", "20", "--trace", trace]
    for command in (
        ["simulate", "--nodes", "8", "--topology", "random:0.5", *run],
        ["simulate", "--nodes", "8", "--topology", "links:10", *run],
        ["simulate", "--topology", str(graph), *run],
        ["audit", trace],
        ["convert", trace, "--to", "mermaid", "-o", str(tmp_path / "run.mmd")],
        ["convert", trace, "--to", "csv", "-o", str(tmp_path / "run.csv")],
        ["compare", "jiang", "raymond", "--set", "nodes=4", "--set", "requests=20"],
        ["sweep", str(study), "--out", str(tmp_path / "sweep"), "--workers", "2"],
        ["check", "--nodes", "3", "--topology", "line", "--permits", "1", "--request", "2:1@1"],
        ["scenario", "J1", "--algorithm", "jiang"],
    ):
        done = with_base_alone(*command)
        assert done.returncode == 0, (command, done.stderr)


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        (["demo"], "live"),
        (["certs", "authority"], "live"),
        (["sweep", "any.toml", "--dask", "tcp://127.0.0.1:1"], "cluster"),
        (["agent", "--discover", "--listen", "127.0.0.1:0"], "discovery"),
    ],
)
def test_what_is_missing_is_said_in_a_sentence(command: list[str], extra: str) -> None:
    done = with_base_alone(*command)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("meshlock: ")
    assert done.stderr.endswith(f"pip install 'meshlock[{extra}]'.\n")
    assert done.stderr.count("\n") == 1
