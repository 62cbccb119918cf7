"""Mistakes one could make in Singhal's algorithm."""

from __future__ import annotations

from meshlock.algorithms.interface import Effect, Network, Node
from meshlock.algorithms.mutants.mutant import Case, Make, Mutant
from meshlock.algorithms.registry import find
from meshlock.algorithms.singhal import HOLDING, NONE, REQUESTING, SinghalNode


class NoStaircase(SinghalNode):
    def __init__(self, me: int, out: list[Effect], size: int, fair: bool) -> None:
        super().__init__(me, out, size, fair)
        for site in range(me):
            self.states[site] = NONE


class NoAskingBack(SinghalNode):
    def requested(self, site: int, number: int) -> None:
        if self.states[self.me] == REQUESTING:
            if not self.outdated(site, number):
                self.numbers[site] = number
                self.states[site] = REQUESTING
            return
        super().requested(site, number)


class IgnoresTheTokensNews(SinghalNode):
    def ask_back(self) -> None:
        pass


class OverwritesTheIdleToken(SinghalNode):
    def request(self, client: int, want: int, priority: int) -> None:
        if self.states[self.me] == HOLDING:
            self.states[self.me] = NONE
        super().request(client, want, priority)


class BelievesOldNews(SinghalNode):
    def compare(self) -> None:
        for site in range(self.size):
            if self.numbers[site] > self.token_numbers[site]:
                self.states[site] = self.token_states[site]
                self.numbers[site] = self.token_numbers[site]
            else:
                self.token_states[site] = self.states[site]
                self.token_numbers[site] = self.numbers[site]


class KeepsAndSends(SinghalNode):
    def pass_token(self, site: int) -> None:
        states, numbers = self.token_states, self.token_numbers
        super().pass_token(site)
        self.token_states, self.token_numbers = states, numbers


def nodes_of(kind: type[SinghalNode]) -> Make:
    def make(
        network: Network, permits: int, options: dict[str, str], out: list[Effect]
    ) -> list[Node]:
        fair = options["arbitration"] == "fair"
        return [kind(me, out, network.size, fair) for me in range(network.size)]

    return make


SINGHAL = find("singhal")

MUTANTS: list[Mutant] = [
    Mutant(
        SINGHAL,
        "no-staircase",
        "at the start nobody is believed to be requesting, so nobody is asked",
        nodes_of(NoStaircase),
        Case(2, "complete", "1"),
        breaks="served",
        steps=1,
    ),
    Mutant(
        SINGHAL,
        "no-asking-back",
        "a requesting site does not ask the sites whose requests it receives",
        nodes_of(NoAskingBack),
        Case(3, "complete", "0 1 2"),
        breaks="served",
        steps=7,
    ),
    Mutant(
        SINGHAL,
        "ignores-the-tokens-news",
        "a site does not ask the sites whose requests the token has overtaken (S5 undone)",
        nodes_of(IgnoresTheTokensNews),
        Case(3, "complete", "0 1 2 0 1 2"),
        breaks="served",
        steps=15,
    ),
    Mutant(
        SINGHAL,
        "overwrites-the-idle-token",
        "the holder of the idle token asks for it instead of entering (S4 undone)",
        nodes_of(OverwritesTheIdleToken),
        Case(2, "complete", "0"),
        breaks="conservation",
        steps=1,
    ),
    Mutant(
        SINGHAL,
        "believes-old-news",
        "on leaving, the older of two states of a site is kept",
        nodes_of(BelievesOldNews),
        Case(3, "complete", "0 1 2"),
        breaks="served",
        steps=4,
    ),
    Mutant(
        SINGHAL,
        "keeps-and-sends",
        "a site that sends the token keeps a copy",
        nodes_of(KeepsAndSends),
        Case(2, "complete", "1"),
        breaks="one-token",
        steps=2,
    ),
]
