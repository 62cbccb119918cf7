"""Several nodes' traces of one pool, put together by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from meshlock.errors import Refused
from meshlock.trace import merge as merging
from meshlock.trace.audit import Audit
from meshlock.trace.merge import merge
from meshlock.trace.reader import Trace

Line = dict[str, Any]


def part(folder: Path, node: int, events: list[Line], **more: object) -> Path:
    setup: Line = {"meshlock": "trace", "format": 1, "source": "live", "algorithm": "jiang"}
    setup |= {"pool": "docks", "name": f"n{node}", "node": node, "permits": 1}
    setup |= {"holder": 0 if node == 0 else -1, "ordered": True, "balanced": False, **more}
    path = folder / f"docks.n{node}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in [setup, *events]))
    return path


def at(time: float, node: int, event: str, **more: object) -> Line:
    return {"t": time, "node": node, "event": event, **more}


@pytest.mark.parametrize(
    ("changes", "judged"),
    [
        ([], False),  # they never met
        (["up 0", "up 1"], True),
        (["up 0"], False),
        (["up 0", "up 1", "down 0", "down 1"], False),  # parted: nobody can know of the other
        (["up 0", "up 1", "down 0", "down 1", "up 1", "up 0"], True),
    ],
)
def test_order_is_judged_where_all_are_joined(
    tmp_path: Path, changes: list[str], judged: bool
) -> None:
    told: list[list[Line]] = [[], []]
    for time, change in enumerate(changes):
        kind, node = change.split()
        me = int(node)
        told[me].append(at(float(time), me, f"link-{kind}", peer=1 - me))
    told[0] += [
        at(10.0, 0, "request", client=1, want=1, priority=1),
        at(10.0, 0, "enter", client=1, want=1),
        at(11.0, 0, "request", client=2, want=1, priority=1),
        at(13.0, 0, "leave", client=1),
        at(13.0, 0, "enter", client=2, want=1),
    ]
    told[1].append(at(12.0, 1, "request", client=1, want=1, priority=9))
    parts = [part(tmp_path, node, told[node]) for node in (0, 1)]
    merged = tmp_path / "merged.jsonl"
    with merged.open("wb") as file:
        merge(parts, file, ended=False)
    assert set(Audit(Trace(merged)).monitor.violated) == ({"order"} if judged else set())


def test_nodes_are_numbered_in_the_order_by_which_the_algorithm_knows_them(tmp_path: Path) -> None:
    sent = {"message": "LINK", "args": {"height": [0, 1, 9], "grants": 9}}
    parts = [
        part(tmp_path, 9, [at(1.0, 9, "link-up", peer=4), at(1.0, 9, "send", id=1, to=4, **sent)]),
        part(
            tmp_path,
            4,
            [at(2.0, 4, "link-up", peer=9), at(2.1, 4, "deliver", **{"from": 9}, id=1, **sent)],
        ),
    ]
    parts[0].write_text(parts[0].read_text().replace('"holder": -1', '"holder": 9'))
    merged = tmp_path / "merged.jsonl"
    with merged.open("wb") as file:
        merge(parts, file, ended=False)
    trace = Trace(merged)
    assert trace.setup["names"] == ["n4", "n9"]
    assert trace.setup["holder"] == 1
    heights = [event.args for event in trace.events() if event.args is not None]
    assert heights == [{"height": [0, 1, 1], "grants": 9}] * 2


def test_a_trace_that_was_cut_short_ends_the_merged_one_where_it_is_needed(tmp_path: Path) -> None:
    sent = {"to": 1, "message": "LINK", "args": {}}
    got = {"from": 0, "message": "LINK", "args": {}}
    first = part(tmp_path, 0, [at(1.0, 0, "link-up", peer=1), at(1.0, 0, "send", id=1, **sent)])
    second = part(
        tmp_path,
        1,
        [
            at(1.5, 1, "link-up", peer=0),
            at(2.0, 1, "deliver", id=1, **got),
            at(3.0, 1, "deliver", id=2, **got),  # the first node's disk was full
            at(4.0, 1, "request", client=1, want=1, priority=1),
        ],
    )
    merged = tmp_path / "merged.jsonl"
    with merged.open("wb") as file:
        merge([first, second], file, ended=True)
    assert [event.event for event in Trace(merged).events()] == [
        "link-up",
        "send",
        "link-up",
        "deliver",
    ]


def test_a_trace_that_is_missing_is_asked_for(tmp_path: Path) -> None:
    stranger = at(2.0, 0, "deliver", id=1, **{"from": 7, "message": "LINK", "args": {}})
    linked = at(2.0, 0, "link-up", peer=7)
    with (tmp_path / "merged.jsonl").open("wb") as file:
        for event in (stranger, linked):
            with pytest.raises(Refused, match="add its trace"):
                merge([part(tmp_path, 0, [event])], file, ended=True)


@pytest.mark.parametrize("killed", [False, True])
def test_what_is_written_while_other_traces_are_read_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed: bool
) -> None:
    """With leases: node 0 is read, leaves, and node 1 enters before its trace is read."""
    leased = {"recovery": {"members": [0, 1], "lease": 10.0, "slack": 0.1}, "holder": -1}

    def use(node: int, time: float, fence: int) -> list[Line]:
        asked = at(time, node, "request", client=fence, want=1, priority=0)
        return [
            asked,
            at(time, node, "timer"),
            at(time, node, "enter", client=fence, fence=fence, until=time + 10.0),
        ]

    first = part(tmp_path, 0, use(0, 1.0, 1), **leased)
    second = part(tmp_path, 1, [], **leased)
    read = merging.written

    def read_and_go_on(path: Path) -> list[Line]:
        events = read(path)
        if path == first:
            with second.open("a") as file:
                file.writelines(json.dumps(line) + "\n" for line in use(1, 3.0, 2))
            if not killed:
                with first.open("a") as file:
                    file.write(json.dumps(at(2.0, 0, "leave", client=1)) + "\n")
        return events

    monkeypatch.setattr(merging, "written", read_and_go_on)
    merged = tmp_path / "merged.jsonl"
    with merged.open("wb") as file:
        merge([first, second], file, ended=False)
    verdict = Audit(Trace(merged))
    assert ("safety" in verdict.monitor.violated) == killed  # it had not left, and is not read on
    assert verdict.entries == (2 if killed else 1)
