"""The diagrams of the docs, as the built site has them: all are drawn, no box covers another."""

from __future__ import annotations

import re
import sys
from itertools import combinations
from xml.etree import ElementTree

import pytest
from pages import PAGES, ROOT, Block, blocks

sys.path.insert(0, str(ROOT / "docs" / "hooks"))
import diagrams
import flowcharts

DIAGRAMS = [block for page in PAGES for block in blocks(page) if block.language == "mermaid"]


def charts() -> list[Block]:
    return [block for block in DIAGRAMS if block.text.startswith("flowchart")]


@pytest.mark.parametrize("block", DIAGRAMS, ids=lambda block: block.where)
def test_a_diagram_is_drawn_with_all_its_words(block: Block) -> None:
    drawn = ElementTree.fromstring(diagrams.draw(block.text))
    shown = " ".join(part.text or "" for part in drawn.iter() if part.tag.endswith("text"))
    for words in re.findall(r'\["(.*?)"\]|(?:over \w+|>\w+|\)\w+): (.*)| as (.*)', block.text):
        for part in re.split(r"<br/?>", "".join(words)):
            assert part in shown, block.where


@pytest.mark.parametrize("block", charts(), ids=lambda block: block.where)
def test_boxes_of_a_chart_lie_apart_and_in_the_picture(block: Block) -> None:
    chart = flowcharts.Chart(block.text)
    chart.drawn()
    for box in chart.boxes.values():
        group = box.group
        assert group is not None
        assert group.x <= box.x and box.x + box.w <= group.x + group.w, (block.where, box.name)
        assert group.y <= box.y and box.y + box.h <= group.y + group.h, (block.where, box.name)
    for one, other in combinations(chart.boxes.values(), 2):
        if one.group is other.group:
            apart_x = one.x + one.w <= other.x or other.x + other.w <= one.x
            apart_y = one.y + one.h <= other.y or other.y + other.h <= one.y
            assert apart_x or apart_y, (block.where, one.name, other.name)


@pytest.mark.parametrize(
    "source", ["flowchart LR\n    a ~~~ b\n", "sequenceDiagram\n participant a as b\n what now\n"]
)
def test_what_is_not_drawn_is_refused(source: str) -> None:
    with pytest.raises(ValueError, match="not drawn"):
        diagrams.draw(source)
