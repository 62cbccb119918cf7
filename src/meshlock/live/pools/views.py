"""What other nodes hold and wait for, asked only while somebody looks.

A page that is watched asks all nodes on the map for their view of one pool, about once a
second; questions and answers are routed, best effort (:mod:`meshlock.live.links.routed`): the
next question comes soon. While nobody looks nothing is sent, and nothing is kept.

An answer shows the pool as it was after the question had been asked, so its age is counted
from there: "last seen 0.8 s ago" means that it was so within the last 0.8 s.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from math import inf
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec.structs import replace

from meshlock.algorithms.actor import Message
from meshlock.algorithms.recovery.records import fence_number
from meshlock.live.links.frames import UNREADABLE, Carry, Content, RoutedFrame
from meshlock.live.machine.limits import MOST_NAMED, MOST_NODES, Count, Free, Name, Priority, Share

if TYPE_CHECKING:
    from meshlock.live.links.mesh import Mesh
    from meshlock.live.pools.pool import LocalPool

VIEWS = ""
"""In the place of a pool's name: for the node itself."""

ASK, VIEW = "ask", "view"

EVERY = 1.0
"""Seconds between two rounds of questions, for up to :data:`AT_ONCE` nodes."""

AT_ONCE = 64
WATCHED_FOR = 3.0
"""Seconds after which nobody looks any more, unless he has looked again."""

MOST_WATCHED = 8
MOST_ROUNDS = 32
ANSWERS_EVERY = 0.1
"""Seconds: whoever asks more often about a pool in the long run is not answered every time."""

AT_A_STRETCH = 10
"""Questions that are answered although they come faster."""

COLLECTED_WITHIN = 0.25
"""Seconds until whoever has not answered is left out."""

MOST_BYTES = 16 * 1024
"""No view is longer."""

MOST_TOLD = 20
"""Grants, and waiting clients, that one answer names; the rest are counted."""

Sentence = Annotated[str, msgspec.Meta(max_length=400)]
Word = Annotated[str, msgspec.Meta(max_length=100)]


class Held(msgspec.Struct):
    want: Share
    priority: Priority
    fence: Word | None = None  # as text: pages count exactly up to 2**53 only
    lease: float | None = None  # seconds that are left; None in pools without leases
    slots: Annotated[list[Word], msgspec.Meta(max_length=MOST_NAMED)] = []
    label: Sentence = ""
    seconds: float = 0.0  # since it was granted
    client: Count = 0
    met: bool | None = None  # its deadline, if it had one


class Waits(msgspec.Struct):
    want: Share
    priority: Priority
    seconds: float
    client: Count = 0  # its number on its node
    label: Sentence = ""
    deadline: float | None = None  # seconds until it, below 0 if it has passed


class Out(msgspec.Struct):
    """What stands in the ledger, or what a node that has none says of its own clients."""

    node: Word
    want: Share
    fence: Word | None
    slots: Annotated[list[Word], msgspec.Meta(max_length=MOST_NAMED)]
    client: Count
    seconds: float  # since it was granted
    label: Sentence
    lapsing: bool = False  # its node is lost; the permits come back when its lease is over


class Ledger(msgspec.Struct):
    """That of a token: what is ``out`` and what is ``free`` (below 0: out, although the pool was
    made smaller) together are all permits."""

    at: tuple[Count, Count]  # its epoch and its hop
    free: Free
    out: Share
    entries: Annotated[list[Out], msgspec.Meta(max_length=MOST_TOLD)]  # the first


class View(msgspec.Struct):
    """One node's view of one pool, short enough to travel."""

    known: bool
    why: Sentence = ""  # it is not known, or somebody waits
    algorithm: Word = ""
    permits: Share = 0
    founder: Word = ""
    token_here: bool = False
    towards: Word | None = None  # the neighbour through which the token is reached
    free_here: Share = 0
    held: Share = 0
    waits: Count = 0
    holding: Annotated[list[Held], msgspec.Meta(max_length=MOST_TOLD)] = []
    waiting: Annotated[list[Waits], msgspec.Meta(max_length=MOST_TOLD)] = []
    entries: Count = 0
    waited: float = 0.0  # by all clients together, in seconds
    sent: Count = 0
    moved: Count = 0  # how often the token was sent on from here
    conflict: Sentence = ""
    epoch: Word = ""
    unreachable: Annotated[list[Word], msgspec.Meta(max_length=MOST_TOLD)] = []
    members: Count = 0  # of a pool with leases
    reachable: Count = 0
    quorum: Count = 0
    unseen: float = 0.0  # seconds since the token was here last, or since the pool is known here
    name: Word = ""
    ledger: Ledger | None = None

    def own(self) -> list[Out]:
        """What its own clients hold."""
        return [
            Out(self.name, one.want, one.fence, one.slots, one.client, one.seconds, one.label)
            for one in self.holding
        ]


Question = tuple[Count, Name]
Answer = tuple[Count, Name, Annotated[bytes, msgspec.Meta(max_length=MOST_BYTES)]]
"""Each names its round and its pool."""

_encode = msgspec.msgpack.Encoder().encode
_view = msgspec.msgpack.Decoder(View).decode
_question = msgspec.msgpack.Decoder(Question).decode
_answer = msgspec.msgpack.Decoder(Answer).decode


def towards(pool: LocalPool) -> str | None:
    """The neighbour through which the token is reached, as far as this node knows."""
    core = pool.core
    if core is None or core.tokens():
        return None
    if pool.members is not None:
        holder = pool.adapter.names.get(pool.members.node.timers.holder())
        return pool.mesh.link_map.route(holder) if holder is not None else None
    return pool.adapter.names.get(core.towards())


def brief(pool: LocalPool | None) -> View:
    """What :meth:`LocalPool.describe` says, cut to what fits."""
    if pool is None:
        return View(False, "this node does not know it")
    said = pool.describe()
    if not said["known"]:
        return View(False, str(said["why"])[:400])
    holding = sorted(said["holding"], key=lambda held: -held["priority"])
    waiting = sorted(said["waiting"], key=shown_place)
    kinds = pool.algorithm.kinds if pool.algorithm is not None else ()
    tokens = [kind.kind for kind in kinds if kind.tokens is not Message.tokens]
    unreachable = said.get("unreachable") or ()
    return View(
        True,
        str(said.get("why") or "")[:400],
        said["algorithm"],
        said["permits"],
        said["founder"],
        said["token_here"],
        towards(pool),
        said["free_here"],
        sum(held["want"] for held in holding),
        said["queued"],
        [
            Held(
                *(held["want"], held["priority"], text(held["fence"]), held["lease"]),
                *(list(held["slots"]), held["label"], held["seconds"], held["client"]),
                held["met"],
            )
            for held in holding[:MOST_TOLD]
        ],
        [
            Waits(
                *(one["want"], one["priority"], one["seconds"], one["client"]),
                *(one["label"], one["deadline"]),
            )
            for one in waiting[:MOST_TOLD]
        ],
        said["entries"],
        pool.measures.waited,
        sum(said["sent"].values()),
        sum(said["sent"].get(kind, 0) for kind in tokens),
        str(said["conflict"])[:400],
        text(said.get("epoch")) or "",
        [str(name)[:100] for name in unreachable][:MOST_TOLD]
        if isinstance(unreachable, list | tuple)
        else [],
        len(said.get("members", ())),
        said.get("members_reachable", 0) - len(said.get("members_without_vote", ())),
        said.get("quorum", 0),
        pool.token_watch.unseen_here(),
        pool.me,
        ledger_of(pool),
    )


def place(priority: int, deadline: float | None, seconds: float) -> tuple[float, float, float]:
    """The highest priority first, of these the earliest deadline, of these who has waited most."""
    return -priority, inf if deadline is None else deadline, -seconds


def shown_place(one: Mapping[str, Any]) -> tuple[float, float, float]:
    return place(one["priority"], one["deadline"], one["seconds"])


def read(note: str) -> tuple[int, float, str]:
    """Client, seconds of the wall clock, label; of a node that wrote something else, that."""
    try:
        client, since, _, label = note.split(" ", 3)
        return int(client), int(since) / 1000, label
    except ValueError:
        return 0, 0, note


def ledger_of(pool: LocalPool) -> Ledger | None:
    """That of the token here, or of one that left and has not arrived as far as we know."""
    if pool.members is None:
        return None
    node = pool.members.node
    state = (
        node.member.holding.unaccepted.state if node.member.holding.unaccepted is not None else None
    )
    if node.member.holding.token is not None:
        if not node.member.usable():
            return None  # others may have granted its permits since its lease ended
        state = node.member.holding.token.state()
    if state is None or state.epoch != node.member.promised:
        return None
    now, first = time.time(), pool.configuration.fences if pool.configuration else 0
    found: list[Out] = []
    for entry in state.ledger[:MOST_TOLD]:
        client, granted, label = read(entry.label)
        fence, slots = (
            str(fence_number(entry.fence) + first),
            list(pool.adapter.slot_names(entry.slots)),
        )
        node_name = pool.adapter.names.get(entry.node, "?")
        since = max(0.0, now - granted) if granted else 0.0  # else nobody waited for it any more
        out = Out(node_name, entry.permits, fence, slots, client, since, label)
        out.lapsing = entry.lapsing
        found.append(out)
    out_of_it = sum([entry.permits for entry in state.ledger])
    return Ledger((state.epoch.counter, state.hop), state.free, out_of_it, found)


def unseen(views: Views, pool: LocalPool) -> float | None:
    """For how many seconds nobody whom this node reaches has had the token; None if somebody has
    not known yet."""
    link_map, heard = pool.mesh.link_map, views.watch(pool.name)
    found = [pool.token_watch.unseen_here()]
    for name in link_map.links:
        if name != link_map.me and link_map.reaches(name):
            if name not in heard:
                return None
            age, view = heard[name]
            if view.known:
                found.append(view.unseen + age)
    return min(found)


def text(value: Any) -> str | None:
    return None if value is None else str(value)[:100]


def packed(view: View) -> bytes:
    """If it is too long to send, it counts only."""
    data = _encode(view)
    if len(data) <= MOST_BYTES:
        return data
    ledger = None if view.ledger is None else replace(view.ledger, entries=[])
    return _encode(replace(view, holding=[], waiting=[], ledger=ledger))


class Collection:
    def __init__(
        self, views: dict[str, View], missing: set[str], all_here: asyncio.Future[None]
    ) -> None:
        self.views = views
        self.missing = missing
        self.all_here = all_here

    def add(self, node: str, view: View) -> None:
        if node in self.missing:
            self.missing.discard(node)
            self.views[node] = view
            if not self.missing and not self.all_here.done():
                self.all_here.set_result(None)


class Views:
    def __init__(self, mesh: Mesh, pools: Mapping[str, LocalPool]) -> None:
        self.mesh = mesh
        self.pools = pools
        self.watched: dict[str, float] = {}  # pool: until when
        self.heard: dict[str, dict[str, tuple[float, View]]] = {}  # pool, node: asked when
        self.rounds: dict[int, tuple[str, float]] = {}  # question: pool, when
        self.collections: dict[int, Collection] = {}  # question: what came of it so far
        self.last = 0
        self.answered: dict[tuple[str, str], float] = {}  # who asked about what: when
        self.asking: asyncio.TimerHandle | None = None
        mesh.receivers[VIEWS] = self

    # -- looking -----------------------------------------------------------------------

    def watch(self, pool: str) -> dict[str, tuple[float, View]]:
        """What others have told of this pool, with the age of it in seconds; asks for more."""
        now = self.mesh.time()
        if pool in self.watched or len(self.watched) < MOST_WATCHED:
            self.watched[pool] = now + WATCHED_FOR
        if self.asking is None:
            self.mesh.failures.run("views", self.ask)
        heard = self.heard.get(pool, {})
        return {node: (now - asked, view) for node, (asked, view) in heard.items()}

    def ask(self) -> None:
        """Ask all, and again after a while if somebody still looks; whatever fails meanwhile."""
        self.asking = None
        try:
            self.ask_all()
        finally:
            if self.watched:
                self.asking = self.mesh.failures.later(self.pause(), "views", self.ask)

    def ask_all(self) -> None:
        now = self.mesh.time()
        for pool in [pool for pool, until in self.watched.items() if until < now]:
            del self.watched[pool]
            self.heard.pop(pool, None)
        if not self.watched:
            self.rounds.clear()
            return
        nodes = self.others()
        for pool in self.watched:
            self.last += 1
            self.rounds[self.last] = (pool, now)
            question = Content(VIEWS, 0, ASK, _encode((self.last, pool)))
            for name in nodes:
                self.mesh.router.send(name, question)
        self.mesh.flush()
        while len(self.rounds) > MOST_ROUNDS:
            del self.rounds[next(iter(self.rounds))]

    def others(self) -> list[str]:
        link_map = self.mesh.link_map
        return [name for name in link_map.links if name != link_map.me and link_map.reaches(name)]

    async def collect(self, pool: str) -> dict[str, View]:
        """What all nodes that can be reached say of this pool now."""
        views = {self.mesh.name: brief(self.pools.get(pool))}
        self.last += 1
        question = self.last
        collection = Collection(views, set(self.others()), self.mesh.loop.create_future())
        if not collection.missing:
            return views
        self.collections[question] = collection
        try:
            content = Content(VIEWS, 0, ASK, _encode((question, pool)))
            for name in collection.missing:
                self.mesh.router.send(name, content)
            self.mesh.flush()
            async with asyncio.timeout(COLLECTED_WITHIN):
                await collection.all_here
        except TimeoutError:
            pass
        finally:
            del self.collections[question]
        return views

    def pause(self) -> float:
        """Seconds until all are asked again: the more there are, the less often."""
        return EVERY * max(1.0, len(self.mesh.link_map.ways) * len(self.watched) / AT_ONCE)

    # -- what comes --------------------------------------------------------------------

    def receive(self, sender: str, frame: Carry | RoutedFrame) -> None:
        try:
            if frame.kind == ASK:
                self.answer(sender, *_question(frame.payload))
            elif frame.kind == VIEW:
                self.learn(sender, *_answer(frame.payload))
        except UNREADABLE as error:
            self.mesh.refusals.note(sender, f"it sent an invalid view: {error}")

    def answer(self, asker: str, question: int, pool: str) -> None:
        now, who = self.mesh.time(), (asker, pool)
        due = max(self.answered.get(who, 0.0), now - AT_A_STRETCH * ANSWERS_EVERY)
        if due > now:
            return
        if len(self.answered) >= MOST_NODES:
            self.answered.clear()
        self.answered[who] = due + ANSWERS_EVERY
        view = packed(brief(self.pools.get(pool)))
        self.mesh.router.send(asker, Content(VIEWS, 0, VIEW, _encode((question, pool, view))))

    def learn(self, node: str, question: int, pool: str, view: bytes) -> None:
        collection = self.collections.get(question)
        if collection is not None:
            collection.add(node, replace(_view(view), name=node))
            return
        asked_about, asked = self.rounds.get(question, ("", 0.0))
        if asked_about != pool or pool not in self.watched:
            return
        if node not in self.mesh.link_map.links or node == self.mesh.name:
            return
        heard = self.heard.setdefault(pool, {})
        if node not in heard or heard[node][0] <= asked:  # not overtaken by a later answer
            heard[node] = (asked, replace(_view(view), name=node))

    def close(self) -> None:
        if self.asking is not None:
            self.asking.cancel()
