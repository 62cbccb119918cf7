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


INTENDED = "jiang/without-R3+R4+R5+R6+R7+R8+R9+R10+R11"
"""The listing, read as its comment at giveTokenToFrontOfQ line 10 and its prose say."""


def test_as_its_author_meant_it_the_listing_has_the_faults_that_the_page_names():
    assert all(play(name, INTENDED).good for name in ("J1", "J1b", "J5"))
    assert play("J2", INTENDED.replace("+R4", "")).good
    for name in ("J3", "J4"):
        assert set(play(name, INTENDED).violated) == {"order"}
    for name in ("J6", "J7"):
        assert play(name, INTENDED).unserved
    for name, algorithm, entries in [("J1", INTENDED, "1, 2, 0"), ("J2", "without-R3+R5", "1, 4")]:
        assert re.search(
            rf"scenario {name} --algorithm .*{re.escape(algorithm)}.*# enters: {entries}", PAGE
        )


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
