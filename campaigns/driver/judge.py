"""What must be true of every run, judged from the interface alone.

A client may release a part of its permits; a request may get another priority. Until the next
quiet moment nobody is wrong to take it for what it was.

- **safety**: no more than k permits are in use; who enters was waiting there, and enters once; a
  grant has a higher number than all that there were when its client asked, and one of its own.
- **one-token**, **conservation**: at nodes, on links and in custody there are together one
  token, and together with what clients hold k permits.
- **neighbours**: no node sends where it has no link. And no handler fails.
- **order**: at a *quiet moment* nothing is under way, all ends of links know what is the case, and
  the network is connected. Until a link changes, or one as high gives up, the next to enter has
  the highest priority of those that waited at the last quiet moment, or is as high. If a client
  leaves at a quiet moment and several enter in that very step, that goes for each of them.
- **ties**: of two requests of one priority, the one that was made first enters first, if the holder
  of the token has known it from then on. With direct it does: a node has as many requests in the
  queue as there are permits. With jiang it knows a request that was made at a quiet moment, while
  all that waited away from the token had a lower priority, until a higher one comes, if no priority
  rises by waiting meanwhile. Of one node's
  requests the first goes first in any case, for they stand in one queue. Where direct knows a
  request, its rank is known to the grant, and so is the order of different priorities.
- **idle**: at a quiet moment, the highest of those that wait does not fit into what is free.
- **served**: after the last change everything comes to rest, and then nobody waits, all k
  permits are free, and the token is at a node.

Where waiting raises priorities, "the highest" is not one request: its age may count from when it
was born or from when the holder heard of it. So each request has a span of ranks, and only what is
wrong for all ranks in the spans is held to be wrong. Nobody is older than it is, though: that its
node knew of few grants when it asked is an excuse only if a link changed while it waited, if
somebody asked since the quiet moment, who may hide an older one of its node, or if another of its
priority waited before it, for it may have stood behind that one.
"""

from __future__ import annotations

from dataclasses import dataclass

from .setup import Setup

NEVER = -1
MOST_GRANTS = 99
"""In a run, more or less: with more patience than this no request outgrows a higher one."""


class Violation(Exception):
    def __init__(self, rule: str, text: str) -> None:
        super().__init__(f"{rule}: {text}")
        self.rule = rule
        self.text = text


@dataclass
class Client:
    number: int
    node: int
    want: int
    priority: int
    born: int  # grants made before it asked
    known: int  # of those, at least this number were known at its node
    fence: int  # the highest number of a grant so far
    asked_at: int  # quiet moments so far
    turn: int  # its place in the order of asking
    low: int  # its priority as some node may believe: until the next quiet moment ...
    high: int  # ... what it was, or what it is
    heard: int = NEVER  # grants at the first quiet moment after it asked, and ...
    since: int = NEVER  # ... its number
    sure: bool = True  # the holder knows it from then on, as far as can be told
    changed: bool = False
    behind: bool = False  # it may have stood behind an older one of its priority

    def __str__(self) -> str:
        return f"client {self.number} of node {self.node} ({self.want} @ {self.priority})"


class Judge:
    def __init__(self, setup: Setup) -> None:
        algorithm, options = setup.algorithm, setup.options
        self.permits = setup.permits
        self.token = algorithm.serves.token
        self.ageing = options.get("ageing", "none")
        self.patience = int(options.get("patience", "1"))
        # so much a unit of priority adds to a rank; with deadlines that is less than a step
        self.weight = 1 if options.get("unit") == "grant" else self.patience
        self.ordered = algorithm.serves.priorities and options.get("backfill", "off") == "off"
        self.ordered = self.ordered and self.ageing != "printed"  # which has no one rank
        self.name = algorithm.name.partition("/")[0]
        self.lines = setup.permits if self.name == "direct" else 0  # 0: ranks are not so well known
        self.tied = self.ordered and setup.changing and self.name in ("direct", "jiang")
        self.turns = 0
        self.quiets = 0  # quiet moments so far
        self.made = 0  # grants, those that are on their way too
        self.given_up: set[int] = set()  # nodes where a client has, since the last of them
        self.alone: Client | None = None  # asked at a quiet moment, and nobody since
        self.lent: list[set[int]] = [set() for _ in range(setup.size)]  # on their way there
        self.arrived = NEVER  # the one that this step brought
        self.ties = 0  # entries of which another of the same priority was as long there
        self.waiting: dict[int, Client] = {}
        self.inside: dict[int, Client] = {}
        self.held = 0
        self.grants = 0
        self.fences = {0}
        self.known = [0] * setup.size  # node: the last grant that it made
        self.due: list[Client] = []  # the highest at the last quiet moment
        self.due_rank = 0
        self.asked = False  # somebody has, since the last quiet moment
        self.at_rest = False  # the last step ended in a quiet moment
        self.queue: list[Client] = []  # in a step that began so: who waited, and has nothing yet
        self.more = False  # somebody is due after the first grant of this step
        self.moments = 0  # at which somebody waited, quietly
        self.judged = 0  # entries that were due to somebody

    # -- clients ------------------------------------------------------------------------

    def asks(self, number: int, node: int, want: int, priority: int, holder: int) -> None:
        """``holder``: where the token is, if it is at a node."""
        self.turns += 1
        known, fence = self.known[node], max(self.fences)
        client = Client(
            *(number, node, want, priority, self.made, known, fence),
            *(self.quiets, self.turns, priority, priority),
        )
        if self.tied:
            self.note_known(client, holder)
        self.asked = True
        client.behind = any(one.priority == priority for one in self.waiting.values())
        self.waiting[number] = client

    def note_known(self, new: Client, holder: int) -> None:
        """Will the holder know of this request, and still of the others?"""
        if self.lines > 0:
            here = [client for client in self.waiting.values() if client.node == new.node]
            if len(here) >= self.lines:
                for client in (*here, new):
                    client.sure = False
            return
        others = [client for client in self.waiting.values() if client.node != holder]
        steps = self.ageing == "none" or self.weight > MOST_GRANTS  # priorities stay as they are
        new.sure = steps and self.at_rest
        new.sure = new.sure and all(client.priority < new.priority for client in others)
        self.displaces(new, new.priority - 1)
        self.alone = new

    def displaces(self, new: Client, most: int) -> None:
        """A request is more urgent, now: those of up to that priority may have to be made known
        again, or come behind who stands where the token is sent for it."""
        if self.alone is not None and self.alone is not new:
            self.alone.sure = False  # they meet on their ways
        self.alone = None
        for client in self.waiting.values():
            if client.priority <= most and self.lines == 0 and client is not new:
                client.sure = False

    def enters(self, number: int, node: int, fence: int) -> None:
        client = self.waiting.pop(number, None)
        if client is None or client.node != node:
            raise Violation(
                "safety", f"node {node} lets client {number} in, who does not wait there"
            )
        self.inside[number] = client
        self.held += client.want
        if self.held > self.permits:
            raise Violation("safety", f"{self.held} of {self.permits} permits are in use")
        if fence and (fence in self.fences or fence <= client.fence):
            raise Violation("safety", f"grant {fence} is of a client that asked after it was made")
        self.fences.add(fence)
        self.grants += 1
        self.known[node] = min(fence, self.grants)
        if fence != self.arrived:
            self.made += 1
            if self.tied:
                self.judge_ties([client])
        if self.due:
            self.judged += 1
            if self.most(client) < self.due_rank:
                first = max(self.due, key=self.least)
                raise Violation("order", f"{client} enters before {first}")
            self.due = []
        self.next_of_step(client)

    def lends(self, node: int) -> int:
        """Permits are sent to that node, for somebody who waits there: the next that was due. The
        result: which of the grants it is, in the order of their making."""
        waiting = [client for client in self.waiting.values() if client.node == node]
        if self.tied and waiting and node not in self.given_up:
            self.judge_ties(waiting)
        self.made += 1
        self.lent[node].add(self.made)
        if self.queue:
            waiting = [client for client in waiting if client in self.queue]
        if self.due and waiting:
            self.judged += 1
            if max([self.most(client) for client in waiting]) < self.due_rank:
                first = max(self.due, key=self.least)
                raise Violation("order", f"permits are sent to node {node} before {first}")
        self.due = []
        if waiting:
            self.next_of_step(max(waiting, key=self.least))
        return self.made

    def arrives(self, node: int, grant: int) -> None:
        """Permits that were sent to that node. If a client enters with the fence of that grant, it
        enters by it; another in the same step enters because they were returned."""
        self.lent[node].discard(grant)
        self.arrived = grant

    def judge_ties(self, entering: list[Client]) -> None:
        """One of these enters: it must not pass another that goes first for certain."""
        for other in self.waiting.values():
            if self.lent[other.node] or other in entering:
                continue
            equal = [client for client in entering if client.priority == other.priority]
            self.ties += len(equal) > 0
            if len(equal) == len(entering) and all(self.first(other, one) for one in equal):
                raise Violation("ties", f"{entering[0]} enters before {other}, which asked first")

    def first(self, one: Client, other: Client) -> bool:
        """Does that one of two equals go first, for certain?"""
        if one.turn > other.turn or one.low < one.high or other.low < other.high:
            return False
        if self.lines == 0 and (one.changed or other.changed):
            return False  # one may have displaced the other before
        if one.node == other.node and self.lines == 0:
            return True
        return one.sure and NEVER < one.since <= other.asked_at

    def leaves(self, number: int) -> None:
        self.held -= self.inside.pop(number).want
        self.begin_step()

    def releases_part(self, number: int, permits: int) -> None:
        self.inside[number].want -= permits
        self.held -= permits
        self.begin_step()

    def begin_step(self) -> None:
        """Of all grants in a step that begins at a quiet moment it is known whose they are."""
        if self.at_rest and self.ordered:
            self.queue = list(self.waiting.values())

    def changes(self, number: int, priority: int) -> None:
        client = self.waiting[number]
        falls, was_due = priority < client.priority, self.most(client) >= self.due_rank
        client.low, client.high = min(client.low, priority), max(client.high, priority)
        client.priority, client.changed = priority, True
        for one in self.waiting.values():
            if one is not client and one.priority == priority:
                one.behind = client.behind = True
        self.asked = True
        if self.tied:
            client.sure = client.sure and (self.lines > 0 or not falls)
            self.displaces(client, priority)
        if self.at_rest and self.ordered:
            self.set_due()
            self.begin_step()
            # where each node has a queue of its own, the token may be sent to it before all know
            self.more = falls and was_due and self.lines == 0
        elif falls and was_due:
            self.due = []  # the token may be on its way to it

    def next_of_step(self, granted: Client) -> None:
        """Who is due after this one, in the same step."""
        if granted in self.queue:
            self.queue.remove(granted)
            if self.queue:
                self.due_rank = max([self.least(client) for client in self.queue])
                self.due = [one for one in self.queue if self.most(one) >= self.due_rank]
                self.more = True

    def moved(self, at_rest: bool) -> None:
        """A step is over: who is due after the first of its grants may be served elsewhere."""
        if self.more:
            self.due = []
        self.more = False
        self.queue = []
        self.arrived = NEVER
        self.at_rest = at_rest

    def withdraws(self, number: int) -> None:
        client = self.waiting.pop(number)
        self.given_up.add(client.node)
        if self.most(client) >= self.due_rank:
            self.due = []  # the token may be on its way to somebody who is gone

    # -- ranks --------------------------------------------------------------------------

    def least(self, client: Client) -> int:
        """The lowest rank that some node may rightly believe this request to have.

        Within one step of ``patience`` a change of rank is not told, so that it may have the age of
        another of its priority: of those, the youngest has seen no grant. If one of a lower
        priority has waited for so long that it may stand before it, only that step is sure.
        """
        if self.ageing != "stamped":
            return client.low
        rank = client.low * self.weight
        if self.lines > 0 and self.tied and client.sure and client.heard > NEVER:
            return rank - client.heard
        rank -= self.made
        lower = [one for one in self.waiting.values() if one.low < client.low]
        if self.lines == 0 and any(self.most(one) >= rank for one in lower):
            return rank // self.patience * self.patience
        return rank

    def most(self, client: Client) -> int:
        """The highest: it may be allowed less than one step for an age that nobody knows."""
        if self.ageing != "stamped":
            return client.high
        rank = client.high * self.weight
        if self.lines > 0 and self.tied and client.sure:
            return rank - client.born
        born = client.known if self.asked or client.behind else client.born
        step = (rank + self.patience - 1 - born) // self.patience
        return min(rank, step * self.patience + self.patience - 1)

    # -- moments ------------------------------------------------------------------------

    def count(self, tokens: int, permits: int) -> None:
        """After every step: at nodes, on links and in custody."""
        if tokens != 1:
            raise Violation("one-token", f"there are {tokens} tokens")
        if permits + self.held != self.permits:
            raise Violation(
                "conservation",
                f"{permits} permits are free and {self.held} in use, of {self.permits}",
            )

    def changed(self) -> None:
        """A link has failed or formed: requests take other ways."""
        self.due = []
        self.alone = None
        for client in self.waiting.values():
            client.born = client.known
            client.sure = client.sure and self.lines > 0

    def quiet(self, free: int) -> None:
        """Every message has arrived, and this number of permits is free."""
        self.asked = False
        self.quiets += 1
        self.alone = None
        self.given_up.clear()
        if not self.waiting:
            return
        for client in self.waiting.values():
            client.low = client.high = client.priority
            if client.heard == NEVER:
                client.heard, client.since = self.made, self.quiets
        waiting = list(self.waiting.values())
        if self.ordered:
            self.set_due()
            waiting = self.due
            self.moments += 1
        if self.token and all(client.want <= free for client in waiting):
            raise Violation("idle", f"{free} permits are free, and {waiting[0]} waits")

    def set_due(self) -> None:
        """The requests that may be the highest of all that wait."""
        waiting = list(self.waiting.values())
        self.due_rank = max([self.least(client) for client in waiting])
        self.due = [client for client in waiting if self.most(client) >= self.due_rank]

    def ends(self, tokens: int, free: int) -> None:
        """Nothing can happen any more."""
        if self.waiting:
            client = next(iter(self.waiting.values()))
            raise Violation("served", f"all is at rest, and {client} waits")
        if self.token and (tokens, free) != (1, self.permits):
            raise Violation("served", f"at the end, nodes have {tokens} tokens and {free} permits")
