"""Requests go straight to the token, and the queue travels with it.

Written for meshlock. Forwarding pointers to a moving object are Fowler's (PODC 1986), a queue that
travels with the token is Suzuki and Kasami's (ACM TOCS 3(4), 1985).

**Problem.** k permits; a client asks for h of them with a priority; the highest goes first, and
nobody starves.

**Idea.** The node with the token, the holder, keeps one queue for the whole network.

1. *A client asks.* Its node sends REQUEST to where it believes the token to be.
2. *The message finds the token.* Every move of the token has a number, its *hop*. A node that
   passes the token on keeps a pointer: to which node, and with which hop. It sends messages on
   along that pointer, which is of a later hop. So they get closer, and none goes in a circle. A
   message that knows of a later hop than its receiver waits there for that token.
3. *The holder decides.* It lets its own clients in while they are first in the queue. If the first
   is another node's, and all permits are with the token, then TOKEN goes there with the queue.
   While some permits are out, the token stays, so that they find it where they were granted, and
   the first gets its permits by GRANT.
4. *The client leaves.* Its permits go to the token as a request does, by RELEASE.

A client of the holder needs no message, so with one grant in REST the token goes along, whatever is
out, and RELEASE follows it. Where grants are acknowledged, it waits until all have arrived.

A node has k *lines*, at most LINES, and an entry in the queue for each. Its most urgent clients
have them, so permits that come free at once all go to the most urgent. A newer request of a line
replaces the older one, in whatever order they arrive. One that wants nothing withdraws.

**Assumptions.** Every node can send to every other, over several links if need be; messages
arrive, in **any order**; no node crashes. Inside recovery nodes may come and go: a late one
numbers its requests above those of a former life, and one that is gone is struck out of the queue.

**Ageing.** *stamped*: a request ranks by priority * patience - (grants made when the holder learned
of it), so every ``patience`` grants that it has waited since count for one step of priority. Only
the holder knows how many grants were made. Until it learns of a request, that is *fresh*. A client
without a line is fresh until the token comes, or until its node hears of a grant. *none*: by
priority alone.

**Cost** per entry, one request at a time, asked uniformly by n nodes: REQUEST and TOKEN together
exactly Q(n) - 1/n on average, where Q(n) = 1 + (n-1)/n + (n-1)(n-2)/n^2 + ... is Ramanujan's
function, about sqrt(pi n / 2) - 1/3. At saturation with k = 1: 2, however many nodes, for all nodes
know where the token went, and a synchronisation delay of T. With k > 1 the token comes to rest,
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
    Options,
    Serves,
)
from meshlock.algorithms.ageing import Ageing, NoAgeing, StampedAgeing
from meshlock.algorithms.conflicts import lines_in_all, order_of, queue_of
from meshlock.algorithms.ranked import (
    FRESH,
    STRUCK_OUT,
    Ahead,
    Asked,
    ClientLines,
    Met,
)
from meshlock.algorithms.steps import units

REST = 61
"""Grants. A prime, so that it is not always the turn of the same node when the token moves on."""


class Request(Message):
    """REQUEST: ``asker`` wants this much now, or nothing any more.

    What was asked for under the number ``since`` or a later one is the same request, more or less
    urgent than before. ``hop``: of the pointer that the message followed. The rank of a ``fresh``
    request counts no grants yet: the holder completes it.
    """

    wire: ClassVar = ("node", "count", "count", "share", "urgency", "rank", "hop", "flag")

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
    """TOKEN: ``free`` permits, and the queue, the first in rank first."""

    wire: ClassVar = ("hop", "free", "count", "lines")

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


class GrantMessage(Message):
    """GRANT: ``count`` permits for the receiver's request of that number. It is the ``grants``-th
    grant, made by the node to which the token came with that ``hop``."""

    kind: ClassVar[str] = "GRANT"
    wire: ClassVar = ("count", "share", "count", "hop")

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
    """RELEASE: ``count`` permits on their way to the token, along a pointer of that ``hop``."""

    wire: ClassVar = ("share", "hop")

    def __init__(self, receiver: int, count: int, hop: int) -> None:
        super().__init__(receiver)
        self.count = count
        self.hop = hop

    def permits(self) -> int:
        return self.count


class DirectNode(OpenActor):
    no_state: ClassVar = ("ageing", "permits", "rest", "unsure", "conflicts")

    def __init__(
        self,
        me: int,
        out: list[Effect],
        permits: int,
        options: Options,
        holder: int = 0,
        hop: int = -1,
        number: int = -1,
    ) -> None:
        super().__init__(me, out)
        self.ageing = ageing_of(options)
        self.holder = me == holder
        self.hop = max(0, hop)  # of the latest move of the token that we know of, and ...
        self.pointer = holder  # ... where that move went; ourselves with the token
        self.permits = permits
        self.rest = int(options.get("rest", REST))
        self.unsure = NIL  # grants not known to have arrived; NIL: they are not acknowledged
        self.free = permits if me == holder else 0  # 0 <= free <= k; without the token: came ahead
        self.grants = 0  # made so far, as far as we know; exact with the token
        self.queue: list[Asked] = []  # empty without the token; those that want nothing are last
        self.ahead: list[Ahead] = []  # came ahead of the token; empty with it
        self.conflicts = order_of(permits)
        self.own = queue_of(permits)  # clients that wait here
        self.lines = ClientLines(lines_in_all(permits), hop, number)
        self.clients: dict[int, int] = {}  # those inside, and what they hold

    # -- a client asks -------------------------------------------------------------------

    def request(self, client: int, want: int, priority: int) -> None:
        self.resume(client, want, priority, 0)

    def resume(self, client: int, want: int, priority: int, age: int) -> None:
        made = self.grants
        self.own.push(self.ageing.own_entry(client, want, priority, age, made, self.holder))
        self.ask_for(self.assign_lines())

    def change_priority(self, client: int, want: int, priority: int) -> bool:
        """The request waits on, and keeps its age. It may get a line, or lose it."""
        entry = self.own.find(client)
        if entry is None:
            return False
        gain = self.ageing.gain(entry.priority, priority)
        self.own.change(entry, want, priority, gain)
        changed = self.assign_lines()
        if client in self.lines.placed:
            line = self.lines.placed.index(client)
            if line not in changed:
                self.lines.next_number(line, True)
                self.announce(line)
                if self.holder:
                    self.decide()
        self.ask_for(changed)
        return True

    def withdraw(self, client: int) -> bool:
        entry = self.own.own.get(client)
        if entry is None:
            return False
        self.own.remove(entry)
        self.lines.asked_for.pop(client, None)
        if client in self.lines.placed:
            line = self.lines.clear(client)
            self.ask_for([line, *self.assign_lines(line)])
        return True

    # -- its node asks the holder --------------------------------------------------------

    def assign_lines(self, cleared: int = NIL) -> list[int]:
        first = [entry.client for entry in self.own.top(self.lines.count)]
        return self.lines.assign(first, cleared)

    def ask_for(self, lines: list[int]) -> None:
        """These lines have other requests now."""
        for line in lines:
            self.ask_anew(line)
        if self.holder and len(lines) > 0:
            self.decide()

    def ask_anew(self, line: int) -> None:
        self.lines.next_number(line, False)
        self.announce(line)

    def announce(self, line: int) -> None:
        """To the queue of the token, wherever that is."""
        self.lines.remember(line)
        asked = self.asked(line)
        if self.holder:
            self.enter_in_queue(asked)
        else:
            self.send_request(asked)

    def send_request(self, row: Ahead) -> None:
        node, number, since, want, priority, rank, fresh = row
        to, hop = self.pointer, self.hop
        self.send(Request(to, node, number, since, want, priority, rank, hop, fresh))

    def asked(self, line: int) -> Ahead:
        """What we ask for in that line."""
        number, since, client = (
            self.lines.numbers[line],
            self.lines.since[line],
            self.lines.placed[line],
        )
        if client == NIL:
            return (self.me, number, since, 0, 0, 0, False)
        entry = self.own.own[client]
        fresh = entry.age == FRESH
        rank = entry.base if fresh else entry.rank
        return (self.me, number, since, entry.want, entry.priority, rank, fresh)

    # -- the request finds the token -----------------------------------------------------

    def receive(self, message: Message) -> None:
        if isinstance(message, Token):
            self.receive_token(message)
        elif isinstance(message, Request):
            self.receive_request(message)
        elif isinstance(message, GrantMessage):
            self.receive_grant(message)
        elif isinstance(message, Release):
            if message.hop > self.hop:  # it came ahead of the token
                self.free += message.count
            else:
                self.return_permits(message.count)

    def receive_request(self, m: Request) -> None:
        if m.asker == self.me:
            return  # our own comes back to us: what we want now counts, and enters with the token
        row = (m.asker, m.number, m.since, m.want, m.priority, m.rank, m.fresh)
        if self.holder:
            self.enter_in_queue(row)
            self.decide()
        elif m.hop > self.hop:
            self.wait_ahead(row)
        else:
            self.send_request(row)

    def wait_ahead(self, new: Ahead) -> None:
        """Of each line the newest request waits for the token."""
        for place, other in enumerate(self.ahead):
            if other[0] == new[0] and (other[1] - new[1]) % self.lines.count == 0:
                if other[1] < new[1]:
                    self.ahead[place] = new
                return
        self.ahead.append(new)

    def enter_in_queue(self, one: Ahead) -> None:
        """The holder learns of a request. The age of a fresh one begins now. One that we know, more
        or less urgent than before, keeps its age. Of each line the newer request counts.

        A row that wants nothing stays, behind all others: an older request comes too late then.
        """
        node, number, since, want, priority, rank, fresh = one
        turn = NIL
        struck_out = fresh and want == 0
        if fresh:
            rank -= self.grants
        for place, other in enumerate(self.queue):
            if other[0] == node and (other[1] - number) % self.lines.count == 0:
                if other[1] >= number:
                    return
                if other[1] >= since and (other[2] > 0 or other[5] != STRUCK_OUT):
                    rank = other[4] + self.ageing.gain(other[3], priority)
                    want = 0 if other[2] == 0 else want  # nothing, if it has been granted
                    turn = other[5]
                del self.queue[place]
                break
        if want > 0:
            self.line_up((node, number, want, priority, rank, turn))
        else:
            self.queue.append((node, number, 0, 0, 0, STRUCK_OUT if struck_out else 0))

    def line_up(self, asked: Asked) -> None:
        """In order of rank; equal ranks: first come, first served."""
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

    # -- the holder decides --------------------------------------------------------------

    def decide(self) -> None:
        """The holder lets its own clients in, sends token or permits to the front, or waits."""
        while self.holder:
            place = self.conflicts.next_place(self.queue, self.free)
            if place == NIL:
                break
            node = self.queue[place][0]
            if node == self.me:
                self.let_in(place)
            elif self.free == self.permits or (self.grants + 1) % self.rest == 0:
                if self.unsure > 0:
                    break  # what is under way must not get lost with us
                self.give_token(node)
            else:
                self.grant(place)

    def let_in(self, place: int) -> None:
        client = self.lines.placed[self.queue[place][1] % self.lines.count]
        entry = self.own.own[client]
        self.own.remove(entry)
        del self.lines.asked_for[client]
        self.free -= entry.want
        self.grants += 1
        self.clients[client] = entry.want
        self.enter(client, self.grants)
        line = self.lines.clear(client)
        for one in (line, *self.assign_lines(line)):
            self.ask_anew(one)

    def grant(self, place: int) -> None:
        """Its row stays, wanting nothing: else the same request, made again, would count."""
        node, number, want = self.queue[place][:3]
        self.free -= want
        self.grants += 1
        if self.unsure != NIL:
            self.unsure += 1
        self.send(GrantMessage(node, number, want, self.grants, self.hop))
        del self.queue[place]
        self.queue.append((node, number, 0, 0, 0, 0))

    def give_token(self, node: int) -> None:
        """The whole queue goes along, our own rows and the receiver's too."""
        self.holder = False
        self.hop += 1
        self.pointer = node
        self.send(Token(node, self.hop, self.free, self.grants, tuple(self.queue)))
        self.free = 0
        self.queue = []

    # -- the permits arrive, or the token ------------------------------------------------

    def receive_grant(self, m: GrantMessage) -> None:
        """For the client for whom that request was, even if another is more urgent by now. If it
        has given up, or asked anew, the permits return to the token."""
        self.holder_is(m.sender, m.hop)
        client = self.lines.client_of(m.number)
        if client != NIL:
            entry = self.own.own[client]
            self.own.remove(entry)
            del self.lines.asked_for[client]
            self.clients[client] = entry.want
            self.enter(client, m.grants)
            if client in self.lines.placed:
                self.lines.clear(client)
        else:
            self.return_permits(m.count)
        if m.grants > self.grants:
            self.grants = m.grants
            self.begin_ages()
        self.ask_for(self.assign_lines())

    def begin_ages(self) -> None:
        """Of clients without a line: else those that come later and are a little more urgent would
        always have the lines."""
        if self.ageing.patience() > 0:
            placed = [self.own.own[client] for client in self.lines.placed if client != NIL]
            self.own.rank_fresh_but(Met(self.grants), placed)

    def receive_token(self, token: Token) -> None:
        self.holder = True
        self.hop = token.hop
        self.pointer = self.me
        self.free += token.free
        self.queue = list(token.queue)
        self.rank_own(token.grants)
        ahead = self.ahead
        self.ahead = []
        for one in ahead:
            self.enter_in_queue(one)
        self.assign_lines()
        for line in range(self.lines.count):
            self.enter_own(line)
            self.lines.remember(line)
        self.decide()

    def rank_own(self, grants: int) -> None:
        """The queue has the ranks of our lines. The age of our other clients begins now."""
        self.grants = grants
        if not self.own.has_fresh():
            return
        for node, number, want, priority, rank, _ in self.queue:
            if node == self.me and want > 0:
                line = number % self.lines.count
                entry = self.own.own.get(self.lines.placed[line])
                if entry is not None and self.lines.is_current(line, number):
                    self.own.stamp(entry, rank + self.ageing.gain(priority, entry.priority))
        self.own.rank_fresh(Met(grants))

    def enter_own(self, line: int) -> None:
        """What stands in the queue may be of a former life of ours, or of a client that has the
        line no more: then our request gets a higher number. If it was granted, the token has
        overtaken the GRANT."""
        lines = self.lines
        for node, number, want, priority, _, _ in self.queue:
            if node == self.me and number % lines.count == line:
                ours = self.asked(line)
                granted = want == 0 and lines.was_asked_for(lines.placed[line], number)
                same = granted or (want, priority) == ours[3:5]
                if number > ours[1] or (number == ours[1] and not same):
                    lines.numbers[line] = lines.since[line] = number + lines.count
                break
        else:
            if lines.placed[line] == NIL:
                return
        self.enter_in_queue(self.asked(line))

    # -- the client leaves ---------------------------------------------------------------

    def release(self, client: int) -> None:
        self.return_permits(self.clients.pop(client))

    def release_some(self, client: int, permits: int) -> None:
        self.clients[client] -= permits
        self.return_permits(permits)

    def return_permits(self, permits: int) -> None:
        if self.holder:
            self.free += permits
            self.decide()
        else:
            self.send(Release(self.pointer, permits, self.hop))

    # -- nodes that come and go ----------------------------------------------------------

    def holder_is(self, node: int, hop: int) -> None:
        if hop > self.hop and node != self.me and not self.holder:
            self.hop = hop
            self.pointer = node

    def forget(self, node: int) -> bool:
        """Its numbers stay, each one lower: its last request counts if it is made again, an older
        one of a former life does not. The turn tells such a row from one that was granted."""
        gone = [asked for asked in self.queue if asked[0] == node and asked[2] > 0]
        waiting = [one for one in self.ahead if one[0] == node and one[3] > 0]
        self.queue = [asked for asked in self.queue if asked not in gone]
        self.queue += [(node, asked[1] - self.lines.count, 0, 0, 0, STRUCK_OUT) for asked in gone]
        self.ahead = [one for one in self.ahead if one not in waiting]
        for one in waiting:
            number = one[1] - self.lines.count
            self.wait_ahead((node, number, number, 0, 0, 0, True))
        self.decide()
        return len(gone) + len(waiting) > 0

    def number_of(self, node: int) -> int:
        return max([asked[1] for asked in self.queue if asked[0] == node], default=NIL)

    def ask_again(self) -> None:
        """Where our requests are known, their numbers say nothing new."""
        self.decide()
        if not self.holder:
            for line in range(self.lines.count):
                if self.lines.placed[line] != NIL:
                    self.send_request(self.asked(line))

    def unacknowledged(self, grants: int) -> None:
        self.unsure = grants

    # -- observers -----------------------------------------------------------------------

    def tokens(self) -> int:
        return 1 if self.holder else 0

    def free_permits(self) -> int:
        return self.free

    def waited(self, client: int, grants: int = 0) -> int:
        entry = self.own.find(client)
        return 0 if entry is None else self.ageing.waited(entry, max(grants, self.grants))

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
    options: Options,
    out: list[Effect],
) -> OpenActor:
    node = DirectNode(me, out, permits, options, holder, hop, number)
    node.unsure = 0
    return node


def make(network: Network, permits: int, options: Options, out: list[Effect]) -> list[Actor]:
    return [DirectNode(me, out, permits, options) for me in range(network.size)]


def ageing_of(options: Options) -> Ageing:
    if options["ageing"] == "none":
        return NoAgeing(1, 1)
    patience = int(options["patience"])
    return StampedAgeing(patience, patience // units(options))


ALGORITHMS: list[Algorithm] = [
    Algorithm(
        "direct",
        "Requests straight to the token, the queue travels with it",
        "meshlock; forwarding pointers after Fowler, PODC 1986",
        "h-of-k",
        make,
        (Request, Token, GrantMessage, Release),
        assumes=Assumptions(routed=True),
        serves=Serves(priorities=True, many_clients=True, kinds=True),
        newcomers=Newcomers(late=late),
        options={
            "ageing": ("stamped", "none"),
            "patience": ("100", "<number>"),
            "rest": (str(REST), "<number>"),
        },
    )
]
