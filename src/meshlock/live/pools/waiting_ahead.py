"""Requests that wait where the token will come, instead of running after it.

Whoever gives the token away knows its queue, so it knows where the token will go. A request
that is to be handed on after it would come too late at the next holder, be handed on again, and
might run after the token for ever. So it is sent to the first node in that queue that it goes
before, or to the last if there is none, waits there, and joins the queue when the token
arrives: it is then in its place, whatever its priority.

To the state machine such a request is one that was under way for longer, which is always
allowed; it is lost with the node that it waits at, and repeated like any that is lost.
"""

from __future__ import annotations

from meshlock.algorithms.recovery.messages import GRANTS, Asked, Request, Token
from meshlock.algorithms.recovery.node import RecoveryNode
from meshlock.algorithms.recovery.order import rank

MOST_KEPT = 1024


class WaitingAhead:
    def __init__(self, node: RecoveryNode) -> None:
        self.node = node
        self.hop = -1  # of the token when we gave it away
        self.queue: tuple[Asked, ...] = ()  # that it took along
        self.grants = 0
        self.kept: dict[int, Request] = {}

    # -- requests that wait elsewhere --------------------------------------------------

    def leaves(self, token: Token) -> None:
        """We give the token away."""
        _, self.hop, _, _, self.grants = token.papers
        self.queue = token.queue

    def place(self, asked: Asked) -> int | None:
        """The node to wait at for the token as we last saw it; None: go and look for it."""
        node = self.node
        if node.hop_seen != (node.adopted, self.hop - 1) or node.guess_hop > self.hop:
            return None
        mine = rank((*asked[:4], self.grants, asked[5]))
        found = None
        for other in self.queue:
            if other[0] not in (asked[0], node.me) and other[0] not in node.gone:
                found = other[0]
                if rank(other) > mine:
                    break
        return found

    # -- requests that wait here ------------------------------------------------------

    def keep(self, request: Request) -> bool:
        """Will the token come here? It will if we have not had it since that hop."""
        node, hop = self.node, request.hop
        request.hop = GRANTS  # whoever gets it from here does not know where the token is
        if node.token is not None or node.adopted != request.epoch or not node.waiting:
            return False
        if node.hop_seen >= (request.epoch, hop) or len(self.kept) >= MOST_KEPT:
            return False
        self.kept[request.asked[0]] = request
        return True

    def joins(self, token: Token) -> None:
        """The token arrives: those who waited for it here line up."""
        if not self.kept:
            return
        epoch, hop, _, _, grants = token.papers
        if token.boot != self.node.boot or (epoch, hop) <= self.node.hop_seen:
            return  # it will be refused
        there = {asked[0] for asked in token.queue}
        token.queue += tuple(
            [
                (*request.asked[:4], grants, request.asked[5])
                for request in self.kept.values()
                if request.epoch == epoch and request.asked[0] not in there
            ]
        )
        self.kept.clear()

    def empty(self) -> list[Request]:
        """We do not wait for the token any more, so nobody can wait for it here."""
        found = list(self.kept.values())
        self.kept.clear()
        return found
