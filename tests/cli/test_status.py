"""What status and top draw, from an answer of the agent."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from meshlock.cli.pool import text
from meshlock.cli.status import picture, rates


def pool(**changes: Any) -> dict[str, Any]:
    """As the agent answers, with the picture of the mesh."""
    usual = {
        "permits": 3,
        "token": "south",
        "free": 1,
        "held": 2,
        "surplus": 0,
        "holding": [holds("ann train.py[7]", 2, slots=["gpu0", "gpu2"], seconds=7200.0)],
        "waiting": [waits(3, 5, 12.3), waits(1, 1, 0.42)],
        "queued": 2,
        "why": "",
    }
    who = usual | {key: value for key, value in changes.items() if key in usual}
    rest = {key: value for key, value in changes.items() if key not in usual}
    return {"known": True, "entries": 1234, "conflict": "", "recovery": "", "who": who, **rest}


def holds(label: str, want: int, **more: Any) -> dict[str, Any]:
    usual = {"node": "attic", "slots": [], "fence": "617", "seconds": 0.0, "lapsing": False}
    return {"label": label, "want": want, **usual, **more}


def waits(
    want: int, priority: int, seconds: float, deadline: float | None = None
) -> dict[str, Any]:
    where = {"node": "south", "label": "bob@cellar", "deadline": deadline}
    return {**where, "want": want, "priority": priority, "seconds": seconds}


def answer(**pools: Any) -> dict[str, Any]:
    return {
        "node": "north",
        "address": "10.0.0.1:7400",
        "protected": True,
        "links": {
            "south": {"up": True, "left": False, "address": "10.0.0.2:7400", "unacknowledged": 1}
        },
        "map": {
            "north": {"distance": 0, "links": ["south"], "left": False, "only_way": False},
            "south": {"distance": 1, "links": ["north"], "left": False, "only_way": False},
            "attic": {"distance": None, "links": ["south"], "left": False, "only_way": False},
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
        "pool   permits  token  free  held  waiting  longest  entries here  per s",
        "docks        3  south     1     2        2   12.3 s         1,234    3.2",
        "",
        "pool   client  permits         for  node   label            slots      priority",
        "docks  holds         2  2 h 00 min  attic  ann train.py[7]  gpu0 gpu2",
        "docks  waits         3      12.3 s  south  bob@cellar                         5",
        "docks  waits         1       0.4 s  south  bob@cellar                         1",
        "",
        "link   state  address        unacknowledged",
        "south  up     10.0.0.2:7400               1",
        "",
        "node    links away  linked to",
        "north         here  south",
        "south            1  north",
        "attic  unreachable  south",
    ]


def test_members_that_are_reachable_are_counted_once() -> None:
    """The status and the holders are asked one after the other, and meanwhile things change."""
    leased = {
        "lease": 3.0,
        "epoch": 7,
        "members": ["north"],
        "members_reachable": 1,
        "members_without_vote": [],
        "unready": "",
        "quorum": 1,
    }
    leased |= {"unreachable": [], "why": "", "recovery": "north is the only member"}
    lost = "quorum lost: 0 of 1 members reachable"
    unknown = pool(**leased)
    unknown["who"] |= {"why": lost, "held": None, "free": None}
    unknown["why"] = ""
    shown = drawn(answer(docks=unknown))
    assert [line for line in shown if "of 1" in line] == [f"docks: holders unknown: {lost}"]
    unknown["who"] |= {"why": "", "held": 0, "free": 3}
    assert "1 of 1 members reachable" in " ".join(drawn(answer(docks=unknown)))


def test_a_node_that_is_gone_is_no_alarm() -> None:
    found = answer(docks=pool())
    found["map"]["attic"]["gone"] = True
    found["links"]["south"] |= {"up": False, "gone": True, "unacknowledged": 0}
    shown = drawn(found)
    assert "attic        gone" in shown and any(line.startswith("south  gone") for line in shown)


def test_a_narrow_screen_loses_columns_and_no_figure() -> None:
    narrow = drawn(answer(docks=pool()), width=44, rates={"docks": 3.25})
    assert narrow[3:5] == [
        "pool   permits  token  free  held  waiting",
        "docks        3  south     1     2        2",
    ]


def test_a_holder_that_does_not_answer_leaves_nothing_to_be_said_of_what_is_held() -> None:
    silent = "the holder of the token does not answer"
    unknown = pool(token=None, free=None, held=None, holding=[], waiting=[], queued=0, why=silent)
    lines = drawn(answer(docks=unknown), width=100)
    assert lines[3].split() == ["docks", "3", "?", "?", "?", "0", "1,234"]
    assert f"docks: holders unknown: {silent}" in lines
    assert "nobody holds or waits" in lines


def test_a_pool_that_was_made_smaller_does_not_show_more_than_there_is() -> None:
    lines = drawn(answer(docks=pool(permits=1, free=0, held=1, surplus=2, waiting=[], queued=0)))
    assert lines[3].split() == ["docks", "1", "south", "0", "1", "0", "1,234"]
    assert "docks was made smaller: 2 to be released before any is free" in lines


def test_what_nobody_renews_any_more_is_shown_to_lapse() -> None:
    lapses = pool(holding=[holds("gone", 2, lapsing=True)])
    assert any(line.startswith("docks  lapses") for line in drawn(answer(docks=lapses)))


def test_many_clients_leave_room_for_the_rest() -> None:
    crowd = [waits(1, 0, 49.0 - n) for n in range(20)]
    many = pool(permits=9, held=8, waiting=crowd, queued=50)
    lines = drawn(answer(docks=many), most_clients=5)
    assert sum(" waits " in line for line in lines) == 3
    assert "... and 47 more" in lines
    assert "... and holders of 6 more permits" in lines


def test_what_is_wrong_stands_below_in_full() -> None:
    two = "Ann and Bob both founded docks."
    unknown = {"known": False, "why": "no neighbour has announced it yet"}
    lines = drawn(answer(docks=pool(conflict=two), seats=unknown))
    assert f"docks: {two}" in lines
    assert "seats: no neighbour has announced it yet" in lines


def test_members_and_who_is_missing_stand_together() -> None:
    def shown(**more: Any) -> str:
        leased = {"lease": 3.0, "epoch": 7, "quorum": 1, "unreachable": [], **more}
        return "\n".join(drawn(answer(docks={**pool(**leased), "why": ""}), 120))

    alone = {
        "members": ["south"],
        "members_reachable": 1,
        "members_without_vote": [],
        "unready": "",
        "recovery": "south is the only member",
    }
    assert (
        "docks: epoch 7, leases of 3 s, 1 of 1 members reachable (quorum: 1); unreachable: attic\n"
        "docks: south is the only member\n"
    ) in shown(**alone, unreachable=["attic"])
    said = "docks: no epoch yet, leases of 3 s, members not known yet\n"
    assert said in shown(**alone | {"members": [], "members_reachable": 0, "epoch": None})


def test_a_node_alone_and_without_pools() -> None:
    alone = {
        **answer(),
        "links": {},
        "map": {"north": {"distance": 0, "links": [], "left": False, "only_way": False}},
    }
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


def test_numbers_of_a_pool_are_no_yes_and_no() -> None:
    assert [text(value) for value in (1, 0, 2.5, True, False)] == ["1", "0", "2.5", "yes", "no"]
    assert text([]) == "none"
    assert text([{"want": 1, "fence": None, "label": ""}]) == "want 1 fence - label -"


def test_deadlines_are_shown_where_there_are_some() -> None:
    found = answer(docks=pool())
    found["pools"]["docks"]["who"]["waiting"] = [
        *(waits(1, 0, 1.0, 4.26), waits(1, 0, 1.0, -200.0), waits(1, 0, 1.0)),
    ]
    lines = drawn(found, 100)
    heading = next(line for line in lines if line.startswith("pool   client"))
    assert heading.endswith("priority   deadline")
    waiting = [line for line in lines if " waits " in line]
    assert [line[len(heading) - 9 :].strip() for line in waiting] == ["in 4.3 s", "3 min ago", ""]
