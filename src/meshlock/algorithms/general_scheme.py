"""The general scheme for token and tree based mutual exclusion.

Helary, Mostefaoui and Raynal, *A general scheme for token and tree based distributed
mutual exclusion algorithms*, INRIA RR-1692, 1992.

**Problem.** One permit; the holder of the token may enter. Nodes form a rooted tree by
their ``father`` variables, and a request climbs towards the root.

**Idea.** A node that receives ``request(j)`` while it does not have the token may do
one of two things, and which one is its own business alone:

- as a *transit* node it passes the request on to its father and, since j will have
  the token, makes j its new father;
- as a *proxy* it takes the request over: it asks its father for the token in its own
  name, remembers j as its *mandator*, and passes the token on when it comes.

A proxy that has the token, or gets it for good, only *lends* it: it comes straight
back to the lender when the borrower leaves. A transit node gives it away. Safety and
liveness hold whatever each node chooses, at any moment, so every rule of choice is an
algorithm: all proxy on a star is the central lock, all transit is a variant of
Naimi-Trehel, transit just while holding the token is Raymond and van de Snepscheut.

**Assumptions.** Any node can send to any other; reliable channels, **not** FIFO; no
crash; the waiting queue is fair; a client leaves in finite time.

======================  ======================  ==========================================
paper                   here                    meaning
======================  ======================  ==========================================
token_here              token_here              the token is at this node
asked                   asked                   waiting for the token, lending it, or in CS
father                  father                  whom to ask; NIL at the root
lender                  lender                  whom the token goes back to on leaving
mandator                mandator                on whose account we asked; NIL if none
behavior                behaviour               transit or proxy, from a policy
"wait (not asked)"      waiting                 the queue of what was asked meanwhile
======================  ======================  ==========================================

**Cost** of one request at a time, in messages: centralized 3, or 0 for the centre;
all transit H(n-1) on average and n at worst; Raymond twice the distance in the tree; the open cube
log2 n + 1 at worst.

The numbers in brackets are those of the report's text. Its printing errors (``=`` for
``≠`` and the reverse, see docs/algorithms/general-scheme.md) are resolved silently.
"""

from __future__ import annotations

from typing import ClassVar, Final

from meshlock.algorithms.actor import NIL, ChoosingActor, Effect, Message, Network, Reductions
from meshlock.algorithms.queues import Fifo
from meshlock.algorithms.site import OnBehalf, TokenMessage
from meshlock.algorithms.subclassing import mypyc_attr

PROXY: Final = 0
TRANSIT: Final = 1


class Request(OnBehalf):
    """request(origin): origin wants the token."""

    wire: ClassVar = ("node",)
    reductions: ClassVar = Reductions(names=("origin",))


class Token(TokenMessage):
    """token(lender): to be returned to the lender, or kept if that is NIL."""

    wire: ClassVar = ("node",)
    reductions: ClassVar = Reductions(names=("lender",))

    def __init__(self, receiver: int, lender: int) -> None:
        super().__init__(receiver)
        self.lender = lender


class Behaviour:
    """When a node is transit; it is a proxy at all other moments."""

    def transit(self, node: SchemeNode, requester: int) -> bool:
        raise NotImplementedError


class AlwaysProxy(Behaviour):
    def transit(self, node: SchemeNode, requester: int) -> bool:
        return False


class AlwaysTransit(Behaviour):
    def transit(self, node: SchemeNode, requester: int) -> bool:
        return True


class TransitWhileHolding(Behaviour):
    """Raymond, van de Snepscheut: the tree's edges never change, only their direction."""

    def transit(self, node: SchemeNode, requester: int) -> bool:
        return node.token_here


class ShortCut(Behaviour):
    """Transit if the requester can talk to our father without us.

    The root has no father: there the token itself is what the requester must reach.
    """

    def __init__(self, network: Network) -> None:
        self.network = network

    def transit(self, node: SchemeNode, requester: int) -> bool:
        above = node.father if node.father != NIL else node.me
        return self.network.linked(requester, above)


class OpenCube(Behaviour):
    """Helary and Mostefaoui: transit for requests out of the last son's half of our group.

    The distance of two nodes is the p of the smallest group of 2^p (0 to 1, 0 to 3, 4 to 7 ...)
    that has both. A father is out of the group of 2^p that its son is root of; p is the son's
    power. So the two swap places, and every group goes on having one root.
    """

    def __init__(self, size: int) -> None:
        self.size = size

    def transit(self, node: SchemeNode, requester: int) -> bool:
        if node.father == NIL:
            power = distance(0, self.size - 1)
        else:
            power = distance(node.me, node.father) - 1
        return distance(node.me, requester) == power


def distance(one: int, other: int) -> int:
    return (one ^ other).bit_length()


class Chosen(Behaviour):
    """Whatever the outside set last; it may do so before any step."""

    def transit(self, node: SchemeNode, requester: int) -> bool:
        return node.chosen == TRANSIT


@mypyc_attr(allow_interpreted_subclasses=True)
class SchemeNode(ChoosingActor):
    no_state: ClassVar = ("behaviour", "chosen")
    reductions: ClassVar = Reductions(names=("father", "lender", "mandator", "waiting"))
    choice_names: ClassVar = ("proxy", "transit")

    def __init__(
        self, me: int, out: list[Effect], father: int, behaviour: Behaviour, waiting: Fifo
    ) -> None:
        super().__init__(me, out)
        self.token_here = father == NIL
        self.asked = False
        self.father = father
        self.lender = me if father == NIL else NIL
        self.mandator = NIL
        self.waiting = waiting
        self.client = NIL  # who of this node wants in, or is in
        self.behaviour = behaviour
        self.chosen = PROXY  # by the outside, anew before every handler

    # -- the four events of the paper ---------------------------------------------

    def request(self, client: int, want: int, priority: int) -> None:
        self.client = client
        self.waiting.push(self.me)
        self.serve()

    def release(self, client: int) -> None:
        self.client = NIL
        if self.lender != self.me:
            self.send(Token(self.lender, NIL))  # (3)
            self.token_here = False
        self.asked = False  # (4)
        self.serve()

    def receive(self, message: Message) -> None:
        if isinstance(message, Request):
            self.waiting.push(message.origin)
        elif isinstance(message, Token):
            self.token(message.lender, message.sender)
        self.serve()

    def serve(self) -> None:
        """wait (not asked): take up, one after another, what has been asked of us."""
        while not self.asked and len(self.waiting) > 0:
            asker = self.waiting.pop()
            if asker == self.me:
                self.enter_cs()
            elif self.behaviour.transit(self, asker):
                self.forward(asker)
            else:
                self.stand_in(asker)

    # -- what the paper does on each ------------------------------------------------

    def enter_cs(self) -> None:
        self.asked = True  # (1)
        if self.token_here:
            self.enter(self.client)
        else:
            self.mandator = self.me
            self.send(Request(self.father, self.me))  # (2)

    def stand_in(self, asker: int) -> None:
        """request(asker) at a proxy."""
        self.asked = True  # (5)
        if self.token_here:
            self.send(Token(asker, self.me))  # (6)
            self.token_here = False
        else:
            self.mandator = asker
            self.send(Request(self.father, self.me))  # (7)

    def forward(self, asker: int) -> None:
        """request(asker) at a transit node."""
        if self.token_here:
            self.lender = NIL  # (8)
            self.send(Token(asker, NIL))  # (9)
            self.token_here = False
        else:
            self.send(Request(self.father, asker))  # (10)
        self.father = asker

    def token(self, lender: int, sender: int) -> None:
        """token(lender) from sender; ``asked`` is true whenever this happens."""
        self.token_here = True  # (11)
        if self.mandator == NIL:  # case alpha: it comes back after a loan
            self.asked = False  # (12)
        elif self.mandator == self.me:  # case beta: our own client may enter
            if lender == NIL:
                self.lender = self.me  # (13)
                self.father = NIL
            else:
                self.lender = lender  # (14)
                self.father = sender
            self.mandator = NIL
            self.enter(self.client)
        else:  # case gamma: we asked for somebody else
            self.asked = False  # (15)
            if lender != NIL:
                self.father = sender
                self.send(Token(self.mandator, lender))  # (18), (21)
            elif self.behaviour.transit(self, self.mandator):
                self.lender = NIL  # (19)
                self.father = self.mandator
                self.send(Token(self.mandator, NIL))  # (20)
            else:
                self.lender = self.me  # (16)
                self.father = NIL
                self.send(Token(self.mandator, self.me))  # (17)
                self.asked = True
            self.mandator = NIL
            self.token_here = False  # (22)

    # -- observers --------------------------------------------------------------------

    def choices(self) -> int:
        return len(self.choice_names) if isinstance(self.behaviour, Chosen) else 1

    def choose(self, choice: int) -> None:
        self.chosen = choice

    def towards(self) -> int:
        return self.father

    def tokens(self) -> int:
        return 1 if self.token_here else 0

    def free_permits(self) -> int:
        return 1 if self.token_here and not self.asked else 0
