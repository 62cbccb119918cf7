"""Links that drain, return or keep what is on them, and networks that part and heal."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from checks import ask, counts, explore, with_algorithm

from meshlock.algorithms.mutants.catalogue import MUTANTS
from meshlock.algorithms.registry import find, with_defaults
from meshlock.check.arguments import judged
from meshlock.check.changing_links import Changing, Custody, plain
from meshlock.check.explorer import Violation
from meshlock.check.links import Links, Wire, connected, parts, thaw
from meshlock.check.mutants import setup_of
from meshlock.check.plain import Plain
from meshlock.check.retold import write_trace
from meshlock.check.setup import SetUp
from meshlock.check.story import pages, told_cause
from meshlock.errors import Refused
from meshlock.simulate.schedule import read
from meshlock.trace.audit import Audit
from meshlock.trace.reader import Trace

MODELS = ("drain", "return", "custody")


class Walk:
    """A way through a system, one step at a time, chosen by what the step tells."""

    def __init__(self, what: SetUp) -> None:
        self.system = plain(what, judged([]))
        self.states = [self.system.initial()]
        self.labels: list[int] = []

    def possible(self) -> dict[str, tuple[int, int]]:
        """What can happen next: label and state, by the words for its first act."""
        here = self.states[-1]
        self.system.expand(here)
        assert not self.system.faults
        ways = list(zip(self.system.labels, self.system.successors, strict=True))
        return {
            told_cause(self.system.explain(here, label)[0]): (label, state) for label, state in ways
        }

    def go(self, *starts: str) -> None:
        for start in starts:
            ways = self.possible()
            (step,) = [text for text in ways if text.startswith(start)]
            self.take(ways[step])

    def take(self, way: tuple[int, int]) -> None:
        self.labels.append(way[0])
        self.states.append(way[1])

    def what(self) -> list[str]:
        """The words for what can happen next, without what messages carry."""
        return sorted(text.partition("(")[0] for text in self.possible())

    def violation(self) -> Violation:
        return Violation("none", "", self.states, self.labels)


def asked(failures: str, *changes: str, topology: str = "line", **more: object) -> SetUp:
    words: dict[str, object] = {"nodes": 3, "requests": ["1"], "options": {"raises": "1"}, **more}
    nodes = words.pop("nodes")
    assert isinstance(nodes, int)
    return ask("jiang", topology, nodes, failures=failures, changes=list(changes), **words)


# -- what a link is ------------------------------------------------------------------------


def test_parts_are_named_by_their_lowest_node() -> None:
    assert parts(5, frozenset({(0, 3), (1, 2), (2, 4)})) == [0, 1, 1, 0, 1]
    assert connected(3, frozenset({(1, 2), (0, 2)}))
    assert not connected(3, frozenset({(1, 2)}))


def test_a_link_on_which_all_agree_is_not_worth_a_word() -> None:
    there = Links(frozenset({(0, 1)}), 0, 0)
    wire = there.wire((0, 1))
    assert there.put(wire).wires == ()
    wire.sees[1] = False
    wire.custody[1] = (7, 8)
    (frozen,) = there.put(wire).wires
    again = thaw(frozen)
    assert (again.pair, again.alive, again.sees) == ((0, 1), True, [True, False])
    assert (again.custody, again.ahead) == ([(), (7, 8)], [(), ()])
    assert there.put(wire).put(Wire((0, 1), True)).wires == ()


# -- custody, step by step -------------------------------------------------------------------


def test_a_token_in_custody_waits_for_the_link_and_both_ends_learn_by_themselves() -> None:
    walk = Walk(asked("custody", "down 0-1", "up 0-1", nodes=2))
    walk.go("node 1 asks", "node 0 receives REQUEST", "the link between 0 and 1 breaks")
    assert walk.what() == [
        "node 0 notices that its link to 1 has failed",
        "node 1 notices that its link to 0 has failed",
        "node 1 receives TOKEN",  # it has not noticed: what is on the link still arrives
        "the link between 0 and 1 can be used again",
    ]
    walk.go("node 1 notices")
    assert "node 1 receives TOKEN" not in walk.what()
    walk.go("the link between 0 and 1 can be used again")
    assert walk.what() == ["node 0 notices that its link to 1 has failed"]
    walk.go("node 0 notices")
    assert walk.what() == [
        "TOKEN",  # arrives late
        "node 0 notices that its link to 1 is up",
    ]
    walk.go("node 0 notices that its link to 1 is up")
    assert walk.what() == ["TOKEN"]  # node 1 comes up only behind it, and hears LINK after that
    walk.go("TOKEN", "node 1 notices that its link to 0 is up", "node 1 receives LINK")
    told = "\n".join(pages(walk.system, walk.violation()))
    assert "from 0 arrives late at 1" in told
    assert told.count("ENTERS") == 1


def test_a_token_in_custody_takes_a_detour() -> None:
    walk = Walk(asked("custody", "down 0-1", topology="complete"))
    walk.go("node 1 asks", "node 0 receives REQUEST", "the link between 0 and 1 breaks")
    walk.go("node 1 notices")
    assert not [text for text in walk.what() if text.startswith("TOKEN")]
    walk.go("node 0 notices", "TOKEN")
    assert [text for text in walk.what() if text == "node 1 leaves "]


def test_what_is_said_to_a_deaf_end_is_lost_and_a_token_is_not() -> None:
    """Node 1 has noticed, node 0 has not and goes on sending."""
    walk = Walk(asked("custody", "down 0-1", topology="complete", requests=["2", "1", "0"]))
    walk.go("node 1 asks", "the link between 0 and 1 breaks", "node 1 notices")
    walk.go("node 0 receives REQUEST", "node 0 asks")
    lines = pages(walk.system, walk.violation())
    assert [line for line in lines if "REQUEST" in line and "from 0 to 1 is lost" in line]
    walk.go("node 0 notices", "TOKEN")


def test_an_end_that_is_up_first_sends_ahead_and_may_be_disappointed() -> None:
    walk = Walk(asked("custody", "up 0-2", "down 0-2", requests=["2"]))
    walk.go("the link between 0 and 2 can be used again", "node 2 notices")
    assert "node 0 receives LINK" not in walk.what()
    walk.go("the link between 0 and 2 breaks")
    lines = pages(walk.system, walk.violation())
    assert [line for line in lines if "LINK" in line and "from 2 to 0 is lost" in line]
    assert walk.what() == [
        "node 2 asks for 1 permit with priority 0 ",
        "node 2 notices that its link to 0 has failed",
    ]


@pytest.mark.parametrize("moves", ["quiet", "silent", "broadcast"])
def test_in_no_state_is_a_token_or_a_permit_lost_or_doubled(moves: str) -> None:
    """Counted in whole states, custody included; steps are judged by their balances."""
    options = {"raises": "1", "moves": moves}
    changes = ["down 0-1", "up 0-1"]
    what = ask(
        "jiang", "line", 3, requests=["1", "2"], changes=changes, failures="custody",
        permits=2, options=options,
    )  # fmt: skip
    checking = explore(what)
    assert checking.holds()
    model = checking.model
    assert isinstance(model, Custody)
    kept = 0
    for state in checking.explorer.states:
        tree = model.tree.unpack(state)
        between = model.between(model.links_of(tree))
        kept += any(model.precious(message) for message in between)
        flying = list(between)
        tokens = permits = 0
        for i in range(3):
            place = model.places.look(i, tree[model.tree.leaves + i])
            flying += [message for _, line in place.inbox for message in line]
            held, free = model.holding(i, place.local)
            tokens += held
            permits += free + place.held
        tokens += sum(model.handlers.messages[message].tokens() for message in flying)
        permits += sum(model.handlers.messages[message].permits() for message in flying)
        assert (tokens, permits) == (1, 2)
    assert kept > 100


# -- partition and heal ------------------------------------------------------------------------


@pytest.mark.parametrize("failures", MODELS)
def test_who_waits_where_the_token_is_not_is_served_when_the_network_heals(failures: str) -> None:
    changes = ["down 0-1", "up 0-1"]
    parted = explore(asked(failures, changes[0], requests=["0", "2"]))
    assert parted.holds()
    assert any(left(parted.model, state) for state in parted.explorer.states)
    healed = explore(asked(failures, *changes, requests=["0", "2"]))
    assert healed.holds()
    whole = [state for state in healed.explorer.states if changes_made(healed.model, state) == 2]
    assert whole
    assert not any(left(healed.model, state) for state in whole)


def left(model: Plain, state: int) -> bool:
    """Does somebody wait although nothing more happens by itself?"""
    model.expand(state)
    tree = model.tree.unpack(state)
    assert isinstance(model, Changing)
    waits = any(
        model.places.look(i, tree[model.tree.leaves + i]).waiting for i in range(model.size)
    )
    return waits and not model.survey(tree)[0]


def changes_made(model: Plain, state: int) -> int:
    assert isinstance(model, Changing)
    return model.links_of(model.tree.unpack(state)).changed


def test_who_is_in_the_same_part_as_the_token_must_be_served() -> None:
    """R11 undone: the run ends in two parts, and one who waits is where the token is."""
    forgetful = MUTANTS["jiang/without-R11"]
    checking = explore(setup_of(forgetful, forgetful.algorithm))
    (found,) = checking.violations()
    assert found.name == "served"
    model = checking.model
    assert isinstance(model, Changing)
    tree = model.tree.unpack(found.states[-1])
    assert parts(3, model.links_of(tree).links) == [0, 1, 1]
    assert model.waiting(found.states[-1]) == [2]
    everybody = Plain.unserved(model, tree)
    assert sorted(everybody) == [1, 2]
    assert pages(model, found)[-1].strip() == "node 1 waits for 1 with priority 0 (client 2)"


def test_who_waits_for_permits_of_another_part_cannot_be_served() -> None:
    what = asked("return", "down 1-2", requests=["2", "1:2@1"], permits=2)
    checking = explore(what)
    assert checking.holds()
    model = checking.model
    assert isinstance(model, Changing)
    behind_the_token = 0
    for state in checking.explorer.states:
        tree = model.tree.unpack(state)
        here = model.places.look(1, tree[model.tree.leaves + 1])
        has_token = model.holding(1, here.local)[0] > 0
        behind_the_token += has_token and left(model, state) and here.waiting != ()
    assert behind_the_token > 0


def test_whoever_goes_round_in_another_part_starves_nobody() -> None:
    """Raymond does not hear of links: node 0 asks for ever, node 2 is cut off and waits."""
    raymond = find("raymond")
    what = with_algorithm(asked("drain", "down 0-1", requests=["0", "2"], repeat=True), raymond)
    what.options = with_defaults(raymond, {})
    checking = explore(what, "liveness")
    assert checking.explorer.backward > 0
    assert set(checking.explorer.violations) == {"neighbours"}
    model = checking.model
    assert any(
        Plain.unserved(model, model.tree.unpack(state)) and not model.waiting(state)
        for state in checking.explorer.states
    )


def test_any_changes_part_the_network_only_if_they_may() -> None:
    words = {"requests": ["1"], "flips": 2, "options": {"raises": "1"}}
    kept, parting = (
        explore(ask("jiang", "line", 2, partitions=partitions, **words))
        for partitions in (False, True)
    )
    still = explore(ask("jiang", "line", 2, requests=["1"]))
    assert counts(kept) == counts(still)
    assert parting.holds()
    assert parting.explorer.count() > still.explorer.count()


# -- traces ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("failures", MODELS)
def test_the_trace_of_any_run_is_judged_as_the_checker_judges_it(
    failures: str, tmp_path: Path
) -> None:
    """All of these runs are sound; their traces are so too."""
    random = Random(5)
    path = tmp_path / "way.jsonl"
    for number in range(60):
        changes = ["down 0-1", "up 0-1", "down 1-2", "up 1-2"]
        requests = ["0:1@1", "1:2@3", "2:1@2", "2:1@4"]
        walk = Walk(asked(failures, *changes, topology="complete", requests=requests, permits=2))
        for _ in range(200):
            ways = list(walk.possible().values())
            if not ways:
                break
            walk.take(random.choice(ways))
        with path.open("wb") as file:
            write_trace(walk.system, walk.violation(), file)
        audit = Audit(Trace(path))
        assert audit.monitor.violated == {}, number
        assert audit.entries > 0


@pytest.mark.parametrize(
    ("failures", "told", "wrong"),
    [("custody", [1], []), ("custody", [1, 2], ["order"]), ("drain", [1, 2], ["order"])],
)
def test_order_is_judged_once_both_ends_know(
    failures: str, told: list[int], wrong: list[str], tmp_path: Path
) -> None:
    """Where ends learn by themselves, the word of one is half a change, which excuses."""
    lines = [
        '{"meshlock":"trace","format":1,"source":"test","ordered":true,"balanced":false,'
        f'"failures":"{failures}","nodes":3,"permits":1,"links":"complete","holder":0}}',
        '{"t":1,"node":0,"event":"request","client":1,"want":1,"priority":1}',
        '{"t":1,"node":0,"event":"enter","client":1,"want":1}',
        '{"t":2,"node":2,"event":"request","client":2,"want":1,"priority":5}',
        *[f'{{"t":3,"node":{me},"event":"link-down","peer":{3 - me}}}' for me in told],
        '{"t":4,"node":0,"event":"leave","client":1}',
        '{"t":5,"node":1,"event":"request","client":3,"want":1,"priority":1}',
        '{"t":5,"node":1,"event":"enter","client":3,"want":1}',
    ]
    path = tmp_path / "way.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert list(Audit(Trace(path)).monitor.violated) == wrong


def test_a_send_where_no_link_is_seen_is_found_in_the_trace_too(tmp_path: Path) -> None:
    greeting = MUTANTS["jiang/takes-a-late-giver-for-a-neighbour"]
    checking = explore(setup_of(greeting, greeting.algorithm))
    (found,) = checking.violations()
    path = tmp_path / "way.jsonl"
    with path.open("wb") as file:
        write_trace(checking.model, found, file)
    assert Audit(Trace(path)).monitor.violated == {"neighbours": f"at 7: {found.text}"}


def test_a_way_with_custody_is_played_again_by_hand(tmp_path: Path) -> None:
    walk = Walk(asked("custody", "down 0-1"))
    walk.go("the link between 0 and 1 breaks", "node 1 notices")
    path = tmp_path / "way.jsonl"
    with path.open("wb") as file:
        write_trace(walk.system, walk.violation(), file)
    read(Trace(path))


# -- what is refused ------------------------------------------------------------------------------


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(Refused, match="--failures is drain, return or custody, not 'never'"):
        ask("jiang", "line", 3, failures="never")
    with pytest.raises(Refused, match="--partitions needs changes of links"):
        ask("jiang", "line", 3, partitions=True)
    with pytest.raises(Refused, match="keep the order"):
        ask("naimi-trehel", "complete", 3, failures="custody", links="unordered")
