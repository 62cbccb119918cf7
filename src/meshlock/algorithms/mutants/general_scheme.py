"""Mistakes one could make in the general scheme, tried in each of its instances."""

from __future__ import annotations

from typing import cast

from meshlock.algorithms.general_scheme import Behaviour, Request, SchemeNode, Token
from meshlock.algorithms.interface import NIL, Algorithm, Effect, Message, Network, Node
from meshlock.algorithms.mutants.mutant import Case, Make, Mutant
from meshlock.algorithms.queues import Fifo
from meshlock.algorithms.registry import find


class KeepsAndSends(SchemeNode):
    def forward(self, asker: int) -> None:
        had = self.token_here
        super().forward(asker)
        self.token_here = had

    def stand_in(self, asker: int) -> None:
        had = self.token_here
        super().stand_in(asker)
        self.token_here = had


class ForgetsWhoAsksMeanwhile(SchemeNode):
    def receive(self, message: Message) -> None:
        if isinstance(message, Request) and self.asked:
            return
        super().receive(message)


class EntersWithoutSayingSo(SchemeNode):
    def enter_cs(self) -> None:
        super().enter_cs()
        if self.token_here:
            self.asked = False


class KeepsTheLoan(SchemeNode):
    def release(self, client: int) -> None:
        self.lender = self.me
        super().release(client)


class GivesAwayTheLoan(SchemeNode):
    def token(self, lender: int, sender: int) -> None:
        passed_on = len(self.out)
        super().token(lender, sender)
        for effect in self.out[passed_on:]:
            if isinstance(effect, Token):
                effect.lender = -1


class AsksInAnothersName(SchemeNode):
    def stand_in(self, asker: int) -> None:
        asked = len(self.out)
        super().stand_in(asker)
        for effect in self.out[asked:]:
            if isinstance(effect, Request):
                effect.origin = asker


class AsksWithoutSayingSo(SchemeNode):
    def enter_cs(self) -> None:
        super().enter_cs()
        if not self.token_here:
            self.asked = False


class MakesTheLoanItsOwn(SchemeNode):
    def token(self, lender: int, sender: int) -> None:
        acts_for_another = self.mandator not in (NIL, self.me)
        super().token(NIL if acts_for_another else lender, sender)


class LendsAndRests(SchemeNode):
    def stand_in(self, asker: int) -> None:
        lends = self.token_here
        super().stand_in(asker)
        if lends:
            self.asked = False


class ForgetsForWhomItAsks(SchemeNode):
    def stand_in(self, asker: int) -> None:
        super().stand_in(asker)
        self.mandator = NIL


class Lifo(Fifo):
    def pop(self) -> int:
        return self.items.pop()


class LastInFirstOut(SchemeNode):
    def __init__(
        self, me: int, out: list[Effect], father: int, behaviour: Behaviour, waiting: Fifo
    ) -> None:
        super().__init__(me, out, father, behaviour, Lifo())


def nodes_of(origin: Algorithm, kind: type[SchemeNode]) -> Make:
    """The instance's own nodes, each replaced by one of this kind."""

    def make(
        network: Network, permits: int, options: dict[str, str], out: list[Effect]
    ) -> list[Node]:
        sound = [cast(SchemeNode, node) for node in origin.make(network, permits, options, out)]
        return [kind(node.me, out, node.father, node.behaviour, node.waiting) for node in sound]

    return make


Death = tuple[str, str, int]
"""The letter of a mistake, the property that it breaks, and in how many steps."""


def mutants_of(instance: str, nodes: int, topology: str, deaths: list[Death]) -> list[Mutant]:
    """The instance with each mistake named by its letter."""
    origin = find(instance)
    others = " ".join([str(node) for node in range(1, nodes)])
    all_nodes = f"0 {others}"
    mistakes: dict[str, tuple[str, str, type[SchemeNode], str]] = {
        "k": (
            "keeps-and-sends",
            "a node that sends the token believes that it still has it",
            KeepsAndSends,
            others,
        ),
        "f": (
            "forgets-who-asks-meanwhile",
            "a request that comes while the node is busy is dropped, not queued",
            ForgetsWhoAsksMeanwhile,
            all_nodes,
        ),
        "e": (
            "enters-without-saying-so",
            "a node that enters with the token does not set asked",
            EntersWithoutSayingSo,
            all_nodes,
        ),
        "l": (
            "keeps-the-loan",
            "a borrower does not return the token to the lender",
            KeepsTheLoan,
            others,
        ),
        "g": (
            "gives-away-the-loan",
            "a proxy passes on a lent token as if it were given",
            GivesAwayTheLoan,
            others,
        ),
        "n": (
            "asks-in-anothers-name",
            "a proxy asks its father in the requester's name and waits for the token itself",
            AsksInAnothersName,
            others,
        ),
        "a": (
            "asks-without-saying-so",
            "a node that asks for the token does not set asked",
            AsksWithoutSayingSo,
            all_nodes,
        ),
        "o": (
            "makes-the-loan-its-own",
            "a proxy that gets a lent token for another treats it as given",
            MakesTheLoanItsOwn,
            all_nodes,
        ),
        "r": (
            "lends-and-rests",
            "a proxy that lends the token does not set asked",
            LendsAndRests,
            others,
        ),
        "w": (
            "forgets-for-whom-it-asks",
            "a proxy asks its father but does not note its mandator",
            ForgetsForWhomItAsks,
            others,
        ),
    }
    found: list[Mutant] = []
    for letter, breaks, steps in deaths:
        name, mistake, kind, requests = mistakes[letter]
        case = Case(nodes, topology, requests)
        make = nodes_of(origin, kind)
        found.append(Mutant(origin, name, mistake, make, case, breaks=breaks, steps=steps))
    return found


def last_in_first_out(instance: str, steps: int) -> Mutant:
    origin = find(instance)
    return Mutant(
        origin,
        "last-in-first-out",
        "the latest request is served first, so two nodes can starve a third",
        nodes_of(origin, LastInFirstOut),
        Case(4, "star", "1 2 3", repeat=True),
        breaks="liveness",
        steps=steps,
    )


IN_EVERY: list[Death] = [("k", "one-token", 2), ("f", "oriented", 3), ("e", "conservation", 1)]

MUTANTS: list[Mutant] = [
    *mutants_of(
        "general-scheme",
        3,
        "line",
        [
            *IN_EVERY,
            ("l", "scheme-2", 4),
            ("g", "oriented", 4),
            ("n", "oriented", 2),
            ("a", "scheme-1", 2),
            ("o", "scheme-2", 4),
            ("r", "scheme-3", 2),
            ("w", "oriented", 2),
        ],
    ),
    *mutants_of("centralized", 3, "star", [*IN_EVERY, ("l", "scheme-2", 4)]),
    last_in_first_out("centralized", 10),
    *mutants_of("naimi-trehel", 3, "complete", IN_EVERY),
    *mutants_of("raymond", 3, "line", [*IN_EVERY, ("n", "oriented", 2)]),
    last_in_first_out("raymond", 18),
    *mutants_of("shortcut", 3, "line", [*IN_EVERY, ("l", "scheme-2", 6), ("n", "oriented", 2)]),
    *mutants_of("open-cube", 4, "complete", [*IN_EVERY, ("l", "scheme-2", 4)]),
    *mutants_of("gateway", 4, "complete", [*IN_EVERY, ("l", "scheme-2", 4), ("n", "oriented", 2)]),
]
