"""What the pages show is what the commands on them give."""

from __future__ import annotations

import io
import re
import shlex
from pathlib import Path

import pytest

from meshlock.algorithms.registry import ALGORITHMS
from meshlock.simulate.run_settings import as_values
from meshlock.simulate.settings import run_settings, simulation
from meshlock.trace.convert import mermaid
from meshlock.trace.reader import Trace
from meshlock.trace.writer import TraceWriter

PAGES = Path(__file__).parents[2] / "docs" / "algorithms"
RUN = re.compile(
    r"```console\n\$ meshlock simulate (.*) --trace run.jsonl\n"
    r"\$ meshlock convert run.jsonl --to mermaid -o run.mmd\n```\n\n"
    r"```mermaid\n(.*?)```",
    re.DOTALL,
)
SHOWN = [page for page in sorted(PAGES.glob("*.md")) if RUN.search(page.read_text("utf-8"))]


def given(flags: str) -> dict[str, str | int]:
    words = shlex.split(flags)
    pairs = zip(words[::2], words[1::2], strict=True)
    named = {flag.removeprefix("--"): value for flag, value in pairs}
    return as_values(named)


@pytest.mark.parametrize("page", SHOWN, ids=[page.stem for page in SHOWN])
def test_the_small_run_on_a_page_is_a_real_one(page: Path, tmp_path: Path) -> None:
    found = RUN.search(page.read_text("utf-8"))
    assert found is not None
    flags, diagram = found.groups()
    settings = run_settings(given(flags))
    assert settings.algorithm == page.stem
    trace = tmp_path / "run.jsonl"
    with trace.open("wb") as file:
        run = simulation(settings, TraceWriter(file, False))
        run.start()
        while run.run(1000):
            pass
        run.finish()
    drawn = io.StringIO()
    mermaid(Trace(trace), drawn)
    assert drawn.getvalue() == diagram


FIXED = [name for name, entry in ALGORITHMS.items() if not entry.assumes.changing_links]


@pytest.mark.parametrize("name", FIXED)
def test_every_algorithm_for_networks_that_stay_has_its_page(name: str) -> None:
    page = (PAGES / f"{name}.md").read_text("utf-8")
    assert page.startswith(f"# {name}\n")
    for part in ("## Idea", "## Cost", "## Errata", "```mermaid"):
        assert part in page
