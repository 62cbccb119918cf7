"""A run driven by run: what can be done, what is refused, what is noticed."""

import json

import pytest

from meshlock.algorithms.registry import ALGORITHMS
from meshlock.errors import Refused
from meshlock.simulate.schedule import read
from meshlock.trace.audit import Audit
from meshlock.trace.reader import Trace
from meshlock.web.driving import DrivenSetUp, PageRun


def driven(asked):
    return PageRun(DrivenSetUp(asked))


def line_of_three(algorithm="jiang", **more):
    return driven({"algorithm": algorithm, "topology": "line", "nodes": 3, "permits": 2} | more)


def saved(run, path):
    lines = run.index.read(0, run.index.steps)
    body = b"\n".join(b"\n".join(part) for part in lines if part)
    setup = json.dumps(run.index.setup).encode()
    path.write_bytes(setup + b"\n" + body + b"\n" + run.closing())
    return Trace(path)


def test_ask_deliver_leave_and_the_saved_trace_is_judged_good(tmp_path):
    run = line_of_three()
    run.perform({"do": "ask", "node": 2, "want": 2, "priority": 5})
    run.perform({"do": "all"})
    assert run.about()["violated"] == []
    assert [request.node for request in run.run.inside.values()] == [2]
    run.perform({"do": "ask", "node": 0, "want": 1, "priority": 9})
    run.perform({"do": "leave", "node": 2})
    run.perform({"do": "all"})
    assert [request.node for request in run.run.inside.values()] == [0]
    run.perform({"do": "leave", "node": 0})  # the token is here: nothing is sent
    assert not run.run.on_the_way
    verdict = Audit(saved(run, tmp_path / "saved.jsonl"))
    assert verdict.monitor.violated == {}
    assert verdict.entries == 2
    assert verdict.ended


def test_a_part_is_released_and_a_priority_changed(tmp_path):
    run = line_of_three()
    run.perform({"do": "ask", "node": 0, "want": 2})
    run.perform({"do": "ask", "node": 1, "priority": 5})
    run.perform({"do": "ask", "node": 2, "priority": 3})
    run.perform({"do": "all"})
    run.perform({"do": "raise", "node": 2, "priority": 9})
    run.perform({"do": "all"})
    run.perform({"do": "release", "node": 0, "permits": 1})
    run.perform({"do": "all"})
    assert sorted(request.node for request in run.run.inside.values()) == [0, 2]
    last = run.index.snapshot(run.index.steps)
    assert (last.inside, last.served) == (2, 2)
    assert {client[:3] for client in last.clients.values()} == {(0, 1, 0), (1, 1, 5), (2, 1, 9)}
    assert Audit(saved(run, tmp_path / "saved.jsonl")).monitor.violated == {}
    with pytest.raises(Refused, match="can release a part of these, not 1"):
        run.perform({"do": "release", "node": 0, "permits": 1})
    with pytest.raises(Refused, match="No client waits at node 0"):
        run.perform({"do": "raise", "node": 0, "priority": 1})


def test_the_printed_algorithm_is_caught_when_driven_into_its_deadlock():
    run = line_of_three("jiang-printed", permits=1)
    run.perform({"do": "ask", "node": 2, "priority": 5})
    run.perform({"do": "next"})
    run.perform({"do": "ask", "node": 1, "priority": 6})
    run.perform({"do": "all"})
    run.perform({"do": "ask", "node": 0, "priority": 1})
    run.perform({"do": "all"})
    run.perform({"do": "leave", "node": 1})
    run.perform({"do": "all"})
    run.perform({"do": "leave", "node": 0})
    if run.run.on_the_way:
        run.perform({"do": "all"})
    found = {entry["property"]: entry["sentence"] for entry in run.about()["violated"]}
    assert set(found) == {"order", "served"}
    assert found["served"] == "1 request waits and nothing can happen"


def test_taking_back_leads_exactly_to_where_it_was():
    run = line_of_three()
    run.perform({"do": "ask", "node": 2})
    run.perform({"do": "next"})
    before = run.index.window(0)
    run.perform({"do": "cut", "one": 0, "other": 1})
    assert run.index.window(0) != before
    run.perform({"do": "undo"})
    assert run.index.window(0) == before


def test_links_follow_the_radio_range():
    run = driven({"topology": "range", "nodes": 6, "permits": 2})
    before = set(run.run.links)
    run.perform({"do": "move", "node": 3, "x": 2.9, "y": 2.9})
    gone = {link for link in before if 3 in link}
    assert gone
    assert run.run.links == before - gone
    assert run.about()["driven"]["parted"]
    run.perform({"do": "ask", "node": 3})
    assert run.about()["violated"] == []  # a partition excuses
    run.perform({"do": "move", "node": 3, "x": run.places[0][0], "y": run.places[0][1] + 0.1})
    run.perform({"do": "all"})
    assert [request.node for request in run.run.inside.values()] == [3]


@pytest.mark.parametrize(
    ("action", "sentence"),
    [
        ({"do": "fly"}, "There is no step 'fly'"),
        ({"do": "ask", "node": 7}, "node must be a whole number from 0 to 2."),
        ({"do": "ask", "node": 0, "want": 3}, "want must be a whole number from 1 to 2."),
        ({"do": "leave", "node": 1}, "No client holds permits at node 1."),
        ({"do": "next"}, "No message is in flight."),
        ({"do": "deliver", "id": 5}, "This message is no longer in flight."),
        ({"do": "cut", "one": 0, "other": 2}, "There is no link 0-2."),
        ({"do": "join", "one": 0, "other": 1}, "There is a link 0-1 already."),
        (
            {"do": "move", "node": 1, "x": 0, "y": 0},
            "Nodes can be moved only in a network by radio range",
        ),
        ({"do": "undo"}, "There is nothing to undo."),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_sentence(action, sentence):
    run = line_of_three()
    with pytest.raises(Refused) as refused:
        run.perform(action)
    assert str(refused.value).startswith(sentence)
    assert run.index.steps == 0


def drawn(seed):
    run = driven({"algorithm": "general-scheme", "topology": "line", "nodes": 4, "seed": seed})
    run.perform({"do": "ask", "node": 3})
    while run.run.on_the_way:
        run.perform({"do": "next"})
    return run


def choices(run):
    lines = [line for part in run.index.read(0, run.index.steps) for line in part]
    return [event["choice"] for event in map(json.loads, lines) if "choice" in event]


def test_what_nobody_chooses_is_drawn_from_the_seed_of_the_run(tmp_path):
    run = drawn(1)
    assert run.index.setup["choices"] == ["proxy", "transit"]
    assert len(choices(run)) == run.index.steps
    assert {choice for seed in range(5) for choice in choices(drawn(seed))} == {0, 1}
    assert choices(run) == choices(drawn(1))
    run.perform({"do": "undo"})
    run.perform({"do": "next"})
    assert choices(run) == choices(drawn(1))
    schedule, entries = read(saved(run, tmp_path / "drawn.jsonl"))
    assert schedule.play(strict=True).outcome().entries == entries == [3]


def test_whoever_drives_says_what_a_node_does():
    run = driven({"algorithm": "general-scheme", "topology": "line", "nodes": 3})
    for node, behaviour in ((0, "transit"), (1, "proxy"), (2, "proxy")):
        run.perform({"do": "behaviour", "node": node, "behaviour": behaviour})
    assert run.about()["driven"]["behaviours"] == {0: 1, 1: 0, 2: 0}
    run.perform({"do": "ask", "node": 2})
    run.perform({"do": "all"})
    assert choices(run) == [0, 0, 1, 0, 0]
    run.perform({"do": "behaviour", "node": 0, "behaviour": "drawn"})
    assert 0 not in run.about()["driven"]["behaviours"]
    with pytest.raises(Refused, match="behaves as proxy, transit or drawn, not 'lazy'"):
        run.perform({"do": "behaviour", "node": 0, "behaviour": "lazy"})
    with pytest.raises(Refused, match="Nodes of jiang have no choice"):
        line_of_three().perform({"do": "behaviour", "node": 0, "behaviour": "proxy"})


def test_an_algorithm_for_one_permit_is_not_silently_given_three():
    with pytest.raises(Refused, match="raymond shares one permit: set permits to 1, not 3"):
        driven({"algorithm": "raymond", "topology": "line", "nodes": 3, "permits": 3})
    assert driven({"algorithm": "raymond", "topology": "line"}).settled.permits == 1


def test_no_file_of_this_machine_can_be_named_as_a_network():
    with pytest.raises(Refused):
        driven({"topology": "/etc/passwd.json"})


@pytest.mark.parametrize("name", list(ALGORITHMS))
def test_every_algorithm_can_be_driven(name):
    run = driven({"algorithm": name, "topology": "star", "nodes": 4, "permits": 1})
    run.perform({"do": "ask", "node": 3})
    for _ in range(100):
        if run.run.inside:
            break
        run.perform({"do": "next"})
    assert [request.node for request in run.run.inside.values()] == [3]
    assert run.about()["violated"] == []


def test_nodes_of_a_run_with_members_crash_and_come_back(tmp_path):
    run = driven({"topology": "line", "nodes": 3, "permits": 1, "members": 3})
    run.perform({"do": "wait", "time": 250})
    run.perform({"do": "ask", "node": 1})
    run.perform({"do": "wait"})
    assert [client.node for client in run.run.inside.values()] == [1]
    run.perform({"do": "ask", "node": 2})
    run.perform({"do": "crash", "node": 1})
    with pytest.raises(Refused, match="Node 1 is down"):
        run.perform({"do": "ask", "node": 1})
    run.perform({"do": "restart", "node": 1, "disk": False})
    run.perform({"do": "wait", "time": 500})
    assert [client.node for client in run.run.inside.values()] == [2]
    assert run.about()["violated"] == []
    steps = run.index.steps
    run.perform({"do": "undo"})
    assert run.index.steps < steps
    run.perform({"do": "wait", "time": 500})
    assert run.index.steps == steps
    trace = saved(run, tmp_path / "saved.jsonl")
    assert Audit(trace).monitor.violated == {}
    schedule, entries = read(saved(run, tmp_path / "saved.jsonl"))
    assert schedule.play(strict=True).outcome().entries == entries == [1, 2]


def test_crashes_are_for_runs_with_members():
    with pytest.raises(Refused, match="Only nodes of a pool with members can crash"):
        line_of_three().perform({"do": "crash", "node": 0})
