"""The invariants of the general scheme, as its authors prove them.

Helary, Mostefaoui and Raynal, INRIA RR-1692, section 3: Properties 1 to 3 and Proposition 1.

- **scheme-1**: a node to which the token is on its way has asked for it, or has lent it. (The
  report says it of the moment at which the token is received; its proof shows that it is
  so from the asking on.)
- **scheme-2**: at most one node is its own lender, and it has no father and no mandator.
- **scheme-3**: an idle node (one that has not *asked*) has the token if and only if it has no
  father.
- **oriented**: the abstract tree is a tree, rooted where the token is at home. In it the father
  of an idle node is its ``father``, and that of a busy one is where its request is: on whose
  way, in whose queue or with whom as proxy; then who is sending it a lent token; then, with a
  borrowed token, again its ``father``. The root has the token, has lent it, or is about to get it
  for good.
"""

from __future__ import annotations

from typing import Final, NamedTuple, cast

from meshlock.algorithms.actor import NIL, Actor, Frozen, Message
from meshlock.algorithms.general_scheme import Request, SchemeNode, Token
from meshlock.properties.structure import Clients, Structure, Wrong

ASKED: Final = "scheme-1"
LENDER: Final = "scheme-2"
IDLE: Final = "scheme-3"
ORIENTED: Final = "oriented"
PROPERTIES: Final = (ASKED, LENDER, IDLE, ORIENTED)


class TokenBranch(NamedTuple):
    """What is seen of one node."""

    me: int
    asked: bool
    token_here: bool
    father: int
    lender: int
    mandator: int
    sons: tuple[int, ...]  # whose request is here or comes here
    loans: tuple[int, ...]  # who sends it a token that is lent
    gifts: int  # tokens that come here to stay, or home from a loan

    def above(self) -> int:
        """Its father in the abstract tree, as far as that is known here."""
        if not self.asked or self.token_here:
            return self.father  # (a1), (a5)
        return self.loans[0] if self.loans else NIL  # (a4)


class Scheme(Structure):
    def glimpse(self, node: Actor, inbox: list[Message], clients: Clients) -> Frozen:
        assert isinstance(node, SchemeNode)
        sons = set(node.waiting.others())  # (a2)
        loans: list[int] = []
        gifts = 0
        for message in inbox:
            if isinstance(message, Request):
                sons.add(message.origin)  # (a2)
            elif isinstance(message, Token):
                if message.lender == NIL:
                    gifts += 1
                else:
                    loans.append(message.sender)
        if node.mandator != NIL:
            sons.add(node.mandator)  # (a3)
        sons.discard(node.me)
        return TokenBranch(
            *(node.me, node.asked, node.token_here, node.father, node.lender, node.mandator),
            *(tuple(sorted(sons)), tuple(loans), gifts),
        )

    def wrong(self, seen: tuple[int, ...], neighbours: list[list[int]]) -> list[Wrong]:
        branches = [cast(TokenBranch, self.glimpses[number]) for number in seen]
        found = [
            (ASKED, asked(branches)),
            (LENDER, one_lender(branches)),
            (IDLE, idle(branches)),
            (ORIENTED, oriented(branches)),
        ]
        return [(name, text) for name, text in found if text and name in self.judged]


def asked(branches: list[TokenBranch]) -> str:
    """Who gets the token has asked for it, or lent it: then ``asked`` is true, too."""
    for node in branches:
        if not node.asked and (node.loans or node.gifts > 0):
            return f"the token is on its way to node {node.me}, which has not asked"
    return ""


def one_lender(branches: list[TokenBranch]) -> str:
    """At most one node is its own lender; it has no father and acts for no other node."""
    owners = [node for node in branches if node.lender == node.me]
    if len(owners) > 1:
        return f"nodes {owners[0].me} and {owners[1].me} are both their own lenders"
    for node in owners:
        if node.father != NIL:
            return f"node {node.me} is its own lender and has the father {node.father}"
        if node.mandator != NIL:
            return f"node {node.me} is its own lender and asks on behalf of {node.mandator}"
    return ""


def idle(branches: list[TokenBranch]) -> str:
    """An idle node with the token has no father, and one without a father has the token."""
    for node in branches:
        if not node.asked and node.token_here != (node.father == NIL):
            if node.token_here:
                return f"node {node.me} is idle with the token and has the father {node.father}"
            return f"node {node.me} is idle without father and does not have the token"
    return ""


def oriented(branches: list[TokenBranch]) -> str:
    """The abstract tree is a tree, and its root is where the token is at home."""
    fathers = [node.above() for node in branches]
    for node in branches:
        for son in node.sons:
            if branches[son].asked and fathers[son] != node.me:  # (a2), (a3)
                if fathers[son] != NIL:
                    return f"node {son} has two fathers, {fathers[son]} and {node.me}"
                fathers[son] = node.me
    roots = [i for i, father in enumerate(fathers) if father == NIL]
    if len(roots) != 1:
        return f"nodes {', '.join([str(root) for root in roots]) or 'none'} are roots"
    root = branches[roots[0]]
    reached = {root.me}
    for start in range(len(fathers)):
        way: set[int] = set()
        i = start
        while i not in reached:
            if i in way:
                return f"node {i} is above itself"
            way.add(i)
            i = fathers[i]
        reached |= way
    if not (root.token_here or root.gifts > 0 or (root.asked and root.lender == root.me)):
        return f"node {root.me} is the root and neither has the token, lent it nor gets it"
    return ""
