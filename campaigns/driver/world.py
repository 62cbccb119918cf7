"""A run's state: nodes, links, clients. It takes one step at a time and has each one judged."""

from __future__ import annotations

from collections.abc import Callable

from meshlock.algorithms.actor import NIL, Actor, ChoosingActor, Effect, Enter, Message, Network

from .judge import Judge, Violation
from .links import CustodyLinks, Links, NoLink, Way, carries, pair_of
from .setup import Pair, Setup

Doing = tuple[str, ...] | tuple[str | int, ...]
"""A step: its name, and numbers (see the methods of :class:`World` of that name)."""


class Plan(Network):
    """The links at the start, for those who make the nodes."""

    def __init__(self, size: int, links: list[Pair]) -> None:
        super().__init__(size)
        self.near: list[list[int]] = [[] for _ in range(size)]
        for i, j in sorted(links):
            self.near[i].append(j)
            self.near[j].append(i)
        self.fathers = [NIL] * size
        order = [0]
        for node in order:
            for other in sorted(self.near[node]):
                if other != 0 and self.fathers[other] == NIL:
                    self.fathers[other] = node
                    order.append(other)

    def neighbours(self, node: int) -> list[int]:
        return sorted(self.near[node])

    def linked(self, one: int, other: int) -> bool:
        return other in self.near[one]

    def father(self, node: int) -> int:
        return self.fathers[node]


class World:
    """Steps are ``do(name, numbers...)``; those that are impossible now are refused."""

    def __init__(self, setup: Setup, tell: Callable[[str], None] | None = None) -> None:
        self.setup = setup
        self.tell = tell
        self.judge = Judge(setup)
        self.custody = CustodyLinks(setup.size) if setup.failures == "custody" else None
        self.links = self.custody or Links(setup.size, setup.algorithm.assumes.routed)
        self.out: list[Effect] = []
        self.done: list[Doing] = []
        self.last_token_way: Pair = (NIL, NIL)
        self.lent: dict[int, int] = {}  # messages with permits, by identity: which grant it is
        algorithm = setup.algorithm
        if setup.joined and algorithm.newcomers.join is not None:
            self.nodes: list[Actor] = [
                algorithm.newcomers.join(me, me == 0, setup.permits, setup.options, self.out)
                for me in range(setup.size)
            ]
        else:
            network = Plan(setup.size, setup.links)
            self.nodes = algorithm.make(network, setup.permits, setup.options, self.out)
            for pair in setup.links:
                self.links.working.add(pair)
                self.links.sees |= {pair, pair[::-1]}

    # -- steps ----------------------------------------------------------------------------

    def do(self, name: str, *numbers: int) -> bool:
        """Take this step if it is possible: its method says so by its result."""
        self.done.append((name, *numbers))
        if not getattr(self, name)(*numbers):
            self.done.pop()
            return False
        at_rest = self.links.settled() and self.links.connected()
        self.judge.moved(at_rest)
        if at_rest:
            self.judge.quiet(sum([node.free_permits() for node in self.nodes]))
        return True

    def ask(self, client: int, i: int, want: int, priority: int) -> bool:
        self.say(f"client {client} of node {i} asks for {want} @ {priority}")
        holders = [node.me for node in self.nodes if node.tokens() > 0]
        self.judge.asks(client, i, want, priority, holders[0] if holders else NIL)
        self.nodes[i].request(client, want, priority)
        self.after(i)
        return True

    def leave(self, client: int) -> bool:
        if client not in self.judge.inside:
            return False
        i = self.judge.inside[client].node
        self.say(f"client {client} of node {i} leaves")
        self.judge.leaves(client)
        self.nodes[i].release(client)
        self.after(i)
        return True

    def release_part(self, client: int, permits: int) -> bool:
        """A client releases a part of its permits."""
        inside = self.judge.inside.get(client)
        if inside is None or permits >= inside.want:
            return False
        self.say(f"client {client} of node {inside.node} releases {permits} of {inside.want}")
        self.judge.releases_part(client, permits)
        self.nodes[inside.node].release_some(client, permits)
        self.after(inside.node)
        return True

    def change_priority(self, client: int, priority: int) -> bool:
        waiting = self.judge.waiting.get(client)
        if waiting is None or priority == waiting.priority:
            return False
        i = waiting.node
        self.say(f"client {client} of node {i} changes from {waiting.priority} to {priority}")
        self.judge.changes(client, priority)
        if not self.nodes[i].change_priority(client, waiting.want, priority):
            raise Violation("failed", f"node {i} does not change the priority of {waiting}")
        self.after(i)
        return True

    def withdraw(self, client: int) -> bool:
        if client not in self.judge.waiting:
            return False
        i = self.judge.waiting[client].node
        if not self.nodes[i].withdraw(client):
            return False  # it cannot be taken back
        self.say(f"client {client} of node {i} gives up")
        self.judge.withdraws(client)
        self.after(i)
        return True

    def choose(self, i: int, choice: int) -> bool:
        """The outside sets one of the node's choices."""
        node = self.nodes[i]
        if not isinstance(node, ChoosingActor) or choice >= node.choices():
            return False
        node.choose(choice)
        return True

    def deliver(self, i: int, j: int, place: int = 0) -> bool:
        if not self.links.possible(("deliver", i, j)) or place >= len(self.links.lines[i, j]):
            return False
        self.hand_over(self.links.take((i, j), place), "")
        return True

    def fail(self, i: int, j: int) -> bool:
        """The link fails; where both ends are told at once, i is told first."""
        pair = pair_of(i, j)
        if pair not in self.links.working:
            return False
        if self.setup.failures == "drain" and not self.links.empty(pair):
            return False
        self.judge.changed()
        if self.custody is not None:
            self.say(f"link {i}-{j} fails, unnoticed so far")
            self.custody.fail(pair)
        else:
            self.say(f"link {i}-{j} fails")
            self.links.working.discard(pair)
            for end, peer in ((i, j), (j, i)):
                self.give_back((end, peer))
                self.links.sees.discard((end, peer))
                self.nodes[end].link_down(peer)
                self.after(end)
        return True

    def form(self, i: int, j: int) -> bool:
        pair = pair_of(i, j)
        if pair in self.links.working:
            return False
        self.say(f"link {i}-{j} forms")
        self.judge.changed()
        if self.custody is not None:
            self.custody.form(pair)
        else:
            self.links.working.add(pair)
            self.links.sees |= {pair, pair[::-1]}
            for end, peer in ((i, j), (j, i)):
                self.nodes[end].link_up(peer)
                self.after(end)
        return True

    def down(self, i: int, j: int) -> bool:
        """Custody: i notices that its link to j has failed."""
        if self.custody is None or not self.custody.possible(("down", i, j)):
            return False
        self.say(f"node {i} notices that link {i}-{j} has failed")
        self.judge.changed()
        self.custody.notice_failure(i, j)
        self.nodes[i].link_down(j)
        self.after(i)
        return True

    def up(self, i: int, j: int) -> bool:
        """Custody: i is told that its link to j is back."""
        if self.custody is None or not self.custody.possible(("up", i, j)):
            return False
        self.say(f"node {i} is told that link {i}-{j} is up")
        self.judge.changed()
        self.custody.sees.add((i, j))
        self.nodes[i].link_up(j)
        self.after(i)
        return True

    def late(self, i: int, j: int) -> bool:
        """Custody: what i kept for j arrives, though j has no link to i."""
        if self.custody is None or not self.custody.possible(("late", i, j)):
            return False
        self.hand_over(self.custody.take_late((i, j)), "late, ")
        return True

    # -- what steps are made of ---------------------------------------------------------------

    def hand_over(self, message: Message, how: str) -> None:
        j = message.receiver
        if self.tell is not None:
            self.say(f"node {j} receives, {how}{described(message)} from {message.sender}")
        if message.tokens():
            self.last_token_way = pair_of(message.sender, j)
        if message.lends():
            self.judge.arrives(j, self.lent.pop(id(message)))
        self.nodes[j].receive(message)
        self.after(j)

    def give_back(self, way: Way) -> None:
        """What is under way on a link that fails comes back, or is lost."""
        while way in self.links.lines:
            message = self.links.take(way)
            if carries(message):
                self.say(f"node {way[0]} gets back {described(message)}")
                self.nodes[way[0]].undelivered(message)
                self.after(way[0])

    def after(self, i: int) -> None:
        """Carry out the effects of a handler of node i, and count tokens and permits."""
        effects, self.out[:] = list(self.out), ()
        for effect in effects:
            if isinstance(effect, Message):
                try:
                    self.links.post(effect)
                except NoLink:
                    raise Violation(
                        "neighbours", f"node {i} has no link for {described(effect)}"
                    ) from None
                if self.tell is not None:
                    self.say(f"    sends {described(effect)} to {effect.receiver}")
                if effect.lends():
                    self.lent[id(effect)] = self.judge.lends(effect.receiver)
            elif isinstance(effect, Enter):
                if self.tell is not None:
                    self.say(f"    lets client {effect.client} in")
                self.judge.enters(effect.client, i, effect.fence)
        if self.judge.token:
            tokens = permits = 0
            for node in self.nodes:
                tokens += node.tokens()
                permits += node.free_permits()
            for message in self.links.under_way():
                tokens += message.tokens()
                permits += message.permits()
            self.judge.count(tokens, permits)

    def end(self) -> None:
        tokens = sum([node.tokens() for node in self.nodes])
        self.judge.ends(tokens, sum([node.free_permits() for node in self.nodes]))

    def say(self, text: str) -> None:
        if self.tell is not None:
            self.tell(text)


def described(message: Message) -> str:
    kind, *values = message.freeze()
    return f"{kind}({', '.join(str(value) for value in values)})"
