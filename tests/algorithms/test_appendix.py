"""A reader with the paper's appendix beside jiang.py finds each of its procedures by name."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import meshlock

FOLDER = Path(meshlock.__file__).parent / "algorithms"

HANDLERS = {
    "when node i requests to enter the CS to access h resources with priority R": ("request",) * 2,
    "when node i leaves the CS to release r copies of resources": ("release",) * 2,
    "when TOKEN is received at node i from node j": ("receive_token", "token"),
    "when REQUEST(j, S) is received at node i from node j": ("receive_request", "requested"),
    "when UPDATE(j, S) is received at node i from node j": ("receive_update", "update"),
    "when RELEASE(r) is received at node i": ("receive_release", "released"),
    "when LINK is received at node i from node j": ("receive_link", "link"),
    "when failure of the link to j is detected at node i": ("link_down",) * 2,
    "when formation of the link to j is detected at node i": ("link_up",) * 2,
}
"""The appendix's headings in its order, and the handlers of jiang and of jiang-printed."""

PROCEDURES = {
    "forwardRequest": ("jiang", "forward_request"),
    "forwardUpdate": ("jiang", "forward_update"),
    "forwardRelease": ("jiang", "forward_release"),
    "giveTokenToFrontOfQ": ("jiang", "give_token_to_front_of_queue"),
    "giveToken 4 to 8": ("jiang", "give_token"),
    "raiseHeight": ("jiang", "raise_height"),
    "enqueue": ("jiang", "enqueue"),
    "delete": ("ranked", "delete"),
    "aging": ("ageing", "aging"),
}
"""The appendix's procedures in its order, and then the words that it uses without defining them."""


def methods(module: str) -> dict[str, int]:
    """Every method of a file, and the line of its first definition."""
    tree = ast.parse((FOLDER / f"{module}.py").read_text(encoding="utf-8"))
    found: dict[str, int] = {}
    for kind in tree.body:
        for part in kind.body if isinstance(kind, ast.ClassDef) else []:
            if isinstance(part, ast.FunctionDef):
                found.setdefault(part.name, part.lineno)
    return found


@pytest.mark.parametrize(("module", "place"), [("jiang", 0), ("jiang_printed", 1)])
def test_handlers_stand_below_the_headings_of_the_appendix(module: str, place: int) -> None:
    lines = (FOLDER / f"{module}.py").read_text(encoding="utf-8").splitlines()
    known = methods(module)
    before = 0
    for heading, names in HANDLERS.items():
        (line,) = [at for at, text in enumerate(lines, 1) if text.startswith(f"    # -- {heading}")]
        assert before < line < known[names[place]]
        assert not [text for text in lines[line : known[names[place]]] if text.startswith("    #")]
        before = known[names[place]]


def test_procedures_stand_in_the_order_of_the_appendix() -> None:
    places = {name: methods(module)[method] for name, (module, method) in PROCEDURES.items()}
    of_jiang = [places[name] for name, (module, _) in PROCEDURES.items() if module == "jiang"]
    assert of_jiang == sorted(of_jiang)


def test_every_repair_is_marked_where_it_acts() -> None:
    text = (FOLDER / "jiang.py").read_text(encoding="utf-8")
    code = text[text.index("class JiangNode") :]
    assert [number for number in range(1, 12) if f"R{number}" not in code] == []
