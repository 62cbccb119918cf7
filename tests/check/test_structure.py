"""The invariants by which the papers prove the rest hold in every state, and can be broken."""

from __future__ import annotations

import pytest
from checks import ask, explore

from meshlock.algorithms.actor import NIL, Effect, Message
from meshlock.algorithms.general_scheme import AlwaysProxy, Request, SchemeNode, Token
from meshlock.algorithms.jiang import JiangNode, SharedRules
from meshlock.algorithms.jiang_messages import Token as JiangToken
from meshlock.algorithms.queues import Fifo, Lift
from meshlock.algorithms.registry import ALGORITHMS, find, with_defaults
from meshlock.check.arguments import PROPERTIES, judged, refuse_unjudged
from meshlock.check.structure import NAMES
from meshlock.check.verdict import Checking
from meshlock.errors import Refused
from meshlock.properties.downhill import Downhill
from meshlock.properties.scheme import PROPERTIES as SCHEME
from meshlock.properties.scheme import Scheme

LINE = [[1], [0, 2], [1]]


# -- downhill --------------------------------------------------------------------------------


def slopes(*heights: tuple[int, int, int], holder: int = 0, giver: int = NIL) -> list[str]:
    """What downhill says of three nodes in a line with these heights.

    With a giver, the holder does not have the token yet.
    """
    downhill = Downhill({"downhill"})
    rules = SharedRules(1, with_defaults(find("jiang"), {}))
    seen: list[int] = []
    for me, height in enumerate(heights):
        out: list[Effect] = []
        inbox: list[Message] = []
        node = JiangNode(me, out, rules, height, me == holder and giver == NIL)
        if me == holder and giver != NIL:
            token = JiangToken(me, heights[giver], 0, 1, 0, 0, 0, None)
            token.sender = giver
            inbox.append(token)
        seen.append(downhill.see(node, inbox))
    return [text for _, text in downhill.wrong(tuple(seen), LINE)]


def test_all_ways_down_end_at_the_holder() -> None:
    assert slopes((0, 0, 0), (0, 1, 1), (0, 2, 2)) == []
    assert slopes((0, 2, 0), (0, 1, 1), (0, 0, 2), holder=2) == []


def test_a_node_without_a_lower_neighbour_must_have_the_token() -> None:
    assert slopes((0, 0, 0), (0, 2, 1), (0, 1, 2)) == [
        "node 2 has no lower neighbour, but the token is at 0"
    ]
    assert slopes((0, 0, 0), (0, 1, 1), (0, 2, 2), holder=2) == [
        "node 0 has no lower neighbour, but the token is at 2"
    ]


def test_while_the_token_is_on_its_way_the_giver_is_the_lowest() -> None:
    assert slopes((0, 0, 0), (0, 1, 1), (0, 2, 2), holder=1, giver=0) == []


def test_two_nodes_are_never_equally_high() -> None:
    (found,) = slopes((0, 0, 0), (0, 1, 7), (0, 1, 7))
    assert found.startswith("two nodes are equally high")


def test_a_part_without_the_token_is_not_asked() -> None:
    """Node 2 is cut off and has no lower neighbour: it cannot have one."""
    downhill = Downhill({"downhill"})
    rules = SharedRules(1, with_defaults(find("jiang"), {}))
    nodes = [JiangNode(me, [], rules, (0, me, me), me == 0) for me in range(3)]
    seen = tuple([downhill.see(node, []) for node in nodes])
    assert downhill.wrong(seen, [[1], [0], []]) == []
    assert downhill.wrong(seen, [[1], [0, 2], [1]]) == []


# -- the general scheme -------------------------------------------------------------------------


class Scene:
    """Three nodes of the general scheme, 1 and 2 sons of 0, and what is on its way."""

    def __init__(self, lift: bool = False) -> None:
        self.nodes = [
            SchemeNode(me, [], 0 if me > 0 else NIL, AlwaysProxy(), Lift(me) if lift else Fifo())
            for me in range(3)
        ]
        self.inboxes: list[list[Message]] = [[], [], []]

    def on_its_way(self, sender: int, message: Message) -> None:
        message.sender = sender
        self.inboxes[message.receiver].append(message)

    def wrong(self) -> dict[str, str]:
        scheme = Scheme(set(SCHEME))
        seen = [scheme.see(self.nodes[i], self.inboxes[i]) for i in range(3)]
        return dict(scheme.wrong(tuple(seen), []))


def test_the_first_tree_is_in_order() -> None:
    assert Scene().wrong() == {}


@pytest.mark.parametrize("lift", [False, True])
def test_who_asks_hangs_where_its_request_is(lift: bool) -> None:
    scene = Scene(lift)
    scene.nodes[1].asked = True
    assert "nodes 0, 1 are roots" in scene.wrong()["oriented"]
    scene.on_its_way(1, Request(0, 1))
    assert scene.wrong() == {}
    scene.inboxes[0].clear()
    scene.nodes[0].waiting.push(1)
    assert scene.wrong() == {}
    scene.nodes[2].asked = True
    scene.nodes[2].mandator = 1
    assert scene.wrong()["oriented"] == "node 1 has two fathers, 0 and 2"


def test_an_own_request_that_waits_is_nobody_s_son() -> None:
    scene = Scene()
    scene.nodes[1].waiting.push(1)
    assert scene.wrong() == {}


def test_two_who_ask_each_other_are_above_themselves() -> None:
    scene = Scene()
    scene.nodes[1].father, scene.nodes[2].father = 2, 1
    assert scene.wrong() == {"oriented": "node 1 is above itself"}


def test_the_token_goes_only_to_who_has_asked() -> None:
    scene = Scene()
    scene.nodes[0].token_here = False
    scene.nodes[0].asked = True
    scene.on_its_way(0, Token(1, 0))
    assert set(scene.wrong()) == {"scheme-1"}
    scene.nodes[1].asked = True
    assert scene.wrong() == {}


def test_one_node_is_its_own_lender_and_it_is_the_root() -> None:
    scene = Scene()
    scene.nodes[1].lender = 1
    assert scene.wrong() == {"scheme-2": "nodes 0 and 1 are both their own lenders"}
    scene.nodes[0].lender = NIL
    assert scene.wrong() == {"scheme-2": "node 1 is its own lender and has the father 0"}


def test_an_idle_node_has_the_token_or_a_father() -> None:
    scene = Scene()
    scene.nodes[0].token_here = False
    wrong = scene.wrong()
    assert wrong["scheme-3"] == "node 0 is idle without father and does not have the token"
    scene.nodes[2].token_here = True
    scene.nodes[0].token_here = True
    assert scene.wrong() == {"scheme-3": "node 2 is idle with the token and has the father 0"}


# -- in the checker -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", [entry.name for entry in ALGORITHMS.values() if entry.structure])
def test_what_an_algorithm_promises_of_every_state_holds(name: str) -> None:
    assumes = ALGORITHMS[name].assumes
    topology = "complete" if assumes.routed or assumes.complete_graph else "line"
    links = "fifo" if assumes.fifo else "unordered"
    checking = explore(ask(name, topology, 3, links=links), *ALGORITHMS[name].structure)
    assert checking.holds()
    assert checking.model.sound is not None
    assert len(checking.model.sound.known) > 10


@pytest.mark.parametrize("failures", ["drain", "return", "custody"])
@pytest.mark.parametrize("algorithm", ["reverse-link", "jiang"])
def test_when_word_of_changes_has_spread_all_ways_lead_down(algorithm: str, failures: str) -> None:
    if algorithm == "reverse-link" and failures == "custody":
        pytest.skip("made for links of which both ends learn at the same time")
    what = ask(algorithm, "complete", 3, requests=["0", "2"], flips=1, failures=failures)
    assert explore(what, "downhill").holds()


def test_a_part_without_the_token_does_not_spoil_it() -> None:
    words = {"requests": ["0", "2"], "changes": ["down 1-2", "up 1-2"], "options": {"raises": "2"}}
    assert explore(ask("jiang", "line", 3, **words), "downhill").holds()


def test_names_are_those_that_algorithms_promise() -> None:
    promised = {name for entry in ALGORITHMS.values() for name in entry.structure}
    assert promised == set(NAMES)
    assert promised < set(PROPERTIES)


def test_what_is_not_promised_cannot_be_asked_for() -> None:
    refuse_unjudged(ask("jiang", "line", 3), ["safety", "downhill"], "none")
    with pytest.raises(Refused, match="does not hold for jiang, which has downhill"):
        refuse_unjudged(ask("jiang", "line", 3), ["oriented"], "none")
    with pytest.raises(Refused, match="does not hold for lamport, which has none of these"):
        refuse_unjudged(ask("lamport", "complete", 3), ["downhill"], "none")
    with pytest.raises(Refused, match="leave out --reduction por"):
        refuse_unjudged(ask("raymond", "line", 3), ["oriented"], "por")


def test_a_reduction_that_leaves_out_states_says_what_it_does_not_judge() -> None:
    for reduction, ending in (("por", "cannot judge."), ("none", "all properties hold.")):
        checking = Checking(ask("raymond", "line", 3), judged([]), 10_000, reduction)
        while checking.run(1000):
            pass
        assert checking.holds()
        assert checking.summary().endswith(ending)
