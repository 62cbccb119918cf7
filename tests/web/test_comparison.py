"""Two algorithms on the same schedule step together."""

from itertools import pairwise

import pytest

from meshlock.errors import Refused
from meshlock.web.comparison import Comparison


def together(rows):
    """Both sides begin at the start and never go back or jump."""
    for before, after in pairwise(rows):
        steps = after[0] - before[0], after[1] - before[1]
        assert set(steps) <= {0, 1} and any(steps)


def test_the_same_script_is_cut_at_its_lines():
    compared = Comparison({"scenario": "J1", "left": "jiang-printed", "right": "jiang"})
    rows = compared.rows()
    left, right = (side.index for side in compared.sides)
    assert rows[0] == (0, 0, "the start")
    assert rows[-1][:2] == (left.steps, right.steps)
    together(rows)
    for side, index in enumerate((left, right)):
        asked = [row[side] for row in rows if row[2] == "request 0 priority 1"]
        assert index.find(asked[0] - 1, False, "request", 0) == asked[0]  # both ask at this line
    assert [found["property"] for found in left.violated] == ["order", "served"]
    assert not right.violated


def test_what_one_side_cannot_do_is_left_out_and_said():
    compared = Comparison({"scenario": "J1", "left": "jiang", "right": "raymond"})
    assert not compared.sides[0].remarks
    together(compared.rows())
    assert compared.shown(["l", "r"])["remarks"][1] == compared.sides[1].remarks


def test_the_same_seed_is_cut_at_the_common_clock():
    asked = {"left": "raymond", "right": "naimi-trehel", "seed": 5, "requests": 12}
    compared = Comparison(asked)
    rows = compared.rows()
    together(rows)
    left, right = (side.index for side in compared.sides)
    assert rows[-1][:2] == (left.steps, right.steps)
    for one, other, _ in rows[1:]:
        assert abs(left.times[one] - right.times[other]) < 60
    wants = [
        sorted(
            index.marks[step] // 128
            for step in range(1, index.steps)
            if index.marks[step] % 128 == index.codes["request"]
        )
        for index in (left, right)
    ]
    assert wants[0] == wants[1] and len(wants[0]) == 12
    assert Comparison(asked).rows() == rows


def test_what_cannot_be_compared_is_refused():
    for wrong, why in (
        ({"left": "raymond", "right": "nothing"}, "nothing"),
        ({"left": "raymond", "right": "jiang", "scenario": "J99"}, "no scenario"),
        ({"left": "lelann", "right": "jiang", "scenario": "J1"}, "lelann takes 10,"),
        ({"left": "raymond", "right": "jiang", "permits": 3}, "permit"),
        ({"left": "raymond", "right": "jiang", "nodes": 3000}, "nodes must be"),
        ({"left": "raymond", "right": "jiang", "topology": "moon"}, "topology is one of"),
    ):
        with pytest.raises(Refused, match=why):
            Comparison(wrong)
