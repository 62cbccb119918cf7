"""The checker sees every state of known set-ups, and finds what is wrong in broken ones."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from checks import ask, counts, explore, with_algorithm

from meshlock.algorithms.actor import Actor, Algorithm, Effect, Network
from meshlock.algorithms.general_scheme import (
    Request,
    SchemeNode,
    Token,
    TransitWhileHolding,
)
from meshlock.algorithms.queues import Fifo
from meshlock.check.arguments import judged, setup
from meshlock.check.packing import Tree
from meshlock.check.retold import write_trace
from meshlock.check.story import pages, steps
from meshlock.check.verdict import Checking
from meshlock.errors import Refused
from meshlock.trace.audit import Audit
from meshlock.trace.reader import Trace

# -- packing ------------------------------------------------------------------------------


@pytest.mark.parametrize("leaves", range(1, 9))
def test_a_row_comes_back_as_it_was_and_equal_rows_are_equal_numbers(leaves: int) -> None:
    tree = Tree(leaves)
    rows = [[(7 * i + j * j) % 300 for j in range(leaves)] for i in range(300)]
    states = [tree.pack(row) for row in rows]
    for row, state in zip(rows, states, strict=True):
        assert tree.unpack(state)[leaves:] == row
        assert tree.pack(row) == state
    assert len(set(states)) == len({tuple(row) for row in rows})


# -- pinned counts --------------------------------------------------------------------------

PINNED = [
    ("raymond", "line", 3, "fifo", (142, 251, 14)),
    ("raymond", "line", 4, "fifo", (981, 2205, 21)),
    ("raymond", "line", 5, "fifo", (6593, 17886, 29)),
    ("general-scheme", "complete", 3, "unordered", (545, 947, 16)),
]


@pytest.mark.parametrize(("algorithm", "topology", "nodes", "links", "expected"), PINNED)
def test_counts_are_what_they_were(
    algorithm: str, topology: str, nodes: int, links: str, expected: tuple[int, int, int]
) -> None:
    checking = explore(ask(algorithm, topology, nodes, links=links))
    assert checking.holds()
    assert counts(checking) == expected


def test_one_node_alone_asks_enters_leaves() -> None:
    assert counts(explore(ask("raymond", "line", 1, requests=["0", "0"]))) == (5, 4, 4)


def test_a_partial_look_never_says_that_all_holds() -> None:
    checking = explore(ask("raymond", "line", 4), most=500)
    assert not checking.complete()
    assert not checking.holds()
    assert "only 5" in checking.summary()
    assert "proves nothing" in checking.summary()


# -- broken algorithms ------------------------------------------------------------------------


class Forgetful(SchemeNode):
    """Forgets what was asked of it while it was busy."""

    def receive(self, message: object) -> None:
        if isinstance(message, Request) and self.asked:
            return
        super().receive(message)  # type: ignore[arg-type]


class Greedy(SchemeNode):
    """Passes the token on and keeps it too."""

    def release(self, client: int) -> None:
        super().release(client)
        self.token_here = True


class Careless(SchemeNode):
    """Enters as soon as it has asked."""

    def enter_cs(self) -> None:
        super().enter_cs()
        if not self.token_here:
            self.enter(self.client)


class Clumsy(SchemeNode):
    def receive(self, message: object) -> None:
        if isinstance(message, Token):
            raise ValueError("hands full")
        super().receive(message)  # type: ignore[arg-type]


def broken(kind: type[SchemeNode]) -> Algorithm:
    def make(
        network: Network, permits: int, options: dict[str, str], out: list[Effect]
    ) -> list[Actor]:
        behaviour = TransitWhileHolding()
        return [kind(me, out, network.father(me), behaviour, Fifo()) for me in range(network.size)]

    return Algorithm(kind.__name__, "", "", "mutex", make, (Request, Token))


@pytest.mark.parametrize(
    ("kind", "name", "length", "words"),
    [
        (Forgetful, "served", 4, "waits and nothing can happen"),
        (Greedy, "one-token", 4, "made 1 token"),
        (Careless, "safety", 2, "2 permits are in use"),
        (Clumsy, "handlers", 3, "ValueError: hands full"),
    ],
)
def test_each_mistake_is_found_by_the_shortest_way(
    kind: type[SchemeNode], name: str, length: int, words: str
) -> None:
    checking = explore(with_algorithm(ask("raymond", "line", 3), broken(kind)))
    found = {violation.name: violation for violation in checking.violations()}[name]
    assert words in found.text
    assert len(found.labels) == length
    assert len(steps(checking.model, found)) == length
    assert not checking.holds()


def test_the_story_shows_only_what_changed() -> None:
    checking = explore(with_algorithm(ask("raymond", "line", 2), broken(Careless)), "safety")
    assert pages(checking.model, checking.violations()[0]) == [
        "  1. node 0 asks for 1 permit with priority 0 (client 1)",
        "       ENTERS (client 1)",
        "       [asked no -> yes, client nil -> 1]",
        "  2. node 1 asks for 1 permit with priority 0 (client 2)",
        "       sends REQUEST(origin 1) to 0",
        "       ENTERS (client 2)",
        "       [asked no -> yes, mandator nil -> 1, client nil -> 2]",
    ]


@pytest.mark.parametrize("kind", [Forgetful, Greedy, Careless])
def test_the_audit_reads_the_counterexample_and_agrees(
    kind: type[SchemeNode], tmp_path: Path
) -> None:
    checking = explore(with_algorithm(ask("raymond", "line", 3), broken(kind)))
    for found in checking.violations():
        sink = io.BytesIO()
        write_trace(checking.model, found, sink)
        path = tmp_path / "way.jsonl"
        path.write_bytes(sink.getvalue())
        assert found.name in {"handlers", *Audit(Trace(path)).monitor.violated}
        assert json.loads(sink.getvalue().splitlines()[0])["source"] == "check"


def test_choices_of_the_outside_are_all_tried() -> None:
    """Every behaviour at every moment reaches at least what each fixed one reaches."""
    free = explore(ask("general-scheme", "complete", 3, links="unordered"))
    for behaviour in ("proxy", "transit", "raymond"):
        fixed = explore(
            ask(
                "general-scheme",
                "complete",
                3,
                links="unordered",
                options={"behaviour": behaviour},
            )
        )
        assert fixed.holds()
        assert fixed.explorer.count() < free.explorer.count()


def test_whoever_waits_may_give_up_where_the_algorithm_can_take_a_request_back() -> None:
    def explored(name: str, withdrawals: bool) -> Checking:
        requests = ["0:1@1", "1:1@3", "2:1@2"]
        what = setup(algorithm=name, nodes=3, requests=requests, withdrawals=withdrawals)
        checking = Checking(what, judged([]), 50_000)
        while checking.run(10_000):
            pass
        return checking

    for name in ("jiang", "direct"):
        patient, impatient = explored(name, False), explored(name, True)
        assert patient.holds() and impatient.holds()
        assert impatient.explorer.count() > patient.explorer.count()
    with pytest.raises(Refused, match="cannot withdraw a request"):
        explored("raymond", True)


def test_a_withdrawal_that_nobody_is_told_of_is_found() -> None:
    """R4 undone: the token goes after a client that has given up, past a higher priority."""
    what = setup(
        algorithm="jiang/without-R4",
        nodes=3,
        topology="edges:0-1,0-2",
        requests=["0:1@9", "1:1@5", "1:1@1", "2:1@3"],
        withdrawals=True,
    )
    checking = Checking(what, judged(["order"]), 200_000)
    while checking.run(10_000) and not checking.violations():
        pass
    (found,) = checking.violations()
    assert any("withdraws its request" in step for step in steps(checking.model, found))
