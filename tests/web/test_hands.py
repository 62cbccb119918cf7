"""A run driven by hand: what can be done, what is refused, what is noticed."""

import json

import pytest

from meshlock.algorithms.registry import ALGORITHMS
from meshlock.errors import Refused
from meshlock.simulate.schedule import read
from meshlock.trace.audit import Audit
from meshlock.trace.reader import Trace
from meshlock.web.hands import Hand


def line_of_three(algorithm="jiang", **more):
    return Hand({"algorithm": algorithm, "topology": "line", "nodes": 3, "permits": 2} | more)


def saved(hand, path):
    lines = hand.index.read(0, hand.index.steps)
    body = b"\n".join(b"\n".join(part) for part in lines if part)
    setup = json.dumps(hand.index.setup).encode()
    path.write_bytes(setup + b"\n" + body + b"\n" + hand.closing())
    return Trace(path)


def test_ask_deliver_leave_and_the_saved_trace_is_judged_good(tmp_path):
    hand = line_of_three()
    hand.do({"do": "ask", "node": 2, "want": 2, "priority": 5})
    hand.do({"do": "all"})
    assert hand.about()["violated"] == []
    assert [request.node for request in hand.run.inside.values()] == [2]
    hand.do({"do": "ask", "node": 0, "want": 1, "priority": 9})
    hand.do({"do": "leave", "node": 2})
    hand.do({"do": "all"})
    assert [request.node for request in hand.run.inside.values()] == [0]
    hand.do({"do": "leave", "node": 0})  # the token is here: nothing is sent
    assert not hand.run.on_the_way
    verdict = Audit(saved(hand, tmp_path / "saved.jsonl"))
    assert verdict.monitor.violated == {}
    assert verdict.entries == 2
    assert verdict.ended


def test_the_printed_algorithm_is_caught_when_driven_into_its_deadlock():
    hand = line_of_three("jiang-printed", permits=1)
    hand.do({"do": "ask", "node": 2, "priority": 5})
    hand.do({"do": "next"})
    hand.do({"do": "ask", "node": 1, "priority": 6})
    hand.do({"do": "all"})
    hand.do({"do": "ask", "node": 0, "priority": 1})
    hand.do({"do": "all"})
    hand.do({"do": "leave", "node": 1})
    hand.do({"do": "all"})
    hand.do({"do": "leave", "node": 0})
    if hand.run.on_the_way:
        hand.do({"do": "all"})
    found = {entry["property"]: entry["sentence"] for entry in hand.about()["violated"]}
    assert set(found) == {"order", "served"}
    assert found["served"] == "1 request(s) wait and nothing can happen"


def test_taking_back_leads_exactly_to_where_it_was():
    hand = line_of_three()
    hand.do({"do": "ask", "node": 2})
    hand.do({"do": "next"})
    before = hand.index.window(0)
    hand.do({"do": "cut", "one": 0, "other": 1})
    assert hand.index.window(0) != before
    hand.do({"do": "undo"})
    assert hand.index.window(0) == before


def test_links_follow_the_radio_range():
    hand = Hand({"topology": "range", "nodes": 6, "permits": 2})
    before = set(hand.run.links)
    hand.do({"do": "move", "node": 3, "x": 2.9, "y": 2.9})
    gone = {link for link in before if 3 in link}
    assert gone
    assert hand.run.links == before - gone
    assert hand.about()["hand"]["parted"]
    hand.do({"do": "ask", "node": 3})
    assert hand.about()["violated"] == []  # a partition excuses
    hand.do({"do": "move", "node": 3, "x": hand.places[0][0], "y": hand.places[0][1] + 0.1})
    hand.do({"do": "all"})
    assert [request.node for request in hand.run.inside.values()] == [3]


@pytest.mark.parametrize(
    ("deed", "sentence"),
    [
        ({"do": "fly"}, "There is no deed 'fly'"),
        ({"do": "ask", "node": 7}, "node must be a whole number from 0 to 2."),
        ({"do": "ask", "node": 0, "want": 3}, "want must be a whole number from 1 to 2."),
        ({"do": "leave", "node": 1}, "Nobody is inside at node 1."),
        ({"do": "next"}, "Nothing is on its way."),
        ({"do": "deliver", "id": 5}, "This message is not on its way any more."),
        ({"do": "cut", "one": 0, "other": 2}, "There is no link 0-2."),
        ({"do": "join", "one": 0, "other": 1}, "There is a link 0-1 already."),
        ({"do": "move", "node": 1, "x": 0, "y": 0}, "Only in a network by radio range"),
        ({"do": "undo"}, "There is nothing to take back."),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_sentence(deed, sentence):
    hand = line_of_three()
    with pytest.raises(Refused) as refused:
        hand.do(deed)
    assert str(refused.value).startswith(sentence)
    assert hand.index.steps == 0


def drawn(seed):
    hand = Hand({"algorithm": "general-scheme", "topology": "line", "nodes": 4, "seed": seed})
    hand.do({"do": "ask", "node": 3})
    while hand.run.on_the_way:
        hand.do({"do": "next"})
    return hand


def choices(hand):
    lines = [line for part in hand.index.read(0, hand.index.steps) for line in part]
    return [event["choice"] for event in map(json.loads, lines) if "choice" in event]


def test_what_nobody_chooses_is_drawn_from_the_seed_of_the_run(tmp_path):
    hand = drawn(1)
    assert hand.index.setup["choices"] == ["proxy", "transit"]
    assert len(choices(hand)) == hand.index.steps
    assert {choice for seed in range(5) for choice in choices(drawn(seed))} == {0, 1}
    assert choices(hand) == choices(drawn(1))
    hand.do({"do": "undo"})
    hand.do({"do": "next"})
    assert choices(hand) == choices(drawn(1))
    schedule, entries = read(saved(hand, tmp_path / "drawn.jsonl"))
    assert schedule.play(strict=True).outcome().entries == entries == [3]


def test_whoever_drives_says_what_a_node_does():
    hand = Hand({"algorithm": "general-scheme", "topology": "line", "nodes": 3})
    for node, behaviour in ((0, "transit"), (1, "proxy"), (2, "proxy")):
        hand.do({"do": "behaviour", "node": node, "behaviour": behaviour})
    assert hand.about()["hand"]["behaviours"] == {0: 1, 1: 0, 2: 0}
    hand.do({"do": "ask", "node": 2})
    hand.do({"do": "all"})
    assert choices(hand) == [0, 0, 1, 0, 0]
    hand.do({"do": "behaviour", "node": 0, "behaviour": "drawn"})
    assert 0 not in hand.about()["hand"]["behaviours"]
    with pytest.raises(Refused, match="behaves as proxy, transit or drawn, not 'lazy'"):
        hand.do({"do": "behaviour", "node": 0, "behaviour": "lazy"})
    with pytest.raises(Refused, match="jiang leaves its nodes no choice"):
        line_of_three().do({"do": "behaviour", "node": 0, "behaviour": "proxy"})


def test_no_file_of_this_machine_can_be_named_as_a_network():
    with pytest.raises(Refused):
        Hand({"topology": "/etc/passwd.json"})


@pytest.mark.parametrize("name", list(ALGORITHMS))
def test_every_algorithm_can_be_driven(name):
    hand = Hand({"algorithm": name, "topology": "star", "nodes": 4, "permits": 1})
    hand.do({"do": "ask", "node": 3})
    for _ in range(100):
        if hand.run.inside:
            break
        hand.do({"do": "next"})
    assert [request.node for request in hand.run.inside.values()] == [3]
    assert hand.about()["violated"] == []
