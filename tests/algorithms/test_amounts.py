"""Amounts of several kinds are integers: what that must not change, and what is refused."""

from __future__ import annotations

from random import Random

import pytest

from meshlock.algorithms.amounts import (
    MOST,
    MOST_KINDS,
    Kinds,
    amount_of,
    fields,
    fits,
    kinds_from,
    kinds_of,
    most_of_each,
    parse_kinds,
    several,
)
from meshlock.errors import Refused


def draw(random: Random, least: int, kinds: int) -> list[int]:
    small = random.random() < 0.5
    return [
        random.randint(max(least, -3), 3) if small else random.randint(least, MOST)
        for _ in range(kinds)
    ]


@pytest.mark.parametrize("kinds", [1, 2, 3, MOST_KINDS])
def test_amounts_add_compare_and_are_read_as_lists_of_numbers_would_be(kinds: int) -> None:
    random = Random(kinds)
    for _ in range(2000):
        want, free = draw(random, 0, kinds), draw(random, -MOST, kinds)
        if any(high - low > MOST for low, high in zip(free, want, strict=True)):
            continue
        one, other = amount_of(want), amount_of(free)
        assert fits(one, other) == all(a <= b for a, b in zip(want, free, strict=True))
        total = [a + b for a, b in zip(want, free, strict=True)]
        if max(map(abs, total)) <= MOST:
            read = fields(one + other)
            assert [*read, *[0] * (kinds - len(read))] == total
        assert kinds_of(one) == kinds_of(amount_of([min(1, a) for a in want]))
        shares = any(a > 0 and b > 0 for a, b in zip(want, total, strict=True))
        if min(total) >= 0 and max(total) <= MOST:
            assert bool(kinds_of(one) & kinds_of(one + other)) == shares


def test_one_kind_is_a_plain_integer() -> None:
    four = parse_kinds("4")
    assert (four.permits, four.several, several(four.permits)) == (4, False, False)
    assert (four.parse("2"), four.write(2), four.outward(2), str(four)) == (2, "2", 2, "4")
    assert all(fits(want, free) == (want <= free) for want in range(5) for free in range(-4, 9))
    assert not several(Kinds({"": MOST}).permits)


def test_an_amount_of_several_kinds_says_so_itself() -> None:
    assert several(parse_kinds("gpu:1,licence:1").permits)


def test_what_people_write_is_read_and_written() -> None:
    lab = kinds_from({"gpu": 4, "licence": 5, "board": ["rack1", "rack2"]})
    assert str(lab) == "gpu:4,licence:5,board:2"
    assert lab.slots == {"board": ("rack1", "rack2")}
    want = lab.parse("licence:1,gpu:2")
    assert want == lab.parse("gpu:2+licence:1") == lab.amount({"gpu": 2, "licence": 1, "board": 0})
    assert (lab.write(want), lab.outward(want)) == ("gpu:2,licence:1", {"gpu": 2, "licence": 1})
    assert lab.write(0) == "nothing"
    assert lab.outward(want - lab.parse("gpu:3")) == {"gpu": -1, "licence": 1}
    assert parse_kinds("gpu:4").amount({"gpu": 2}) == 2


def test_of_each_kind_the_most() -> None:
    lab = parse_kinds("gpu:4,licence:5")
    assert most_of_each([lab.parse("gpu:3"), lab.parse("gpu:1,licence:2")]) == lab.parse(
        "gpu:3,licence:2"
    )
    assert most_of_each([1, 3, 2]) == 3
    assert most_of_each([]) == 0


def test_a_kind_keeps_its_place_when_kinds_change() -> None:
    lab = parse_kinds("gpu:4,licence:5")
    more = lab.change(parse_kinds("board:2,licence:3"))
    assert more.names == ("gpu", "licence", "board")
    assert str(more) == "licence:3,board:2"
    assert not fits(0, more.permits - lab.parse("gpu:1"))  # still held
    with pytest.raises(Refused, match="1 of 0 permits of the kind gpu"):
        more.parse("gpu:1")
    assert more.change(lab).names == more.names
    with pytest.raises(Refused, match="cannot become permits of several kinds"):
        parse_kinds("4").change(lab)
    assert parse_kinds("4").change(parse_kinds("5")).permits == 5


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("fpga:1", "no kind of permits 'fpga': the kinds are gpu, licence"),
        ("gpu:0,licence:0", "at least one permit"),
        ("gpu:5", "5 of 4 permits of the kind gpu can never be granted"),
        (f"gpu:{10**17}", "can never be granted"),
        ("gpu:1,gpu:2", "names the kind 'gpu' twice"),
        ("2", "several kinds, gpu, licence: say how many of which"),
        ("gpu:x", "no amount of permits"),
        ("gpu:-1", "no amount of permits"),
        ("", "no amount of permits"),
    ],
)
def test_a_text_that_is_no_amount_is_refused(value: str, sentence: str) -> None:
    with pytest.raises(Refused, match=sentence):
        parse_kinds("gpu:4,licence:5").parse(value)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (2, "say how many of which"),
        (None, "say how many of which"),
        ({}, "at least one permit"),
        ({"gpu": True}, "True is no number of permits of the kind gpu"),
        ({"gpu": -1}, "-1 is no number of permits of the kind gpu"),
        ({"gpu": 1.5}, "1.5 is no number"),
        ({3: 1}, "no kind of permits 3"),
    ],
)
def test_a_value_that_is_no_amount_is_refused(value: object, sentence: str) -> None:
    with pytest.raises(Refused, match=sentence):
        parse_kinds("gpu:4,licence:5").amount(value)


@pytest.mark.parametrize("value", [0, -1, "2", {"": 1}, {"gpu": 1}, 5, True])
def test_one_kind_refuses_what_several_kinds_have(value: object) -> None:
    kinds = parse_kinds("4")
    if value == {"": 1}:
        assert kinds.amount(value) == 1
        return
    with pytest.raises(Refused):
        kinds.amount(value)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ({"gpu": 0, "licence": 1}, "one permit of the kind gpu, and at most 1,048,575, not 0"),
        ({"gpu": MOST + 1, "licence": 1}, "not 1048576"),
        (MOST + 1, "at most 1,048,575, not 1048576"),
        (0, "at least one permit, and at most 1,048,575, not 0"),
        ({f"k{i}": 1 for i in range(9)}, "1 to 8 kinds of permits, not 9"),
        ({}, "1 to 8 kinds"),
        ({"gpu card": 1}, "'gpu card' is no name"),
        ({"": 1, "gpu": 1}, "'' is no name"),
        ({"gpu": "4", "licence": 1}, "not 4"),
        ({"gpu": []}, "not 0"),
    ],
)
def test_kinds_that_cannot_be_are_refused(value: object, sentence: str) -> None:
    with pytest.raises(Refused, match=sentence):
        kinds_from(value)
