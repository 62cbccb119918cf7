"""what-is-wrong.md shows what scenarios give, laboratory/scenarios.md how to run them."""

import re
from pathlib import Path

import pytest
from sequence_diagrams import diagram

from meshlock.algorithms.registry import find
from meshlock.simulate.player import Player, play
from meshlock.simulate.scenario import Scenario, names, scenario

ERRATA = [name for name in names() if name.startswith("J")]
OURS = {"R10": "jiang/without-R10", "R10b": "jiang/without-R10", "R11": "jiang/without-R11"}
"""Errors of our own: the scenario, and the algorithm as it was."""

PAGES = Path(__file__).parents[2] / "docs"
PAGE = (PAGES / "algorithms" / "what-is-wrong.md").read_text(encoding="utf-8")


def section(name):
    start = PAGE.index(f"## {name} {scenario(name).title}\n")
    return PAGE[start : PAGE.index("\n## ", start)]


@pytest.mark.parametrize("name", [*ERRATA, *OURS])
def test_the_diagram_is_a_real_run(name):
    drawn = re.search(r"```mermaid\n(.*?)```", section(name), re.DOTALL)
    assert drawn and drawn.group(1) == diagram(name, OURS.get(name, "jiang-printed"))


COMMANDS = [
    (name, f"--algorithm {algorithm}", algorithm)
    for name in ERRATA
    for algorithm in ("jiang-printed", "jiang")
]
COMMANDS += [
    (name, f"--without {undone.removeprefix('jiang/without-')}", undone)
    for name, undone in OURS.items()
]
COMMANDS += [(name, "--algorithm jiang", "jiang") for name in OURS]


@pytest.mark.parametrize(("name", "flags", "algorithm"), COMMANDS)
def test_the_command_gives_what_is_written_behind_it(name, flags, algorithm):
    found = re.search(rf"scenario {name} {flags} +# (.*)", section(name))
    assert found
    outcome = play(name, algorithm)
    said = f"enters: {', '.join(map(str, outcome.entries)) or 'nobody'}"
    if outcome.unserved:
        said += f"; waits for ever: {', '.join(map(str, outcome.unserved))}"
    assert found.group(1) == said


def test_the_scripts_of_the_how_to_can_be_played():
    page = PAGES / "laboratory" / "scenarios.md"
    blocks = re.findall(r"```text\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    scripts = [block for block in blocks if "nodes " in block]
    assert len(scripts) == 3
    for text in scripts:
        script = Scenario("how-to", text)
        outcome = Player(script, find(script.algorithm)).play()
        assert outcome.good, outcome.transcript


def test_the_how_to_names_every_scenario():
    page = (PAGES / "laboratory" / "scenarios.md").read_text(encoding="utf-8")
    assert [name for name in names() if name not in page and not name.startswith("J")] == []
