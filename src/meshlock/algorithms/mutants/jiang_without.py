"""Jiang's algorithm with some of its repairs undone: what each of them is good for.

R1 to R11 are the repairs that :mod:`meshlock.algorithms.jiang` marks where they act and
docs/algorithms/what-is-wrong.md explains. Any set of them can be undone at once; what remains
is then as printed, or, for R9 to R11, as it was before the repair was found.
"""

from __future__ import annotations

from typing import ClassVar

from meshlock.algorithms.interface import NIL, Effect, Frozen, Message, Network, Node
from meshlock.algorithms.jiang import (
    BROADCAST,
    Asking,
    Call,
    JiangNode,
    Release,
    Request,
    Rules,
    Token,
    Update,
)
from meshlock.algorithms.mutants.jiang import nodes_of
from meshlock.algorithms.mutants.made import Case, Make, Mutant
from meshlock.algorithms.queues import Entry
from meshlock.algorithms.registry import find
from meshlock.algorithms.reverse_link import Height
from meshlock.errors import Refused

PREFIX = "jiang/without-"

UNDONE: dict[str, str] = {
    "R1": "permits that are released are counted, but no waiting request is checked against them",
    "R2": "a waiting holder gives the token to whoever asks and forgets its own request, one "
    "that is inside gives it to nobody, and the token moves even if no permit is free",
    "R3": "a REQUEST is added to the queue though its sender has an entry there",
    "R4": "the neighbour that has our request is not updated when it becomes more or less urgent, "
    "or is withdrawn",
    "R5": "RELEASE and UPDATE go to the lowest neighbour and make it next, whoever was asked",
    "R6": "the last link fails, the request is still taken to be at that neighbour, and permits "
    "that cannot be sent are lost",
    "R7": "a node that gets the token still has as next the neighbour that it asked",
    "R8": "what a neighbour sent before it received the token from us is believed",
    "R9": "a token that moves is announced to all neighbours",
    "R10": "a request that moves elsewhere is not withdrawn where it was",
    "R11": "a token that comes back does not serve those who requested it meanwhile",
}
"""What each repair's absence means, in a sentence."""


class JiangWithout(JiangNode):
    """A node that lacks the repairs in ``undone``; R9 is an option of all nodes, see below."""

    no_state: ClassVar = (
        *JiangNode.no_state,
        "undone",
        "looking",
        "token_came",
        "giving",
    )

    def __init__(
        self,
        me: int,
        out: list[Effect],
        rules: Rules,
        height: Height,
        holder: bool,
        undone: frozenset[str],
    ) -> None:
        super().__init__(me, out, rules, height, holder)
        self.undone = undone
        # only while a handler runs:
        self.looking = True
        self.token_came = False
        self.giving: Entry | None = None

    # -- the holder ---------------------------------------------------------------------

    def receive(self, message: Message) -> None:
        self.looking = not ("R1" in self.undone and isinstance(message, Release))
        super().receive(message)
        self.looking = True

    def decide(self) -> None:
        if not self.looking:
            return  # R1
        if "R2" in self.undone:
            self.decide_as_printed()
        else:
            super().decide()

    def decide_as_printed(self) -> None:
        """R2 undone: giveTokenToFrontOfQ, whose line 14 passes the token on to who waits when
        a client enters; REQUEST line 4 does so only while nobody is inside."""
        if len(self.clients) > 0:
            return
        while not self.queue.is_empty():
            front = self.queue.first()
            if front.neighbour != NIL:
                self.give(front)
                return
            if front.want <= self.t:
                self.let_in(front)
            elif len(self.asking) > 0:
                self.queue.remove(front)
            else:
                return

    def receive_token(self, token: Token) -> None:
        asked = self.next
        self.token_came = True
        super().receive_token(token)
        self.token_came = False
        if "R7" in self.undone and self.holder:
            self.next = asked

    # -- those who called for the token -----------------------------------------------

    def answer_calls(self) -> None:
        if "R11" not in self.undone or self.token_came:
            super().answer_calls()

    def receive_call(self, call: Call) -> None:
        super().receive_call(call)
        if "R11" in self.undone and self.holder and call.node in self.calls:
            self.answer(NIL, call.node, call.number)

    # -- our request at another node --------------------------------------------------

    def pursue(self) -> None:
        if "R4" in self.undone and self.told and not self.queue.is_empty():
            self.remember(self.queue.first())  # as if it had been sent
        super().pursue()
        if "R6" in self.undone and len(self.views) == 0:
            self.stranded = 0

    def take_back(self) -> None:
        here = self.next in self.views and self.views[self.next] < self.height
        if here and "R4" in self.undone:
            return
        if not here and "R10" in self.undone:
            if self.told and self.holder and self.rules.moves != BROADCAST:
                self.link(self.next)  # which was thought to be enough
            self.untell()
            return
        super().take_back()

    def send(self, message: Message) -> None:
        if isinstance(message, Update):
            if "R5" in self.undone and message.want > 0:
                message.receiver = self.lowest()
            if "R6" in self.undone and message.receiver not in self.views:
                return  # to a node that is no neighbour any more
        super().send(message)
        if "R5" in self.undone and isinstance(message, (Release, Update)):
            self.next = message.receiver

    def link_down(self, peer: int) -> None:
        told = self.told if self.next == peer else ()
        super().link_down(peer)
        if "R6" in self.undone and told and not self.holder and len(self.views) == 0:
            self.next = peer
            if not self.queue.is_empty():
                self.remember(self.queue.first())

    # -- what neighbours say -----------------------------------------------------------

    def see(self, j: int, height: Height) -> None:
        if "R8" in self.undone:
            self.unheard.discard(j)
        super().see(j, height)

    def receive_request(self, request: Request) -> None:
        if "R3" in self.undone:
            self.asking.pop(request.sender, None)
        super().receive_request(request)
        self.list_askers()

    def give(self, entry: Entry) -> None:
        self.giving = entry
        super().give(entry)

    def put(self, j: int, asking: Asking) -> None:
        super().put(j, asking)
        self.list_askers()

    def delete(self, j: int) -> None:
        """All entries of j; without R3, giving the token takes out but the first."""
        given, self.giving = self.giving, None
        if given is not None and "R3" in self.undone:
            self.queue.remove(given)
            self.list_askers()
            return
        while j in self.asking:
            super().delete(j)
            self.list_askers()

    def list_askers(self) -> None:
        """R3 undone: a neighbour may have several entries; ``asking`` has its first."""
        self.asking = {}
        for entry in reversed(self.queue.all()):
            if entry.neighbour != NIL:
                self.asking[entry.neighbour] = entry

    def thaw(self, state: Frozen) -> None:
        super().thaw(state)
        self.list_askers()


def nodes_without(undone: frozenset[str]) -> Make:
    def node(me: int, out: list[Effect], rules: Rules, height: Height, holder: bool) -> JiangNode:
        return JiangWithout(me, out, rules, height, holder, undone)

    nodes = nodes_of(node)

    def make(
        network: Network, permits: int, options: dict[str, str], out: list[Effect]
    ) -> list[Node]:
        if "R9" in undone:
            options = {**options, "moves": "broadcast"}
        return nodes(network, permits, options, out)

    return make


def mutant(
    rules: list[str], case: Case, breaks: str = "", steps: int = 0, *, large: bool = False
) -> Mutant:
    return Mutant(
        find("jiang"),
        f"without-{'+'.join(rules)}",
        "; ".join([UNDONE[rule] for rule in rules]),
        nodes_without(frozenset(rules)),
        case,
        breaks=breaks,
        steps=steps,
        large=large,
    )


ROUND = ["up 0-2", "down 1-2"]
"""On a line of three, the last node's link moves to the other end: a ring, then a line again."""

MUTANTS: list[Mutant] = [
    mutant(["R1"], Case(2, "line", "0:1@9 1:2@5", permits=2), "served", 7),
    mutant(["R2"], Case(3, "line", "2:1@5 1:1@6 0:1@1"), "order", 15),
    mutant(["R3"], Case(3, "complete", "0:1@1 1:1@5 2:1@9", changes=["down 0-2", "up 0-2"])),
    mutant(["R4"], Case(4, "edges:0-1,1-2,0-3", "0:1@1 2:1@1 3:1@5 1:1@9"), "order", 9),
    mutant(
        ["R5"],
        Case(3, "line", "2:1@5 0:1@3 2:1@1", permits=2, changes=ROUND, clients=2),
        "served",
        25,
    ),
    mutant(["R6"], Case(3, "line", "0:1@1 2:1@5", changes=ROUND), "served", 10),
    mutant(["R7"], Case(3, "line", "0:1@1 2:1@5", changes=ROUND)),
    mutant(["R8"], Case(3, "line", "0:1@1 1:1@5 2:1@9"), "downhill", 5),
    mutant(["R9"], Case(3, "line", "0:1@9 1:2@5 2:1@1", permits=2)),
    mutant(
        ["R10"],
        Case(4, "complete", "0:1@2 1:2@3 2:1@2 3:1@4", permits=2, changes=["down 0-2"]),
        "order",
        33,
        large=True,
    ),
    mutant(
        ["R11"],
        Case(
            3,
            "line",
            "0:1@0 1:1@0 2:1@0",
            changes=["down 0-1", "up 0-2", "down 0-2"],
            failures="return",
            options={"raises": "1"},
        ),
        "served",
        15,
    ),
]


def without(rules: list[str]) -> Mutant:
    """Several repairs undone at once, in the set-up of the first of them."""
    known = list(UNDONE)
    for rule in rules:
        if rule not in UNDONE:
            raise Refused(
                f"There is no repair '{rule}' of jiang to be undone: choose among "
                f"{known[0]} to {known[-1]}."
            )
    chosen = [rule for rule in known if rule in rules]
    if not chosen:
        raise Refused(f"Say which repairs to undo, such as {known[0]}.")
    first = MUTANTS[known.index(chosen[0])]
    return first if len(chosen) == 1 else mutant(chosen, first.case)
