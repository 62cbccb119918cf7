"""What a node's state and a message consist of, found from their constructors."""

from __future__ import annotations

import pytest

from meshlock.algorithms.actor import Message
from meshlock.algorithms.jiang_messages import Call
from meshlock.algorithms.mutants.catalogue import REPAIRS
from meshlock.algorithms.registry import ALGORITHMS, find, with_defaults
from meshlock.topology.graphs import Complete

JIANG = (
    "holder t height next queue clients views unheard owed forming told stranded calls grants aged "
    "backfill"
)

VARIABLES = {
    "jiang": JIANG,
    "jiang/without-R1": JIANG,
    "naimi-trehel": "token_here asked father lender mandator waiting client",
    "reverse-link": (
        "inside near height seen_height next token_holder queue link_due forming client"
    ),
    "singhal": "client states numbers token_states token_numbers",
    "lelann": "client token_here",
}


@pytest.mark.parametrize("name", VARIABLES)
def test_variables_stand_in_the_order_of_the_constructor(name: str) -> None:
    """As they do in traces, in both flavours."""
    algorithm = find(name)
    for node in algorithm.make(Complete(3), 1, with_defaults(algorithm, {}), []):
        assert " ".join(node.variables) == VARIABLES[name]
        assert len(node.freeze()) == len(node.variables)


@pytest.mark.parametrize("name", [*ALGORITHMS, *[mutant.name for mutant in REPAIRS.values()]])
def test_whatever_is_said_of_variables_and_fields_is_said_of_some_that_exist(name: str) -> None:
    algorithm = find(name)
    node = algorithm.make(Complete(3), 1, with_defaults(algorithm, {}), [])[0]
    said = node.reductions
    for part in [said.names or (), said.heights, said.counts, said.ranks]:
        assert set(part) <= set(node.variables)
    for known in node.no_state:
        assert hasattr(node, known)
    for kind in algorithm.kinds:
        said = kind.reductions
        for fields in [said.names or (), said.heights, said.counts]:
            assert set(fields) <= set(kind.fields)


def test_a_thawed_node_shares_nothing_with_what_it_was_thawed_from() -> None:
    algorithm = find("jiang")
    one, other, _ = algorithm.make(Complete(3), 1, with_defaults(algorithm, {}), [])
    one.request(7, 1, 3)
    before = one.freeze()
    other.thaw(before)
    other.release(7)
    other.request(8, 1, 3)
    assert one.freeze() == before != other.freeze()


def test_a_message_is_called_as_its_class_and_has_what_its_constructor_takes() -> None:
    assert (Message.kind, Message.fields) == ("?", ())
    assert (Call.kind, Call.fields) == ("CALL", ("height", "grants", "node", "number", "answered"))
    call = Call(3, (0, 1, 2), 4, 5, 6, True)
    assert call.freeze() == ("CALL", (0, 1, 2), 4, 5, 6, True)


def test_a_message_may_have_another_name_than_its_class() -> None:
    class AskAgain(Message):
        kind = "ASK"

        def __init__(self, receiver: int, number: int) -> None:
            super().__init__(receiver)
            self.number = number

    assert (AskAgain.kind, AskAgain.fields) == ("ASK", ("number",))
    assert AskAgain(1, 2).freeze() == ("ASK", 2)
