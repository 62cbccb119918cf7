"""J1 to J10: the printed edition fails each in its own way, and the repaired one passes."""

from pathlib import Path

import pytest

from meshlock.algorithms.registry import find
from meshlock.errors import Refused
from meshlock.simulate.player import Player, play
from meshlock.simulate.scenario import Scenario, names

TRANSCRIPTS = Path(__file__).parent / "printed"

FAILURES = {  # scenario: who enters, in which order; who waits for ever
    "J1": ([1, 0], [2]),
    "J1b": ([1, 3], [2]),
    "J2": ([1, 3], [2, 4]),
    "J3": ([0, 3, 1, 2], []),
    "J4": ([0, 4, 3, 2], []),
    "J5": ([1], [2]),
    "J6": ([2, 3, 0], [3]),
    "J7": ([0], [2]),
    "J8": ([0, 1], [2, 3]),
    "J9": ([0, 3, 2, 4], []),
    "J10": ([0, 1], []),
}


def test_every_erratum_has_its_scenario():
    assert [name for name in names() if name.startswith("J")] == list(FAILURES)


@pytest.mark.parametrize("name", FAILURES)
def test_the_printed_edition_fails(name):
    outcome = play(name, "jiang-printed")
    assert (outcome.entries, outcome.unserved) == FAILURES[name]
    assert outcome.unmet and not outcome.good


@pytest.mark.parametrize("name", FAILURES)
def test_it_fails_step_by_step_as_written_down(name):
    written = (TRANSCRIPTS / f"{name}.txt").read_text(encoding="utf-8")
    assert play(name, "jiang-printed").transcript == written


@pytest.mark.parametrize("name", FAILURES)
def test_the_printed_edition_is_safe_all_the_same(name):
    assert not {"safety", "one-token", "conservation"} & set(play(name, "jiang-printed").violated)


@pytest.mark.parametrize("name", FAILURES)
def test_the_repaired_edition_serves_everybody_in_order(name):
    outcome = play(name, "jiang")
    assert outcome.good, outcome.transcript


def test_entries_out_of_order_are_seen_by_the_monitor_too():
    for name in ("J1", "J1b", "J2", "J3", "J4", "J9"):
        assert "order" in play(name, "jiang-printed").violated


def test_j5_is_a_fault_of_the_appendix_alone():
    """The prose lets the RELEASE wake the node that waits for it."""
    text = "nodes 3\nlinks 0-1 1-2\npermits 1\nrequest 2 priority 5\ndeliver 2->1\n"
    text += "request 1 priority 6\nfinish\nexpect served\n"
    by_prose = Player(Scenario("prose", text), find("jiang-printed")).play()
    assert by_prose.good
    assert by_prose.entries == [1, 2]


def test_j8_heals_by_accident_when_only_one_request_is_queued():
    text = "nodes 3\nlinks 0-1 0-2\npermits 1\nunordered jiang-printed\n"
    text += "request 0\nrequest 1 priority 5\nsettle\nrequest 2 priority 4\nsettle\n"
    text += "leave 0\novertake 0->1\nfinish\nexpect served\n"
    assert Player(Scenario("two", text), find("jiang-printed")).play().good


def test_links_keep_the_order_for_whoever_needs_it():
    text = "nodes 3\nlinks 0-1 0-2\npermits 1\n"
    text += "request 0\nrequest 1 priority 5\nsettle\nrequest 2 priority 4\nsettle\n"
    text += "leave 0\novertake 0->1\nfinish\nexpect served\n"
    outcome = Player(Scenario("ordered", text), find("jiang-printed")).play()
    assert "keeps the order" in outcome.transcript


WRONG = [
    ("request 0", "no line 'nodes COUNT'"),
    ("nodes 2\nlinks 0-1\nrequest 2", "line 3: there is no node 2"),
    ("nodes 2\nlinks 0:1", "should be a link such as 0-1"),
    ("nodes 2\nlinks 0-1\nrequest 0 want many", "'many' should be a whole number"),
    ("nodes 2\nlinks 0-1\ncrash 0", "line 3: Only nodes of a pool with members can crash"),
    ("nodes 2\nmembers 3", "line 2: members are 'auto', 'all' or 1 to 2 of the nodes"),
    ("nodes 2\nlinks 0-1\ndeliver 0->1", "line 3: Nothing is on the way 0->1"),
    ("nodes 2\nlinks 0-1\nlink down 0-0", "line 3: There is no link 0-0"),
    ("nodes 2\nlinks 0-1\nlink up 0-1", "line 3: There is a link 0-1 already"),
    ("nodes 2\nlinks 0-1\nwait 1 2", "line 3: cannot do 'wait 1 2'"),
    ("nodes 2\nlinks 0-1\ndance", "cannot do 'dance'"),
    ("nodes 2\nlinks 0-1\nexpect rain", "cannot expect 'rain'"),
    ("nodes 2\nlinks 0-1\nrequest 0 want 2", "can never be granted"),
    ("links 0-1\nnodes 2", "line 1: say first how many nodes there are"),
    ("nodes 2\nfailures explode", "line 2: failures are drain, return or custody, not 'explode'"),
    ("nodes 3\ntree 0>1>0 2>1", "line 2: node 0 is its own forefather|one node without a father"),
    ("nodes 4\ntree 1>0 3>2>3", "line 2: node 2 is its own forefather"),
    ("nodes 3\ntree 1>0", "one node without a father, not 2: 0 2"),
    ("nodes 3\ntree 2>1>0 2>0", "line 2: node 2 has two fathers"),
    ("nodes 2\ntree 1>0", "jiang-printed does not start from a given tree"),
    ("nodes 2\nexpect tree 1>0", "line 2: jiang-printed has no tree of fathers"),
    ("nodes 2\nexpect messages HELLO 2", "line 2: jiang-printed has no message HELLO"),
    ("nodes 2\nexpect token 0 1", "cannot expect 'token 0 1'"),
    ("nodes 2\nnumbered from 1", "do not say which of their fields are nodes"),
    ("nodes 2\nbehaviour 1 proxy", "line 2: Nodes of jiang-printed have no choice"),
]


@pytest.mark.parametrize(("text", "said"), WRONG)
def test_a_wrong_script_is_refused_with_its_line(text, said):
    with pytest.raises(Refused, match=said.replace("(", r"\(")):
        Player(Scenario("wrong", text), find("jiang-printed")).play()


def test_any_algorithm_that_can_serve_the_set_up_can_play():
    outcome = play("J1", "raymond")
    assert outcome.unserved == [] and outcome.entries == [2, 1, 0]
    assert outcome.unmet[0] == "inside 1: no, inside: 2"
    with pytest.raises(Refused, match="for networks that do not change"):
        play("J7", "raymond")
