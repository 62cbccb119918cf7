"""Jiang's nodes under an adversary, who delays messages to have one request overtaken.

One client, the *low one*, asks once, with priority 0. The others ask again and again, with
the highest priority or with the low one's. The adversary decides who asks, who leaves and
which link delivers its next message; links are FIFO and lose nothing.
"""

from meshlock.algorithms.interface import NIL, Message
from meshlock.algorithms.registry import find, settle
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
        self.nodes = entry.make(graph, permits, settle(entry, options), self.out)
        pairs = [(one, other) for other in range(size) for one in range(other)]
        self.linked = {pair: graph.linked(*pair) for pair in pairs}
        seats = [node for node in range(size) for _ in range(clients)]
        seats.remove(place)
        self.homes = dict(enumerate([place, *seats]))  # client: its node
        self.links = {}  # (sender, receiver): the messages on their way, the oldest first
        self.held = set()  # links that deliver nothing
        self.waiting = {}  # client: the rank of its request
        self.inside = []
        self.later = set()  # waiting clients that asked after the low one
        self.before = 0  # grants while the low one waited ...
        self.overtakings = 0  # ... to requests issued after its own
        self.unknown = 0  # ... to lower ranks, after the first `allowance` grants
        self.others = 0  # ... all others after the first `allowance`

    # -- what the adversary may do --------------------------------------------------------

    def moves(self):
        """Everything that can happen next, as arguments of :meth:`do`."""
        found = [("deliver", link) for link, messages in sorted(self.links.items()) if messages]
        found += [("leave", client) for client in self.inside]
        busy = {*self.waiting, *self.inside}
        found += [("ask", client) for client in self.homes if client not in busy]
        return found

    def do(self, action, what, priority=0, want=1):
        if action == "deliver":
            self.nodes[what[1]].receive(self.links[what].pop(0))
        elif action == "leave":
            self.inside.remove(what)
            self.nodes[self.homes[what]].release(what)
        elif action == "flip":
            self.flip(what)
        else:
            node = self.nodes[self.homes[what]]
            self.waiting[what] = priority * self.patience - node.grants
            if LOW in self.waiting:
                self.later.add(what)
            node.request(what, want, priority)
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
        """Whoever is inside leaves; settle; tell who it was."""
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
        rest = (
            tuple(node.freeze() for node in self.nodes),
            tuple(sorted(self.waiting.items())),
            tuple(self.inside),
            tuple(sorted(self.later)),
            (self.before, self.overtakings, self.unknown, self.others),
        )
        said = tuple((link, tuple(each.freeze() for each in line)) for link, line in links)
        return (said, rest), links, rest

    def restore(self, snapshot):
        _, links, (nodes, waiting, inside, later, counts) = snapshot
        self.links = {link: list(line) for link, line in links}
        for node, state in zip(self.nodes, nodes, strict=True):
            node.thaw(state)
        self.waiting, self.inside, self.later = dict(waiting), list(inside), set(later)
        self.before, self.overtakings, self.unknown, self.others = counts

    # -- what is counted ------------------------------------------------------------------

    def allowance(self):
        return self.highest * self.patience

    def bound(self):
        """What docs/algorithms/jiang.md states for the grants of holders that know."""
        return self.allowance() + self.patience - 1 + len(self.homes) - 1

    def enters(self, client):
        rank = self.waiting.pop(client)
        self.inside.append(client)
        if LOW in self.waiting:
            low = self.waiting[LOW]
            known = self.known_at(self.homes[client])
            assert not known or rank // self.patience >= low // self.patience
            self.before += 1
            self.overtakings += client in self.later
            if self.before > self.allowance():
                if rank < low and not known:
                    self.unknown += 1
                else:
                    self.others += 1
        self.later.discard(client)

    def known_at(self, holder):
        """Does this node know of the low one's request?

        From its own node on, each has asked the next, and the next has an entry for it, of
        the low one's step of priority or a higher one.
        """
        step = self.waiting[LOW] // self.patience
        place = self.homes[LOW]
        for _ in range(self.size):
            if place == holder:
                return True
            node = self.nodes[place]
            if not node.told or node.next == NIL:
                return False
            entry = self.nodes[node.next].asking.get(place)
            if entry is None or entry.rank // self.patience < step:
                return False
            place = node.next
        return False
