"""Requests wait where the token will come: at the first that they go before, else at the last."""

from __future__ import annotations

from meshlock.algorithms.recovery.node import Pool, RecoveryNode

from meshlock.algorithms.interface import Effect
from meshlock.algorithms.recovery.messages import GRANTS, Asked, Epoch, Request, Token
from meshlock.live.pools.waiting_ahead import WaitingAhead

EPOCH: Epoch = (7, 1, 11)
MEMBERS = (1, 2, 3, 4)
CONFIG = (EPOCH, MEMBERS, 1, 100)


def node(me: int, hop_seen: int) -> RecoveryNode:
    out: list[Effect] = []
    found = RecoveryNode(me, Pool(MEMBERS, MEMBERS, 1, 100, 110), out)
    found.start(0, 10 + me, EPOCH)
    found.adopted = EPOCH
    found.hop_seen = (EPOCH, hop_seen)
    return found


def asked(who: int, priority: int = 0, since: int = 5) -> Asked:
    return (who, 10 + who, 1, priority, since, 1)


def token(to: int, hop: int, *queue: Asked) -> Token:
    return Token(to, (EPOCH, hop, 1, (), 9), CONFIG, 10 + to, queue, 50, 0)


def test_a_request_is_sent_to_the_place_that_it_goes_before() -> None:
    giver = WaitingAhead(node(1, hop_seen=3))
    giver.leaves(token(2, 4, asked(2, priority=1), asked(3), asked(4)))
    assert giver.place(asked(1)) == 4  # behind all of them
    assert giver.place(asked(1, priority=1)) == 3  # before those without priority
    assert giver.place(asked(1, priority=9)) == 2
    giver.node.gone = {4}
    assert giver.place(asked(1)) == 3
    giver.node.guess_hop = 6  # the token was seen elsewhere since
    assert giver.place(asked(1)) is None


def test_it_waits_only_where_the_token_is_still_to_come_and_then_joins_its_queue() -> None:
    waiting = node(4, hop_seen=2)
    room = WaitingAhead(waiting)
    request = Request(4, EPOCH, asked(1), 4)
    assert not room.keep(Request(4, EPOCH, asked(1), 4))  # nobody here waits for the token
    waiting.waiting = {1: (1, 0, 0)}
    assert room.keep(request)
    arriving = token(4, 8, asked(4))
    room.joins(arriving)
    assert arriving.queue == (asked(4), asked(1, since=9))
    assert room.empty() == []

    waiting.hop_seen = (EPOCH, 8)
    late = Request(4, EPOCH, asked(1), 4)
    assert not room.keep(late) and late.hop == GRANTS  # it must go on, and claims nothing
