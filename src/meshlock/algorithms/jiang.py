"""Prioritized h-out-of-k allocation on networks that change: the edition that works.

Jiang, *Prioritized h-out of-k resource allocation for mobile ad hoc networks and
distributed systems*, built on Reverse Link by Walter, Welch and Vaidya (Wireless
Networks 7, 2001). As printed it deadlocks (:mod:`.jiang_printed`,
docs/algorithms/what-is-wrong.md).

**Problem.** k permits; a client asks for h of them with a priority; the highest goes
first, nobody starves, and links may form and fail meanwhile.

**Idea.** One token carries the number t of free permits. Every node has a *height*, the
holder the lowest of all, so each link points downhill and every path downhill ends at the
token. A node keeps a queue of what its neighbours and its own clients ask for, by
priority, and asks its lowest neighbour for the token on behalf of its front. The holder
lets its own clients in while t suffices and else passes the token to the neighbour at its
front. Receiving the token makes a node lower than the giver. A node that finds itself
without a lower neighbour raises itself above its lowest one (partial reversal), and
whoever finds the link to the node it asked reversed or failed asks again elsewhere. Permits
come home by RELEASE, which flows downhill to the token.

**Assumptions.** Links are FIFO, both ends notice when they form and fail; no node crashes. A
network in several parts is allowed: the part with the token goes on.

=====================  ================  =================================================
paper                  here              meaning
=====================  ================  =================================================
state                  clients           who of this node is in, and with how many; who
                                         waits is in the queue
N, htVector            views             each neighbour's height, as far as we know
height                 height            (h1, h2, id), compared in that order
tokenHolder, t         holder, t         we have the token, and so many permits are free
next                   next              who holds our REQUEST; ourselves with the token
Q                      queue             one entry per neighbour and per waiting client
receivedLINK[j]=false  unheard           gave j the token, nothing has come from it since
forming, formHeight    forming           links just formed: our height when we announced it
=====================  ================  =================================================

**The holder decides in one place**, :meth:`~JiangNode.decide`, and a node without the
token keeps its request right in one place, :meth:`~JiangNode.pursue`, whatever changed.

Repairs, each marked where it acts (numbers as in docs/algorithms/what-is-wrong.md):
R1 waiting is a state and is looked at again when permits come back; R2 a waiting holder
yields only to a higher request and keeps its own in the queue, and the token stays where
it is while no permit is free; R3 one entry per neighbour, in order; R4 every rise *and
fall* of our front is sent to whoever holds our request, and an empty queue withdraws it;
R5 RELEASE finds its way without touching ``next``; R6 a failed link clears ``next``, and
what cannot be sent is kept until it can; R7 ``next`` is ourselves with the token; R8 a
REQUEST from before the token is ignored; R9 a token that moves is announced only to
who must know; R10 a request that moves elsewhere, or is served by way of another, is withdrawn
where it was; R11 whoever holds the token, however it came, answers those who called for it.

**Ageing.** *stamped*: a request's rank is priority * patience - (grants made when it was
born), so among requests of one age a higher priority wins, and every ``patience`` grants
that one has waited count for one step of priority. Without the token a node knows an old count
of the grants. So a request is *fresh* until it meets the token: the holder that hears of it stamps
it, and TOKEN brings back the rank of the request that it was sent for. To what else is fresh where
the token comes, up to patience - 1 grants are allowed of the age that it has by what was known
there when it came; the same if its way to the token fails. Then the rank never changes: no queue
is walked, no message sent. *printed*: each queue adds a little to all its entries whenever
its node passes the token or is left by a client, once per grant. *none*: priority alone,
and low ones may starve. With m clients and stamped ageing, a request of priority p sees, since
its age began, at most (highest - p + 2) * patience + m - 3 grants to others before its own, not
counting those of holders that do not know of it, to lower ranks: while its REQUEST is on its way,
or behind the token, or its node is known by another. Why: docs/algorithms/jiang.md, *The bound*.

**Cost** per entry: REQUEST and TOKEN one each per link on the way (Reverse Link's: just
under 4 at saturation), RELEASE the distance to the token if the client leaves without it,
UPDATE at most the distance for each rise of a front, LINK 1 to 2 per token hop if quiet, 0 or 1 if
silent and the degree if broadcast.
"""

from __future__ import annotations

from typing import ClassVar, Final

from meshlock.algorithms.actor import (
    NIL,
    Actor,
    Algorithm,
    Assumptions,
    Effect,
    Frozen,
    Message,
    Network,
    Newcomers,
    Reductions,
    Serves,
)
from meshlock.algorithms.queues import FRESH, SETTLED, Entry, Met, Ranked
from meshlock.algorithms.reverse_link import Height, first_heights
from meshlock.algorithms.steps import units

BY_STAMP: Final = 0
PRINTED: Final = 1
UNAGED: Final = 2

QUIET: Final = 0
BROADCAST: Final = 1
SILENT: Final = 2


class Signal(Message):
    """Every message carries its sender's height, and how many grants it knows of."""

    reductions: ClassVar = Reductions(heights=("height",), counts=("grants",))

    def __init__(self, receiver: int, height: Height, grants: int) -> None:
        super().__init__(receiver)
        self.height = height
        self.grants = grants


class Token(Signal):
    """TOKEN(t): t permits are free. It is sent for a request of that ``priority``, which a holder
    has ``given`` a rank that its node need not know. With backfill: ``passed``
    clients of lower rank than ``blocked`` have been let in since that one had to wait for
    permits."""

    def __init__(
        self,
        receiver: int,
        height: Height,
        grants: int,
        t: int,
        priority: int,
        given: int,
        passed: int,
        blocked: int | None,
    ) -> None:
        super().__init__(receiver, height, grants)
        self.t = t
        self.priority = priority
        self.given = given
        self.passed = passed
        self.blocked = blocked

    def tokens(self) -> int:
        return 1

    def permits(self) -> int:
        return self.t

    def ranks(self) -> tuple[str, ...]:
        return ("given", "blocked") if self.blocked is not None else ("given",)


class Asking(Signal):
    """What the sender asks for: the priority, rank and want of its front, and is that fresh?"""

    def __init__(
        self,
        receiver: int,
        height: Height,
        grants: int,
        priority: int,
        rank: int,
        want: int,
        fresh: bool,
    ) -> None:
        super().__init__(receiver, height, grants)
        self.priority = priority
        self.rank = rank
        self.want = want
        self.fresh = fresh

    def ranks(self) -> tuple[str, ...]:
        return ("rank",) if self.want > 0 else ()


class Request(Asking):
    """REQUEST: the sender asks for the token."""


class Update(Asking):
    """UPDATE: the sender's request is now this; with want 0 it asks for nothing any more. ``same``:
    it is the request that it was, more or less urgent, and keeps its age."""

    def __init__(
        self,
        receiver: int,
        height: Height,
        grants: int,
        priority: int,
        rank: int,
        want: int,
        fresh: bool,
        same: bool,
    ) -> None:
        super().__init__(receiver, height, grants, priority, rank, want, fresh)
        self.same = same


class Release(Signal):
    """RELEASE(r): r permits on their way back to the token."""

    def __init__(self, receiver: int, height: Height, grants: int, r: int) -> None:
        super().__init__(receiver, height, grants)
        self.r = r

    def permits(self) -> int:
        return self.r


class Link(Signal):
    """LINK: the sender's height."""


class Call(Signal):
    """CALL: ``node`` gave up climbing and asks, for the ``number``-th time, whether the token
    can be reached. ``answered``: it can."""

    def __init__(
        self, receiver: int, height: Height, grants: int, node: int, number: int, answered: bool
    ) -> None:
        super().__init__(receiver, height, grants)
        self.node = node
        self.number = number
        self.answered = answered


class Rules:
    """What all nodes of a pool have in common."""

    def __init__(self, permits: int, options: dict[str, str]) -> None:
        self.permits = permits
        self.ageing = ("stamped", "printed", "none").index(options["ageing"])
        self.patience = int(options["patience"])
        self.weight = self.patience // units(options)  # of one unit of priority, in grants
        self.moves = ("quiet", "broadcast", "silent").index(options["moves"])
        self.raises = int(options["raises"])  # in a row, before a node calls for the token
        self.backfill = int(options["backfill-most"]) if options["backfill"] == "on" else 0


class JiangNode(Actor):
    no_state: ClassVar[tuple[str, ...]] = ("rules", "asking", "lower", "asked")
    reductions: ClassVar = Reductions(
        heights=("height", "views", "forming"),
        counts=("grants", "aged"),
        ranks={"queue": (4,), "told": (1,), "blocked": (0,)},
    )

    def __init__(
        self, me: int, out: list[Effect], rules: Rules, height: Height, holder: bool
    ) -> None:
        super().__init__(me, out)
        self.rules = rules
        self.holder = holder
        self.t = rules.permits if holder else 0
        self.height = height
        self.next = me if holder else NIL
        self.queue = Ranked()
        self.clients: dict[int, int] = {}  # those inside, and what they hold
        self.views: dict[int, Height] = {}
        self.unheard: set[int] = set()
        self.owed: set[int] = set()  # gave us the token, nothing went to them since
        self.forming: dict[int, Height] = {}
        self.told: tuple[
            int, ...
        ] = ()  # our request at next: its priority, rank, want; is it fresh?
        self.stranded = 0  # permits to be released that have no way to go yet
        self.raises = 0  # since a link of ours changed or the token was found
        self.calls: dict[int, int] = {}  # nodes that gave up climbing: their last call
        self.answers: dict[int, int] = {}  # the last of their calls that the token has answered
        self.grants = 0  # as far as we know; exact with the token
        self.aged = 0 if rules.ageing == PRINTED else None  # grants when the queue was aged last
        self.passed = 0
        self.blocked: int | None = None
        self.asking: dict[int, Entry] = {}  # neighbour: its entry in the queue
        self.asked: Entry | None = None  # the entry that we told next of
        self.lower = NIL  # a neighbour that was lower when we last looked: only a hint

    # -- clients --------------------------------------------------------------------

    def request(self, client: int, want: int, priority: int) -> None:
        self.resume(client, want, priority, 0)

    def resume(self, client: int, want: int, priority: int, age: int) -> None:
        base = priority * self.rules.weight
        if self.rules.ageing != UNAGED:
            base += age
        if self.rules.ageing != BY_STAMP:
            self.queue.push(Entry(NIL, client, want, priority, base))
        elif self.holder:
            self.queue.push(Entry(NIL, client, want, priority, base - self.grants))
        else:
            self.queue.push(Entry(NIL, client, want, priority, base - self.grants, FRESH, base))
        self.act()

    def change_priority(self, client: int, want: int, priority: int) -> bool:
        """One UPDATE per hop, at most: the request waits on, and keeps its age."""
        entry = self.queue.find(client)
        if entry is None:
            return False
        gain = (priority - entry.priority) * self.rules.weight
        self.queue.change(entry, want, priority, gain)
        self.act()
        return True

    def release(self, client: int) -> None:
        self.age()
        permits = self.clients[client]
        del self.clients[client]
        self.returns(permits)

    def release_some(self, client: int, permits: int) -> None:
        self.clients[client] -= permits
        self.returns(permits)

    def returns(self, permits: int) -> None:
        if self.holder:
            self.t += permits
        else:
            self.stranded += permits
        self.act()

    def withdraw(self, client: int) -> bool:
        """A waiting client gives up; False if it is not waiting here."""
        entry = self.queue.own.get(client)
        if entry is None:
            return False
        self.queue.remove(entry)
        self.act()
        return True

    # -- messages ---------------------------------------------------------------------

    def receive(self, message: Message) -> None:
        if not isinstance(message, Signal):
            return
        sender = message.sender
        if isinstance(message, Token):
            self.receive_token(message)
            return
        if message.grants > self.grants:
            self.grants = message.grants
        if isinstance(message, Link):
            self.receive_link(message)
            return
        if sender in self.views:
            self.see(sender, message.height)
        if isinstance(message, Release):
            if self.holder:
                self.t += message.r  # R1: act() looks again
            else:
                self.stranded += message.r
        elif isinstance(message, Request):
            self.receive_request(message)
        elif isinstance(message, Update):
            self.receive_update(message)
        elif isinstance(message, Call):
            self.receive_call(message)
        self.act()

    def receive_token(self, token: Token) -> None:
        giver = token.sender
        self.settle(token)
        self.holder = True
        self.t = token.t + self.stranded
        self.stranded = 0
        self.passed = token.passed
        self.blocked = token.blocked
        linked = giver in self.views  # else the link failed meanwhile, and the token came late
        if linked:
            self.views[giver] = token.height
            self.unheard.discard(giver)
            self.owed.add(giver)
        self.height = (token.height[0], token.height[1] - 1, self.me)
        if self.next != giver:  # R10: who else holds our request may be below us by the time ...
            self.take_back()  # ... it learns how low we are, and would keep it
        self.next = self.me  # R7
        self.untell()
        if self.rules.moves == BROADCAST:
            self.announce()
        elif self.rules.moves == QUIET and linked:  # R9: the giver waits for it
            reply = Link(giver, self.height, self.grants)
            reply.urgent = False  # the giver knows our height, and waits for nothing else
            self.send(reply)
        self.raises = 0
        self.act()

    def settle(self, token: Token) -> None:
        """The token knows how many grants were made: the age of what is fresh begins. It counts
        from the grants that were known here when it came, but no further back than patience - 1
        grants. The request that the token was sent for was ranked by a holder, and keeps that rank.
        """
        self.grants = token.grants
        fall = self.grants - self.rules.patience + 1
        self.queue.settle(Met(fall, token.priority, token.given))

    def keep_age(self) -> None:
        """Our request takes another way, where it would be as fresh as ever. If we have heard of
        grants since it came, its age has begun: by these. So has the age of all that is fresh here,
        or what came later would count as older."""
        entry = self.asked
        if entry is None or not entry.told:
            return  # it waits no more
        if entry.age == FRESH and entry.base - self.grants < entry.rank:
            self.queue.settle(Met(self.grants - self.rules.patience + 1))

    def receive_request(self, request: Request) -> None:
        j = request.sender
        view = self.views.get(j)
        if view is None or self.height > view or j in self.unheard:
            return  # R8: from before the token; or it will learn that we are higher now
        self.put(j, request)

    def receive_update(self, update: Update) -> None:
        j = update.sender
        if j in self.asking:
            if update.want == 0:
                self.delete(j)
            else:
                self.put(j, update)

    def receive_link(self, link: Link) -> None:
        j = link.sender
        if self.forming and j in self.forming:
            if self.height != self.forming.pop(j):
                self.link(j)
            self.views[j] = link.height
            self.raises = 0
            for node, number in sorted(self.calls.items()):
                self.send(Call(j, self.height, self.grants, node, number, False))
        elif j not in self.views:
            return  # of a link that has failed since
        self.see(j, link.height)
        self.act()

    def undelivered(self, message: Message) -> None:
        if isinstance(message, Token):
            self.settle(message)
            self.holder = True
            self.t = message.t + self.stranded
            self.stranded = 0
            self.passed = message.passed
            self.blocked = message.blocked
            self.next = self.me
            self.untell()
        elif isinstance(message, Release):
            if self.holder:
                self.t += message.r
            else:
                self.stranded += message.r

    # -- links --------------------------------------------------------------------------

    def link_up(self, peer: int) -> None:
        self.forming[peer] = self.height
        self.link(peer)

    def link_down(self, peer: int) -> None:
        self.forming.pop(peer, None)
        self.unheard.discard(peer)
        self.owed.discard(peer)
        if self.views.pop(peer, None) is not None:
            self.delete(peer)
            if self.next == peer:  # R6
                self.next = NIL
                self.keep_age()
                self.untell()
            self.raises = 0
        self.act()

    # -- what to do next, in one place each --------------------------------------------

    def act(self) -> None:
        if self.holder:
            if len(self.calls) > 0:
                self.answer_calls()
            self.decide()
        else:
            self.pursue()

    def decide(self) -> None:
        """The holder: let our own clients in, pass the token, or wait (R1, R2)."""
        while self.t > 0 and not self.queue.is_empty():
            chosen = self.queue.first()
            if self.rules.backfill > 0 and chosen.want > self.t:
                smaller = self.smaller(chosen)
                if smaller is None:
                    return
                chosen = smaller
            if chosen.neighbour != NIL:
                self.give(chosen)
                return
            if chosen.want > self.t:
                return
            self.let_in(chosen)
        if self.queue.is_empty():
            self.passed = 0
            self.blocked = None

    def smaller(self, front: Entry) -> Entry | None:
        """The front must wait for permits: who may go meanwhile, if not too many did?"""
        if self.passed < self.rules.backfill:
            for entry in self.queue.entries:
                if entry.want <= self.t:
                    if self.blocked is None or self.blocked < front.rank:
                        self.blocked = front.rank
                    return entry
        return None

    def let_in(self, entry: Entry) -> None:
        self.queue.remove(entry)
        if self.blocked is not None and entry.rank < self.blocked:
            self.passed += 1
        else:
            self.passed = 0
            self.blocked = None
        self.t -= entry.want
        self.grants += 1
        self.clients[entry.client] = entry.want
        self.enter(entry.client, self.grants)

    def give(self, entry: Entry) -> None:
        """Pass the token to this neighbour, and ask for it back if others wait."""
        j = entry.neighbour
        self.delete(j)
        self.age()
        self.holder = False
        self.next = self.lower = j
        self.views[j] = (self.height[0], self.height[1] - 1, j)
        self.unheard.add(j)
        priority, rank, passed, blocked = entry.priority, entry.rank, self.passed, self.blocked
        self.send(Token(j, self.height, self.grants, self.t, priority, rank, passed, blocked))
        self.t = 0
        self.passed = 0
        self.blocked = None
        if not self.queue.is_empty():
            self.ask(j)

    def pursue(self) -> None:
        """Not the holder: have a way down, and our request on it as it should be."""
        if not self.has_lower():
            if len(self.views) > 0:
                self.raise_height()
            if not self.has_lower():
                return  # R6: alone, or given up climbing: all is kept until there is a way
        if self.stranded > 0:  # R5
            self.send(Release(self.lowest(), self.height, self.grants, self.stranded))
            self.stranded = 0
        if self.queue.is_empty():
            self.take_back()
        elif not self.told:
            self.ask(self.lowest())
        else:
            front = self.queue.first()
            if self.has_changed(front):  # R4
                self.send_update(front)

    def has_changed(self, front: Entry) -> bool:
        """Is our request another than next knows? A rank within the same step of priority is not
        worth a message: the steps are the same everywhere, so what is left unsaid does not add up
        from hop to hop. But who is fresh has no rank yet, and would get that of another."""
        priority, rank, want, fresh = self.told
        return (
            front.priority != priority
            or front.rank // self.rules.patience != rank // self.rules.patience
            or (not front.told and (fresh == 1 or front.age == FRESH))
            or (self.rules.backfill > 0 and front.want != want)
        )

    def ask(self, j: int) -> None:
        """forwardRequest, to j."""
        front = self.queue.first()
        self.next = j
        self.remember(front)
        rank, want, fresh = self.rank_of(front), front.want, front.age == FRESH
        self.send(Request(j, self.height, self.grants, front.priority, rank, want, fresh))

    def send_update(self, front: Entry) -> None:
        same = front.told
        self.remember(front)
        priority, rank, want = front.priority, self.rank_of(front), front.want
        fresh = front.age == FRESH
        self.send(Update(self.next, self.height, self.grants, priority, rank, want, fresh, same))

    def rank_of(self, front: Entry) -> int:
        """As we say it: what is fresh, by the grants that we know of now."""
        return front.base - self.grants if front.age == FRESH else front.rank

    def remember(self, front: Entry) -> None:
        """What our request says from now on."""
        self.untell()
        front.told = True
        self.asked = front
        self.told = (front.priority, front.rank, front.want, int(front.age == FRESH))

    def untell(self) -> None:
        """Next knows of no request of ours any more, or of another."""
        if self.asked is not None:
            self.asked.told = False
        self.asked = None
        self.told = ()

    def take_back(self) -> None:
        """Withdraw our request: nobody waits any more, or it is served by way of another (R10).

        We shall ask elsewhere because whoever we asked is above us: it dropped our request, or
        will; or the token has come from another, and it will learn that we are below it. But when
        our REQUEST, or our new height, reaches it, it may have had the token itself and be below
        us, and then it would keep what is asked for elsewhere, or by nobody. This UPDATE comes
        right behind the REQUEST.
        """
        if self.told:
            self.keep_age()
            self.untell()
            self.send(Update(self.next, self.height, self.grants, 0, 0, 0, False, False))

    def send(self, message: Message) -> None:
        message.sender = self.me
        self.out.append(message)
        if len(self.owed) > 0:
            self.owed.discard(message.receiver)

    # -- heights ----------------------------------------------------------------------------

    def lowest(self) -> int:
        """The lowest neighbour that is lower than we are."""
        best, low = NIL, self.height
        for j, height in self.views.items():
            if height < low:
                best, low = j, height
        return best

    def has_lower(self) -> bool:
        """Is any neighbour lower? Mostly the one that was found last still is."""
        view = self.views.get(self.lower)
        if view is not None and view < self.height:
            return True
        self.lower = self.lowest()
        return self.lower != NIL

    def see(self, j: int, height: Height) -> None:
        """j says how high it is; who is below us cannot ask us, nor we who is above.

        Until it has the token that we gave it, j is higher than we were; from then on it is
        no higher than that token made it, unless it climbs, which it announces.
        """
        if self.unheard and j in self.unheard:
            if height > self.views[j]:
                return  # R8: from before the token
            self.unheard.remove(j)
        self.views[j] = height
        if height < self.height:
            self.delete(j)
        elif j == self.next:
            self.take_back()

    def raise_height(self) -> None:
        """Partial reversal: climb above the lowest neighbour, but not for ever."""
        if self.raises >= self.rules.raises:
            self.call_out()
            return
        for j in sorted(self.owed):  # who gave us the token must learn of it from below
            self.link(j)
        self.raises += 1
        self.take_back()
        h1 = 1 + min([height[0] for height in self.views.values()])
        level = [height[1] for height in self.views.values() if height[0] == h1]
        self.height = (h1, min(level) - 1 if level else self.height[1], self.me)
        self.announce()
        for j in list(self.asking):
            if self.views[j] < self.height:
                self.delete(j)

    def link(self, j: int) -> None:
        self.send(Link(j, self.height, self.grants))

    def announce(self) -> None:
        for j in sorted(self.views):
            self.link(j)

    # -- parts of the network without the token ------------------------------------------
    #
    # There everybody would climb for ever. Instead a node stops after so many raises and a
    # call is flooded, one for all that stop: *is the token here?* Who has the token, or gets
    # it, answers, and the answer lets everybody climb again. Without the token there is no
    # answer and all is quiet. A link that forms carries the open calls across, so nothing
    # is missed when the parts join.

    def call_out(self) -> None:
        if len(self.calls) == 0:
            number = self.answers.get(self.me, 0) + 1
            self.calls[self.me] = number
            self.spread(NIL, self.me, number, False)

    def receive_call(self, call: Call) -> None:
        """Hand it on once, or answer it."""
        node, number = call.node, call.number
        answered = self.answers.get(node, 0)
        if call.sender not in self.views:
            return  # of a link that has failed since
        if call.answered:
            if number > answered:
                self.answer(call.sender, node, number)
        elif number <= answered:
            self.send(Call(call.sender, self.height, self.grants, node, answered, True))
        elif number > self.calls.get(node, 0):
            self.calls[node] = number
            if not self.holder:
                self.spread(call.sender, node, number, False)

    def answer_calls(self) -> None:
        """R11: the holder has been found, whichever way it became the holder."""
        for node, number in sorted(self.calls.items()):
            self.answer(NIL, node, number)

    def answer(self, source: int, node: int, number: int) -> None:
        """The token can be reached: climb again, and let the others know."""
        self.answers[node] = number
        if self.calls.get(node, 0) <= number:
            self.calls.pop(node, None)
        self.raises = 0
        self.spread(source, node, number, True)

    def spread(self, source: int, node: int, number: int, answered: bool) -> None:
        for j in sorted(self.views):
            if j != source:
                self.send(Call(j, self.height, self.grants, node, number, answered))

    # -- the queue --------------------------------------------------------------------------

    def put(self, j: int, asking: Asking) -> None:
        """R3: j's one entry, new or changed. What is fresh ranks by the grants that we know of; at
        the holder its age begins. A request that has changed keeps its age and its place among
        equals; another of the same priority takes over j's place."""
        want, priority, rank, base, age = asking.want, asking.priority, asking.rank, 0, SETTLED
        if asking.fresh:
            base = rank + asking.grants
            rank = base - self.grants
            age = SETTLED if self.holder else FRESH
        old = self.asking.get(j)
        same = isinstance(asking, Update) and asking.same
        if old is not None and asking.fresh and same:
            self.queue.change(old, want, priority, (priority - old.priority) * self.rules.weight)
            return
        entry = Entry(j, NIL, want, priority, rank, age, base)
        if old is None:
            self.queue.push(entry)
        else:
            told = old.told and same
            self.queue.replace(old, entry, same or old.priority == priority)
            if told:
                entry.told = True
                self.asked = entry
        self.asking[j] = entry

    def delete(self, j: int) -> None:
        entry = self.asking.get(j)
        if entry is not None:
            del self.asking[j]
            self.queue.remove(entry)

    def age(self) -> None:
        """Printed ageing, but once per grant: with every hop counted, two that wait for
        permits overtake each other for ever, and RELEASE never catches the token."""
        if self.aged is not None and self.grants > self.aged:
            self.aged = self.grants
            for entry in self.queue.entries:
                entry.rank += 1

    # -- observers ----------------------------------------------------------------------------

    def patience(self) -> int:
        return self.rules.patience if self.rules.ageing == BY_STAMP else 0

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
        if entry is None:
            return 0
        rank = entry.rank
        if self.rules.ageing == BY_STAMP:
            made = max(grants, self.grants)
            if entry.age == FRESH:  # as when the token comes
                rank = min(rank, entry.base - made + self.rules.patience - 1)
            rank += made
        return rank - entry.priority * self.rules.weight

    def known_priority(self) -> int | None:
        return max([entry.priority for entry in self.queue.all()], default=None)

    def thaw(self, state: Frozen) -> None:
        super().thaw(state)
        entries = self.queue.all()
        self.asking = {entry.neighbour: entry for entry in entries if entry.neighbour != NIL}
        told = [entry for entry in entries if entry.told]
        self.asked = told[0] if told else None


def make(network: Network, permits: int, options: dict[str, str], out: list[Effect]) -> list[Actor]:
    rules = Rules(permits, options)
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
    return JiangNode(number, out, Rules(permits, options), height, founder)


ALGORITHMS: list[Algorithm] = [
    Algorithm(
        "jiang",
        "Prioritized h-out-of-k allocation, repaired",
        "Jiang, Hsuan Chuang University, 2003, on Walter, Welch, Vaidya 2001",
        "h-of-k",
        make,
        (Token, Request, Update, Release, Link, Call),
        assumes=Assumptions(changing_links=True, fifo=True),
        serves=Serves(priorities=True, many_clients=True),
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
