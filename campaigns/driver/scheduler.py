"""Who decides what happens next: stories that are known to be hard, and chance; then the end."""

from __future__ import annotations

from bisect import bisect

from meshlock.algorithms.actor import NIL

from .deliveries import MOST_STEPS, Deliveries
from .judge import Violation
from .links import Way, carries, joined, pair_of
from .setup import Draw, Pair
from .world import World


class Scheduler(Deliveries):
    def __init__(self, world: World, draw: Draw) -> None:
        super().__init__(world, draw)
        self.deaf: set[int] = set()  # the node that does not hear what was kept back last
        self.clients = 0
        self.changes = 0

    def run(self) -> None:
        if self.setup.joined:
            for i, j in self.setup.links:
                self.world.do("form", i, j)
            if self.draw.likely(0.7):
                self.deliver_all()
        habits = self.setup.habits
        for story in habits.opening:
            self.ask(self.draw.between(1, self.setup.size - 1))
            self.deliver_all()
            getattr(self, story)()
        doings = [getattr(self, name) for name, _ in habits.weights]
        total = sum([weight for _, weight in habits.weights])
        marks, mark = [], 0.0
        for _, weight in habits.weights:
            mark += weight / total
            marks.append(mark)
        for _ in range(habits.length):
            doings[min(bisect(marks, self.draw.chance()), len(doings) - 1)]()
        self.finish()

    # -- what may happen next -----------------------------------------------------------------

    def slow_link(self) -> None:
        """One link is slow while another changes and requests find their ways without it."""
        ways = sorted(self.world.links.sees)
        if not ways:
            return
        i, j = self.draw.among(ways)
        self.held |= {(i, j), (j, i)}
        self.change()
        self.deliver_all()
        self.ask(i, self.setup.highest())
        self.ask(j)
        for way in ((j, i), (i, j)):
            for _ in range(self.draw.between(0, 2)):
                self.ask()
            self.deliver_all()
            if self.draw.likely(0.3):
                self.leave()
                self.deliver_all()
            self.held.discard(way)
        self.deliver_all()

    def slow_token(self) -> None:
        """The token is on a slow link while others change, or while who asked for it gives up
        and somebody else asks there; in the end that link may fail."""
        draw = self.draw
        if draw.likely(0.6):
            self.part()
            self.ask()
            self.deliver_all()
        way = self.send_token()
        if way is None:
            return
        self.held.add(way)
        for _ in range(draw.between(0, 3)):
            self.change()
            self.deliver_all()
        if draw.likely(0.5):
            self.withdraw(way[1])
            if draw.likely(0.5):
                self.ask_unheard(way[1])
                self.deliver_all()
        if draw.likely(0.7):
            self.change(way)
        self.held.discard(way)
        self.deliver_all()
        for _ in range(draw.between(0, 3)):
            self.ask()
        self.deliver_all()

    def send_token(self) -> Way | None:
        """Ask, and leave, until a token is under way."""
        lines = self.world.links.lines
        for _ in range(4):
            self.ask()
            for _ in range(20):
                for way, line in lines.items():
                    if line[-1].tokens():
                        return way
                if not self.deliver():
                    break
            self.leave()
        return None

    def part(self) -> None:
        """Some nodes lose all links to the others."""
        if not self.setup.partitions or self.changes >= self.setup.changes:
            return
        self.changes += 1
        some = {i for i in range(self.setup.size) if self.draw.likely(0.5)}
        for pair in sorted(self.world.links.working):
            if (pair[0] in some) != (pair[1] in some):
                self.fail(pair)
        self.deliver_all()

    def withdraw(self, at: int = NIL) -> None:
        waiting = self.world.judge.waiting.values()
        able = [client.number for client in waiting if at in (NIL, client.node)]
        if able:
            self.world.do("withdraw", self.draw.among(able))

    def ask_unheard(self, at: int = NIL) -> None:
        """A request that is kept back on its way, if it has one to go."""
        before = {way: len(line) for way, line in self.world.links.lines.items()}
        self.ask(at)
        lines = self.world.links.lines
        for way in [way for way in lines if len(lines[way]) > before.get(way, 0)]:
            self.held.add(way)
            self.deaf = {way[1]}

    def ask(self, at: int = NIL, priority: int = NIL) -> None:
        judge, setup, draw = self.world.judge, self.setup, self.draw
        if self.clients >= setup.requests:
            return
        busy = [client.node for client in (*judge.waiting.values(), *judge.inside.values())]
        able = [i for i in range(setup.size) if busy.count(i) < setup.clients]
        if not able:
            return
        self.clients += 1
        if at == NIL and draw.likely(setup.habits.focus):
            able = [i for i in able if i in self.deaf] or able
        i, want = draw.among(able), draw.between(1, setup.most_wanted)
        i = at if at in able else i
        self.choose(i)
        if priority == NIL:
            priority = setup.urgency(draw)
        self.world.do("ask", self.clients, i, want, priority)

    def ask_calmly(self) -> None:
        """Nothing is in flight before, nor after: ties are the order of asking."""
        self.calm()
        self.ask()
        self.deliver_all()

    def change_priority(self) -> None:
        waiting = list(self.world.judge.waiting)
        if waiting:
            priority = self.setup.urgency(self.draw, 2)
            self.world.do("change_priority", self.draw.among(waiting), priority)

    def release_part(self) -> None:
        judge = self.world.judge
        able = [client.number for client in judge.inside.values() if client.want > 1]
        if able:
            client = self.draw.among(able)
            self.choose(judge.inside[client].node)
            part = self.draw.between(1, judge.inside[client].want - 1)
            self.world.do("release_part", client, part)

    def leave(self) -> None:
        inside = list(self.world.judge.inside)
        if inside:
            client = self.draw.among(inside)
            self.choose(self.world.judge.inside[client].node)
            self.world.do("leave", client)

    def hold(self) -> None:
        """Keep back what is on a way: any, one with something on it, or one with a token on it."""
        links, draw = self.world.links, self.draw
        kind = draw.between(0, 2)
        ways = sorted(links.sees)
        if kind > 0 and links.lines:
            ways = list(links.lines)
            if kind > 1:
                ways = [way for way in ways if carries(links.lines[way][-1])] or ways
        if ways:
            i, j = draw.among(ways)
            self.held.add((i, j))
            self.deaf = {j}
            if draw.likely(self.setup.habits.both_ways):
                self.held.add((j, i))

    def change(self, way: Way = (NIL, NIL)) -> None:
        """Fail or form a link; a network that may not fall apart keeps connected."""
        if self.changes >= self.setup.changes:
            return
        self.changes += 1
        links = self.world.links
        there = sorted(links.working)
        if not self.setup.partitions:
            there = [pair for pair in there if self.connected_without(pair)]
        absent = [pair for pair in self.all_pairs() if pair not in links.working]
        if pair_of(*way) in there:
            self.fail(pair_of(*way))
        elif absent and (not there or self.draw.likely(0.4)):
            reached = joined(self.setup.size, links.working)
            across = [(i, j) for i, j in absent if (i in reached) != (j in reached)]
            i, j = self.draw.among(across or absent)
            self.world.do("form", *((i, j) if self.draw.likely(0.5) else (j, i)))
        elif there:
            self.fail(self.draw.among(self.worst(there)))

    def fail(self, pair: Pair) -> None:
        if self.setup.failures == "drain":
            self.drain(pair)
        i, j = pair
        self.world.do("fail", *((i, j) if self.draw.likely(0.5) else (j, i)))

    def worst(self, links: list[Pair]) -> list[Pair]:
        """Those whose failure does most harm: they carry a token or permits, the token
        has just gone there, or their end does not hear what is kept back; by chance, any."""
        world, habits = self.world, self.setup.habits
        worst: list[Pair] = []
        if self.draw.likely(habits.aim):
            loads = [message for message in world.links.under_way() if carries(message)]
            loaded = {pair_of(message.sender, message.receiver) for message in loads}
            worst = [pair for pair in links if pair in loaded]
        if not worst and self.draw.likely(habits.focus):
            worst = [pair for pair in links if pair == world.last_token_way]
        if not worst and self.draw.likely(habits.focus):
            worst = [pair for pair in links if self.deaf & set(pair)]
        return worst or links

    def connected_without(self, pair: Pair) -> bool:
        rest = self.world.links.working - {pair}
        return len(joined(self.setup.size, rest)) == self.setup.size

    def all_pairs(self) -> list[Pair]:
        return [(i, j) for j in range(self.setup.size) for i in range(j)]

    # -- the end ------------------------------------------------------------------------------

    def finish(self) -> None:
        """The network is made whole, everything is delivered, everybody leaves."""
        draw, links = self.draw, self.world.links
        while not links.connected():
            reached = joined(self.setup.size, links.working)
            across = [(i, j) for i, j in self.all_pairs() if (i in reached) != (j in reached)]
            self.world.do("form", *draw.among(across))
        slow = self.setup.habits.slow
        for _ in range(MOST_STEPS):
            if self.world.judge.inside and draw.likely(0.3 - slow):
                self.leave()
            elif self.held and draw.likely(0.02):
                self.let_go()
            elif not self.deliver():
                if self.held:
                    self.let_go()
                elif self.world.judge.inside:
                    self.leave()
                else:
                    self.world.end()
                    return
        raise Violation("rest", f"{MOST_STEPS} steps after the last change, and no end")
