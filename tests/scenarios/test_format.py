"""The reference of scenarios names every line that a player understands."""

from __future__ import annotations

import re
from pathlib import Path

from meshlock.simulate.player import VERBS
from meshlock.simulate.scenario import VALUES

FORMAT = Path(__file__).parents[2] / "docs/reference/scenario-format.md"


def test_every_verb_is_in_the_reference() -> None:
    rows = re.findall(r"^\| (`.*?) \|", FORMAT.read_text(encoding="utf-8"), re.MULTILINE)
    named = [line for row in rows for line in re.findall(r"`([^`]+)`", row)]
    for verb in [*VERBS, *VALUES]:
        assert any(line.split()[: len(verb.split())] == verb.split() for line in named), verb
