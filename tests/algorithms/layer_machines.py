"""Layered nodes for stories: everybody linked to everybody, no delay, times in milliseconds.

What is said arrives at once and in order, unless the story cuts nodes off, drops a kind of message
or holds it back. Time passes when the story says so: either ``pass_time``, where nobody does more
than renew and repeat, or ``run``, where nodes go at their own pace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from meshlock.algorithms.actor import WAKE, Effect, Enter, Lost, Message, Save
from meshlock.algorithms.recovery.layer import Layer
from meshlock.algorithms.recovery.messages import Conflict, Hello, Inner, content
from meshlock.algorithms.recovery.records import Durable, Epoch, Fence, Life, fence_number
from meshlock.algorithms.recovery.terms import Terms
from meshlock.algorithms.registry import find, with_defaults

LEASE, WAIT, POLL, NOTICE = 3000, 3060, 100, 500
"""NOTICE: so long after a node was killed are its links known to be down."""

MOST_NODES = 16

INSIDE = ("direct", "jiang", "naimi-trehel")
SEVERAL = ("direct", "jiang")
"""Those that share several permits, by priorities."""


def everybody_near(node: int) -> range:
    """Everybody is a neighbour of everybody."""
    return range(MOST_NODES)


def zero_between(node: int) -> range:
    """Everybody stands beside node 0."""
    return range(1) if node else range(1, MOST_NODES)


def line(node: int) -> list[int]:
    """Everybody stands beside the next."""
    return [other for other in (node - 1, node + 1) if 0 <= other < MOST_NODES]


class Machines:
    def __init__(
        self,
        inside: str = "direct",
        permits: int = 1,
        size: int = 3,
        others: int = 0,
        make: type[Layer] = Layer,
        near: Callable[[int], Iterable[int]] = everybody_near,
    ) -> None:
        """``size`` members, and ``others`` that are none."""
        self.everybody = tuple(range(size + others))
        algorithm = find(inside)
        self.fixed = not algorithm.assumes.changing_links
        self.terms = Terms(
            self.everybody,
            self.everybody[:size],
            permits,
            LEASE,
            WAIT,
            algorithm,
            with_defaults(algorithm, {}),
            near,
        )
        self.make = make
        self.out: list[Effect] = []
        self.now = 0
        self.parts: dict[int, int] = dict.fromkeys(self.everybody, 0)
        self.down_since: dict[int, int] = {}
        self.severed: set[frozenset[int]] = set()  # links that failed by themselves
        self.missed: dict[int, int] = {}  # whom a node takes for unreachable, and it alone
        self.dropped: set[str] = set()  # kinds of messages that get lost
        self.held_back: set[str] = set()  # kinds that are kept for the story to deliver
        self.kept: list[Message] = []  # those, and ...
        self.stuck: list[Message] = []  # ... reliable ones that have no way yet
        self.sent: list[str] = []
        self.disk: dict[int, Durable | None] = dict.fromkeys(self.everybody)
        self.boots = dict.fromkeys(self.everybody, 0)
        self.floor = 0  # of epochs' counters, for a node without its disk
        self.nodes: dict[int, Layer] = {}
        self.granted: list[tuple[int, int, int]] = []  # node, client, number of the fence
        self.lost: list[tuple[int, int]] = []  # node, number of the fence
        self.conflicts: list[tuple[int, int]] = []
        for me in self.everybody:
            self.start(me)

    # -- lives and links ---------------------------------------------------------------------------

    def start(self, me: int, terms: Terms | None = None) -> None:
        for other in sorted(self.nodes):
            self.unlink(other, me)  # if nobody has noticed yet that it was down
        self.boots[me] += 1
        self.down_since.pop(me, None)
        self.nodes[me] = self.make(me, self.out, terms or self.terms)
        kept = self.disk[me]
        self.at(me).start(Life(self.boots[me], kept, self.floor if kept is None else 0))
        self.nodes[me].timers.second = 1000
        self.carry(me)
        for other in sorted(self.nodes):
            self.link(me, other)

    def kill(self, me: int) -> None:
        """Its links fail only when that is noticed."""
        del self.nodes[me]
        self.down_since[me] = self.now
        self.stuck = [one for one in self.stuck if me not in (one.sender, one.receiver)]

    def crash(self, me: int) -> None:
        """All know it at once."""
        self.kill(me)
        self.down_since[me] -= NOTICE
        self.notice()

    def notice(self) -> None:
        for gone in sorted(self.down_since):
            for other in sorted(self.nodes):
                if gone in self.unreachable(other):
                    self.unlink(other, gone)

    def link(self, one: int, other: int) -> None:
        """Both know of it before anything comes over it."""
        if self.linked(one, other) and other not in self.nodes[one].member.near:
            self.at(one).link_up(other)
            said = self.said(one)
            self.at(other).link_up(one)
            self.carry_out(said + self.said(other))

    def unlink(self, me: int, peer: int) -> None:
        if me in self.nodes and peer in self.nodes[me].member.near:
            self.at(me).link_down(peer)
            self.carry(me)

    def linked(self, one: int, other: int) -> bool:
        return (
            one != other
            and one in self.nodes
            and other in self.nodes
            and self.parts[one] == self.parts[other]
            and frozenset({one, other}) not in self.severed
        )

    def sever(self, one: int, other: int) -> None:
        """Only the link between these two: there is a way round."""
        self.severed.add(frozenset({one, other}))
        self.unlink(one, other)
        self.unlink(other, one)

    def cut(self, *nodes: int) -> None:
        """These from all others."""
        for me in nodes:
            self.parts[me] = 1
        self.unlink_parts()

    def isolate(self) -> None:
        """Nobody hears anybody."""
        self.parts = {me: me for me in self.parts}
        self.unlink_parts()

    def unlink_parts(self) -> None:
        for me in sorted(self.nodes):
            for other in self.everybody:
                if self.parts[me] != self.parts[other]:
                    self.unlink(me, other)

    def heal(self) -> None:
        self.parts = dict.fromkeys(self.parts, 0)
        self.severed.clear()
        for me in sorted(self.nodes):
            for other in sorted(self.nodes):
                self.link(me, other)
        stuck, self.stuck = self.stuck, []
        for message in stuck:
            self.deliver(message)

    def unreachable(self, me: int) -> set[int]:
        away = {other for other in self.parts if self.parts[other] != self.parts[me]}
        away |= {self.missed[me]} if me in self.missed else set()
        return away | {
            other for other, since in self.down_since.items() if self.now - since >= NOTICE
        }

    # -- messages ----------------------------------------------------------------------------------

    def at(self, me: int) -> Layer:
        node = self.nodes[me]
        node.tell_time(self.now)
        node.cannot_reach(self.unreachable(me))
        return node

    def carry(self, me: int) -> None:
        """Do what node ``me`` asked for, and what follows from it."""
        self.carry_out(self.said(me))

    def said(self, me: int) -> list[tuple[int, Effect]]:
        said = [(me, effect) for effect in self.out]
        self.out.clear()
        return said

    def carry_out(self, work: list[tuple[int, Effect]]) -> None:
        while work:
            node, effect = work.pop(0)
            if isinstance(effect, Save):
                self.disk[node] = effect.record
            elif isinstance(effect, Enter):
                self.granted.append((node, effect.client, effect.fence))
            elif isinstance(effect, Lost):
                self.lost.append((node, effect.fence))
            elif isinstance(effect, Conflict):
                self.conflicts.append((node, effect.node))
            elif isinstance(effect, Message) and self.arrives(effect):
                self.at(effect.receiver).receive(effect)
                work += self.said(effect.receiver)

    def deliver(self, message: Message) -> None:
        if message.receiver in self.nodes:
            self.at(message.receiver).receive(message)
            self.carry(message.receiver)

    def deliver_kept(self, *kinds: str) -> None:
        """What was held back, of these kinds or of all."""
        for message in self.kept[:]:
            if not kinds or content(message).kind in kinds:
                self.kept.remove(message)
                self.deliver(message)

    def arrives(self, message: Message) -> bool:
        self.sent.append(content(message).kind)
        sender, receiver = message.sender, message.receiver
        if content(message).kind in self.dropped or receiver not in self.nodes:
            return False
        if content(message).kind in self.held_back:
            self.kept.append(message)
            return False
        if isinstance(message, Hello):
            return self.linked(sender, receiver)
        if self.parts[sender] == self.parts[receiver]:
            return True
        if isinstance(message, Inner) and self.fixed:
            self.stuck.append(message)
        return False

    # -- time --------------------------------------------------------------------------------------

    def pass_time(self, ms: int) -> None:
        """Everybody renews and repeats, and nobody proposes."""
        for _ in range(0, ms, POLL):
            self.now += POLL
            for me in sorted(self.nodes):
                self.at(me).expire()
                self.carry(me)
                self.at(me).renew()
                self.carry(me)
                self.at(me).repeat()
                self.carry(me)

    def run(self, ms: int) -> None:
        """At their own pace."""
        for _ in range(0, ms, POLL):
            self.now += POLL
            self.notice()
            for me in sorted(self.nodes):
                self.at(me).timer(WAKE, (7 * me + self.now // POLL) % 10 / 10)
                self.carry(me)

    def run_until_usable(self) -> int:
        """How long it took."""
        began = self.now
        while not self.holders() and self.now - began < 20 * LEASE:
            self.run(POLL)
        return self.now - began

    # -- what a story says -------------------------------------------------------------------------

    def ask(self, me: int, want: int = 1, priority: int = 0, client: int = 7) -> None:
        self.at(me).request(client, want, priority)
        self.carry(me)

    def leave(self, me: int, client: int = 7) -> None:
        self.at(me).release(client)
        self.carry(me)

    def release_some(self, me: int, permits: int = 1, client: int = 7) -> None:
        self.at(me).release_some(client, permits)
        self.carry(me)

    def withdraw(self, me: int, client: int = 7) -> bool:
        could = self.at(me).withdraw(client)
        self.carry(me)
        return could

    def propose(self, me: int) -> None:
        self.at(me).propose()
        self.carry(me)

    def close(self, me: int) -> None:
        self.at(me).close()
        self.carry(me)

    def change_epoch(self, me: int) -> None:
        self.propose(me)
        self.close(me)

    # -- what it sees ------------------------------------------------------------------------------

    def holders(self) -> list[int]:
        return [me for me in sorted(self.nodes) if self.at(me).member.usable()]

    def free(self) -> int:
        token = self.nodes[self.holders()[0]].member.holding.token
        assert token is not None
        return token.free

    def overbooked(self) -> bool:
        """Are more permits in use under valid leases than there are, or tokens?"""
        used = sum(
            grant.permits
            for node in self.nodes.values()
            for grant in node.member.grants.values()
            if grant.until > self.now
        )
        return used > self.terms.permits or len(self.holders()) > 1

    def epochs(self) -> set[Epoch]:
        return {node.member.adopted for node in self.nodes.values()}

    def clients(self) -> list[tuple[int, int]]:
        return [(node, client) for node, client, _ in self.granted]

    def who(self) -> list[int]:
        return [node for node, _, _ in self.granted]

    def inner_tokens(self) -> list[int]:
        """At whom the algorithm inside has a token."""
        return [
            me
            for me, node in sorted(self.nodes.items())
            if node.epoch.inner is not None and node.epoch.inner.tokens() > 0
        ]


def born(
    inside: str = "direct",
    permits: int = 1,
    size: int = 3,
    others: int = 0,
    make: type[Layer] = Layer,
    near: Callable[[int], Iterable[int]] = everybody_near,
) -> Machines:
    """The token is at node 0."""
    machines = Machines(inside, permits, size, others, make, near)
    machines.pass_time(WAIT)
    machines.change_epoch(0)
    machines.pass_time(WAIT)
    assert machines.holders() == [0]
    return machines


def number(counter: int, proposer: int, boot: int, count: int) -> int:
    """Of a fence."""
    return fence_number(Fence(Epoch(counter, proposer, boot), count))
