"""What status and top draw, from an answer of the agent."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from meshlock.cli.status import picture
from meshlock.cli.top import rates


def pool(**changes: Any) -> dict[str, Any]:
    usual = {
        "known": True,
        "permits": 3,
        "token_here": True,
        "free_here": 1,
        "holding": [{"want": 2, "priority": 9, "fence": 617}],
        "waiting": [
            {"want": 1, "priority": 1, "seconds": 0.42},
            {"want": 3, "priority": 5, "seconds": 12.3},
        ],
        "entries": 1234,
        "conflict": "",
        "recovery": "",
    }
    found = {**usual, **changes}
    return {"queued": len(found["waiting"]), **found}


def answer(**pools: Any) -> dict[str, Any]:
    return {
        "node": "north",
        "address": "10.0.0.1:7400",
        "protected": True,
        "links": {
            "south": {"up": True, "left": False, "address": "10.0.0.2:7400", "in_custody": 1}
        },
        "map": {
            "north": {"distance": 0, "links": ["south"], "left": False},
            "south": {"distance": 1, "links": ["north"], "left": False},
            "attic": {"distance": None, "links": ["south"], "left": False},
        },
        "pools": pools,
    }


def drawn(found: dict[str, Any], width: int = 80, **more: Any) -> list[str]:
    text = io.StringIO()
    Console(file=text, width=width).print(picture(found, **more))
    return [line.rstrip() for line in text.getvalue().splitlines()]


def test_a_screen_of_usual_width() -> None:
    assert drawn(answer(docks=pool()), rates={"docks": 3.25}) == [
        "north at 10.0.0.1:7400, links protected by TLS",
        "",
        "pool   permits  token  free  held  waiting  longest  entries  per s",
        "docks        3  here      1     2        2   12.3 s    1,234    3.2",
        "",
        "pool   client  permits  priority  fence or time",
        "docks  holds         2         9      fence 617",
        "docks  waits         3         5         12.3 s",
        "docks  waits         1         1          0.4 s",
        "",
        "link   state  address        in custody",
        "south  up     10.0.0.2:7400           1",
        "",
        "node    links away  linked to",
        "north         here  south",
        "south            1  north",
        "attic  unreachable  south",
    ]


def test_a_narrow_screen_loses_columns_and_no_figure() -> None:
    narrow = drawn(answer(docks=pool()), width=44, rates={"docks": 3.25})
    assert narrow[3:5] == [
        "pool   permits  token  free  held  waiting",
        "docks        3  here      1     2        2",
    ]


def test_a_token_elsewhere_says_nothing_of_what_is_free() -> None:
    away = pool(token_here=False, free_here=0, holding=[], waiting=[])
    lines = drawn(answer(docks=away))
    assert lines[3].split() == ["docks", "3", "away", "0", "0", "1,234"]
    assert "nobody here holds or waits" in lines


def test_many_clients_leave_room_for_the_rest() -> None:
    crowd = [{"want": 1, "priority": 0, "seconds": float(n)} for n in range(50)]
    lines = drawn(answer(docks=pool(waiting=crowd)), most_clients=5)
    assert sum(" waits " in line for line in lines) == 3
    assert "... and 47 more" in lines
    assert "docks  waits         1         0         49.0 s" in lines


def test_what_is_wrong_stands_below_in_full() -> None:
    two = "Ann and Bob both founded docks."
    unknown = {"known": False, "why": "no neighbour has told us of it yet"}
    lines = drawn(answer(docks=pool(conflict=two), seats=unknown))
    assert f"docks: {two}" in lines
    assert "seats: no neighbour has told us of it yet" in lines


def test_a_node_alone_and_without_pools() -> None:
    alone = {**answer(), "links": {}, "map": {"north": {"distance": 0, "links": [], "left": False}}}
    assert "no links: this node is alone" in drawn(alone)
    assert "no pools: make one with --pool NAME=PERMITS" in drawn(alone)


def test_entries_per_second_are_those_of_the_last_seconds() -> None:
    past = [(-100.0, {"docks": 0}), (-90.0, {"docks": 5}), (-0.0, {"docks": 1000})]
    found = answer(docks=pool(), seats=pool(entries=7))
    measured = rates(past, found)
    assert len(past) == 2  # what is older than the window is forgotten
    assert measured["docks"] == (1234 - 1000) / (past[-1][0] - 0.0)
    assert measured["seats"] == 0.0  # just met: no rate can be known
    assert rates([], found) == {}
