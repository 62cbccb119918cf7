"""What must be true of every run, judged from the interface alone.

- **safety**: no more than k permits are in use; who enters was waiting there, and enters once; a
  grant has a higher number than all that there were when its client asked, and one of its own.
- **one-token**, **conservation**: at nodes, on links and in custody there are together one
  token, and together with what clients hold k permits.
- **neighbours**: no node sends where it has no link. And no handler fails.
- **order**: at a *quiet moment* nothing is under way, all ends of links know what is the case, and
  the network is connected. Until a link changes, or one as high gives up, the next to enter has
  the highest priority of those that waited at the last quiet moment, or is as high. If a client
  leaves at a quiet moment and several enter in that very step, that goes for each of them.
- **idle**: at a quiet moment, the highest of those that wait does not fit into what is free.
- **served**: after the last change everything comes to rest, and then nobody waits, all k
  permits are free, and the token is at a node.

Where waiting raises priorities, "the highest" is not one request: its age may count from when it
was born or from when the holder heard of it. So each request has a span of ranks, and only what is
wrong for all ranks in the spans is held to be wrong. Nobody is older than it is, though: that its
node knew of few grants when it asked is an excuse only if a link changed while it waited, or if
somebody asked since the quiet moment, who may hide an older one of its node.
"""

from __future__ import annotations

from dataclasses import dataclass

from .setup import Setup


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
    known: int  # of those, so many at the least were known at its node
    fence: int  # the highest number of a grant so far

    def __str__(self) -> str:
        return f"client {self.number} of node {self.node} ({self.want} @ {self.priority})"


class Judge:
    def __init__(self, setup: Setup) -> None:
        algorithm, options = setup.algorithm, setup.options
        self.permits = setup.permits
        self.token = algorithm.token
        self.ageing = options.get("ageing", "none")
        self.patience = int(options.get("patience", "1"))
        self.ordered = algorithm.priorities and options.get("backfill", "off") == "off"
        self.ordered = self.ordered and self.ageing != "printed"  # which has no one rank
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

    def asks(self, number: int, node: int, want: int, priority: int) -> None:
        client = Client(
            number, node, want, priority, self.grants, self.known[node], max(self.fences)
        )
        self.asked = True
        self.waiting[number] = client

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
        if self.due:
            self.judged += 1
            if self.most(client) < self.due_rank:
                first = max(self.due, key=self.least)
                raise Violation("order", f"{client} enters before {first}")
            self.due = []
        self.next_of_step(client)

    def lends(self, node: int) -> None:
        """Permits are sent to that node, for somebody who waits there: the next that was due."""
        waiting = [client for client in self.waiting.values() if client.node == node]
        if self.queue:
            waiting = [client for client in waiting if client in self.queue]
        if self.due and waiting:
            self.judged += 1
            if max([self.most(client) for client in waiting]) < self.due_rank:
                first = max(self.due, key=self.least)
                raise Violation("order", f"permits are sent to node {node} before {first}")
        self.due = []
        if waiting:
            self.next_of_step(max(waiting, key=lambda client: client.priority))

    def leaves(self, number: int) -> None:
        self.held -= self.inside.pop(number).want
        if self.at_rest and self.ordered:
            self.queue = list(self.waiting.values())

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
        self.at_rest = at_rest

    def withdraws(self, number: int) -> None:
        client = self.waiting.pop(number)
        if self.most(client) >= self.due_rank:
            self.due = []  # the token may be on its way to somebody who is gone

    # -- ranks --------------------------------------------------------------------------

    def least(self, client: Client) -> int:
        """The lowest step of priority that some node may rightly believe this request to be on.

        A change of rank is not told within one step of ``patience``.
        """
        if self.ageing != "stamped":
            return client.priority
        return (client.priority * self.patience - self.grants) // self.patience

    def most(self, client: Client) -> int:
        """The highest: it may be allowed less than one step for an age that nobody knows."""
        if self.ageing != "stamped":
            return client.priority
        born = client.known if self.asked else client.born
        return ((client.priority + 1) * self.patience - 1 - born) // self.patience

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
        for client in self.waiting.values():
            client.born = client.known

    def quiet(self, free: int) -> None:
        """Everybody has heard everything, and so many permits are free."""
        self.asked = False
        if not self.waiting:
            return
        waiting = list(self.waiting.values())
        if self.ordered:
            self.due_rank = max([self.least(client) for client in waiting])
            waiting = [client for client in waiting if self.most(client) >= self.due_rank]
            self.due = waiting
            self.moments += 1
        if self.token and all(client.want <= free for client in waiting):
            raise Violation("idle", f"{free} permits are free, and {waiting[0]} waits")

    def ends(self, tokens: int, free: int) -> None:
        """Nothing can happen any more."""
        if self.waiting:
            client = next(iter(self.waiting.values()))
            raise Violation("served", f"all is at rest, and {client} waits")
        if self.token and (tokens, free) != (1, self.permits):
            raise Violation("served", f"at the end, nodes have {tokens} tokens and {free} permits")
