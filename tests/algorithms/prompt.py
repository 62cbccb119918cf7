"""Nodes whose messages arrive at once: what they do if nothing is on its way."""

from __future__ import annotations

from collections.abc import Callable

from meshlock.algorithms.actor import Actor, Effect, Enter, Message, Network
from meshlock.algorithms.registry import find, with_defaults
from meshlock.topology.specification import network

Make = Callable[[Network, int, dict[str, str], list[Effect]], list[Actor]]


class Scene:
    def __init__(
        self,
        algorithm: str,
        size: int,
        topology: str,
        permits: int = 1,
        make: Make | None = None,
        **options: str,
    ) -> None:
        """``make``: nodes of that algorithm in which a rule is undone."""
        entry = find(algorithm)
        self.out: list[Effect] = []
        near = network(topology, size, 1)
        self.nodes = (make or entry.make)(near, permits, with_defaults(entry, options), self.out)
        self.homes: dict[int, int] = {}  # client: its node
        self.inside: list[int] = []

    def ask(self, node: int, client: int, priority: int, want: int = 1) -> None:
        self.homes[client] = node
        self.nodes[node].request(client, want, priority)
        self.deliver()

    def leave(self, client: int) -> None:
        self.inside.remove(client)
        self.nodes[self.homes[client]].release(client)
        self.deliver()

    def release_some(self, client: int, permits: int) -> None:
        self.nodes[self.homes[client]].release_some(client, permits)
        self.deliver()

    def withdraw(self, client: int) -> bool:
        stopped = self.nodes[self.homes[client]].withdraw(client)
        self.deliver()
        return stopped

    def change(self, client: int, want: int, priority: int) -> bool:
        changed = self.nodes[self.homes[client]].change_priority(client, want, priority)
        self.deliver()
        return changed

    def deliver(self) -> None:
        while self.out:
            effect = self.out.pop(0)
            if isinstance(effect, Message):
                self.nodes[effect.receiver].receive(effect)
            elif isinstance(effect, Enter):
                self.inside.append(effect.client)
