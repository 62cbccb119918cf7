"""A small world for layered nodes: real handlers, messages that take time, faults, and a judge.

It shares nothing with the simulator. Time is whole ticks; every message takes from one to
``slowest`` ticks, links keep the order, and the three carriers are as the layer expects them.
"""

from __future__ import annotations

import random
from collections import deque

from meshlock.algorithms.interface import NIL, Conflict, Effect, Enter, Keep, Lost, Message
from meshlock.algorithms.recovery.layer import Layer
from meshlock.algorithms.recovery.messages import Hello
from meshlock.algorithms.recovery.state import Terms
from meshlock.algorithms.registry import find, settle

LEASE, WAIT = 300, 306


class Holding:
    def __init__(self, node: int, want: int, until: int) -> None:
        self.node = node
        self.want = want
        self.until = until


class World:
    def __init__(
        self,
        algorithm: str,
        size: int,
        links: list[tuple[int, int]],
        permits: int,
        seed: int,
        members: int = 0,
        slowest: int = 3,
        loss: float = 0.0,
    ) -> None:
        self.random = random.Random(seed)
        self.size = size
        self.permits = permits
        self.slowest = slowest
        self.loss = loss
        self.now = 0
        self.all_links = {(min(a, b), max(a, b)) for a, b in links}
        self.links = set(self.all_links)
        self.up = [False] * size
        self.boots = [0] * size
        self.disk: list[Keep | None] = [None] * size
        self.out: list[Effect] = []
        entry = find(algorithm)
        self.terms = Terms(
            tuple(range(size)),
            tuple(range(members or size)),
            permits,
            LEASE,
            WAIT,
            entry,
            settle(entry, {}),
            self.tree,
        )
        self.nodes = [Layer(i, self.out, self.terms) for i in range(size)]
        self.serial = 0
        self.flying: list[tuple[int, int, Message, int]] = []  # due, serial, message, boot
        self.on_link: dict[tuple[int, int], deque[tuple[int, Message]]] = {}
        self.waits: list[tuple[Message, int, int]] = []  # reliable, no path yet; both boots
        self.last: dict[tuple[int, int], int] = {}
        self.wake_due = [0] * size
        self.clients = 0
        self.wants: dict[int, tuple[int, int]] = {}  # client: node, want
        self.waiting: set[int] = set()
        self.held: dict[int, Holding] = {}
        self.fence = 0
        self.entries = 0
        self.lost = 0
        self.sent: dict[str, int] = {}
        self.sent_at: dict[int, int] = {}
        self.epochs: set[object] = set()
        for i in range(size):
            self.start(i)

    # -- the network ----------------------------------------------------------------------------

    def linked(self, a: int, b: int) -> bool:
        return (min(a, b), max(a, b)) in self.links and self.up[a] and self.up[b]

    def part(self, start: int) -> set[int]:
        seen = {start}
        line = [start]
        while line:
            one = line.pop()
            for other in range(self.size):
                if other not in seen and self.linked(one, other):
                    seen.add(other)
                    line.append(other)
        return seen

    def tree(self, nodes: tuple[int, ...]) -> tuple[int, ...]:
        """Shortest paths over the links that are up, over others where there is no way."""
        fathers = {nodes[0]: NIL}
        line = deque([nodes[0]])
        while line:
            one = line.popleft()
            for other in nodes:
                if other not in fathers and self.linked(one, other):
                    fathers[other] = one
                    line.append(other)
        return tuple(
            [NIL if one == nodes[0] else nodes.index(fathers.get(one, nodes[0])) for one in nodes]
        )

    def set_link(self, a: int, b: int, up: bool) -> None:
        link = (min(a, b), max(a, b))
        if (link in self.links) == up:
            return
        if up:
            self.links.add(link)
        else:
            self.links.discard(link)
        self.link_changed(a, b, up)

    def link_changed(self, a: int, b: int, up: bool) -> None:
        if not (self.up[a] and self.up[b]):
            return
        self.on_link.pop((a, b), None)
        self.on_link.pop((b, a), None)
        for one, other in ((a, b), (b, a)):
            if up:
                self.call(one).link_up(other)
            else:
                self.call(one).link_down(other)
            self.done(one)

    # -- lives ------------------------------------------------------------------------------------

    def start(self, i: int, forget: bool = False) -> None:
        forget = forget or self.disk[i] is None
        floor = max(self.fence >> 23, *[one.promised.counter for one in self.nodes], 0)
        self.nodes[i] = Layer(i, self.out, self.terms)
        self.boots[i] += 1
        self.up[i] = True
        node = self.call(i)
        if forget:
            self.disk[i] = None
        node.restart(self.boots[i], self.disk[i], floor if forget else 0)  # the wall clock
        self.done(i)
        self.wake_due[i] = self.now
        for j in range(self.size):
            if self.linked(i, j):
                for one, other in ((i, j), (j, i)):
                    self.call(one).link_up(other)
                    self.done(one)

    def crash(self, i: int) -> None:
        neighbours = [j for j in range(self.size) if self.linked(i, j)]
        self.up[i] = False
        for client, (node, _) in list(self.wants.items()):
            if node == i and client in self.waiting:
                self.waiting.discard(client)
                del self.wants[client]
        for j in neighbours:
            self.on_link.pop((i, j), None)
            self.on_link.pop((j, i), None)
            self.call(j).link_down(i)
            self.done(j)

    # -- steps ------------------------------------------------------------------------------------

    def call(self, i: int) -> Layer:
        node = self.nodes[i]
        node.now = self.now
        part = self.part(i)
        node.unreachable = {j for j in range(self.size) if j not in part}
        return node

    def done(self, i: int) -> None:
        effects = self.out[:]
        self.out.clear()
        node = self.nodes[i]
        for effect in effects:
            if isinstance(effect, Message):
                self.send(effect)
            elif isinstance(effect, Enter):
                self.entered(i, effect)
            elif isinstance(effect, Keep):
                self.disk[i] = effect
            elif isinstance(effect, Lost):
                self.lost += 1
                assert self.held[effect.client].until <= self.now, "told too late"
                del self.held[effect.client]
                del self.wants[effect.client]
            else:
                assert not isinstance(effect, Conflict)
        for grant in node.grants.values():
            self.held[grant.client].until = grant.until
        self.judge()

    def entered(self, i: int, enter: Enter) -> None:
        assert enter.client in self.waiting, "let in without asking"
        self.waiting.discard(enter.client)
        node, want = self.wants[enter.client]
        assert node == i
        self.held[enter.client] = Holding(i, want, enter.until)
        assert enter.fence > self.fence, "fences must grow"
        self.fence = enter.fence
        self.entries += 1

    def judge(self) -> None:
        used = sum(one.want for one in self.held.values() if one.until > self.now)
        assert used <= self.permits, f"{used} of {self.permits} permits in use"
        usable = [i for i in range(self.size) if self.up[i] and self.usable(i)]
        assert len(usable) <= 1, f"tokens at {usable}"
        for i in usable:
            token = self.nodes[i].token
            assert token is not None
            out = sum(entry.permits for entry in token.ledger)
            assert token.free >= 0 and token.free + out == self.permits, "permits made or lost"
            named = {entry.fence for entry in token.ledger}
            for j in range(self.size):
                if self.up[j]:
                    for fence, grant in self.nodes[j].grants.items():
                        assert grant.until <= self.now or fence in named, "not in the ledger"
            self.epochs.add(token.epoch)

    def usable(self, i: int) -> bool:
        node = self.nodes[i]
        node.now = self.now
        return node.usable()

    # -- messages ---------------------------------------------------------------------------------

    def send(self, message: Message) -> None:
        self.sent[message.kind] = self.sent.get(message.kind, 0) + 1
        if message.seal is not None:
            self.sent_at[id(message.seal)] = self.now
        a, b = message.sender, message.receiver
        inside = message.seal is not None
        changing = self.terms.algorithm.changing_links
        delay = self.random.randint(1, self.slowest)
        if (isinstance(message, Hello) or (inside and changing)) and self.linked(a, b):
            due = max(self.now + delay, self.last.get((a, b), 0))
            self.last[(a, b)] = due
            self.on_link.setdefault((a, b), deque()).append((due, message))
        elif isinstance(message, Hello):
            return
        elif inside and not changing:
            self.waits.append((message, self.boots[a], self.boots[b]))
        elif self.random.random() >= self.loss:
            self.fly(message, delay)

    def fly(self, message: Message, delay: int) -> None:
        self.serial += 1
        self.flying.append((self.now + delay, self.serial, message, self.boots[message.receiver]))

    def arrive(self, message: Message) -> None:
        i = message.receiver
        if message.seal is not None:
            message.seal.travelled = self.now - self.sent_at.pop(id(message.seal)) + 1
        self.call(i).receive(message)
        self.done(i)

    def tick(self) -> None:
        self.now += 1
        for way in list(self.on_link):
            line = self.on_link.get(way)
            while line and line[0][0] <= self.now:
                self.arrive(line.popleft()[1])
        due = sorted(one for one in self.flying if one[0] <= self.now)
        self.flying = [one for one in self.flying if one[0] > self.now]
        for _, _, message, _ in due:
            a, b = message.sender, message.receiver
            if self.up[b] and (not self.up[a] or b in self.part(a)):
                self.arrive(message)
        waits, self.waits = self.waits, []
        stuck: set[tuple[int, int]] = set()
        for message, boot_a, boot_b in waits:
            a, b = message.sender, message.receiver
            if boot_a != self.boots[a] or boot_b != self.boots[b]:
                continue
            if (a, b) not in stuck and self.up[a] and self.up[b] and b in self.part(a):
                self.arrive(message)
            elif self.up[a] and self.up[b]:
                stuck.add((a, b))
                self.waits.append((message, boot_a, boot_b))
        for i in range(self.size):
            if self.up[i] and self.wake_due[i] <= self.now:
                node = self.call(i)
                node.wake(self.random.random())
                self.wake_due[i] = max(self.now + 1, node.wake_at())
                self.done(i)

    # -- clients ----------------------------------------------------------------------------------

    def ask(self, i: int, want: int, priority: int = 0) -> int:
        self.clients += 1
        client = self.clients
        self.wants[client] = (i, want)
        self.waiting.add(client)
        self.call(i).request(client, want, priority)
        self.done(i)
        return client

    def withdraw(self, client: int) -> None:
        i = self.wants[client][0]
        if self.call(i).withdraw(client):
            self.waiting.discard(client)
            del self.wants[client]
        self.done(i)

    def leave(self, client: int) -> None:
        holding = self.held.pop(client)
        del self.wants[client]
        if self.up[holding.node]:
            self.call(holding.node).release(client)
            self.done(holding.node)

    def run(self, ticks: int) -> None:
        for _ in range(ticks):
            self.tick()

    def until_quiet(self, most: int) -> bool:
        """Everybody who waits is served and leaves; how it ends if nothing fails any more."""
        for _ in range(most):
            for client in list(self.held):
                if self.up[self.held[client].node]:
                    self.leave(client)
            if not self.waiting:
                return True
            self.tick()
        return False
