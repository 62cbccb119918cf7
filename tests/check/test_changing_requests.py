"""Requests that change their priority while they wait, and clients that release a part."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from shlex import split
from typing import Any

import pytest
from checks import ask, explore, with_algorithm
from click.testing import CliRunner

from meshlock.algorithms.actor import Actor, Algorithm, Assumptions, Effect, Network, Serves
from meshlock.algorithms.mutants.mutant import Mutant
from meshlock.algorithms.registry import find
from meshlock.check.arguments import judged
from meshlock.check.crashing_nodes import Crashing
from meshlock.check.explorer import Violation
from meshlock.check.plain import Plain
from meshlock.check.retold import write_trace
from meshlock.check.setup import SetUp
from meshlock.check.story import pages
from meshlock.check.verdict import Checking
from meshlock.cli.main import app
from meshlock.errors import Refused
from meshlock.trace.audit import Audit
from meshlock.trace.reader import Trace

RAISED = {"permits": 3, "clients": 3, "requests": ["0:2@1", "0:2@5", "0:1@3"], "raises": ["0:9"]}
"""Two of three are held, A waits for two with priority 5, B for one with 3; A becomes 9."""


def nodes_of(name: str, change: Any) -> Algorithm:
    """The algorithm with this handler for changes of priority."""
    origin = find(name)

    def make_nodes(
        network: Network, permits: int, options: dict[str, str], out: list[Effect]
    ) -> list[Actor]:
        nodes = origin.make(network, permits, options, out)
        for node in nodes:
            node.freeze()  # its variables are those that it has now
            node.change_priority = change.__get__(node)  # type: ignore[method-assign]
        return nodes

    return Algorithm(
        name,
        "",
        "",
        origin.problem,
        make_nodes,
        origin.kinds,
        assumes=Assumptions(routed=origin.assumes.routed),
        serves=Serves(priorities=True, many_clients=True),
        options=origin.options,
    )


def withdraws_and_asks_again(node: Actor, client: int, want: int, priority: int) -> bool:
    age = node.waited(client)
    if not node.withdraw(client):
        return False
    node.resume(client, want, priority, age)
    return True


def says_that_it_did(node: Actor, client: int, want: int, priority: int) -> bool:
    return True


pure = pytest.mark.skipif(
    not (find.__code__.co_filename if hasattr(find, "__code__") else "").endswith(".py"),
    reason="nodes are broken by replacing a method",
)


@pure
@pytest.mark.parametrize("name", ["direct", "jiang"])
def test_a_raise_in_two_steps_lets_a_less_urgent_client_in(name: str) -> None:
    what = with_algorithm(
        ask(name, "complete", 1, **RAISED), nodes_of(name, withdraws_and_asks_again)
    )
    (found,) = explore(what).violations()
    assert (found.name, len(found.labels)) == ("order", 4)
    assert found.text == (
        "node 0 enters with priority 3 although nothing was in flight and a request of priority 5 "
        "was waiting"
    )


@pure
@pytest.mark.parametrize("name", ["direct", "jiang"])
def test_a_raise_that_nobody_hears_of_is_out_of_order(name: str) -> None:
    what = ask(name, "line", 2, requests=["0:1@1", "0:1@5", "1:1@3"], raises=["1:9"], clients=2)
    (found,) = explore(with_algorithm(what, nodes_of(name, says_that_it_did))).violations()
    assert found.name == "order"


def test_the_next_is_judged_by_the_priorities_of_now() -> None:
    """9 falls to 2 and is passed by 5, rightly."""
    what = ask(
        "direct", "complete", 1, requests=["0:1@1", "0:1@9", "0:1@5"], raises=["0:2"], clients=3
    )
    assert explore(what).holds()


@pytest.mark.parametrize(
    ("algorithm", "topology", "permits", "requests", "links"),
    [
        ("arbiter", "complete", 2, ["0:2", "1:2", "2"], "fifo"),
        ("arbiter", "complete", 3, ["0:3", "1", "2:2"], "fifo"),
        ("raynal", "complete", 3, ["0:3", "1:2", "2"], "unordered"),
        ("direct", "complete", 2, ["0:2@1", "1:2@3", "2:1@2"], "unordered"),
        ("jiang", "line", 3, ["0:3@1", "1:2@3", "2:1@2"], "fifo"),
    ],
)
def test_parts_are_released_at_any_time(
    algorithm: str, topology: str, permits: int, requests: list[str], links: str
) -> None:
    more = {"permits": permits, "requests": requests, "links": links}
    whole = explore(ask(algorithm, topology, 3, **more))
    parts = explore(ask(algorithm, topology, 3, **more, parts=True))
    assert whole.holds() and parts.holds()
    assert parts.explorer.count() > whole.explorer.count()


def test_a_part_may_have_several_permits_and_several_sizes() -> None:
    """3 become 2 or 1, 2 become 1: with one node every standing of the client is a state."""
    what = ask("direct", "complete", 1, permits=3, requests=["0:3"], release_parts=["0:1", "0:2"])
    assert explore(what).explorer.count() == 1 + 3 + 1  # before; with 3, 2 or 1; after
    what = ask("direct", "complete", 1, permits=3, requests=["0:3"], release_parts=["0:2"])
    assert explore(what).explorer.count() == 1 + 2 + 1


KEEPS_A_PART = """@@ direct.py
         self.clients[client] -= permits
-        self.return_permits(permits)
"""


def test_conservation_is_judged_of_parts() -> None:
    keeps = Mutant("direct/keeps-a-part", "", KEEPS_A_PART, {})
    what = with_algorithm(
        ask("direct", "complete", 1, permits=2, requests=["0:2"], parts=True), keeps.algorithm
    )
    (found,) = explore(what).violations()
    assert (found.name, len(found.labels)) == ("conservation", 2)


def verdicts(what: SetUp, reduction: str) -> tuple[bool, list[str], Checking]:
    check = Checking(what, judged([]), 200_000, reduction)
    while check.run(10_000):
        pass
    return check.holds(), sorted(check.explorer.violations), check


@pytest.mark.parametrize(
    "more",
    [
        {"permits": 2, "requests": ["0:2@1", "1:2@3", "2:1@2"], "parts": True},
        {"requests": ["0:1@1", "1:1@3", "2:1@2"], "raises": ["1:9", "2:0"]},
    ],
    ids=["parts", "raises"],
)
@pytest.mark.parametrize("reduction", ["por", "auto", "symmetry"])
def test_a_reduction_gives_the_same_verdict(reduction: str, more: dict[str, Any]) -> None:
    for algorithm, topology in (("direct", "complete"), ("jiang", "line")):
        plain = verdicts(ask(algorithm, topology, 3, **more), "none")
        reduced = verdicts(ask(algorithm, topology, 3, **more), reduction)
        assert plain[:2] == reduced[:2]
        assert reduced[2].remark
        assert reduced[2].explorer.count() == plain[2].explorer.count()


def test_ranks_are_not_compared_where_they_may_change() -> None:
    """A raise may pass over a stretch of ranks that would be made shorter."""
    more = {"requests": ["0:1@1", "1:1@1"], "repeat": True, "options": {"patience": "2"}}
    assert Checking(ask("jiang", "line", 2, **more), judged([]), 10).compared is not None
    raised = ask("jiang", "line", 2, **more, raises=["1:3"])
    assert Checking(raised, judged([]), 10).compared is None
    raised.options["ageing"] = "none"
    check = Checking(raised, judged([]), 200_000)
    while check.run(10_000):
        pass
    assert check.compared is not None and check.complete()


@pytest.mark.parametrize("members", ["", "all"])
def test_each_change_happens_once(members: str) -> None:
    """Up and down, down and up, or one of them; before, while and after the other is inside."""
    more = {"requests": ["0:1@1", "0:1@5"], "clients": 2, "raises": ["0:9", "0:3"]}
    model = Checking(
        ask("direct", "complete", 1, **more, lead=["request 0a", "request 0b"], members=members),
        judged([]),
        1000,
    ).model
    assert isinstance(model, Plain | Crashing)
    ways = [model.initial()]
    for possible in (2, 1, 0):
        found = []
        for state in ways:
            model.expand(state)
            kinds = [acts[0].event for acts in map(partial(model.explain, state), model.labels)]
            assert kinds.count("priority") == possible
            found += [
                after
                for kind, after in zip(kinds, list(model.successors), strict=True)
                if kind == "priority"
            ]
        ways = found or ways


def way(system: Plain, *steps: str) -> Violation:
    """These steps, as if they led to a violation."""
    states, labels = [system.initial()], []
    for step in steps:
        system.expand(states[-1])
        label = next(one for one in system.labels if system.name(states[-1], one) == step)
        labels.append(label)
        states.append(system.successors[system.labels.index(label)])
    return Violation("none", "", states, labels)


def test_story_and_trace_show_the_steps(tmp_path: Path) -> None:
    asked = {"permits": 3, "requests": ["0:3@1", "1:2@5"]}
    model = Plain(
        ask("direct", "complete", 2, **asked, raises=["1:9"], release_parts=["0:2"]), judged([])
    )
    steps = ["request 0", "request 1", "priority 1 9", "give-back 0 2", "leave 0"]
    found = way(model, *steps)
    told = "\n".join(pages(model, found))
    assert "node 1 changes its request to priority 9 (client 2)" in told
    assert "node 0 releases 2 permits and keeps 1 (client 1)" in told
    path = tmp_path / "way.jsonl"
    with path.open("wb") as file:
        write_trace(model, found, file)
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    said = {line["event"]: line for line in lines if "event" in line}
    assert (said["priority"]["client"], said["priority"]["priority"]) == (2, 9)
    assert (said["give-back"]["client"], said["give-back"]["permits"]) == (1, 2)
    assert not Audit(Trace(path)).monitor.violated


def test_the_search_begins_behind_the_lead() -> None:
    asked = {"permits": 3, "requests": ["0:3@1", "1:2@5"], "release_parts": ["0:2"]}
    lead = ["request 0", "request 1", "give-back 0 2"]
    whole, rest = explore(ask("direct", "complete", 2, **asked)), []
    for length in range(4):
        check = explore(ask("direct", "complete", 2, **asked, lead=lead[:length]))
        assert check.holds()
        rest.append(check.explorer.count())
    assert rest[0] == whole.explorer.count()
    assert sorted(rest, reverse=True) == rest
    what = ask("direct", "complete", 2, **asked, lead=["leave 0"])
    with pytest.raises(Refused, match="'leave 0' is not possible here: use one of request 0, req"):
        Checking(what, judged([]), 10)


@pytest.mark.parametrize("members", ["", "all"])
def test_a_deadline_counts_for_less_than_a_step(members: str) -> None:
    """It rises while the request waits, and stays below the next priority."""
    asked = {"requests": ["0:1@1", "1:1@0.2", "1:1@0.5"], "raises": ["1:0.99"], "clients": 2}
    what = ask("direct", "complete", 2, **asked, members=members)
    assert [one.priority for one in what.requests] == [100, 20, 50]
    assert (what.raises, what.units) == ([(1, 99)], 100)
    lead = ["request 0", "request 1a", "request 1b", "priority 1a 0.99"]
    behind = ask("direct", "complete", 2, **asked, members=members, lead=lead)
    assert explore(what).holds() and explore(behind).holds()
    with pytest.raises(Refused, match="'priority 1a 1' is not possible here"):
        Checking(
            ask(
                "direct", "complete", 2, **asked, members=members, lead=[*lead[:3], "priority 1a 1"]
            ),
            judged([]),
            10,
        )


def test_a_trace_says_what_a_deadline_counts_for(tmp_path: Path) -> None:
    asked = ["0:1@1", "1:1@0.2"]
    model = Plain(ask("direct", "complete", 2, requests=asked, raises=["1:0.99"]), judged([]))
    found = way(model, "request 0", "request 1", "priority 1 0.99", "leave 0")
    assert "node 1 changes its request to priority 0.99 (client 2)" in "\n".join(
        pages(model, found)
    )
    path = tmp_path / "way.jsonl"
    with path.open("wb") as file:
        write_trace(model, found, file)
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert [
        (line["priority"], line["urgency"])
        for line in lines
        if line.get("event") in ("request", "priority")
    ] == [(1, 1), (0, 0.2), (0, 0.99)]
    assert not Audit(Trace(path)).monitor.violated
    replayed = CliRunner().invoke(app, ["replay", str(path)])
    assert replayed.exit_code == 0, replayed.output


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ("--algorithm raymond --raise 0:9", "raymond cannot change the priority of a request"),
        ("--algorithm arbiter --raise 0:9", "arbiter cannot change the priority of a request"),
        ("--algorithm direct --raise 7:9", "--raise 7:9: there is no node 7; the last is 2."),
        ("--algorithm direct --request 1 --raise 0:9", "--raise 0:9: node 0 asks for nothing."),
        ("--algorithm direct --request 1:1@9 --raise 1:9", "node 1 asks with priority 9 from the"),
        ("--algorithm direct --raise 1", "--raise takes NODE:PRIORITY, such as 2:9, not '1'."),
        ("--algorithm direct --release-part 1", "--release-part takes NODE:PERMITS, such as 2:1"),
        ("--algorithm raymond --release-part 1:1", "raymond cannot release a part of what"),
        ("--algorithm jiang-printed --release-part 1:1", "jiang-printed cannot release a part"),
        ("--algorithm direct --permits 2 --release-part 1:1", "no request of node 1 is for more"),
        ("--algorithm direct --permits 2 --request 1:2 --release-part 1:0", "a part is 1 or more"),
        ("--algorithm direct --permits 2 --parts", "--parts needs a request for several permits"),
        ("--algorithm direct --clients 2", "--clients 2: no node makes as many requests."),
        ("--algorithm jiang --failures return", "--failures return: no link changes."),
        ("--algorithm jiang --members all --failures return", "--failures return: no link changes"),
        ("--members all --member-change 'remove 1'", "--member-change needs --proposals"),
        ("--algorithm direct --members all --resize 2", "--resize needs --proposals"),
        ("--algorithm direct --members all --slots --rename 1", "--rename needs --proposals"),
        ("--members all --forgets 1", "--forgets needs --crashes: use --crashes 1."),
        ("--members all --crashes 1 --forgets 2", "--forgets 2 is more than --crashes 1"),
        ("--members all --crashing 1", "--crashing needs --crashes"),
        ("--members all --proposer 1", "--proposer needs --proposals"),
        ("--members all --crashes 1 --no-wall-clock", "--no-wall-clock needs --forgets"),
        ("--members all --ticks 1 --slow-ticks 2", "--slow-ticks 2 is more than --ticks 1"),
        ("--members all --cuts 1", "where a cut is a delay"),
        ("--members all --proposals 1 --member-change 'add 1'", "node 1 is a member from"),
        ("--members 2 --proposals 1 --member-change 'remove 2'", "node 2 is no member from"),
        ("--algorithm direct --members all --proposals 1 --resize 1", "begins with that number"),
        ("--crashes 1", "--crashes is only for nodes that recover: add --members all."),
        ("--property fences", "--property fences is not judged: it needs nodes that recover"),
        ("--members all --property slots", "it needs grants that name their permits, --slots"),
        ("--members all --property liveness", "--property liveness is not judged"),
        ("--algorithm lamport --property one-token", "lamport has no token"),
        ("--property order", "raymond has no priorities"),
        ("--algorithm direct --request 0:1@0.125", "0:1@0.125: a request ages by 1/100 of a step"),
        ("--algorithm direct --raise 0:0.5 --option patience=3", "Use a multiple of 1/3."),
    ],
)
def test_what_cannot_be_used_is_refused_in_a_sentence(flags: str, sentence: str) -> None:
    result = CliRunner().invoke(app, ["check", "--nodes", "3", *split(flags)])
    assert isinstance(result.exception, Refused)  # exit 2
    assert sentence in str(result.exception)
