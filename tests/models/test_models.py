"""Models of locks that people use: each reproduces what was reported, and has a version that holds.

The page in docs says in how many steps.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from commands import meshlock

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/laboratory/other-locks.md"

CLIENTS = {"redis": (2, 3), "redlock": (3, 4), "etcd": (1, 2, 3)}
"""The nodes that ask; of the others nodes 1 and 2."""

RESOURCE = {"etcd", "zookeeper"}
"""They have one more node, which is written to."""

WRONG = [
    ("redis", "", "safety", 8),
    ("redis", "replication=first expires=yes", "safety", 10),
    ("redlock", "fault=pause", "safety", 11),
    ("redlock", "fault=crash", "safety", 11),
    ("etcd", "", "safety", 13),
    ("etcd", "checks=yes expires=all", "safety", 7),
    ("etcd", "checks=yes expires=all", "late-write", 10),
    ("consul", "", "safety", 8),
    ("zookeeper", "", "safety", 7),
    ("zookeeper", "disconnected=stop", "late-write", 10),
    ("curator", "", "served", 8),
    ("dask", "", "safety", 7),
    ("dask", "timeout=inf lost=yes", "served", 9),
    ("kubernetes", "", "safety", 11),
    ("rmf", "", "safety", 8),
    ("rmf", "fault=silence", "safety", 7),
    ("pysyncobj", "", "safety", 7),
]
"""A model, its options, the property that is violated, and the length of the shortest way there."""

RIGHT = [
    ("redis", "replication=first", "safety"),  # no key expires, so one may stay for good
    ("redlock", "fault=none", "safety"),  # who gets no majority gives up
    ("etcd", "checks=yes", "safety"),  # whose lease has expired is not served
    ("etcd", "checks=yes expires=all fence=yes", "late-write"),
    ("consul", "child=stopped", ""),
    ("zookeeper", "disconnected=stop", "safety"),
    ("zookeeper", "fence=yes", "late-write"),
    ("zookeeper", "disconnected=stop fence=yes", ""),
    ("curator", "retry=looks", ""),
    ("dask", "worker=stops lost=yes", ""),
    ("kubernetes", "leader=stops", ""),
    ("rmf", "supervisor=asks", ""),
    ("rmf", "fault=silence supervisor=keeps", ""),
    ("pysyncobj", "time=applied", ""),
]


def checked(model: str, options: str, judged: str) -> dict[str, Any]:
    clients = CLIENTS.get(model, (1, 2))
    words = ["check", "--json", "--algorithm", str(ROOT / f"models/{model}.py")]
    words += ["--nodes", str(clients[-1] + 1 + (model in RESOURCE))]
    for client in clients:
        words += ["--request", f"{client}:1@0"]
    for option in options.split():
        words += ["--option", option]
    if judged:
        words += ["--property", judged]
    found: dict[str, Any] = json.loads(meshlock(*words).stdout)
    return found


@pytest.mark.parametrize(("model", "options", "judged", "steps"), WRONG)
def test_what_was_reported_happens(model: str, options: str, judged: str, steps: int) -> None:
    found = checked(model, options, judged)
    assert [(one["property"], one["length"]) for one in found["violations"]] == [(judged, steps)]


@pytest.mark.parametrize(("model", "options", "judged"), RIGHT)
def test_what_excludes_it_holds(model: str, options: str, judged: str) -> None:
    found = checked(model, options, judged)
    assert found["holds"] and found["complete"]


def test_the_page_has_every_model_with_its_steps() -> None:
    rows = re.findall(
        r"^\| \[(\w+)\]\(.*?\) \|.*\| (\d+) \|.*\|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )
    models = {path.stem for path in (ROOT / "models").glob("*.py")} - {"parts"}
    assert {name for name, _ in rows} == models
    first = {model: steps for model, _, _, steps in reversed(WRONG)}
    assert {name: int(steps) for name, steps in rows} == first
    assert all(steps <= 30 for *_, steps in WRONG)


def test_every_model_says_what_it_assumes() -> None:
    for path in (ROOT / "models").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        if path.stem != "parts":
            for heading in ("**What it promises.**", "**Assumptions.**", "**What was reported.**"):
                assert heading in text, path


def test_a_set_up_in_which_the_service_asks_is_refused() -> None:
    """It is no fault of the model, and no verdict."""
    for more in ((), ("--workers", "2")):
        done = meshlock(
            "check", "--algorithm", str(ROOT / "models/consul.py"), "--nodes", "3", *more
        )
        assert (done.returncode, done.stdout) == (2, "")
        assert "serves the others and asks for nothing" in done.stderr
