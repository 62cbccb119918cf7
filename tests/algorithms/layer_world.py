"""A small world for layered nodes: real handlers, messages that take time, faults, and a judge.

It shares nothing with the simulator. Time is whole ticks; every message takes from one to
``slowest`` of them, links keep the order, and the three carriers are as the layer expects them.
Every node has a clock of its own, which shows anything and runs at a rate within the bound.
"""

from __future__ import annotations

import random
from collections import deque

from layer_disk import SlowDisk
from layer_twin import Twin

from meshlock.algorithms.actor import WAKE, Algorithm, Effect, Enter, Lost, Message
from meshlock.algorithms.recovery.layer import Layer
from meshlock.algorithms.recovery.messages import Conflict, Hello, Inner, content
from meshlock.algorithms.recovery.proposal import changed_members
from meshlock.algorithms.recovery.records import (
    FENCE_BITS,
    NO_EPOCH,
    Change,
    Entry,
    Epoch,
    Life,
    fence_number,
    majority,
)
from meshlock.algorithms.recovery.terms import Rules, Terms
from meshlock.algorithms.recovery.timers import NO_DOUBTS
from meshlock.algorithms.registry import find, with_defaults
from meshlock.algorithms.steps import in_grants as counted

LEASE, WAIT = 300, 306
SLOW, FAST = 1000, 1015
"""Rates of clocks, in thousandths. FAST * LEASE <= SLOW * (WAIT - 1): one for rounding."""
STORM = 3000
"""The most messages in flight in so small a world: with more they breed."""

Link = tuple[int, int]


class Wrong(AssertionError):
    """What the judge says."""


def check(holds: bool, sentence: str) -> None:
    if not holds:
        raise Wrong(sentence)


class Clock:
    def __init__(self, rate: int, shows: int, now: int) -> None:
        self.rate = rate
        self.offset = shows * 1000 - rate * now

    def at(self, tick: int) -> int:
        return (self.offset + self.rate * tick) // 1000

    def when(self, shows: int) -> int:
        """The first tick at which it shows this."""
        return -((self.offset - shows * 1000) // self.rate)


NAMES = tuple("abcdefgh")
"""What permits are called, the first of them at first."""


class Client:
    def __init__(self, number: int, node: int, boot: int, want: int, priority: int) -> None:
        self.number = number
        self.node = node
        self.boot = boot
        self.want = want
        self.priority = priority
        self.slots: tuple[int, ...] = ()
        self.names: tuple[str, ...] = ()  # of these
        self.until = 0  # the tick at which its lease ends, once it is in
        self.fence = 0
        self.permits = 0  # that there were
        self.abandoned = False  # it gave up when it could not be stopped any more


def fence_lent(effect: Effect) -> int:
    """Of the grant that a message makes; 0 if it makes none."""
    lent = effect.lent if isinstance(effect, Inner) else None
    return 0 if lent is None else fence_number(lent.fence)


def is_timed(message: Message) -> bool:
    """Is it a token or a grant?"""
    return isinstance(message, Inner) and message.is_timed()


class World:
    def __init__(
        self,
        algorithm: str | Algorithm,
        size: int,
        links: list[Link],
        permits: int = 1,
        seed: int = 0,
        members: int = 0,
        slowest: int = 3,
        loss: float = 0.0,
        doubles: float = 0.0,
        skew: bool = False,
        blind: float = 0.0,
        twins: float = 0.0,
        make: type[Layer] = Layer,
        options: dict[str, str] | None = None,
        rules: Rules | None = None,
        disk: int = 0,
        fail: float = 0.0,
        parts: float = 0.0,
        any_boot: bool = False,
        in_grants: bool = False,
    ) -> None:
        """With ``rules`` node 0 makes the pool, and the members choose themselves. ``loss`` is of
        what is sent at best effort, ``doubles`` also of tokens and grants; ``blind``: how often a
        node is not told who is unreachable; ``twins``: how often a thawed twin does what a node
        does. ``disk``: the ticks that a promise takes to be written at most, and how many writes
        ``fail``. ``parts``: how often a message is doubled that brings permits back. ``any_boot``:
        boots do not grow. ``in_grants``: priorities are, as in live pools."""
        self.random = random.Random(seed)
        self.lateness = random.Random(f"{seed} late")  # of tokens and grants
        self.lives = random.Random(f"{seed} lives")
        self.size = size
        self.permits = permits
        self.sizes: dict[Epoch, int] = {}  # how many permits an epoch has
        self.resizes = {permits}  # those that somebody wanted, and that every epoch must have
        self.resized = NO_EPOCH  # the last one that has any
        self.slowest = slowest
        self.loss = loss
        self.doubles = doubles
        self.parts_doubled = parts
        self.any_boot = any_boot
        self.last_lent = 0  # grants to other nodes in the step in which the token is surrendered
        self.doubled: set[tuple[object, ...]] = set()
        self.astray: set[int] = set()  # counters of epochs in which that happened
        self.skew = skew
        self.blind = blind
        self.twins = twins
        self.honest = True  # what is inside
        self.make = make
        self.now = 0
        self.all_links = {(min(a, b), max(a, b)) for a, b in links}
        self.links = set(self.all_links)
        self.parts: dict[int, set[int]] = {}  # found since the network changed last
        self.up = [False] * size
        self.asleep: set[int] = set()  # paused: nothing reaches them, but their clocks run
        self.dead: set[int] = set()  # for good
        self.boots = [0] * size
        self.former: list[set[int]] = [set() for _ in range(size)]  # boots that they had
        self.seed = seed
        self.slow, self.fail = disk, fail
        self.disks = [SlowDisk("", 0, 0.0) for _ in range(size)]
        self.made = False  # is it on disk that node 0 has made the pool?
        self.out: list[Effect] = []
        entry = find(algorithm) if isinstance(algorithm, str) else algorithm
        self.terms = Terms(
            tuple(range(size)),
            () if rules is not None else tuple(range(members or size)),
            permits,
            LEASE,
            WAIT,
            entry,
            counted(with_defaults(entry, options or {}))
            if in_grants
            else with_defaults(entry, options or {}),
            self.near,
            slots=True,
            rules=rules,
            names=NAMES,
        )
        self.clocks = [Clock(SLOW, 0, 0) for _ in range(size)]
        self.nodes = [make(i, self.out, self.terms) for i in range(size)]
        self.serial = 0
        self.flying: list[tuple[int, int, int, Message]] = []  # due, serial, sent, message
        # neighbours' links, and reliable ways between any two: due, sent, message
        self.on_link: dict[Link, deque[tuple[int, int, Message]]] = {}
        self.on_way: dict[Link, deque[tuple[int, int, Message]]] = {}
        self.last: dict[Link, int] = {}
        self.wake_due = [0] * size
        self.unheard: dict[int, tuple[Epoch, int]] = {}  # whose requests may be lost
        self.clients = 0
        self.waiting: dict[int, Client] = {}
        self.held: dict[int, Client] = {}
        self.entered: list[Client] = []
        self.makers: dict[int, int] = {}  # of grants, by fence, in the order of their making
        self.lent: dict[int, Entry] = {}  # grants on their way to the nodes of their clients
        self.borrowed = 0  # such that arrived, and ...
        self.overtaken = 0  # ... of these, how many after clients of later ones had entered
        self.again = 0  # tokens and grants that came twice, or late
        self.lost = 0
        self.sent: dict[str, int] = {}
        self.epochs: set[object] = set()
        self.mirrored = 0
        self.choice = 0  # what the outside has chosen for the call that comes
        for i in range(size):
            self.start(i)

    # -- the network ----------------------------------------------------------------------------

    def linked(self, a: int, b: int) -> bool:
        return (min(a, b), max(a, b)) in self.links and self.up[a] and self.up[b]

    def part(self, start: int) -> set[int]:
        """Who can be reached from there."""
        if start not in self.parts:
            self.parts[start] = self.find_part(start)
        return self.parts[start]

    def find_part(self, start: int) -> set[int]:
        seen = {start}
        line = [start]
        while line:
            one = line.pop()
            for other in range(self.size):
                if other not in seen and self.linked(one, other):
                    seen.add(other)
                    line.append(other)
        return seen

    def near(self, node: int) -> list[int]:
        return [other for other in range(self.size) if self.linked(node, other)]

    def set_link(self, a: int, b: int, up: bool) -> None:
        link = (min(a, b), max(a, b))
        if (link in self.links) == up:
            return
        if up:
            self.links.add(link)
        else:
            self.links.discard(link)
        self.parts.clear()
        if self.up[a] and self.up[b]:
            self.drop_link(a, b)
            for one, other in ((a, b), (b, a)):
                if up:
                    self.link_up(one, other)
                else:
                    self.link_down(one, other)

    def drop_link(self, a: int, b: int) -> None:
        """What was on it is lost; but a token may come late (rule 10)."""
        for way in ((a, b), (b, a)):
            for _, sent, message in self.on_link.pop(way, ()):
                if message.tokens() == 1 and self.random.random() < 0.3:
                    self.fly(message, sent, self.random.randint(1, LEASE))

    # -- lives ------------------------------------------------------------------------------------

    def start(self, i: int, forget: bool = False) -> None:
        kept = None if forget else self.disks[i].kept
        floor = 0
        if kept is None:  # the wall clock
            floor = max(
                self.fence() >> FENCE_BITS, *[one.member.promised.counter for one in self.nodes]
            )
        if self.skew:
            rate = self.random.choice([SLOW, FAST, self.random.randint(SLOW, FAST)])
            self.clocks[i] = Clock(rate, self.random.randint(0, 10**6), self.now)
        self.nodes[i] = self.make(i, self.out, self.terms)
        self.made = self.made or self.disks[0].kept is not None
        free = [boot for boot in range(1, 200) if boot not in self.former[i]]
        self.boots[i] = self.lives.choice(free) if self.any_boot else free[0]
        self.former[i].add(self.boots[i])
        self.disks[i] = SlowDisk(f"{self.seed} {i} {self.boots[i]}", self.slow, self.fail)
        self.disks[i].kept = kept
        self.up[i] = True
        self.parts.clear()
        founds = self.terms.rules is not None and i == 0 and not self.made
        self.ready(i).start(Life(self.boots[i], None if founds else kept, floor, founds, founds))
        self.done(i)
        self.wake_due[i] = self.now
        for j in range(self.size):
            if self.linked(i, j):
                self.link_up(i, j)
                self.link_up(j, i)

    def may_forget(self, i: int) -> bool:
        """Do enough of the members that anybody knows of remember that they are, without it?"""
        remember = {j for j in range(self.size) if j != i and self.remembers(j)}
        return all(len(remember.intersection(one)) >= majority(one) for one in self.known())

    def remembers(self, i: int) -> bool:
        """Who the members are: will it ever vote?"""
        kept = self.disks[i].kept
        known = len(self.terms.members) > 0 or (kept is not None and len(kept.config.members) > 0)
        return known and i not in self.dead

    def known(self) -> set[tuple[int, ...]]:
        """All members that anybody knows of."""
        kept = [disk.kept for disk in self.disks]
        configs = [node.member.config for node in self.nodes]
        configs += [one.config for one in kept if one is not None]
        known = [config.members for config in configs]
        return {members for members in known if members}

    def survives(self, gone: int, changes: list[Change]) -> bool:
        """Without that node, whichever of these changes are made: is there a quorum for ever, and
        a way between any two nodes?"""
        alive = {j for j in range(self.size) if j != gone and self.remembers(j)}
        members = self.known()
        for change in changes:
            members |= {changed_members(one, change) for one in members}
        if any(len(alive.intersection(one)) < majority(one) for one in members):
            return False
        stay = set(range(self.size)) - self.dead - {gone}
        seen = {min(stay)}
        for _ in stay:
            seen |= {
                b for link in self.all_links for a, b in (link, link[::-1]) if a in seen
            } & stay
        return seen == stay

    def die(self, i: int) -> None:
        """For good."""
        if self.up[i]:
            self.crash(i)
        self.dead.add(i)

    def crash(self, i: int) -> None:
        """Its clients that wait are gone with it; those that are in run on under their lease."""
        neighbours = [j for j in range(self.size) if self.linked(i, j)]
        self.unmake(i)
        self.disks[i].crash()
        self.up[i] = False
        self.asleep.discard(i)
        self.parts.clear()
        self.waiting = {number: one for number, one in self.waiting.items() if one.node != i}
        for one in self.waiting.values():
            self.unheard[one.node] = self.asked(one.node)
        for way in list(self.on_way):
            if i in way:
                self.drop_way(way)
        for j in neighbours:
            self.drop_link(i, j)
            self.link_down(j, i)

    def drop_way(self, way: Link) -> None:
        """What was on it is lost; but a token, or a grant, may come late, to another life."""
        for _, sent, message in self.on_way.pop(way):
            if is_timed(message) and self.lateness.random() < 0.3:
                self.fly_again(message, sent)

    # -- calls ------------------------------------------------------------------------------------

    def ready(self, i: int) -> Layer:
        node = self.nodes[i]
        node.tell_time(self.clocks[i].at(self.now))
        if self.blind == 0 or self.random.random() >= self.blind:
            part = self.part(i)
            node.cannot_reach({j for j in range(self.size) if j not in part})
        choices = node.choices()
        self.choice = self.random.randrange(choices) if choices > 1 else 0
        node.choose(self.choice)
        return node

    def twin(self, node: Layer) -> Twin | None:
        if self.twins == 0 or self.random.random() >= self.twins:
            return None
        self.mirrored += 1
        twin = Twin(self.make, node)
        twin.node.choose(self.choice)
        return twin

    def compare(self, node: Layer, twin: Twin | None) -> None:
        if twin is not None:
            check(twin.says() == twin.said(self.out), "a thawed twin says something else")
            check(twin.node.freeze() == node.freeze(), "a thawed twin becomes somebody else")

    def request(self, i: int, client: int, want: int, priority: int) -> None:
        node = self.ready(i)
        twin = self.twin(node)
        node.request(client, want, priority)
        if twin is not None:
            twin.node.request(client, want, priority)
        self.compare(node, twin)
        self.done(i)

    def give_up(self, i: int, client: int) -> bool:
        node = self.ready(i)
        twin = self.twin(node)
        could = node.withdraw(client)
        if twin is not None:
            check(twin.node.withdraw(client) == could, "a thawed twin withdraws otherwise")
        self.compare(node, twin)
        self.done(i)
        return could

    def release(self, i: int, client: int) -> None:
        node = self.ready(i)
        twin = self.twin(node)
        node.release(client)
        if twin is not None:
            twin.node.release(client)
        self.compare(node, twin)
        self.done(i)

    def release_some(self, i: int, client: int, permits: int) -> None:
        node = self.ready(i)
        twin = self.twin(node)
        node.release_some(client, permits)
        if twin is not None:
            twin.node.release_some(client, permits)
        self.compare(node, twin)
        self.done(i)

    def change_priority(self, number: int, priority: int) -> None:
        client = self.waiting[number]
        i = client.node
        self.asleep.discard(i)
        node = self.ready(i)
        twin = self.twin(node)
        client.priority = priority
        changed = node.change_priority(number, client.want, priority)
        granted = any(grant.client == number for grant in node.member.grants.values())
        check(changed or granted, "a client that waits may change its mind")
        if twin is not None:
            twin.node.change_priority(number, client.want, priority)
        self.compare(node, twin)
        self.done(i)

    def link_up(self, i: int, peer: int) -> None:
        node = self.ready(i)
        twin = self.twin(node)
        node.link_up(peer)
        if twin is not None:
            twin.node.link_up(peer)
        self.compare(node, twin)
        self.done(i)

    def link_down(self, i: int, peer: int) -> None:
        node = self.ready(i)
        twin = self.twin(node)
        node.link_down(peer)
        if twin is not None:
            twin.node.link_down(peer)
        self.compare(node, twin)
        self.done(i)

    def arrive(self, message: Message, sent: int) -> None:
        i = message.receiver
        if isinstance(message, Inner):
            clock = self.clocks[i]
            message.travelled = clock.at(self.now) - clock.at(sent) + 1
        node = self.ready(i)
        twin = self.twin(node)
        if twin is not None:
            twin.receive(message)
        before = (message.sender, message.receiver, message.freeze())
        node.receive(message)
        after = (message.sender, message.receiver, message.freeze())
        check(before == after, "a message changed when it was received")
        self.compare(node, twin)
        self.done(i)

    def wake(self, i: int) -> None:
        node = self.ready(i)
        twin = self.twin(node)
        if twin is not None:  # all but Pace, which does not freeze
            node.expire()
            twin.node.expire()
            node.renew()
            twin.node.renew()
            node.repeat()
            twin.node.repeat()
        self.compare(node, twin)
        node.timer(WAKE, self.random.random())
        self.wake_due[i] = max(self.now + 1, self.clocks[i].when(node.timer_at()))
        self.done(i)

    # -- effects ----------------------------------------------------------------------------------

    def done(self, i: int) -> None:
        effects = self.out[:]
        self.out.clear()
        for effect in effects:
            if isinstance(effect, Message):
                check(effect.sender == i, "a message in somebody else's name")
                self.lend(effect)
            elif isinstance(effect, Enter):
                self.grant(i, effect)
        for effect in self.disks[i].pass_on(effects, self.now):
            self.carry_out(i, effect, self.now)
        due = max(self.now + 1, self.clocks[i].when(self.nodes[i].timer_at()))
        self.wake_due[i] = min(self.wake_due[i], due)
        for grant in self.nodes[i].member.grants.values():
            if grant.client in self.held:
                self.held[grant.client].until = self.clocks[i].when(grant.until)
        self.judge()
        if self.honest:
            self.judge_ages(self.nodes[i])

    def carry_out(self, i: int, effect: Effect, asked: int) -> None:
        """What a node ``asked`` for then, and what had to wait for its disk."""
        if isinstance(effect, Message):
            self.send(effect, asked)
        elif isinstance(effect, Enter):
            self.let_in(i, effect)
        elif isinstance(effect, Lost):
            self.lost += 1
            self.lose(i, effect.client)
        else:
            check(not isinstance(effect, Conflict), "a conflict of configurations")

    def lose(self, i: int, number: int) -> None:
        """If it could not even be told that its lease began, it asks again."""
        if number in self.held:
            check(self.held[number].until <= self.now, "told too early")
            del self.held[number]
            return
        client = self.waiting.pop(number)
        if not client.abandoned:
            self.ask(i, client.want, client.priority)

    def write(self, i: int) -> None:
        """The disk of a node may have written something."""
        disk = self.disks[i]
        if disk.is_written(self.now):
            while disk.waiting:
                self.carry_out(i, *disk.waiting.pop(0))
            disk.go_on(self.now)
            self.judge()

    def judge_ages(self, node: Layer) -> None:
        """In grants; a stand-in counts as one, and there are at most k of them in an epoch."""
        most = len(self.entered) + max(self.resizes) * node.member.adopted.counter
        for _, _, age, _ in node.clients.waiting.values():
            check(age <= most, f"a request of age {age} after {len(self.entered)} grants")

    def grant(self, i: int, enter: Enter) -> None:
        check(enter.client in self.waiting, "let in without asking")
        client = self.waiting[enter.client]
        check(client.node == i and client.boot == self.boots[i], "let in at another node")
        entry = self.lent.pop(enter.fence, None)
        if entry is None:
            self.make_grant(i, enter.fence)
        else:
            self.borrowed += 1
            self.overtaken += any(enter.fence < one.fence for one in self.entered)
            as_lent = (entry.node, entry.permits, entry.slots) == (i, client.want, enter.slots)
            check(as_lent, "other permits than were sent")
        grants = self.nodes[i].member.grants.items()
        (epoch,) = {fence.epoch for fence, one in grants if one.client == enter.client}
        self.judge_size(i, epoch, enter.permits)

    def let_in(self, i: int, enter: Enter) -> None:
        client = self.waiting.pop(enter.client)
        client.until = self.clocks[i].when(enter.until)
        client.slots = enter.slots
        check(len(set(enter.slots)) == client.want, f"{client.want} permits, slots {enter.slots}")
        config = self.nodes[i].member.config
        there = config.slots or range(config.permits)
        if config.epoch.counter == enter.fence >> FENCE_BITS:  # else there is another since
            check(all(one in there for one in enter.slots), "a slot that is not there")
        names = config.names or NAMES
        client.names = tuple([names[one] for one in enter.slots])
        self.held[client.number] = client
        self.entered.append(client)
        client.fence = enter.fence
        client.permits = enter.permits
        for grant in self.nodes[i].member.grants.values():
            if grant.client == client.number:  # it may have been renewed meanwhile
                client.until = self.clocks[i].when(grant.until)
        if client.abandoned:
            self.leave(client.number)

    def make_grant(self, i: int, fence: int) -> None:
        check(fence > self.fence(), "fences must grow")
        self.makers[fence] = i

    def fence(self) -> int:
        """Of the grant that was made last."""
        return next(reversed(self.makers), 0)

    def unmake(self, i: int) -> None:
        """Whatever waited for the disk of a node that crashes, nobody has heard of."""
        for effect, _ in (*self.disks[i].waiting, *self.disks[i].behind):
            fence = effect.fence if isinstance(effect, Enter) else fence_lent(effect)
            if self.makers.get(fence) == i:
                del self.makers[fence]
                self.lent.pop(fence, None)

    def lend(self, message: Message) -> None:
        """A grant to a client of another node is made when it is sent, and may enter once."""
        entry = message.lent if isinstance(message, Inner) else None
        if entry is not None:
            fence = fence_lent(message)
            self.make_grant(message.sender, fence)
            check(entry.node == message.receiver, "a grant to another node")
            member = self.nodes[message.sender].member
            if member.config.epoch == member.adopted == message.epoch:
                self.judge_size(message.sender, message.epoch, member.config.permits)
            token = member.holding.token  # if it was not surrendered in the same step
            self.last_lent += token is None
            listed = token is None or any(
                one._replace(lapsing=False, label=entry.label) == entry for one in token.ledger
            )  # or another was made in the same step, in whose ledger it lapses
            check(listed, "a grant leaves that is not in the ledger")
            self.lent[fence] = entry

    def judge_size(self, i: int, epoch: Epoch, permits: int) -> None:
        """An epoch has as many permits as the last one with a token had, or as somebody wanted
        since; and everybody says the same. One that waits for the disk of its only member may be
        forgotten again."""
        if epoch not in self.sizes:
            check(permits in self.resizes, f"{permits} permits, which nobody wants")
            self.sizes[epoch] = permits
        check(self.sizes[epoch] == permits, "an epoch of two sizes")
        if not self.disks[i].is_behind() and epoch > self.resized:
            self.resized = epoch
            changes = [one.timers.change for one in self.nodes if one.timers.change is not None]
            wanted = [change.permits or len(change.names) for change in changes]
            self.resizes = {permits, *wanted} - {0}

    def judge(self) -> None:
        used = 0
        valid = [one for one in self.held.values() if one.until > self.now]
        for client in sorted(valid, key=lambda one: one.fence):
            used += client.want
            most = client.permits
            check(used <= most, f"{used} of {most} permits in use when somebody was let in")
        slots = [slot for one in valid for slot in one.slots]
        check(len(set(slots)) == len(slots), f"slots {sorted(slots)} in use")
        names = [name for one in valid for name in one.names]
        check(len(set(names)) == len(names), f"names {sorted(names)} in use")
        usable = self.usable()
        check(len(usable) <= 1, f"tokens at {usable}")
        for i in usable:
            token = self.nodes[i].member.holding.token
            assert token is not None
            sound = self.honest and token.epoch.counter not in self.astray
            agree = not sound or not self.nodes[i].epoch.disagrees()
            check(agree, "the node inside has not what its token's state says")
            self.judge_size(i, token.epoch, self.nodes[i].member.config.permits)
            out = sum([entry.permits for entry in token.ledger])
            check(token.free + out == self.sizes[token.epoch], "permits made or lost")
            check(token.free >= 0 or self.nodes[i].member.paused(), "more is out than there is")
            named = {entry.fence: entry for entry in token.ledger}
            for j in range(self.size):
                if self.up[j]:
                    now = self.clocks[j].at(self.now)
                    for fence, grant in self.nodes[j].member.grants.items():
                        if grant.until > now:
                            check(fence in named, "not in the ledger")
                            entry = named[fence]
                            check(entry.permits >= grant.permits, "too few in the ledger")
                            same = entry.slots[: grant.permits] == grant.slots
                            check(same, "other slots in the ledger")
            self.epochs.add(token.epoch)

    def usable(self) -> list[int]:
        """Where there is a token that may grant."""
        found: list[int] = []
        for i in range(self.size):
            node = self.nodes[i]
            node.tell_time(self.clocks[i].at(self.now))
            if self.up[i] and node.member.usable():
                found.append(i)
        return found

    # -- messages ---------------------------------------------------------------------------------

    def send(self, message: Message, asked: int) -> None:
        kind = content(message).kind
        self.sent[kind] = self.sent.get(kind, 0) + 1
        a, b = message.sender, message.receiver
        inside = isinstance(message, Inner)
        changing = self.terms.algorithm.assumes.changing_links
        due = self.now + self.random.randint(1, self.slowest)
        if (isinstance(message, Hello) or (inside and changing)) and self.linked(a, b):
            due = self.last[(a, b)] = max(due, self.last.get((a, b), 0))
            self.on_link.setdefault((a, b), deque()).append((due, asked, message))
        elif inside and not changing:
            if self.up[b]:
                self.on_way.setdefault((a, b), deque()).append((due, asked, message))
                if is_timed(message) and self.lateness.random() < self.doubles:
                    self.fly_again(message, asked)
            else:
                for one in {a, getattr(message, "asker", a)}:
                    self.unheard[one] = self.asked(one)
        elif not isinstance(message, Hello) and self.random.random() >= self.loss:
            self.fly(message, asked, due - self.now)
            if self.random.random() < self.doubles:
                self.fly(message, asked, self.random.randint(1, 3 * LEASE))
        if isinstance(message, Inner) and message.returned:
            # Each node doubles a part once: parts that go round without the token would breed.
            part = (a, message.epoch, message.returned)
            if part not in self.doubled and self.lateness.random() < self.parts_doubled:
                self.doubled.add(part)
                self.astray.add(message.epoch.counter)
                self.fly_again(message, asked, self.lateness.choice([20, 3 * LEASE]))

    def fly(self, message: Message, sent: int, delay: int) -> None:
        self.serial += 1
        self.flying.append((self.now + delay, self.serial, sent, message))
        check(len(self.flying) < STORM, "messages breed")

    def fly_again(self, message: Message, sent: int, latest: int = 3 * LEASE) -> None:
        """Whatever the layer does with it, once is enough."""
        self.again += 1
        self.fly(message, sent, self.lateness.randint(1, latest))

    def next_due(self) -> int:
        """Nothing happens before, unless somebody does something."""
        ways = [*self.on_link.items(), *self.on_way.items()]
        lines = [line[0][0] for way, line in ways if line and way[1] not in self.asleep]
        flying = [one[0] for one in self.flying]
        wakes = [self.wake_due[i] for i in range(self.size) if self.awake(i)]
        disks = [self.disks[i].due for i in range(self.size) if self.awake(i) and self.writes(i)]
        return min([*lines, *flying, *wakes, *disks], default=self.now + LEASE)

    def writes(self, i: int) -> bool:
        return self.disks[i].writing is not None

    def tick(self, end: int = 0) -> None:
        """The next tick, or up to ``end`` the next in which something happens."""
        self.now = max(self.now + 1, min(end, self.next_due()))
        for way in sorted(self.on_link):
            line = self.on_link.get(way)
            while line and line[0][0] <= self.now and self.awake(way[1]):
                _, sent, message = line.popleft()
                self.arrive(message, sent)
        for way in sorted(self.on_way):
            line = self.on_way.get(way)
            while line and line[0][0] <= self.now and self.has_way(*way):
                _, sent, message = line.popleft()
                self.arrive(message, sent)
        due = sorted([one[:3] for one in self.flying if one[0] <= self.now])
        flying = {one[1]: one[3] for one in self.flying}
        self.flying = [one for one in self.flying if one[0] > self.now]
        for _, serial, sent in due:
            message = flying[serial]
            a, b = message.sender, message.receiver
            if b in self.asleep:
                self.fly(message, sent, LEASE // 10)
            elif self.up[b] and (not self.up[a] or b in self.part(a)):
                self.arrive(message, sent)
        for i in range(self.size):
            if self.awake(i) and self.writes(i):
                self.write(i)
            if self.awake(i) and self.wake_due[i] <= self.now:
                self.wake(i)

    def awake(self, i: int) -> bool:
        return self.up[i] and i not in self.asleep

    def has_way(self, a: int, b: int) -> bool:
        return self.awake(b) and b in self.part(a)

    # -- clients ----------------------------------------------------------------------------------

    def ask(self, i: int, want: int = 1, priority: int = 0) -> int:
        self.asleep.discard(i)
        self.clients += 1
        number = self.clients
        self.waiting[number] = Client(number, i, self.boots[i], want, priority)
        self.request(i, number, want, priority)
        return number

    def withdraw(self, number: int) -> None:
        node = self.waiting[number].node
        self.asleep.discard(node)
        if self.give_up(node, number):
            self.waiting.pop(number, None)
        else:
            self.waiting[number].abandoned = True

    def leave(self, number: int) -> None:
        client = self.held.pop(number)
        self.asleep.discard(client.node)
        if self.up[client.node] and client.boot == self.boots[client.node]:
            self.release(client.node, number)

    def give_back(self, number: int, permits: int = 1) -> None:
        """Some of several, at a node that lives."""
        client = self.held[number]
        lives = self.up[client.node] and client.boot == self.boots[client.node]
        if client.want > permits and lives:
            self.asleep.discard(client.node)
            client.want -= permits
            client.slots = client.slots[: client.want]
            client.names = client.names[: client.want]
            self.release_some(client.node, number, permits)

    # -- the end ----------------------------------------------------------------------------------

    def run(self, ticks: int) -> None:
        end = self.now + ticks
        while self.now < end:
            self.tick(end)

    def mend(self) -> None:
        """Nothing fails any more."""
        self.loss = self.blind = self.fail = 0.0
        for disk in self.disks:
            disk.fail, disk.slowest = 0.0, min(disk.slowest, 3)
        self.slow = min(self.slow, 3)
        self.asleep.clear()
        for i in range(self.size):
            if not self.up[i] and i not in self.dead:
                self.start(i)
        for a, b in sorted(self.all_links):
            self.set_link(a, b, True)

    def quiet(self) -> bool:
        """Nothing inside is under way, there is one token, and all are in its epoch."""
        if any(self.on_link.values()) or any(self.on_way.values()):
            return False
        if any(disk.is_behind() for disk in self.disks):
            return False
        if any(isinstance(message, Inner) for _, _, _, message in self.flying):
            return False
        holders = self.usable()
        if len(holders) != 1:
            return False
        epoch = self.nodes[holders[0]].member.adopted
        return all(
            node.member.adopted == epoch == node.member.promised
            and node.epoch.inner is not None
            and not node.epoch.gate.withheld
            and node.member.proposal is None
            for node in self.nodes
        )

    def connected(self) -> bool:
        """Is everybody up, and told of every link?"""
        links = {link for i in range(self.size) for link in self.links_of(i)}
        return len(self.part(0)) == self.size and links == self.links and not self.asleep

    def is_seen(self) -> bool:
        """Does nobody take anybody for unreachable, and has nobody lately?"""
        paces = [node.timers for node in self.nodes]
        seen = [not (one.member.unreachable or one.gone_since or one.forgotten) for one in paces]
        return all(seen)

    def is_in_doubt(self) -> bool:
        """May a request be lost with a node that has crashed? Its node asks again, as soon as it
        has noticed and heard of the holder."""
        asking = {one.node for one in self.waiting.values()}.difference(self.usable())
        doubts = [self.nodes[i].timers.doubts_since != NO_DOUBTS for i in asking]
        lost = [self.unheard.get(i) == self.asked(i) for i in asking]
        return self.terms.open and any(doubts + lost)

    def asked(self, i: int) -> tuple[Epoch, int]:
        """When that node asked for everything the last time."""
        return (self.nodes[i].member.adopted, self.nodes[i].timers.asked_at)

    def links_of(self, i: int) -> list[Link]:
        """Those that the algorithm inside knows of, where they may change."""
        if self.terms.algorithm.assumes.changing_links:
            return [(min(i, j), max(i, j)) for j in self.nodes[i].epoch.linked]
        return sorted(self.links)

    def until_served(self, most: int) -> bool:
        """Everybody who waits is served and leaves."""
        end = self.now + most
        while self.now < end:
            self.all_leave()
            if not self.waiting:
                return True
            self.tick(end)
        return False

    def all_leave(self) -> None:
        for number in list(self.held):
            if number in self.held:
                self.leave(number)

    def until_whole(self, most: int) -> bool:
        """Everybody leaves, and all permits come back."""
        self.all_leave()
        end = self.now + most
        while self.now < end:
            for i in self.usable():
                token = self.nodes[i].member.holding.token
                if token is not None and token.free == self.sizes[token.epoch]:
                    return True
            self.tick(end)
        return False

    def until_sure(self, most: int) -> bool:
        end = self.now + most
        while self.now < end and self.is_in_doubt():
            self.tick(end)
        return self.until_quiet(most)

    def until_quiet(self, most: int) -> bool:
        end = self.now + most
        while self.now < end and not self.quiet():
            self.tick(end)
        return self.quiet()

    def why(self) -> str:
        return "; ".join(
            [
                f"{node.me}: {node.timers.why(self.clocks[node.me].at(self.now))}"
                for node in self.nodes
                if node.clients.waiting and self.up[node.me]
            ]
        )
