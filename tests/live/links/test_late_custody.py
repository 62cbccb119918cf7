"""Jiang's algorithm on links as live nodes have them, which is not quite what the paper assumes.

When a link fails its ends learn so at different moments; most of what was on it is lost; and
a TOKEN or RELEASE that was on it arrives *late*: by a detour while the link is down, or when it
returns, just before both ends are told. Never are more than k permits held, no token and no
permit is lost or doubled, and in the end everybody is served, though some links never return.
"""

from __future__ import annotations

from collections import deque
from random import Random

import pytest

from meshlock.algorithms.actor import Actor, Effect, Enter, Message
from meshlock.algorithms.registry import find, with_defaults


class Wire:
    """One direction of a link."""

    def __init__(self) -> None:
        self.flying: deque[Message] = deque()
        self.custody: deque[Message] = deque()  # neither arrived nor lost


class World:
    def __init__(self, seed: int, size: int, permits: int, options: dict[str, str]) -> None:
        self.random = Random(seed)
        self.size = size
        self.permits = permits
        self.out: list[Effect] = []
        entry = find("jiang")
        assert entry.newcomers.join is not None
        chosen = with_defaults(entry, options)
        self.nodes: list[Actor] = [
            entry.newcomers.join(me, me == 0, permits, chosen, self.out) for me in range(size)
        ]
        self.wires = {(i, j): Wire() for i in range(size) for j in range(size) if i != j}
        self.sees: set[tuple[int, int]] = set()  # (i, j): i believes its link to j to be up
        self.broken: set[tuple[int, int]] = set()  # (i, j), i < j: cut, not yet noticed by both
        self.wants: dict[int, int] = {}
        self.inside: dict[int, int] = {}
        self.waiting: dict[int, int] = {}  # client: its node
        self.clients = 0
        self.tree = {(self.random.randrange(j), j) for j in range(1, size)}
        extra = {tuple(sorted(self.random.sample(range(size), 2))) for _ in range(size)}
        self.links: list[tuple[int, int]] = sorted(self.tree | extra)  # type: ignore[arg-type]
        for link in self.links:
            self.up(*link)

    # -- steps ---------------------------------------------------------------------------

    def carry_out(self, node: Actor) -> None:
        effects, self.out[:] = list(self.out), []
        for effect in effects:
            if isinstance(effect, Enter):
                client = effect.client
                self.inside[client] = self.waiting.pop(client)
                held = sum(self.wants[inside] for inside in self.inside)
                assert held <= self.permits, "more permits are held than there are"
            elif isinstance(effect, Message):
                link = (node.me, effect.receiver)
                wire = self.wires[link]
                if effect.tokens() or effect.permits():
                    wire.custody.append(effect)
                if link in self.sees:
                    wire.flying.append(effect)
        self.count()

    def count(self) -> None:
        """One token and k permits, wherever they are."""
        limbo = [message for wire in self.wires.values() for message in wire.custody]
        tokens = sum(node.tokens() for node in self.nodes)
        assert tokens + sum(message.tokens() for message in limbo) == 1
        permits = sum(node.free_permits() for node in self.nodes)
        permits += sum(self.wants[client] for client in self.inside)
        assert permits + sum(message.permits() for message in limbo) == self.permits

    def ask(self) -> None:
        node = self.random.choice(self.nodes)
        self.clients += 1
        self.wants[self.clients] = self.random.randint(1, self.permits)
        self.waiting[self.clients] = node.me
        node.request(self.clients, self.wants[self.clients], self.random.randint(1, 9))
        self.carry_out(node)

    def leave(self) -> None:
        client = self.random.choice(sorted(self.inside))
        node = self.nodes[self.inside.pop(client)]
        node.release(client)
        self.carry_out(node)

    def deliver(self, link: tuple[int, int]) -> None:
        wire = self.wires[link]
        message = wire.flying.popleft()
        if wire.custody and wire.custody[0] is message:
            wire.custody.popleft()
        self.nodes[link[1]].receive(message)
        self.carry_out(self.nodes[link[1]])

    def cut(self, link: tuple[int, int]) -> None:
        """What is under way arrives up to some point, and then nothing does."""
        self.broken.add(link)
        for way in (link, link[::-1]):
            flying = self.wires[way].flying
            for _ in range(self.random.randint(0, len(flying))):
                flying.pop()

    def notice(self, i: int, j: int) -> None:
        if (i, j) in self.sees:
            self.sees.discard((i, j))
            self.wires[i, j].flying.clear()
            self.wires[j, i].flying.clear()
            self.nodes[i].link_down(j)
            self.carry_out(self.nodes[i])

    def late(self, link: tuple[int, int]) -> None:
        """By a detour; its receiver learns of the failure first."""
        if link not in self.sees:
            self.notice(*link[::-1])
            wire = self.wires[link]
            if wire.custody:
                message = wire.custody.popleft()
                self.nodes[link[1]].receive(message)
                self.carry_out(self.nodes[link[1]])

    def up(self, i: int, j: int) -> None:
        """A new generation: first what is late, then both ends are told, one after the other."""
        self.notice(i, j)
        self.notice(j, i)
        self.broken.discard((i, j))
        for way in ((i, j), (j, i)):
            while self.wires[way].custody:
                self.late(way)
        for one, other in self.random.sample([(i, j), (j, i)], 2):
            self.sees.add((one, other))
            self.nodes[one].link_up(other)
            self.carry_out(self.nodes[one])

    # -- the story -----------------------------------------------------------------------

    def flying(self) -> list[tuple[int, int]]:
        """Ways on which something can arrive: the receiver knows of the link."""
        return [
            (i, j)
            for (i, j), wire in self.wires.items()
            if wire.flying and (j, i) in self.sees and tuple(sorted((i, j))) not in self.broken
        ]

    def step(self, changing: bool) -> bool:
        doings = []
        ways = self.flying()
        if ways:
            doings += [lambda: self.deliver(self.random.choice(ways))] * 6
        if self.inside:
            doings += [self.leave]
        stuck = [way for way, wire in self.wires.items() if wire.custody and way not in self.sees]
        if stuck and not changing:
            doings += [lambda: self.late(self.random.choice(stuck))]
        if changing:
            doings += [self.ask, self.change]
        if not doings:
            return False
        self.random.choice(doings)()
        return True

    def change(self) -> None:
        i, j = self.random.choice(self.links)
        what = self.random.random()
        whole = (i, j) in self.sees and (j, i) in self.sees and (i, j) not in self.broken
        if whole:
            if what < 0.5:
                self.cut((i, j))
        elif what < 0.3:
            self.notice(*self.random.choice([(i, j), (j, i)]))
        elif what < 0.6:
            self.late(self.random.choice([(i, j), (j, i)]))
        else:
            self.up(i, j)

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.step(changing=True)
        for i, j in self.links:
            whole = (i, j) in self.sees and (j, i) in self.sees and (i, j) not in self.broken
            if not whole and ((i, j) in self.tree or self.random.random() < 0.5):
                self.up(i, j)
            elif not whole:  # this link never returns
                self.notice(i, j)
                self.notice(j, i)
        for _ in range(200_000):
            if not self.step(changing=False):
                break
        assert not self.flying(), "it never comes to rest"
        assert not self.waiting, f"clients {sorted(self.waiting)} wait for ever"


@pytest.mark.parametrize("moves", ["quiet", "broadcast", "silent"])
@pytest.mark.parametrize("part", range(4))
def test_late_tokens_are_never_lost_doubled_or_the_end_of_service(part: int, moves: str) -> None:
    for seed in range(part * 50, part * 50 + 50):
        random = Random(f"{seed}:{moves}")
        world = World(seed, random.randint(2, 6), random.randint(1, 4), {"moves": moves})
        world.run(150)
        assert world.clients > 5


@pytest.mark.parametrize(("seed", "size", "permits"), [(280, 5, 3), (294, 4, 2), (447, 4, 2)])
def test_the_giver_of_a_late_token_is_no_neighbour(seed: int, size: int, permits: int) -> None:
    """Where it was taken for one, these runs sent their requests to nobody."""
    World(seed, size, permits, {"moves": "quiet"}).run(200)
