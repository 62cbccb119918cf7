"""Links as live nodes have them: ends learn by themselves, and permits arrive late, once."""

from __future__ import annotations

from pathlib import Path

import pytest

from meshlock.simulate import link_changes
from meshlock.trace.audit import Audit
from meshlock.trace.reader import Trace
from meshlock.trace.writer import TraceWriter

if not (link_changes.__file__ or "").endswith(".py"):
    pytest.skip("the talk extends Duration, which is compiled", allow_module_level=True)

from talk import Play

LINE = [(0, 1), (1, 2)]
RING = [(0, 1), (1, 2), (0, 2)]
ALIVE = (False, False)


def custody(links: list[tuple[int, int]], changes: list[str], says: dict[str, str], **more) -> Play:
    play = Play(links, changes, says, failures="custody", **more)
    if not play.run.monitor.violated:
        assert sum(node.free_permits() for node in play.run.nodes) == 9 - play.run.in_flight
    return play


def test_what_is_on_the_link_arrives_until_the_receiver_notices() -> None:
    play = custody(LINE, ["3 down 0-1"], {"0 asks": "a>1 B>1"}, notices=(2, 20), dead=ALIVE)
    assert play.heard == ["0 asks", "0 loses 1", "1 gets a", "1 gets B", "1 loses 0"]
    assert (play.run.late, play.run.dropped) == (0, 0)


def test_who_has_not_noticed_goes_on_sending() -> None:
    play = custody(
        LINE,
        ["3 down 0-1"],
        {"1 loses 0": "x>2", "2 gets x": "y>1", "0 asks": "a>1", "1 gets a": "b>0 c>0"},
        notices=(60, 30),
        dead=ALIVE,
    )
    assert play.heard == [
        "0 asks",
        "1 gets a",
        "0 gets b",
        "0 gets c",
        "1 loses 0",
        "2 gets x",
        "1 gets y",
        "0 loses 1",
    ]


def test_what_was_lost_on_the_link_arrives_when_it_is_back() -> None:
    play = custody(
        LINE,
        ["3 down 0-1", "40 up 0-1"],
        {"0 asks": "a>1 B>1 C>1"},
        notices=(20, 2, 1, 3),
        dead=ALIVE,
    )
    assert play.heard == [
        "0 asks",
        "1 loses 0",  # a is lost, B and C are in custody
        "0 loses 1",
        "0 meets 1",
        "1 gets B",
        "1 gets C",
        "1 meets 0",
    ]
    assert (play.run.late, play.run.dropped) == (2, 1)


def test_a_detour_tells_a_receiver_that_has_not_noticed() -> None:
    play = custody(
        RING, ["3 down 0-1"], {"0 asks": "a>1 B>1 C>1"}, notices=(2, 80), dead=(False, True)
    )
    assert play.heard == ["0 asks", "0 loses 1", "1 loses 0", "1 gets B", "1 gets C"]
    assert play.run.measures.crossings == 3 + 2 + 2  # B and C went round, one after the other


def test_what_arrives_by_the_link_does_not_come_by_the_detour_too() -> None:
    play = custody(RING, ["3 down 0-1"], {"0 asks": "A>1"}, notices=(2, 80), dead=ALIVE)
    assert play.heard == ["0 asks", "0 loses 1", "1 gets A", "1 loses 0"]


def test_a_detour_waits_for_a_way_round() -> None:
    play = custody(
        LINE,
        ["3 down 0-1", "50 up 0-2"],
        {"0 asks": "A>1"},
        notices=(2, 3, 5, 5),
        dead=(False, True),
    )
    assert play.heard[:3] == ["0 asks", "0 loses 1", "1 loses 0"]
    assert play.heard[3:] == ["0 meets 2", "2 meets 0", "1 gets A"]


def test_a_link_that_fails_before_both_ends_are_up_tells_only_the_first() -> None:
    play = custody(
        LINE,
        ["3 down 0-1", "20 up 0-1", "25 down 0-1", "60 up 0-1"],
        {"0 meets 1": "c>1 D>1"},
        notices=(1, 1, 1, 30, 10, 1, 2),
        dead=(False, False, False),
    )
    assert play.heard == [
        "0 asks",
        "0 loses 1",
        "1 loses 0",
        "0 meets 1",
        "0 loses 1",  # c is lost; 1 has seen nothing
        "0 meets 1",
        "1 gets D",
        "1 meets 0",
        "1 gets c",
        "1 gets D",
    ]


def test_permits_may_be_sent_over_a_link_that_is_no_more_and_nothing_else() -> None:
    says = {"0 loses 1": "A>1"}
    play = custody(RING, ["3 down 0-1"], says, notices=(2, 3), dead=ALIVE)
    assert play.heard[-1] == "1 gets A"
    assert play.run.monitor.violated == {}
    says = {"0 loses 1": "a>1"}
    play = custody(RING, ["3 down 0-1"], says, notices=(2, 3), dead=ALIVE)
    assert list(play.run.monitor.violated) == ["neighbours"]


def test_the_trace_tells_it_all_and_passes_the_audit(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    with file.open("wb") as sink:
        play = custody(
            LINE,
            ["3 down 0-1", "40 up 0-1"],
            {"0 asks": "a>1 B>1"},
            notices=(20, 2, 1, 3),
            dead=ALIVE,
            trace=TraceWriter(sink, False),
        )
    assert play.run.monitor.violated == Audit(Trace(file)).monitor.violated == {}
    told = [(event.t, event.event) for event in Trace(file).events() if event.t > 0]
    assert told == [
        (5, "drop"),
        (5, "link-down"),
        (23, "link-down"),
        (41, "link-up"),
        (43, "deliver"),
        (43, "link-up"),
        (100, "leave"),
        (100, "end"),
    ]
