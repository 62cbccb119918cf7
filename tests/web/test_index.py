"""The index of a trace says of any step what following the trace from its start says."""

import gzip
import json
import socket
from contextlib import suppress
from itertools import pairwise
from random import Random
from xml.etree import ElementTree

import msgspec
import pytest
from click.testing import CliRunner

from meshlock.cli.main import app
from meshlock.cli.view import view
from meshlock.errors import Refused
from meshlock.trace.reader import BadTrace
from meshlock.web.handlers import Ran, constants, handlers
from meshlock.web.index import WINDOW, Index, Snapshot, TraceEvent, open_trace
from meshlock.web.sequence import Diagram


def simulated(tmp_path, *more):
    path = tmp_path / "run.jsonl"
    words = "simulate --algorithm jiang --nodes 9 --topology grid:3x3 --permits 3 --want 1-2"
    words += " --priority 0-5 --requests 150 --seed 3 --json --trace-states"
    result = CliRunner().invoke(app, [*words.split(), *more, "--trace", str(path)])
    assert result.exit_code == 0, result.output
    return path


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    return simulated(tmp_path_factory.mktemp("trace"))


def test_a_step_is_a_cause_and_its_effects(trace):
    index = open_trace(trace)
    events = [json.loads(line) for line in trace.read_bytes().splitlines()[1:]]
    causes = [event for event in events if event["event"] not in ("send", "enter")]
    assert index.events == len(events)
    assert index.steps == len(causes) > 5 * WINDOW
    for step in (1, WINDOW, WINDOW + 1, index.steps):
        assert json.loads(index.read(step, step)[0][0]) == causes[step - 1]


def test_any_snapshot_is_the_same_from_the_nearest_known_one_and_from_the_start(trace):
    index = open_trace(trace)
    snapshot = index.snapshots[0].copy()
    for step in range(1, index.steps + 1):
        for line in index.read(step, step)[0]:
            snapshot.follow(msgspec.json.decode(line, type=TraceEvent), step, line)
        if step % 97 == 0 or step == index.steps or abs(step - index.apart) < 3:
            assert msgspec.json.encode(index.snapshot(step).shown()) == msgspec.json.encode(
                snapshot.shown()
            )
    assert len(index.snapshots) > 1


def test_windows_follow_each_other_without_gap(trace):
    index = open_trace(trace)
    first = 1
    for number in range((index.steps - 1) // WINDOW + 1):
        window = json.loads(index.window(number))
        assert window["first"] == first
        assert len(window["steps"]) == window["last"] - window["first"] + 1
        first = window["last"] + 1
    assert first == index.steps + 1


def test_a_packed_trace_and_one_that_was_cut_short_open_too(trace, tmp_path):
    packed = tmp_path / "run.jsonl.gz"
    packed.write_bytes(gzip.compress(trace.read_bytes()))
    whole, unpacked = open_trace(trace), open_trace(packed)
    assert unpacked.window(1) == whole.window(1)
    cut = tmp_path / "cut.jsonl"
    cut.write_bytes(trace.read_bytes()[:-10])
    assert open_trace(cut).events == whole.events - 1


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (b"[1]", "Line 2 is not an event (was the file cut short?)."),
        (b'{"t": 0, "event": "deliver", "node": 9}', "Line 2 names a node that does not exist: 9."),
        (b'{"t": -1, "event": "request", "node": 0}', "Line 2 goes back in time, to -1."),
    ],
)
def test_what_is_wrong_with_a_trace_is_a_sentence(tmp_path, line, sentence):
    path = tmp_path / "wrong.jsonl"
    head = b'{"meshlock": "trace", "format": 1, "nodes": 3, "permits": 1, "links": []}\n'
    path.write_bytes(head + line + b"\n")
    with pytest.raises(BadTrace) as wrong:
        open_trace(path)
    assert str(wrong.value) == f"{path}: {sentence}"


def test_finding_forwards_and_back(trace):
    index = open_trace(trace)
    events = [[json.loads(line) for line in lines] for lines in index.read(0, index.steps)]
    enters = [n for n, lines in enumerate(events) if any(e["event"] == "enter" for e in lines)]
    assert index.find(0, False, "enter", -1) == enters[0]
    assert index.find(enters[4], True, "enter", -1) == enters[3]
    at_five = [n for n in enters if events[n][0]["node"] == 5]
    assert index.find(0, False, "enter", 5) == at_five[0]
    assert index.find(index.steps + 1, True, "enter", 5) == at_five[-1]
    asks = [n for n, lines in enumerate(events) if lines and lines[0]["event"] == "request"]
    assert index.find(asks[7], False, "request", -1) == asks[8]
    assert index.find(index.steps, False, "request", -1) == 0


def test_permits_in_use_at_a_glance(trace):
    index = open_trace(trace)
    used, most, wants = 0, 0, {}
    for line in trace.read_bytes().splitlines()[1:]:
        event = json.loads(line)
        if event["event"] == "enter":
            wants[event["client"]] = event["want"]
            used += event["want"]
            most = max(most, used)
        elif event["event"] == "leave":
            used -= wants[event["client"]]
    course = index.overview(50)
    assert len(course["used"]) == 50
    assert max(course["used"]) == most > 1
    assert course["waiting"][0] == 9  # saturated: everybody asks at once


def test_the_handler_of_every_cause_and_message_is_found():
    shown = handlers("jiang")
    assert {"request", "leave", "link-up", "link-down", "deliver TOKEN"} <= set(shown)
    token = shown["deliver TOKEN"]
    assert [part["name"] for part in token] == ["receive_token", "receive"]
    receive = token[1]
    lit = [receive["lines"][number - receive["first"]].strip() for number in receive["lit"]]
    assert lit == ["self.receive_token(message)"]
    assert handlers("nobody's") == constants("nobody's") == {}


def test_numbered_constants_have_their_names():
    assert constants("jiang-printed") == {"state": ["NCS", "ES", "CS"]}


def test_the_lines_that_ran_in_a_step_are_found_forwards_and_backwards(trace):
    index = open_trace(trace)
    ran = Ran(index)
    if not ran.step(1):
        pytest.skip("a compiled algorithm cannot be watched")
    tokens = [n for n in range(1, 60) if b'"TOKEN"' in index.read(n, n)[0][0]]
    for step in (tokens[1], tokens[0]):
        parts = {part["name"]: part for part in ran.step(step)}
        assert list(parts)[:2] == ["receive", "receive_token"]
        for part in parts.values():
            assert part["lit"] and part["first"] < part["lit"][0]
            assert part["lit"][-1] < part["first"] + len(part["lines"])
    assert ran.step(index.steps + 1) == ran.step(0) == []


def test_nodes_that_recover_show_their_own_handlers():
    shown = handlers("jiang", leased=True)
    files = {part["file"] for parts in shown.values() for part in parts}
    assert files >= {"layer.py", "member.py", "epoch.py", "jiang.py"}
    assert [part["name"] for part in shown["deliver RENEW"]] == ["receive_renew", "receive"]
    assert shown["deliver TOKEN"] == handlers("jiang")["deliver TOKEN"]
    assert shown["timer"][0]["name"] == "wake"


def labels(diagram):
    """What is written in the picture, and about where: left, right, height of its line."""
    for text in ElementTree.fromstring(diagram.svg()).iter("{http://www.w3.org/2000/svg}text"):
        x, y, wide = float(text.get("x")), float(text.get("y")), 6.3 * len(text.text)
        left = x - {"end": wide, "middle": wide / 2}.get(text.get("text-anchor"), 0)
        yield left, left + wide, y, text.text


def test_labels_of_a_diagram_do_not_meet_and_every_step_has_its_number(trace):
    diagram = Diagram(open_trace(trace), 96, 125)
    written = sorted(labels(diagram), key=lambda label: label[2])
    for (left, right, y, one), (start, end, below, other) in pairwise(written):
        assert below - y >= 8 or right <= start or end <= left, (one, other)
    words = {text for *_, text in written}
    assert {str(step) for step in range(96, 126)} <= words
    assert any(text.endswith("no part in these steps.") for text in words)
    assert not any("1 permits" in text or ".0" in text for text in words)


def test_a_diagram_marks_what_is_violated(tmp_path):
    path = tmp_path / "bad.jsonl"
    words = "check --algorithm jiang-printed --nodes 3 --topology line --permits 1 "
    words += "--request 2:1@5 --request 1:1@6 --request 0:1@1"
    assert CliRunner().invoke(app, [*words.split(), "--trace", str(path)]).exit_code == 1
    index = open_trace(path)
    diagram = Diagram(index, 1, index.steps)
    assert "order is violated" in {text for *_, text in labels(diagram)}


def test_a_diagram_cannot_be_made_to_say_markup(tmp_path):
    path = tmp_path / "evil.jsonl"
    evil = '<script>alert(1)</script>"; %% end'
    setup = {"meshlock": "trace", "format": 1, "nodes": 2, "permits": 1, "links": [[0, 1]]}
    setup |= {"holder": 0, "names": [evil, "b"]}
    lines = [
        setup,
        {"t": 0, "node": 0, "event": "request", "client": 1, "want": 1, "priority": 0},
        {"t": 0, "node": 0, "event": "send", "id": 1, "to": 1, "message": evil, "args": {}},
        {"t": 1, "node": 1, "event": "deliver", "id": 1, "from": 0, "message": evil, "args": {}},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    diagram = Diagram(open_trace(path), 1, 2)
    assert "<script" not in diagram.svg()
    assert "&lt;script&gt;" in diagram.svg()


def test_an_index_can_be_fed_while_it_is_read(trace):
    lines = trace.read_bytes().splitlines(keepends=True)
    setup = json.loads(lines[0])
    with trace.open("rb") as file:
        index = Index(setup, file, len(lines[0]))
        for line in lines[1:400]:
            index.feed(line)
        assert isinstance(index.snapshot(index.steps), Snapshot)
        assert json.loads(index.window(0))["last"] == min(index.steps, WINDOW)


def test_a_message_to_nobody_does_no_harm(tmp_path):
    path = tmp_path / "odd.jsonl"
    head = b'{"meshlock": "trace", "format": 1, "nodes": 3, "permits": 1, "links": []}\n'
    odd = b'{"t": 0, "node": 0, "event": "start"}\n{"t": 0, "node": 0, "event": "send", "id": 1}\n'
    path.write_bytes(head + odd)
    index = open_trace(path)
    assert index.snapshot(1).shown()["flying"] == []
    assert Diagram(index, 1, 1).svg().startswith("<svg")


def test_a_port_in_use_and_a_bad_trace_are_sentences(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(Refused, match="use another --port"):
            view(None, port=taken.getsockname()[1], browser=False, algorithm=())
    with pytest.raises(Refused, match="Cannot read"):
        view(tmp_path / "nothing.jsonl", port=0, browser=False, algorithm=())


RUNS = [
    "--algorithm jiang --nodes 9 --topology grid:3x3 --permits 3 --want 1-2 --priority 0-5",
    "--algorithm jiang --nodes 8 --mobility flips:0.5 --topology ring --permits 2",
    "--algorithm jiang --nodes 8 --mobility flips:0.5 --topology ring --failures return",
    "--algorithm raymond --nodes 7 --topology tree",
    "--algorithm general-scheme --behaviour random --nodes 6",
    "--algorithm naimi-trehel --nodes 6",
    "--algorithm reverse-link --nodes 6 --topology ring",
    "--algorithm ricart-agrawala --nodes 4",
    "--algorithm singhal --nodes 5",
    "--algorithm lelann --nodes 4",
]


@pytest.mark.parametrize("words", RUNS)
def test_states_that_a_trace_lacks_are_those_it_would_have_recorded(tmp_path, words):
    for name, more in (("bare", ""), ("stated", "--trace-states")):
        command = f"simulate {words} --requests 40 --json {more} --trace {tmp_path}/{name}.jsonl"
        result = CliRunner().invoke(app, command.split())
        assert result.exit_code == 0, result.output
    bare, stated = (open_trace(tmp_path / f"{name}.jsonl") for name in ("bare", "stated"))
    assert bare.now.variables
    assert bare.window(0) == stated.window(0)
    assert bare.snapshot(bare.steps).shown() == stated.snapshot(stated.steps).shown()


def test_a_trace_that_its_algorithm_would_not_write_is_shown_as_it_is(tmp_path):
    path = simulated(tmp_path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    del lines[0]["states"]
    for line in lines:
        line.pop("state", None)
        if line.get("event") == "send" and line["message"] == "TOKEN":
            line["message"] = "PARCEL"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    index = open_trace(path)
    assert not index.now.variables
    assert index.events == len(lines) - 1


def test_whatever_stands_in_a_trace_the_page_gets_an_answer_or_a_sentence(trace, tmp_path):
    stream = Random(7)
    lines = [json.loads(line) for line in trace.read_bytes().splitlines()[:120]]
    odd = [None, True, -5, 10**30, "x", [], {}, [[0]], 1.5, "<b>", 3]
    path = tmp_path / "odd.jsonl"
    answers = 0
    for _ in range(150):
        bent = [dict(line) for line in lines]
        for _ in range(stream.randint(1, 3)):
            line = stream.choice([bent[0], stream.choice(bent)])
            key = stream.choice(list(line))
            line[key] = stream.choice(odd)
        path.write_text("".join(json.dumps(line) + "\n" for line in bent))
        with suppress(BadTrace):
            index = open_trace(path)
            json.loads(index.window(0))
            msgspec.json.encode(index.about())
            Diagram(index, 1, 60).svg()
            answers += 1
    assert 20 < answers < 140
