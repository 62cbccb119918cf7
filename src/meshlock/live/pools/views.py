"""What other nodes hold and wait for, asked only while somebody looks.

A page that looks has all nodes on the map asked for their view of one pool, about once a
second; questions and answers are routed, best effort (:mod:`meshlock.live.links.routed`): the
next question comes soon. While nobody looks nothing is sent.

An answer shows the pool as it was after the question had been asked, so its age is counted
from there: "last seen 0.8 s ago" means that it was so within the last 0.8 s. No answer changes
anything but what is shown.

*One picture* is put together from what nodes told. Under leases what is held stands in the ledger
that goes with the token, so it is that of one moment, and never more than there is. Without, nodes
speak for themselves and at different moments; what cannot be true together is left out, the oldest
first.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from math import inf
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec.structs import replace

from meshlock.algorithms.actor import Message
from meshlock.algorithms.recovery.records import fence_number
from meshlock.live.links.frames import BadFrame, Carry, Content, RoutedFrame, encode, reader
from meshlock.live.links.mesh import Mesh
from meshlock.live.links.rate_limit import RateLimits, keep_latest
from meshlock.live.machine.limits import MOST_NODES, Count, Free, Name, Share
from meshlock.live.pools.proofs import NOTE
from meshlock.live.pools.questions import Questions
from meshlock.live.pools.status import GrantView, Picture, RequestView, Sentence, Word

if TYPE_CHECKING:
    from meshlock.live.pools.pool import LocalPool

VIEWS = ""  # in the place of a pool's name: for the node itself
ASK, VIEW = "ask", "view"

EVERY = 1.0  # seconds between two rounds of questions, for up to AT_ONCE nodes
AT_ONCE = 64
MOST_WATCHED = 8  # pools of which answers are kept
ANSWERS_PER_SECOND = 10.0  # to one node about one pool, and as many at a stretch
COLLECTED_WITHIN = 0.25  # seconds until a node that has not answered is left out
ANSWERED_WITHIN = 30.0  # the same, where somebody looks
MOST_BYTES = 16 * 1024  # no view is longer
MOST_TOLD = 20  # grants, and waiting clients, that one answer names; the rest are counted


class LedgerView(msgspec.Struct):
    """That of a token: what is ``out`` and what is ``free`` (below 0: out, although the pool was
    made smaller) together are all permits."""

    at: tuple[Count, Count]  # its epoch and its hop
    free: Free
    out: Share
    entries: Annotated[list[GrantView], msgspec.Meta(max_length=MOST_TOLD)]  # the first


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
    holding: Annotated[list[GrantView], msgspec.Meta(max_length=MOST_TOLD)] = []
    waiting: Annotated[list[RequestView], msgspec.Meta(max_length=MOST_TOLD)] = []
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
    disk: Sentence = ""  # why it does not take what a member has to write
    unseen: float = 0.0  # seconds since the token was here last, or since the pool is known here
    ledger: LedgerView | None = None


Question = tuple[Count, Name]
Answer = tuple[Count, Name, Annotated[bytes, msgspec.Meta(max_length=MOST_BYTES)]]
"""Each names its round and its pool."""

read_view = reader(View, "a view")
read_question = reader(Question, "a question")
read_answer = reader(Answer, "an answer")


def towards(pool: LocalPool) -> str | None:
    """The neighbour through which the token is reached, as far as this node knows."""
    core = pool.adapter.core
    if core is None or core.tokens():
        return None
    if pool.adapter.members is not None:
        holder = pool.adapter.names.get(pool.adapter.members.node.timers.holder())
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
    kinds = pool.adapter.algorithm.kinds if pool.adapter.algorithm is not None else ()
    tokens = [kind.kind for kind in kinds if kind.tokens is not Message.tokens]
    alike = {name: said[name] for name in View.__struct_fields__ if name in said}
    own = {"node": pool.me, "lapsing": False}
    return View(
        **alike
        | {
            "why": str(said.get("why") or "")[:400],
            "conflict": str(said["conflict"])[:400],
            "disk": str(said.get("disk", ""))[:400],
            "towards": towards(pool),
            "held": sum(held["want"] for held in holding),
            "waits": said["queued"],
            "holding": [one | own | {"fence": text(one["fence"])} for one in holding[:MOST_TOLD]],
            "waiting": [one | {"node": pool.me} for one in waiting[:MOST_TOLD]],
            "waited": pool.adapter.measures.waited,
            "sent": sum(said["sent"].values()),
            "moved": sum(said["sent"].get(kind, 0) for kind in tokens),
            "epoch": text(said.get("epoch")) or "",
            "unreachable": [name[:100] for name in said.get("unreachable", ())][:MOST_TOLD],
            "members": len(said.get("members", ())),
            "reachable": said.get("members_reachable", 0)
            - len(said.get("members_without_vote", ())),
            "unseen": pool.token_watch.unseen_here(),
            "ledger": ledger_of(pool),
        }
    )


def place(priority: int, deadline: float | None, seconds: float) -> tuple[float, float, float]:
    """The highest priority first, of these the earliest deadline, of these the longest wait."""
    return -priority, inf if deadline is None else deadline, -seconds


def shown_place(one: Mapping[str, Any]) -> tuple[float, float, float]:
    return place(one["priority"], one["deadline"], one["seconds"])


def read(note: str) -> tuple[int, float, str]:
    """Client, seconds of the wall clock, label; of a node that wrote something else, that."""
    found = NOTE.fullmatch(note)
    return (int(found[1]), int(found[2]) / 1000, found[4]) if found else (0, 0.0, note)


def ledger_of(pool: LocalPool) -> LedgerView | None:
    """That of the token here, or of one that left and has not arrived as far as we know."""
    if pool.adapter.members is None:
        return None
    member = pool.adapter.members.node.member
    holding = member.holding
    state = holding.unaccepted.state if holding.unaccepted is not None else None
    if holding.token is not None:
        if not member.usable():
            return None  # others may have granted its permits since its lease ended
        state = holding.token.state()
    if state is None or state.epoch != member.promised:
        return None
    now, first = time.time(), pool.adapter.configuration.fences if pool.adapter.configuration else 0
    entries: list[GrantView] = []
    for entry in state.ledger[:MOST_TOLD]:
        client, granted, label = read(entry.label)
        entries.append(
            GrantView(
                node=pool.adapter.names.get(entry.node, "?"),
                want=entry.permits,
                fence=str(fence_number(entry.fence) + first),
                slots=list(pool.adapter.slot_names(entry.slots)),
                client=client,
                seconds=round(max(0.0, now - granted), 1)
                if granted
                else 0.0,  # 0: no client waited for it
                label=label,
                lapsing=entry.lapsing,
            )
        )
    out = sum([entry.permits for entry in state.ledger])
    return LedgerView((state.epoch.counter, state.hop), state.free, out, entries)


def text(value: Any) -> str | None:
    return None if value is None else str(value)[:100]


def told_by(node: str, view: View) -> View:
    """It speaks of its own clients."""
    for one in (*view.holding, *view.waiting):
        one["node"] = node
    return view


def packed(view: View) -> bytes:
    """If it is too long to send, it counts only."""
    data = encode(view)
    if len(data) <= MOST_BYTES:
        return data
    ledger = None if view.ledger is None else replace(view.ledger, entries=[])
    return encode(replace(view, holding=[], waiting=[], ledger=ledger))


# -- one picture of all views ------------------------------------------------------------


def picture(views: Mapping[str, View]) -> Picture:
    """As plain values; the caller adds ``why``."""
    known = {name: view for name, view in views.items() if view.known}
    permits = max((view.permits for view in known.values()), default=0)
    token = min((name for name, view in known.items() if view.token_here), default=None)
    inside: list[GrantView] = []
    free: int | None = None
    held: int | None = None
    surplus = 0
    if any(view.members for view in known.values()):
        told = [(view.ledger.at, name) for name, view in known.items() if view.ledger is not None]
        if told:
            token = max(told)[1]
            ledger = known[token].ledger
            assert ledger is not None
            inside = [labelled(one, known.get(one["node"])) for one in ledger.entries]
            permits = ledger.free + ledger.out
            free, surplus = max(0, ledger.free), max(0, -ledger.free)
            held = permits - free
    else:
        own = [one for view in known.values() for one in view.holding]
        own.sort(key=lambda one: one["seconds"])
        held = 0
        for one in own:
            if held + one["want"] <= permits:
                inside.append(one)
                held += one["want"]
        if token is not None:
            free = min(known[token].free_here, permits - held)
    have = {(one["node"], one["client"]) for one in inside}
    waiting = [
        one
        for view in known.values()
        for one in view.waiting
        if (one["node"], one["client"]) not in have
    ]
    waiting.sort(key=lambda one: (shown_place(one), one["node"]))
    unlisted = sum(view.waits - len(view.waiting) for view in known.values())
    return {
        "permits": permits,
        "token": token,
        "free": free,
        "held": held,
        "surplus": surplus,
        "holding": inside,
        "waiting": waiting,
        "queued": len(waiting) + unlisted,
        "why": "",
    }


def refusing_disks(views: Mapping[str, View], here: str, found: Picture) -> str:
    """That a disk keeps everybody from being served: that of the node with the token, or any
    where nobody has a token that grants. Else nothing."""
    told = {name: view.disk for name, view in views.items() if view.disk}
    if found["held"] is not None and found["token"] not in told:
        return ""
    if here in told:
        return told[here]
    return "; ".join([f"{name} says: {why}" for name, why in sorted(told.items())])


def labelled(one: GrantView, view: View | None) -> GrantView:
    """Who has a grant that was made by another node its own node says, at first only to
    the node that asks."""
    if one["client"] == 0 and one["label"] == "" and view is not None:
        for own in view.holding:
            if own["fence"] == one["fence"]:
                return {**one, "client": own["client"], "label": own["label"]}
    return one


def ahead(found: Picture, priority: int, deadline: float | None, waited: float) -> str:
    """In words, how many of those who wait are before one who has waited so long."""
    mine, others = place(priority, deadline, waited), found["waiting"]
    number = len([one for one in others if shown_place(one) < mine])
    if number == 0:
        return ""
    least = "at least " if found["queued"] > len(others) else ""
    requests = "one request" if number == 1 else f"{number} requests"
    return f", {least}{requests} ahead of you"


class Views:
    def __init__(self, mesh: Mesh, pools: Mapping[str, LocalPool]) -> None:
        self.mesh = mesh
        self.pools = pools
        self.heard: dict[str, dict[str, tuple[float, View]]] = {}  # pool, node: asked when
        self.asked: dict[str, float] = {}  # pool: when all were, because somebody looked
        self.questions: Questions[View] = Questions()  # to one node each, about one pool
        self.rates = RateLimits(MOST_NODES)  # of answers, by who asks about what
        mesh.receivers[VIEWS] = self

    # -- looking -----------------------------------------------------------------------

    def watch(self, pool: str) -> dict[str, tuple[float, View]]:
        """What others have told of this pool, with the age of it in seconds; asks for more."""
        now, heard = self.mesh.time(), self.heard.get(pool, {})

        def learn(node: str, view: View) -> None:
            if node not in heard or heard[node][0] <= now:  # not overtaken by a later answer
                heard[node] = (now, view)

        keep_latest(self.heard, pool, heard, MOST_WATCHED)
        if pool not in self.asked or now >= self.asked[pool] + self.pause():
            keep_latest(self.asked, pool, now, MOST_WATCHED)
            self.mesh.start(self.ask(pool, ANSWERED_WITHIN, learn), "views")
        return {node: (now - asked, view) for node, (asked, view) in heard.items()}

    async def collect(self, pool: str) -> dict[str, View]:
        """What all nodes that can be reached say of this pool now."""
        views = {self.mesh.name: brief(self.pools.get(pool))}
        await self.ask(pool, COLLECTED_WITHIN, views.__setitem__)
        return views

    async def ask(self, pool: str, within: float, learn: Callable[[str, View], None]) -> None:
        """Ask all nodes that can be reached, and wait for their answers, or for so long."""

        async def learned(name: str, answer: asyncio.Future[View]) -> None:
            learn(name, await answer)

        with ExitStack() as open_questions:
            answers = []
            for name in self.others():
                question = self.questions.ask(f"{name}/{pool}")
                number, answer = open_questions.enter_context(question)
                answers.append(learned(name, answer))
                self.say(name, ASK, (number, pool))
            self.mesh.flush()
            with suppress(TimeoutError):
                async with asyncio.timeout(within):
                    await asyncio.gather(*answers)

    def others(self) -> list[str]:
        link_map = self.mesh.link_map
        return [name for name in link_map.links if name != link_map.me and link_map.reaches(name)]

    def say(self, node: str, kind: str, message: Question | Answer) -> None:
        self.mesh.router.send(node, Content(VIEWS, 0, kind, encode(message)))

    def pause(self) -> float:
        """Seconds until all are asked again: the more there are, the less often."""
        return EVERY * max(1.0, len(self.mesh.link_map.ways) / AT_ONCE)

    # -- what comes --------------------------------------------------------------------

    def receive(self, sender: str, frame: Carry | RoutedFrame) -> None:
        try:
            if frame.kind == ASK:
                self.is_asked(sender, *read_question(frame.payload))
            elif frame.kind == VIEW:
                self.is_answered(sender, *read_answer(frame.payload))
        except BadFrame as error:
            self.mesh.refusals.note(sender, f"it sent an invalid view: {error}")

    def is_asked(self, asker: str, question: int, pool: str) -> None:
        if self.rates.take((asker, pool), ANSWERS_PER_SECOND, self.mesh.time()):
            self.say(asker, VIEW, (question, pool, packed(brief(self.pools.get(pool)))))

    def is_answered(self, node: str, question: int, pool: str, view: bytes) -> None:
        if question in self.questions.asked:
            told = told_by(node, read_view(view))
            self.questions.answered(f"{node}/{pool}", question, told)
