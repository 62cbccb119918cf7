"""Jiang's nodes under an adversary, who delays messages to have one request overtaken.

One client, the *low one*, asks once, with priority 0. The others ask again and again, with
the highest priority or with the low one's. The adversary decides who asks, who leaves and
which link delivers its next message; links are FIFO and lose nothing.
"""

from meshlock.algorithms.actor import Message
from meshlock.algorithms.ranked import FRESH
from meshlock.algorithms.registry import find, with_defaults
from meshlock.topology.specification import network

LOW = 0  # the low one's number; the others count from 1


class Pool:
    """`size` nodes with `clients` each; the low one is a client of node `place`."""

    def __init__(
        self, topology, size, clients, place, patience, highest=1, permits=1, moves="quiet"
    ):
        self.size = size
        self.highest = highest
        self.permits = permits
        self.patience = patience
        self.out = []
        entry = find("jiang")
        options = {"patience": str(patience), "moves": moves}
        graph = network(topology, size, 1)
        self.nodes = entry.make(graph, permits, with_defaults(entry, options), self.out)
        self.frozen = [None] * size  # what a node froze to, if it has done nothing since
        pairs = [(one, other) for other in range(size) for one in range(other)]
        self.linked = {pair: graph.linked(*pair) for pair in pairs}
        seats = [node for node in range(size) for _ in range(clients)]
        seats.remove(place)
        self.homes = dict(enumerate([place, *seats]))  # client: its node
        self.links = {}  # (sender, receiver): the messages on their way, the oldest first
        self.held = set()  # links that deliver nothing
        self.waiting = {}  # client: the highest rank that its request can have
        self.inside = []
        self.later = set()  # waiting clients that asked after the low one
        self.grants = 0
        self.stamp = None  # grants when the low one's age began, once that is known
        self.passed = ()  # grants while it waits: which, later than it, by one that knew of it
        # as soon as it is in, of the grants since its age began:
        self.before = 0  # how many before its own ...
        self.overtakings = 0  # ... to requests issued after its own
        self.unknown = 0  # ... to lower ranks, after the first `allowance` grants

    # -- what the adversary may do --------------------------------------------------------

    def moves(self):
        """Everything that can happen next, as arguments of :meth:`do`."""
        found = [("deliver", link) for link, messages in sorted(self.links.items()) if messages]
        found += [("leave", client) for client in self.inside]
        busy = {*self.waiting, *self.inside}
        found += [("ask", client) for client in self.homes if client not in busy]
        return found

    def do(self, action, what, priority=0, want=1):
        low = self.nodes[self.homes[LOW]].queue.own.get(LOW)
        if action == "flip":
            self.frozen = [None] * self.size
        else:
            self.frozen[what[1] if action == "deliver" else self.homes[what]] = None
        if action == "deliver":
            self.nodes[what[1]].receive(self.links[what].pop(0))
        elif action == "leave":
            self.inside.remove(what)
            self.nodes[self.homes[what]].release(what)
        elif action == "flip":
            self.flip(what)
        else:
            node = self.nodes[self.homes[what]]
            self.waiting[what] = priority * self.patience - self.grants
            if LOW in self.waiting:
                self.later.add(what)
            node.request(what, want, priority)
        if low is not None and low.age != FRESH:
            self.stamp = -low.rank
        self.carry_out()

    def settle(self):
        """Deliver until nothing is on its way, except over the links that are held."""
        while links := [
            link for link, messages in self.links.items() if messages and link not in self.held
        ]:
            for link in sorted(links):
                self.do("deliver", link)

    def ask(self, client, priority=None, want=1):
        """Ask, by default with the highest priority, and settle."""
        self.do("ask", client, self.highest if priority is None else priority, want)
        self.settle()

    def leave(self):
        """The client inside leaves; all messages arrive; the result is its node."""
        client = self.inside[0]
        self.do("leave", client)
        self.settle()
        return client

    def flip(self, pair):
        """The link forms, or fails after what is on it has arrived."""
        ways = (pair, pair[::-1])
        while self.linked[pair] and any(self.links.get(way) for way in ways):
            for way in ways:
                if self.links.get(way):
                    self.do("deliver", way)
        for here, there in ways:
            if self.linked[pair]:
                self.nodes[here].link_down(there)
            else:
                self.nodes[here].link_up(there)
        self.linked[pair] = not self.linked[pair]

    def carry_out(self):
        for effect in self.out:
            if isinstance(effect, Message):
                self.links.setdefault((effect.sender, effect.receiver), []).append(effect)
            else:
                self.enters(effect.client)
        self.out.clear()

    def snapshot(self):
        """A state to come back to; its first part tells states apart. Without flips."""
        links = tuple((link, tuple(line)) for link, line in sorted(self.links.items()) if line)
        for i, state in enumerate(self.frozen):
            if state is None:
                self.frozen[i] = self.nodes[i].freeze()
        rest = (
            tuple(self.frozen),
            tuple(sorted(self.waiting.items())),
            tuple(self.inside),
            tuple(sorted(self.later)),
            (self.grants, self.stamp, self.passed),
        )
        said = tuple((link, tuple(each.freeze() for each in line)) for link, line in links)
        return (said, rest), links, rest

    def restore(self, snapshot):
        _, links, (nodes, waiting, inside, later, counts) = snapshot
        self.links = {link: list(line) for link, line in links}
        for node, state, now in zip(self.nodes, nodes, self.frozen, strict=True):
            if state != now:
                node.thaw(state)
        self.frozen = list(nodes)
        self.waiting, self.inside, self.later = dict(waiting), list(inside), set(later)
        self.grants, self.stamp, self.passed = counts

    # -- what is counted ------------------------------------------------------------------

    def allowance(self):
        return self.highest * self.patience

    def bound(self):
        """What docs/algorithms/jiang.md states for the grants of holders that know."""
        return self.allowance() + 2 * (self.patience - 1) + len(self.homes) - 1

    def enters(self, client):
        rank = self.waiting.pop(client)
        self.inside.append(client)
        self.grants += 1
        if LOW in self.waiting:
            known = self.known_at(self.homes[client])
            self.passed += ((self.grants, rank, client in self.later, known),)
        if client == LOW:
            if self.stamp is None:
                self.stamp = self.grants - 1  # it came to the token, which was free
            since = [each for each in self.passed if each[0] > self.stamp]
            late = [each for each in since if each[0] > self.stamp + self.allowance()]
            self.before = len(since)
            self.overtakings = sum(1 for _, _, later, _ in since if later)
            low = -self.stamp // self.patience
            self.unknown = sum(
                1
                for _, rank, _, known in late
                if rank < -self.stamp and (known is None or known // self.patience < low)
            )
        self.later.discard(client)

    def known_at(self, holder):
        """As what is the low one's request known to this holder? The result is a rank, 0 if it is
        a client of its own.

        From the low one's node on, each has asked the next, for it or for one before it, and the
        next has an entry for that.
        """
        place, rank = self.homes[LOW], 0
        while place != holder:
            node = self.nodes[place]
            asked = self.nodes[node.next].queue.neighbours if node.told.open else {}
            entry = asked.get(place)
            if entry is None:
                return None
            place, rank = node.next, entry.rank
        return rank
