"""docs/what-is-wrong.md shows what the scenarios of the errata give."""

import re
from pathlib import Path

import pytest
from diagrams import diagram

from meshlock.simulate.director import play
from meshlock.simulate.scenario import names, scenario

ERRATA = [name for name in names() if name.startswith("J")]

PAGE = (Path(__file__).parents[2] / "docs" / "what-is-wrong.md").read_text(encoding="utf-8")


def section(name):
    start = PAGE.index(f"## {name} {scenario(name).title}\n")
    return PAGE[start : PAGE.index("\n## ", start)]


@pytest.mark.parametrize("name", ERRATA)
def test_the_diagram_is_a_real_run(name):
    drawn = re.search(r"```mermaid\n(.*?)```", section(name), re.DOTALL)
    assert drawn and drawn.group(1) == diagram(name, "jiang-printed")


@pytest.mark.parametrize("algorithm", ["jiang-printed", "jiang"])
@pytest.mark.parametrize("name", ERRATA)
def test_the_command_gives_what_is_written_behind_it(name, algorithm):
    found = re.search(rf"scenario {name} --algorithm {algorithm} +# (.*)", section(name))
    assert found
    outcome = play(name, algorithm)
    said = f"enters: {', '.join(map(str, outcome.entries))}"
    if outcome.unserved:
        said += f"; waits for ever: {', '.join(map(str, outcome.unserved))}"
    assert found.group(1) == said
