"""What live nodes read before their layers do neither harms nor blames honest nodes."""

from __future__ import annotations

import layer_stories
import pytest
import validated_layer
from layer_stories import ALGORITHMS, GROWING, Story
from validated_layer import ValidatedLayer, ValidatedWorld

from meshlock.algorithms.actor import Message
from meshlock.algorithms.recovery.holding import OwnGrant
from meshlock.algorithms.recovery.layer import Layer
from meshlock.algorithms.recovery.messages import Inner
from meshlock.algorithms.recovery.records import Fence, Life, TokenState
from meshlock.algorithms.recovery.terms import Rules, Terms
from meshlock.algorithms.registry import find, with_defaults

LEASE = 60

EXPECTED = {
    "a PROMISE of docks: no member knows its epoch yet",
    "a PROPOSE of docks, of which it is not a member",
    "a LEDGER of docks, of which it is not a member",
}
"""Of nodes that missed who the members are. They say it again until they are told."""

FORMER = {"a CONFIRM of docks: it answers a proposal that was not made"}
"""By the clock of a former life, which starts anew in these worlds."""

DOUBLED = {
    "a GRANT of docks: its sender does not have the token",
    "a GRANT of docks: it grants permits of wrong names",
}
"""Of grants that come a second time, as no live link brings them."""


@pytest.mark.parametrize("rules", [None, GROWING])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_random_worlds_go_on_as_well_when_every_message_is_doubted(
    algorithm: str, rules: Rules | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layer_stories, "World", ValidatedWorld)
    for counted in (validated_layer.REFUSED, validated_layer.REWRITTEN):
        counted.clear()
    for seed in range(100, 103):
        Story(algorithm, seed, make=ValidatedLayer, rules=rules).tell()
    assert set(validated_layer.REFUSED) <= EXPECTED | FORMER | DOUBLED
    assert set(validated_layer.REWRITTEN) <= {"config"}


def holder() -> ValidatedLayer:
    """It had the token at a later hop, and has a grant since."""
    direct = find("direct")
    terms = Terms(
        (0, 4), (0,), 1, LEASE, LEASE + 6, direct, with_defaults(direct, {}), lambda node: ()
    )
    node = ValidatedLayer(0, [], terms)
    node.tell_time(0)
    node.start(Life(1, alone=True, founds=True))
    member = node.member
    member.holding.token = None
    member.hop_seen = (member.adopted, 5)
    grant = OwnGrant(7, 1, member.adopted, LEASE, (), "")
    member.grants[Fence(member.adopted, 2)] = grant
    return node


def token_of_before(node: Layer) -> Message:
    adopted = node.member.adopted
    message = Inner(0, adopted, 1, Plain(0), TokenState(adopted, 3, 1, (), 1), LEASE)
    message.sender = 4
    return message


class Plain(Message):
    """Of an algorithm inside."""


def test_a_token_that_is_sent_again_is_not_held_against_its_sender() -> None:
    """Its receipt was lost, and it has not heard of our grant."""
    node = holder()
    validated_layer.REFUSED.clear()
    node.receive(token_of_before(node))
    assert validated_layer.REFUSED == {}
