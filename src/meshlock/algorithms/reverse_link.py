"""Reverse Link: mutual exclusion on a network whose links come and go.

Walter, Welch and Vaidya, *A mutual exclusion algorithm for ad hoc mobile networks*,
Wireless Networks 7, 2001. It is the base on which Jiang builds.

**Problem.** One permit; the holder of the token may enter, in the order in which requests
reach the token. Links may form and fail meanwhile.

**Idea.** Every node has a height, a triple that ends in its own number, so heights are
never equal and links, pointing from high to low, form a graph without cycles. The holder
of the token is the only sink. A node that wants the token, for itself or for a neighbour,
asks its lowest neighbour, once; it queues who asked it. The token travels back along the
queues, and its receiver goes below the giver, which turns the links around. A node
that finds itself without a lower neighbour rises above its lowest one (partial reversal of
Gafni and Bertsekas). A node asks anew when the link to the node it asked turns or fails.

**Assumptions.** Links are two-way and FIFO, both ends notice when they form and fail;
what is on a failing link still arrives, or a TOKEN comes back; no crash. One client per
node at a time.

=================  =================  ==================================================
paper              here               meaning
=================  =================  ==================================================
status             inside             our client is in
N                  near               neighbours from which a LINK has come
myHeight           height             (h1, h2, i)
height[j]          seen_height        the neighbours' heights as far as we know
next               next               whom we asked; ourselves with the token; NIL if the
                                      link to whom we asked has failed
tokenHolder        token_holder       we have the token
Q                  queue              who asked, in order of arrival, none twice
not receivedLI     link_due           gave it the token, its new height has not come yet
forming,           forming            link just formed: our height when we noticed
formHeight
LinkInfo           LINK               as Jiang calls it
=================  =================  ==================================================

**Cost** at saturation: a round in which each of n nodes enters once takes nE + 2(n-1)T
whatever the links; REQUEST + TOKEN 4(n-1)/n per entry; LINK = token hops x degree of the
visited node. One request at a time: twice the way to the token.

**Departure.** The text looks for a lowest neighbour where there may be none: a link that
has just formed counts only when the first LINK has come over it (erratum J7, repair R6). So
a failed link clears ``next``, and the next LINK makes up for what could not be sent. For the
same reason a node does not rise while it awaits the first LINK over a new link: neighbours
that have no other way down would climb above each other until it comes.
"""

from __future__ import annotations

from typing import ClassVar

from meshlock.algorithms.actor import (
    NIL,
    Actor,
    Algorithm,
    Assumptions,
    Effect,
    Message,
    Network,
    Newcomers,
    Options,
    Reductions,
)

Height = tuple[int, ...]
"""(h1, h2, node). Of no fixed length for the compiler: else compiled code would keep the three
apart, and put them together again whenever two heights are compared."""


class Signal(Message):
    """Every message says how high its sender is."""

    wire: ClassVar = ("height",)
    reductions: ClassVar = Reductions(heights=("height",))

    def __init__(self, receiver: int, height: Height) -> None:
        super().__init__(receiver)
        self.height = height


class Token(Signal):
    def tokens(self) -> int:
        return 1

    def permits(self) -> int:
        return 1


class Request(Signal):
    """The sender wants the token, for itself or for somebody who asked it."""


class Link(Signal):
    """This is my height now."""


class HeightNode(Actor):
    """A node that has a height, and knows those of its neighbours from their last LINK."""

    near: set[int]
    height: Height
    seen_height: dict[int, Height]
    next: int
    token_holder: bool

    def lowest_neighbour(self) -> int:
        return min([self.seen_height[v] for v in self.near])[2]

    def is_lowest(self) -> bool:
        """height < htVector[v], for all v in N; so it is where N is empty."""
        return all(self.height < self.seen_height[v] for v in self.near)

    def risen(self) -> Height:
        """Above the lowest neighbour, and below those on the level to which it rises."""
        first = 1 + min([self.seen_height[v][0] for v in self.near])
        level = [self.seen_height[v][1] for v in self.near if self.seen_height[v][0] == first]
        return (first, min(level) - 1 if level else self.height[1], self.me)

    def send_height(self) -> None:
        for v in sorted(self.near):
            self.send(Link(v, self.height))

    def altitude(self) -> Height | None:
        return self.height

    def towards(self) -> int:
        return self.next

    def tokens(self) -> int:
        return 1 if self.token_holder else 0


class ReverseLinkNode(HeightNode):
    reductions: ClassVar = Reductions(heights=("height", "seen_height", "forming"))

    def __init__(
        self,
        me: int,
        out: list[Effect],
        height: Height,
        holder: bool,
        seen_height: dict[int, Height],
    ) -> None:
        super().__init__(me, out)
        self.inside = False
        self.near = set(seen_height)
        self.height = height
        self.seen_height = seen_height
        self.next = me if holder else NIL
        if self.near and not holder:
            self.next = self.lowest_neighbour()
        self.token_holder = holder
        self.queue: list[int] = []
        self.link_due: set[int] = set()
        self.forming: dict[int, Height] = {}
        self.client = NIL

    # -- clients --------------------------------------------------------------------------

    def request(self, client: int, want: int, priority: int) -> None:
        self.client = client
        self.queue.append(self.me)
        if self.token_holder:
            self.give_token_to_next()
        elif len(self.queue) == 1:
            self.forward_request()

    def release(self, client: int) -> None:
        self.inside = False
        self.client = NIL
        self.give_token_to_next()

    # -- messages -------------------------------------------------------------------------

    def receive(self, message: Message) -> None:
        if isinstance(message, Link):
            self.link(message.sender, message.height)
        elif isinstance(message, Request):
            self.requested(message.sender, message.height)
        elif isinstance(message, Token):
            self.token(message.sender, message.height)

    def requested(self, j: int, height: Height) -> None:
        if j not in self.link_due:
            self.seen_height[j] = height
        new = self.height < self.seen_height[j] and j not in self.queue
        if new:
            self.queue.append(j)
        if self.token_holder:
            self.give_token_to_next()
        elif (new and len(self.queue) == 1) or self.must_ask_again():
            self.forward_request()

    def token(self, j: int, height: Height) -> None:
        self.token_holder = True
        self.next = self.me
        self.seen_height[j] = height
        self.height = (height[0], height[1] - 1, self.me)
        self.send_height()
        self.give_token_to_next()

    def link(self, j: int, height: Height) -> None:
        self.near.add(j)
        if j in self.forming:
            if self.height != self.forming[j]:
                self.send(Link(j, self.height))
            del self.forming[j]
        if j not in self.link_due:
            self.seen_height[j] = height
        elif self.seen_height[j] == height:
            self.link_due.remove(j)
        if self.height > self.seen_height[j]:
            self.delete(j)
        self.keep_a_way_down()

    def undelivered(self, message: Message) -> None:
        if isinstance(message, Token):
            self.token_holder = True
            self.next = self.me
            self.delete(message.receiver)
            self.give_token_to_next()

    # -- links ----------------------------------------------------------------------------

    def link_down(self, peer: int) -> None:
        self.near.discard(peer)
        self.delete(peer)
        self.link_due.discard(peer)
        self.forming.pop(peer, None)
        if self.next == peer:
            self.next = NIL  # R6
        self.keep_a_way_down()

    def link_up(self, peer: int) -> None:
        self.send(Link(peer, self.height))
        self.forming[peer] = self.height

    # -- procedures -----------------------------------------------------------------------

    def keep_a_way_down(self) -> None:
        if self.token_holder or not self.near:
            return
        if self.is_lowest():
            if not self.forming:  # else a LINK is on its way, and we shall look again
                self.raise_height()
        elif self.must_ask_again():
            self.forward_request()

    def must_ask_again(self) -> bool:
        """Somebody waits, and the link to whom we asked has failed or turned."""
        if not self.queue or self.next == self.me:
            return False
        return self.next == NIL or self.height < self.seen_height[self.next]

    def forward_request(self) -> None:
        if self.near:
            self.next = self.lowest_neighbour()
            self.send(Request(self.next, self.height))

    def give_token_to_next(self) -> None:
        if self.inside or not self.queue:
            return
        self.next = self.queue.pop(0)
        if self.next == self.me:
            self.inside = True
            self.enter(self.client)
            return
        self.token_holder = False
        self.seen_height[self.next] = (self.height[0], self.height[1] - 1, self.next)
        self.link_due.add(self.next)
        self.send(Token(self.next, self.height))
        if self.queue:
            self.send(Request(self.next, self.height))

    def raise_height(self) -> None:
        self.height = self.risen()
        self.send_height()
        for v in sorted(self.near):
            if self.height > self.seen_height[v]:
                self.delete(v)
        if self.queue:
            self.forward_request()

    def delete(self, j: int) -> None:
        if j in self.queue:
            self.queue.remove(j)

    def free_permits(self) -> int:
        return 1 if self.token_holder and not self.inside else 0


def first_heights(network: Network) -> list[Height]:
    """(0, links to node 0, i): every node but 0 has a lower neighbour, its father."""
    depths = [0] + [NIL] * (network.size - 1)
    for me in range(network.size):
        way: list[int] = []
        node = me
        while depths[node] == NIL:
            way.append(node)
            node = network.father(node)
        depth = depths[node]
        while way:
            depth += 1
            depths[way.pop()] = depth
    return [(0, depths[me], me) for me in range(network.size)]


def make(network: Network, permits: int, options: Options, out: list[Effect]) -> list[Actor]:
    heights = first_heights(network)
    nodes: list[Actor] = []
    for me in range(network.size):
        seen = {v: heights[v] for v in network.neighbours(me)}
        nodes.append(ReverseLinkNode(me, out, heights[me], me == 0, seen))
    return nodes


def join(number: int, founder: bool, permits: int, options: Options, out: list[Effect]) -> Actor:
    """A node that has no links yet; the holder's first height is below every newcomer's.

    Nodes that are linked to each other but not to the token's part climb until they are.
    """
    return ReverseLinkNode(number, out, (0, 0 if founder else 1, number), founder, {})


ALGORITHMS: list[Algorithm] = [
    Algorithm(
        "reverse-link",
        "Reverse Link: mutual exclusion on a network that changes",
        "Walter, Welch, Vaidya, Wireless Networks 7, 2001",
        "mutex",
        make,
        (Token, Request, Link),
        assumes=Assumptions(changing_links=True, fifo=True),
        newcomers=Newcomers(join=join),
        structure=("downhill",),
    ),
]
