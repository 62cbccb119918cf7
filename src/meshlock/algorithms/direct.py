"""Requests go straight to the token, and the queue travels with it.

Written for meshlock; the trail of forwarding pointers to a moving object is Fowler's (*The
complexity of using forwarding addresses for decentralized object finding*, PODC 1986), a queue
that travels with the token Suzuki and Kasami's (ACM TOCS 3(4), 1985).

**Problem.** k permits; a client asks for h of them with a priority; the highest goes first, and
nobody starves.

**Idea.** Every move of the token has a number, its *hop*. Who passes the token on remembers to
whom and with which hop; that is where it sends what is meant for the holder. A node given such a
message without having the token sends it on along its own pointer, which is of a later hop: so
every message comes closer to the token with each step and none goes in a circle. If the
message knows of a later hop than its receiver, then that token is on its way to the receiver:
the message waits there, ahead of the token. The holder keeps one queue for the whole network and
serves its front: if all permits are with the token, token and queue go to where the front is;
while some are out the token stays, so that they find it where they were granted, and the front gets
its permits by GRANT.

A client of the node with the token needs no message, so the token does not stay for ever: with one
GRANT in REST the token goes along, whatever is out. What is released then follows it as requests
do. Where grants are acknowledged, it waits until all have arrived.

A node has k *lines*, but no more than LINES, and an entry in the queue for each: its most urgent
clients are there, so that whatever comes free at once finds whom it is for. Entries have a number,
and its remainder by the number of lines is the line; in a line a newer entry takes the place of an
older one whichever comes first, and one that wants nothing withdraws.

**Assumptions.** Everybody can send to everybody, over several links if need be; messages
arrive, in **any order**; no node crashes. Inside recovery nodes may come and go: a node that
comes late is told where the token is and numbers its requests above those of a former life, a node
that is gone is struck out of the queue, and a node that waits asks again.

**Ageing.** *stamped*: a request ranks by priority * patience - (grants made when the token first
heard of it), so every ``patience`` grants that it has waited since count for one step of priority.
A node without the token does not know how many grants were made: what it asks for is *fresh* until
the holder stamps it, and the others of its clients until the token comes; to these up to patience -
1 grants are allowed of the age that they may have. *none*: by priority alone.

**Cost** per entry, one request at a time, asked uniformly by n nodes: REQUEST and TOKEN together
exactly Q(n) - 1/n on average, where Q(n) = 1 + (n-1)/n + (n-1)(n-2)/n^2 + ... is Ramanujan's
function, about sqrt(pi n / 2) - 1/3. At saturation with k = 1: 2, however many nodes, for everybody
knows where the token went, and a synchronisation delay of T. With k > 1 the token comes to rest,
and an entry costs 3: REQUEST, GRANT, RELEASE, or nothing at the holder; synchronisation delay 2T.
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
    OpenActor,
    Serves,
)
from meshlock.algorithms.ranked import FRESH, SETTLED, Entry, Met, Ranked
from meshlock.algorithms.steps import units

LINES = 8
"""Clients of a node that are in the queue at most, the most urgent ones."""

REST = 61
"""Grants. A prime, so that it is not always the turn of the same node when the token moves on."""

LATER = 24
"""Bits by which a hop is shifted: of so many requests that a former life made, and of which the
holder knows none, those of the next are above all."""

STRUCK_OUT = 1
"""The turn of a place that wants nothing because its node was unreachable."""

Asked = tuple[int, int, int, int, int, int]
"""Node, the number of its request, want, priority, rank, and turn, which decides between equals."""

Ahead = tuple[int, int, int, int, int, int, bool]
"""Node, number, since, want, priority, rank, and whether it is fresh: as REQUEST has them."""


class Request(Message):
    """REQUEST: ``asker`` wants this much now, or nothing any more; ``since``: what was asked there
    under that number or a later one is the same request, which has become more or less urgent;
    ``hop``: of the pointer that it followed; ``fresh``: the holder, who knows how many grants were
    made, completes its rank."""

    def __init__(
        self,
        receiver: int,
        asker: int,
        number: int,
        since: int,
        want: int,
        priority: int,
        rank: int,
        hop: int,
        fresh: bool,
    ) -> None:
        super().__init__(receiver)
        self.asker = asker
        self.number = number
        self.since = since
        self.want = want
        self.priority = priority
        self.rank = rank
        self.hop = hop
        self.fresh = fresh


class Token(Message):
    """TOKEN: how many permits are free, and who waits, the first in rank first."""

    def __init__(
        self, receiver: int, hop: int, free: int, grants: int, queue: tuple[Asked, ...]
    ) -> None:
        super().__init__(receiver)
        self.hop = hop
        self.free = free
        self.grants = grants
        self.queue = queue

    def tokens(self) -> int:
        return 1

    def permits(self) -> int:
        return self.free


class Grant(Message):
    """GRANT: permits, for the receiver's request of that number; the ``grants``-th grant,
    made where the token came to with that ``hop``."""

    def __init__(self, receiver: int, number: int, count: int, grants: int, hop: int) -> None:
        super().__init__(receiver)
        self.number = number
        self.count = count
        self.grants = grants
        self.hop = hop

    def permits(self) -> int:
        return self.count

    def lends(self) -> int:
        return self.count


class Release(Message):
    """RELEASE: permits come back to the token; ``hop``: of the pointer that it followed."""

    def __init__(self, receiver: int, count: int, hop: int) -> None:
        super().__init__(receiver)
        self.count = count
        self.hop = hop

    def permits(self) -> int:
        return self.count


class DirectNode(OpenActor):
    no_state: ClassVar = ("step", "weight", "permits", "lines", "rest", "unsure")

    def __init__(
        self,
        me: int,
        out: list[Effect],
        permits: int,
        patience: int,
        holder: int = 0,
        hop: int = -1,
        number: int = -1,
        unit: int = 1,
        rest: int = REST,
    ) -> None:
        super().__init__(me, out)
        self.step = patience  # grants that one step of priority is worth; 0: requests do not age
        self.weight = patience // unit  # and one unit of it, of which a step may have several
        self.holder = me == holder
        self.hop = max(0, hop)  # of the token if here, else of the latest that we know of ...
        self.pointer = holder  # ... and where that one went
        self.permits = permits
        self.rest = rest
        self.unsure = NIL  # grants not known to have arrived, where that is acknowledged
        self.lines = max(1, min(permits, LINES))
        self.free = permits if me == holder else 0
        self.grants = 0  # when we had the token last
        self.queue: list[Asked] = []  # with the token
        self.ahead: list[Ahead] = []  # without: came ahead of it
        self.own = Ranked()  # clients that wait here
        # in each line: the number of our latest request, under which it was asked for first, and
        # for whom it is; a node that comes late begins above all numbers of a former life
        base = max(hop, number >> LATER) + 1 << LATER
        self.numbers = [base + (line - base) % self.lines for line in range(self.lines)]
        self.since = self.numbers[:]
        self.placed = [NIL] * self.lines
        # client that waits: the first and the last number under which it was asked for, though
        # another may have its line by now
        self.asked_for: dict[int, tuple[int, int]] = {}
        self.clients: dict[int, int] = {}  # those inside, and what they hold

    # -- clients --------------------------------------------------------------------------

    def request(self, client: int, want: int, priority: int) -> None:
        self.resume(client, want, priority, 0)

    def resume(self, client: int, want: int, priority: int, age: int) -> None:
        if self.weight > 0:
            base = priority * self.weight + age
            kind = SETTLED if self.holder else FRESH
            entry = Entry(NIL, client, want, priority, base - self.grants, kind, base)
        else:
            entry = Entry(NIL, client, want, priority, priority)
        self.own.push(entry)
        self.ask(self.place())

    def change_priority(self, client: int, want: int, priority: int) -> bool:
        """The request waits on, and keeps its age. It may get a line, or lose it."""
        entry = self.own.find(client)
        if entry is None:
            return False
        self.own.change(entry, want, priority, self.gain(entry.priority, priority))
        lines = self.place()
        if client in self.placed:
            line = self.placed.index(client)
            if line not in lines:
                self.ask_on(line)
        self.ask(lines)
        return True

    def gain(self, before: int, after: int) -> int:
        return (after - before) * max(1, self.weight)

    def withdraw(self, client: int) -> bool:
        entry = self.own.own.get(client)
        if entry is None:
            return False
        self.own.remove(entry)
        self.asked_for.pop(client, None)
        if client in self.placed:
            line = self.empty(client)
            self.ask([line, *self.place(line)])
        return True

    def release(self, client: int) -> None:
        self.returns(self.clients.pop(client))

    def release_some(self, client: int, permits: int) -> None:
        self.clients[client] -= permits
        self.returns(permits)

    def returns(self, permits: int) -> None:
        if self.holder:
            self.free += permits
            self.decide()
        else:
            self.send(Release(self.pointer, permits, self.hop))

    # -- the lines ------------------------------------------------------------------------

    def place(self, told: int = NIL) -> list[int]:
        """Our most urgent clients each have a line, if need be that of one who is not any more.
        The result: the lines of which others do not know that, but for one that they are ``told``
        of in any case."""
        changed: list[int] = []
        first = [entry.client for entry in self.own.top(self.lines)]
        for client in first:
            if client in self.placed:
                continue
            line = 0
            while self.placed[line] in first:
                line += 1
            self.placed[line] = client
            if line != told:
                changed.append(line)
        return changed

    def empty(self, client: int) -> int:
        """The line of a client that waits no more."""
        line = self.placed.index(client)
        self.placed[line] = NIL
        return line

    def ask(self, lines: list[int]) -> None:
        """What we want has changed there."""
        for line in lines:
            self.renew(line)
        if self.holder and len(lines) > 0:
            self.decide()

    def renew(self, line: int) -> None:
        """Another request in that line."""
        self.numbers[line] += self.lines
        self.since[line] = self.numbers[line]
        self.tell(line)

    def ask_on(self, line: int) -> None:
        """The same request under a new number: it has become more or less urgent."""
        self.numbers[line] += self.lines
        self.tell(line)
        if self.holder:
            self.decide()

    def tell(self, line: int) -> None:
        self.note(line)
        if self.holder:
            self.hear(self.asked(line))
        else:
            self.send_request(line)

    def note(self, line: int) -> None:
        if self.placed[line] != NIL:
            self.asked_for[self.placed[line]] = (self.since[line], self.numbers[line])

    def send_request(self, line: int) -> None:
        node, number, since, want, priority, rank, fresh = self.asked(line)
        to, hop = self.pointer, self.hop
        self.send(Request(to, node, number, since, want, priority, rank, hop, fresh))

    def asked(self, line: int) -> Ahead:
        """What we ask for there."""
        number, since, client = self.numbers[line], self.since[line], self.placed[line]
        if client == NIL:
            return (self.me, number, since, 0, 0, 0, False)
        entry = self.own.own[client]
        fresh = entry.age == FRESH
        rank = entry.base if fresh else entry.rank
        return (self.me, number, since, entry.want, entry.priority, rank, fresh)

    # -- messages ---------------------------------------------------------------------------

    def receive(self, message: Message) -> None:
        if isinstance(message, Token):
            self.receive_token(message)
        elif isinstance(message, Request):
            self.receive_request(message)
        elif isinstance(message, Grant):
            self.receive_grant(message)
        elif isinstance(message, Release):
            if message.hop > self.hop:  # it came ahead of the token
                self.free += message.count
            else:
                self.returns(message.count)

    def receive_request(self, m: Request) -> None:
        if m.asker == self.me:
            return  # it has come round to us: what we want now counts, and we line up with that
        if self.holder:
            self.hear((m.asker, m.number, m.since, m.want, m.priority, m.rank, m.fresh))
            self.decide()
        elif m.hop > self.hop:
            self.wait_ahead((m.asker, m.number, m.since, m.want, m.priority, m.rank, m.fresh))
        else:
            to, hop = self.pointer, self.hop
            want, priority = m.want, m.priority
            self.send(Request(to, m.asker, m.number, m.since, want, priority, m.rank, hop, m.fresh))

    def receive_grant(self, m: Grant) -> None:
        """For the client for whom that request was, even if another is more urgent by now. If it
        has given up, or asked anew, the permits go back."""
        self.holder_is(m.sender, m.hop)
        client = self.client_of(m.number)
        if client != NIL:
            entry = self.own.own[client]
            self.own.remove(entry)
            del self.asked_for[client]
            self.clients[client] = entry.want
            self.enter(client, m.grants)
            if client in self.placed:
                self.empty(client)
        else:
            self.returns(m.count)
        if m.grants > self.grants:
            self.grants = m.grants
            self.hear_of_grants()
        self.ask(self.place())

    def hear_of_grants(self) -> None:
        """The age of clients that have no line begins: else those that come later and are a little
        more urgent would always have the lines."""
        if self.weight > 0:
            placed = [self.own.own[client] for client in self.placed if client != NIL]
            self.own.settle_but(Met(self.grants), placed)

    def client_of(self, number: int) -> int:
        """For whom that request was, mostly who has its line; NIL if it waits no more, or asked
        anew."""
        line = number % self.lines
        if self.placed[line] != NIL and self.since[line] <= number <= self.numbers[line]:
            return self.placed[line]
        for client in self.asked_for:
            if self.was_asked_for(client, number):
                return client
        return NIL

    def was_asked_for(self, client: int, number: int) -> bool:
        first, last = self.asked_for.get(client, (0, NIL))
        return first <= number <= last and (number - first) % self.lines == 0

    def receive_token(self, token: Token) -> None:
        self.holder = True
        self.hop = token.hop
        self.pointer = self.me
        self.free += token.free
        self.queue = list(token.queue)
        self.settle(token.grants)
        ahead = self.ahead
        self.ahead = []
        for one in ahead:
            self.hear(one)
        self.place()
        for line in range(self.lines):
            self.outdate(line)
            self.note(line)
        self.decide()

    def settle(self, grants: int) -> None:
        """The queue says what the requests in our lines have been worth since the holder heard of
        them. The age of our other clients begins now."""
        self.grants = grants
        if len(self.own.fresh) == 0:
            return
        for node, number, want, priority, rank, _ in self.queue:
            if node == self.me and want > 0:
                line = number % self.lines
                entry = self.own.own.get(self.placed[line])
                if entry is not None and self.since[line] <= number <= self.numbers[line]:
                    self.own.stamp(entry, rank + self.gain(priority, entry.priority))
        self.own.settle(Met(grants))

    def outdate(self, line: int) -> None:
        """What stands in the queue may be another's: of a former life of ours, or of a client whose
        turn it is not. If it was granted, the token has overtaken the GRANT."""
        for node, number, want, priority, _, _ in self.queue:
            if node == self.me and number % self.lines == line:
                ours = self.asked(line)
                granted = want == 0 and self.was_asked_for(self.placed[line], number)
                same = granted or (want, priority) == ours[3:5]
                if number > ours[1] or (number == ours[1] and not same):
                    self.numbers[line] = self.since[line] = number + self.lines
                break
        else:
            if self.placed[line] == NIL:
                return
        self.hear(self.asked(line))

    # -- nodes that come and go -------------------------------------------------------------

    def holder_is(self, node: int, hop: int) -> None:
        if hop > self.hop and node != self.me and not self.holder:
            self.hop = hop
            self.pointer = node

    def forget(self, node: int) -> bool:
        """Its numbers stay, each one lower: what it asked for last counts if it is asked for again,
        and what a former life asked for before that does not. The turn tells it from a place that
        wants nothing because it was granted."""
        gone = [asked for asked in self.queue if asked[0] == node and asked[2] > 0]
        waiting = [one for one in self.ahead if one[0] == node and one[3] > 0]
        self.queue = [asked for asked in self.queue if asked not in gone]
        self.queue += [(node, asked[1] - self.lines, 0, 0, 0, STRUCK_OUT) for asked in gone]
        self.ahead = [one for one in self.ahead if one not in waiting]
        for one in waiting:
            number = one[1] - self.lines
            self.wait_ahead((node, number, number, 0, 0, 0, True))
        self.decide()
        return len(gone) + len(waiting) > 0

    def number_of(self, node: int) -> int:
        return max([asked[1] for asked in self.queue if asked[0] == node], default=NIL)

    def ask_again(self) -> None:
        """Where it has been heard, the same number says nothing new."""
        self.decide()
        if not self.holder:
            for line in range(self.lines):
                if self.placed[line] != NIL:
                    self.send_request(line)

    def unacknowledged(self, grants: int) -> None:
        self.unsure = grants

    # -- the queue --------------------------------------------------------------------------

    def wait_ahead(self, new: Ahead) -> None:
        """Of a line, the newest."""
        for place, other in enumerate(self.ahead):
            if other[0] == new[0] and (other[1] - new[1]) % self.lines == 0:
                if other[1] < new[1]:
                    self.ahead[place] = new
                return
        self.ahead.append(new)

    def hear(self, one: Ahead) -> None:
        """The holder: of a request. If it is fresh, its age begins now; if it is one that we know,
        more or less urgent, it keeps its age. Of a line the newer counts.

        One that wants nothing stays too, behind all others: else an older request that it has
        overtaken would be taken for a new one, and hold up those behind it.
        """
        node, number, since, want, priority, rank, fresh = one
        turn = NIL
        struck_out = fresh and want == 0
        if fresh:
            rank -= self.grants
        for place, other in enumerate(self.queue):
            if other[0] == node and (other[1] - number) % self.lines == 0:
                if other[1] >= number:
                    return
                if other[1] >= since and (other[2] > 0 or other[5] != STRUCK_OUT):
                    rank = other[4] + self.gain(other[3], priority)
                    want = min(want, other[2])  # nothing, if it has been granted
                    turn = other[5]
                del self.queue[place]
                break
        if want > 0:
            self.line_up((node, number, want, priority, rank, turn))
        else:
            self.queue.append((node, number, 0, 0, 0, STRUCK_OUT if struck_out else 0))

    def line_up(self, asked: Asked) -> None:
        """In order of rank; ties: first come, first served."""
        queue, rank, turn = self.queue, asked[4], asked[5]
        if turn == NIL:
            turn = 1 + max([other[5] for other in queue], default=0)
        place = len(queue)
        while place > 0:
            before = queue[place - 1]
            if before[2] > 0 and (before[4] > rank or (before[4] == rank and before[5] < turn)):
                break
            place -= 1
        queue.insert(place, (*asked[:5], turn))

    def decide(self) -> None:
        """The holder: let our own clients in, send token or permits to the front, or wait."""
        while self.holder and self.queue and 0 < self.queue[0][2] <= self.free:
            node = self.queue[0][0]
            if node == self.me:
                self.let_in()
            elif self.free == self.permits or self.moves_on():
                if self.unsure > 0:
                    break  # what is under way must not get lost with us
                self.give(node)
            else:
                self.grant()

    def moves_on(self) -> bool:
        """The token, with the next grant."""
        return (self.grants + 1) % self.rest == 0

    def let_in(self) -> None:
        client = self.placed[self.queue[0][1] % self.lines]
        entry = self.own.own[client]
        self.own.remove(entry)
        del self.asked_for[client]
        self.free -= entry.want
        self.grants += 1
        self.clients[client] = entry.want
        self.enter(client, self.grants)
        line = self.empty(client)
        for one in (line, *self.place(line)):
            self.renew(one)

    def grant(self) -> None:
        """Its place stays, wanting nothing: else the same request, made again, would count."""
        node, number, want = self.queue[0][:3]
        self.free -= want
        self.grants += 1
        if self.unsure != NIL:
            self.unsure += 1
        self.send(Grant(node, number, want, self.grants, self.hop))
        del self.queue[0]
        self.queue.append((node, number, 0, 0, 0, 0))

    def give(self, node: int) -> None:
        """The whole queue goes along, our own places and the receiver's too."""
        self.holder = False
        self.hop += 1
        self.pointer = node
        self.send(Token(node, self.hop, self.free, self.grants, tuple(self.queue)))
        self.free = 0
        self.queue = []

    # -- observers ----------------------------------------------------------------------------

    def tokens(self) -> int:
        return 1 if self.holder else 0

    def free_permits(self) -> int:
        return self.free

    def waited(self, client: int, grants: int = 0) -> int:
        entry = self.own.find(client)
        if self.weight == 0 or entry is None:
            return 0
        made = max(grants, self.grants)
        if entry.age == FRESH:
            made = min(made, entry.base - entry.rank + self.step - 1)
        return made + entry.rank - entry.priority * self.weight

    def known_priority(self) -> int | None:
        known = [asked[3] for asked in self.queue if asked[2] > 0]
        known += [one[4] for one in self.ahead if one[3] > 0]
        return max(known, default=None)


def late(
    me: int,
    holder: int,
    hop: int,
    number: int,
    permits: int,
    options: dict[str, str],
    out: list[Effect],
) -> OpenActor:
    patience, unit, rest = aged(options), units(options), rests(options)
    node = DirectNode(me, out, permits, patience, holder, hop, number, unit, rest)
    node.unsure = 0
    return node


def make(network: Network, permits: int, options: dict[str, str], out: list[Effect]) -> list[Actor]:
    patience, unit, rest = aged(options), units(options), rests(options)
    nodes = range(network.size)
    return [DirectNode(me, out, permits, patience, unit=unit, rest=rest) for me in nodes]


def aged(options: dict[str, str]) -> int:
    return int(options["patience"]) if options["ageing"] == "stamped" else 0


def rests(options: dict[str, str]) -> int:
    return int(options.get("rest", str(REST)))


ALGORITHMS: list[Algorithm] = [
    Algorithm(
        "direct",
        "Requests straight to the token, the queue travels with it",
        "meshlock; forwarding pointers after Fowler, PODC 1986",
        "h-of-k",
        make,
        (Request, Token, Grant, Release),
        assumes=Assumptions(routed=True),
        serves=Serves(priorities=True, many_clients=True),
        newcomers=Newcomers(late=late),
        options={
            "ageing": ("stamped", "none"),
            "patience": ("100", "<number>"),
            "rest": (str(REST), "<number>"),
        },
    )
]
