"""Prioritized h-out-of-k allocation on networks that change: the edition that works.

Jiang, *Prioritized h-out of-k resource allocation for mobile ad hoc networks and
distributed systems*, built on Reverse Link by Walter, Welch and Vaidya (Wireless
Networks 7, 2001). As printed it deadlocks (:mod:`.jiang_printed`,
docs/algorithms/what-is-wrong.md).

**Problem.** k permits; a client asks for h of them with a priority; the highest goes
first, nobody starves, and links may form and fail meanwhile.

**Idea.** One token carries the number t of free permits. Every node has a *height*, and
the holder is lowest, so each link points downhill and every path downhill ends at the
token. A node queues the requests of its neighbours and of its own clients by priority,
and asks its lowest neighbour for the token on behalf of its front. The holder lets its
own clients in while t suffices, and otherwise passes the token to the neighbour at its
front. Receiving the token makes a node lower than the giver. A node without a lower
neighbour raises itself above its lowest one (partial reversal). A node that sees the
link to the node it asked reverse or fail asks again elsewhere. Permits return by
RELEASE, which flows downhill to the token.

**Assumptions.** Links are FIFO, both ends learn when they form and fail; no node crashes. A
network in several parts is allowed: the part with the token goes on.

=====================  ================  =================================================
paper                  here              meaning
=====================  ================  =================================================
state                  clients           CS: who of this node is in, and with how many;
                                         a client in ES has an entry in the queue
N, htVector            views             each neighbour's height, as far as we know
height                 height            (h1, h2, id), compared in that order
tokenHolder, t         holder, t         we have the token, and t permits are free
next                   next              who holds our REQUEST; ourselves with the token
Q                      queue             one entry per neighbour and per waiting client
receivedLINK[j]=false  unheard           gave j the token, nothing has come from it since
forming, formHeight    forming           links just formed: our height when we announced it
=====================  ================  =================================================

The handlers and procedures stand in the order of the appendix, under its names. Every handler ends
in :meth:`~JiangNode.serve_or_forward`, so that none can leave a request behind.

The repairs, each marked at the lines that it changes (docs/algorithms/what-is-wrong.md):

- R1 waiting is a state, and the holder serves again when permits return.
- R2 a holder that waits yields to a higher request only, and its own stays in the queue. The token
  does not move while no permit is free.
- R3 a neighbour has one entry.
- R4 every rise *and fall* of our front is sent to the node that holds our request, and an empty
  queue withdraws it.
- R5 RELEASE and UPDATE do not change ``next``.
- R6 a failed link clears ``next``, and what cannot be sent is kept until it can.
- R7 ``next`` is ourselves with the token.
- R8 a REQUEST from before the token is ignored.
- R9 a token that moves is announced only to the nodes that must know.
- R10 a request that moves elsewhere, or is served by way of another node, is withdrawn.
- R11 a node that gets the token, in whatever way, answers those that called for it.

**Ageing** is a strategy (:mod:`.ageing`), and so is **backfill** (:mod:`.jiang_backfill`).
Parts without the token fall silent by :mod:`.jiang_calls`.

**Cost** per entry: REQUEST and TOKEN one each per link on the way (Reverse Link's: just
under 4 at saturation), RELEASE the distance to the token if the client leaves without it,
UPDATE at most the distance for each rise of a front, LINK 1 to 2 per token hop if quiet, 0 or 1 if
silent and the degree if broadcast.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

from meshlock.algorithms.actor import (
    NIL,
    Actor,
    Algorithm,
    Assumptions,
    Effect,
    Message,
    Network,
    Newcomers,
    Reductions,
    Serves,
)
from meshlock.algorithms.ageing import ageing
from meshlock.algorithms.amounts import fits, several
from meshlock.algorithms.jiang_backfill import Backfill, Strict
from meshlock.algorithms.jiang_calls import SearchForToken
from meshlock.algorithms.jiang_messages import (
    Asking,
    Call,
    Link,
    OwnRequest,
    Release,
    Request,
    Signal,
    Token,
    Update,
)
from meshlock.algorithms.ranked import Ranked, RankedRequest
from meshlock.algorithms.reverse_link import Height, first_heights
from meshlock.algorithms.steps import units
from meshlock.algorithms.subclassing import mypyc_attr
from meshlock.errors import Refused

QUIET: Final = 0
BROADCAST: Final = 1
SILENT: Final = 2


@mypyc_attr(allow_interpreted_subclasses=True)
class SharedRules:
    """What all nodes of a pool have in common."""

    def __init__(self, permits: int, options: dict[str, str]) -> None:
        patience = int(options["patience"])
        self.permits = permits
        self.ageing = ageing(options["ageing"], patience, patience // units(options))
        self.moves = ("quiet", "broadcast", "silent").index(options["moves"])
        self.raises = int(options["raises"])  # in a row, before a node calls for the token
        self.backfill = int(options["backfill-most"]) if options["backfill"] == "on" else 0
        self.kinds = several(permits)
        if self.kinds and self.backfill > 0:
            raise Refused("jiang lets small requests pass where there is one kind of permits only.")


class JiangNode(Actor):
    no_state: ClassVar[tuple[str, ...]] = ("rules", "ageing", "lower")
    reductions: ClassVar = Reductions(
        heights=("height", "views", "forming"),
        counts=("grants", "aged"),
        ranks={"queue": (4,), "told": (1,), "backfill": (1,)},
    )

    def __init__(
        self, me: int, out: list[Effect], rules: SharedRules, height: Height, holder: bool
    ) -> None:
        super().__init__(me, out)
        self.rules = rules
        self.ageing = rules.ageing
        self.holder = holder
        self.t = rules.permits if holder else 0  # 0 <= t <= k; 0 without the token
        self.height = height
        self.next = me if holder else NIL  # R7
        self.queue = Ranked()
        self.clients: dict[int, int] = {}  # those inside, and what they hold
        self.views: dict[int, Height] = {}
        self.unheard: set[int] = set()  # their views are those of the token that we gave them
        self.owed: set[int] = set()  # gave us the token, nothing went to them since
        self.forming: dict[int, Height] = {}
        self.told = OwnRequest(self.queue)
        self.stranded = 0  # permits that have no way to the token yet; 0 with the token
        self.calls = SearchForToken()
        self.grants = 0  # made so far, as far as we know; exact with the token
        self.aged = rules.ageing.aged  # grants when our queue was aged last
        self.backfill = Backfill(rules.backfill) if rules.backfill > 0 else Strict()
        self.lower = NIL  # a neighbour that was lower when we last looked: only a hint

    # -- when node i requests to enter the CS to access h resources with priority R -----

    def request(self, client: int, want: int, priority: int) -> None:
        self.resume(client, want, priority, 0)

    def resume(self, client: int, want: int, priority: int, age: int) -> None:
        own = self.ageing.own_entry(client, want, priority, age, self.grants, self.holder)
        self.queue.push(own)
        self.serve_or_forward()  # R4: whatever |Q| is

    def change_priority(self, client: int, want: int, priority: int) -> bool:
        """One UPDATE per hop, at most: the request waits on, and keeps its age."""
        entry = self.queue.find(client)
        if entry is None:
            return False
        self.queue.change(entry, want, priority, self.ageing.gain(entry.priority, priority))
        self.serve_or_forward()
        return True

    def withdraw(self, client: int) -> bool:
        entry = self.queue.own.get(client)
        if entry is None:
            return False
        self.queue.remove(entry)
        self.serve_or_forward()
        return True

    # -- when node i leaves the CS to release r copies of resources ---------------------

    def release(self, client: int) -> None:
        self.aged = self.ageing.aging(self.queue, self.aged, self.grants)
        self.receive_release(self.clients.pop(client))
        self.serve_or_forward()

    def release_some(self, client: int, permits: int) -> None:
        self.clients[client] -= permits
        self.receive_release(permits)
        self.serve_or_forward()

    def receive(self, message: Message) -> None:
        if not isinstance(message, Signal):
            return
        j = message.sender
        if isinstance(message, Token):
            self.receive_token(message)
        else:
            if message.grants > self.grants:
                self.grants = message.grants
            if isinstance(message, Link):
                if j not in self.views and j not in self.forming:
                    return  # of a link that has failed since
                self.receive_link(message)
            else:
                if j in self.views:
                    self.see_height(j, message.height)
                if isinstance(message, Request):
                    self.receive_request(message)
                elif isinstance(message, Update):
                    self.receive_update(message)
                elif isinstance(message, Release):
                    self.receive_release(message.r)
                elif isinstance(message, Call):
                    self.receive_call(message)
        self.serve_or_forward()

    # -- when TOKEN is received at node i from node j -----------------------------------

    def receive_token(self, token: Token) -> None:
        j = token.sender
        self.take_token(token)  # TOKEN 1
        linked = j in self.views  # else the link failed meanwhile, and the token came late
        if linked:
            self.views[j] = token.height  # TOKEN 2
            self.unheard.discard(j)
            self.owed.add(j)
        self.height = (token.height[0], token.height[1] - 1, self.me)  # TOKEN 3, 4
        if self.next != j:  # R10: the node that we asked may be below us by the time that ...
            self.withdraw_request()  # ... it learns how low we are, and would keep our request
        self.next = self.me  # R7
        self.told.close()
        if self.rules.moves == BROADCAST:
            self.announce(self.views)  # TOKEN 5
        elif self.rules.moves == QUIET and linked:  # R9: the giver waits for it
            reply = Link(j, self.height, self.grants)
            reply.urgent = False  # the giver knows our height, and waits for nothing else
            self.send(reply)
        self.calls.climbs = 0

    def take_token(self, token: Token) -> None:
        """The token has arrived, or has come back from a link that failed."""
        self.holder = True
        self.t = token.t + self.stranded
        self.stranded = 0
        self.grants = token.grants
        self.ageing.stamp(self.queue, token)
        self.backfill.set_to(token.passed, token.blocked)

    # -- when REQUEST(j, S) is received at node i from node j ---------------------------

    def receive_request(self, request: Request) -> None:
        j = request.sender
        view = self.views.get(j)
        if view is None or self.height > view or j in self.unheard:  # REQUEST 2
            return  # R8: from before the token; or j will learn that we are higher now
        self.enqueue(request)

    # -- when UPDATE(j, S) is received at node i from node j ----------------------------

    def receive_update(self, update: Update) -> None:
        if update.sender in self.queue.neighbours:  # UPDATE 1
            if update.want == 0:
                self.queue.delete(update.sender)  # R4
            else:
                self.enqueue(update)  # UPDATE 2

    # -- when RELEASE(r) is received at node i ------------------------------------------

    def receive_release(self, r: int) -> None:
        if self.holder:  # RELEASE 1
            self.t += r  # RELEASE 2; R1: serve_or_forward follows
        else:
            self.stranded += r  # R6: until forwardRelease finds a way

    # -- when LINK is received at node i from node j ------------------------------------

    def receive_link(self, link: Link) -> None:
        j = link.sender
        if self.forming and j in self.forming:
            if self.height != self.forming.pop(j):  # LINK 2, 3
                self.announce([j])
            self.views[j] = link.height  # LINK 1
            self.calls.climbs = 0
            for node, number in sorted(self.calls.open.items()):
                self.send(Call(j, self.height, self.grants, node, number, False))
        self.see_height(j, link.height)  # LINK 4 to 6

    def see_height(self, j: int, height: Height) -> None:
        """A lower neighbour cannot ask us, nor we a higher one.

        Until j has the token that we gave it, it says that it is higher than we were. From then on
        it is no higher than that token made it, unless it climbs, which it announces.
        """
        if self.unheard and j in self.unheard:
            if height > self.views[j]:
                return  # R8: from before the token
            self.unheard.remove(j)
        self.views[j] = height
        if height < self.height:
            self.queue.delete(j)
        elif j == self.next:
            self.withdraw_request()  # R10

    # -- when failure of the link to j is detected at node i ----------------------------

    def link_down(self, peer: int) -> None:
        self.forming.pop(peer, None)
        self.unheard.discard(peer)  # failure 3
        self.owed.discard(peer)
        if self.views.pop(peer, None) is not None:  # failure 1
            self.queue.delete(peer)  # failure 2
            if self.next == peer:  # R6
                self.next = NIL
                self.ageing.stamp_without_token(self.queue, self.grants)
                self.told.close()
            self.calls.climbs = 0
        self.serve_or_forward()

    # -- when formation of the link to j is detected at node i --------------------------

    def link_up(self, peer: int) -> None:
        self.forming[peer] = self.height  # formation 2, 3
        self.announce([peer])  # formation 1

    # -- procedures ---------------------------------------------------------------------

    def serve_or_forward(self) -> None:
        """The holder serves its front. Any other node has a way down, and on it what it must be."""
        if self.holder:
            if self.calls.open:
                for node, number in self.calls.answer_all():  # R11: however the token came
                    self.flood(NIL, node, number, True)
            self.give_token_to_front_of_queue()
            return
        if not self.has_lower_neighbour():  # LINK 7, failure 5
            if len(self.views) > 0:
                self.raise_height()
            if not self.has_lower_neighbour():
                return  # R6: alone, or climbing no more: all is kept until there is a way
        if self.stranded > 0:
            self.forward_release()
        if self.queue.is_empty():
            self.withdraw_request()  # R4
        elif not self.told.open:
            self.forward_request(self.lowest_neighbour())
        else:
            front = self.queue.first()
            if self.told.differs(front, self.ageing.step, self.backfill.most > 0):
                self.forward_update(front)  # R4

    def forward_request(self, j: int) -> None:
        front = self.queue.first()
        self.next = j  # forwardRequest 1
        self.told.say(front)
        rank, fresh = front.rank_after(self.grants), self.told.fresh
        self.send(  # forwardRequest 2
            Request(j, self.height, self.grants, front.priority, rank, front.want, fresh)
        )

    def forward_update(self, front: RankedRequest) -> None:
        same = front is self.queue.told
        self.told.say(front)
        rank, want, fresh = front.rank_after(self.grants), front.want, self.told.fresh
        self.send(  # R5: to next, wherever the lowest neighbour is
            Update(self.next, self.height, self.grants, front.priority, rank, want, fresh, same)
        )

    def forward_release(self) -> None:
        self.send(  # R5: next stays
            Release(self.lowest_neighbour(), self.height, self.grants, self.stranded)
        )
        self.stranded = 0

    def give_token_to_front_of_queue(self) -> None:
        while self.t > 0 and not self.queue.is_empty():  # R2
            front = self.queue.first()
            if is_short(self.t, front.want, self.rules.kinds):
                smaller = self.backfill.next_entry(self.queue, front, self.t)
                if smaller is None:
                    return
                front = smaller
            if front.neighbour != NIL:  # giveToken 3
                self.give_token(front)
                return
            if is_short(self.t, front.want, self.rules.kinds):  # giveToken 10: R1, R2
                return
            self.queue.remove(front)  # giveToken 1
            self.backfill.let_in(front)
            self.t -= front.want  # giveToken 11
            self.grants += 1
            self.clients[front.client] = front.want  # giveToken 12
            self.enter(front.client, self.grants)  # giveToken 13; the loop is 14
        if self.backfill.blocked is not None and self.queue.is_empty():
            self.backfill.set_to(0, None)

    def give_token(self, entry: RankedRequest) -> None:
        """giveToken 4 to 8: to the neighbour of this entry."""
        j = entry.neighbour
        self.queue.delete(j)  # giveToken 1
        self.aged = self.ageing.aging(self.queue, self.aged, self.grants)  # giveToken 2
        self.holder = False  # giveToken 4
        self.next = self.lower = j
        self.views[j] = (self.height[0], self.height[1] - 1, j)  # giveToken 5
        self.unheard.add(j)  # giveToken 6
        passed, blocked = self.backfill.passed, self.backfill.blocked
        self.send(  # giveToken 7
            Token(j, self.height, self.grants, self.t, entry.priority, entry.rank, passed, blocked)
        )
        self.t = 0
        self.backfill.set_to(0, None)
        if not self.queue.is_empty():
            self.forward_request(j)  # giveToken 8

    def raise_height(self) -> None:
        """Partial reversal: climb above the lowest neighbour, but not forever."""
        if self.calls.climbs >= self.rules.raises:
            number = self.calls.next_call(self.me)
            if number > 0:
                self.flood(NIL, self.me, number, False)
            return
        self.announce(self.owed)  # R9: a node that gave us the token must see us below it first
        self.calls.climbs += 1
        self.withdraw_request()  # R10
        h1 = 1 + min([height[0] for height in self.views.values()])  # raiseHeight 1
        level = [height[1] for height in self.views.values() if height[0] == h1]  # raiseHeight 2
        self.height = (h1, min(level) - 1 if level else self.height[1], self.me)  # raiseHeight 3
        self.announce(self.views)  # raiseHeight 4
        for j in list(self.queue.neighbours):  # raiseHeight 5
            if self.views[j] < self.height:
                self.queue.delete(j)

    def enqueue(self, asking: Asking) -> None:
        """R3: the neighbour's one entry, new or changed. A request that has changed keeps its age
        and its place among equals; another of the same priority takes over that place."""
        old = self.queue.neighbours.get(asking.sender)
        same = isinstance(asking, Update) and asking.same
        if old is not None and asking.fresh and same:
            gain = self.ageing.gain(old.priority, asking.priority)
            self.queue.change(old, asking.want, asking.priority, gain)
            return
        entry = self.ageing.neighbour_entry(asking, self.grants, self.holder)
        if old is None:
            self.queue.push(entry)
        else:
            self.queue.replace(old, entry, same)

    def withdraw_request(self) -> None:
        """R10: next shall have no request of ours any more.

        Nobody waits here; or next is above us, and we ask elsewhere; or the token has come from
        another node. Next would learn that it is above us and drop our request. But it may get the
        token before it learns that, be below us then, and keep a request that is elsewhere, or
        nowhere. This UPDATE comes right behind the REQUEST.
        """
        if self.told.open:
            self.ageing.stamp_without_token(self.queue, self.grants)
            self.told.close()
            self.send(Update(self.next, self.height, self.grants, 0, 0, 0, False, False))

    # -- heights ----------------------------------------------------------------------------

    def lowest_neighbour(self) -> int:
        """The lowest neighbour that is lower than we are, or NIL."""
        best, low = NIL, self.height
        for j, height in self.views.items():
            if height < low:
                best, low = j, height
        return best

    def has_lower_neighbour(self) -> bool:
        """The neighbour that was found last mostly still is lower."""
        view = self.views.get(self.lower)
        if view is not None and view < self.height:
            return True
        self.lower = self.lowest_neighbour()
        return self.lower != NIL

    def announce(self, neighbours: Iterable[int]) -> None:
        for j in sorted(neighbours):
            self.send(Link(j, self.height, self.grants))

    def send(self, message: Message) -> None:
        message.sender = self.me
        self.out.append(message)
        if len(self.owed) > 0:
            self.owed.discard(message.receiver)

    # -- what links bring back, and parts without the token -------------------------------

    def undelivered(self, message: Message) -> None:
        if isinstance(message, Token):
            self.take_token(message)
            self.next = self.me  # R7
            self.told.close()
        elif isinstance(message, Release):
            self.receive_release(message.r)

    def receive_call(self, call: Call) -> None:
        """Answer it, or pass it on once."""
        j, node, number = call.sender, call.node, call.number
        answered = self.calls.answered.get(node, 0)
        if j not in self.views:
            return  # of a link that has failed since
        if call.answered:
            if self.calls.answer(node, number):
                self.flood(j, node, number, True)
        elif number <= answered:
            self.send(Call(j, self.height, self.grants, node, answered, True))
        elif self.calls.is_new(node, number) and not self.holder:
            self.flood(j, node, number, False)

    def flood(self, source: int, node: int, number: int, answered: bool) -> None:
        for j in sorted(self.views):
            if j != source:
                self.send(Call(j, self.height, self.grants, node, number, answered))

    # -- observers ----------------------------------------------------------------------------

    def patience(self) -> int:
        return self.ageing.patience()

    def altitude(self) -> Height | None:
        return self.height

    def towards(self) -> int:
        if len(self.views) == 0:
            return self.next
        lowest = min(self.views, key=self.views.__getitem__)
        return lowest if self.views[lowest] < self.height else NIL

    def tokens(self) -> int:
        return 1 if self.holder else 0

    def free_permits(self) -> int:
        return self.t + self.stranded

    def waited(self, client: int, grants: int = 0) -> int:
        entry = self.queue.find(client)
        return 0 if entry is None else self.ageing.waited(entry, max(grants, self.grants))

    def known_priority(self) -> int | None:
        return max([entry.priority for entry in self.queue.all()], default=None)


def is_short(t: int, want: int, kinds: bool) -> bool:
    """Is that more than there is? ``kinds``: there are several."""
    return want > t or (kinds and not fits(want, t))


def make(network: Network, permits: int, options: dict[str, str], out: list[Effect]) -> list[Actor]:
    rules = SharedRules(permits, options)
    heights = first_heights(network)
    nodes: list[Actor] = []
    for me in range(network.size):
        node = JiangNode(me, out, rules, heights[me], me == 0)
        for j in network.neighbours(me):
            node.views[j] = heights[j]
        nodes.append(node)
    return nodes


def join(
    number: int, founder: bool, permits: int, options: dict[str, str], out: list[Effect]
) -> Actor:
    """A node that has no links yet; the holder's first height is below every newcomer's."""
    height = (0, 0 if founder else 1, number)
    return JiangNode(number, out, SharedRules(permits, options), height, founder)


ALGORITHMS: list[Algorithm] = [
    Algorithm(
        "jiang",
        "Prioritized h-out-of-k allocation, repaired",
        "Jiang, Hsuan Chuang University, 2003, on Walter, Welch, Vaidya 2001",
        "h-of-k",
        make,
        (Token, Request, Update, Release, Link, Call),
        assumes=Assumptions(changing_links=True, fifo=True),
        serves=Serves(priorities=True, many_clients=True, kinds=True),
        newcomers=Newcomers(join=join),
        structure=("downhill",),
        options={
            "ageing": ("stamped", "printed", "none"),
            "patience": ("100", "<number>"),
            "moves": ("quiet", "broadcast", "silent"),
            "raises": ("16", "<number>"),
            "backfill": ("off", "on"),
            "backfill-most": ("8", "<number>"),
        },
    ),
]
