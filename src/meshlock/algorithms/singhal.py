"""Singhal's heuristic algorithm: ask only those who are likely to have the token.

Singhal, *A heuristically-aided algorithm for mutual exclusion in distributed systems*,
IEEE Transactions on Computers 38(5), 1989.

**Problem.** One permit; the holder of the token may enter. Asking everybody, as Suzuki
and Kasami do, costs N messages per entry even when no site competes.

**Idea.** Each site keeps a guess of what every other site is doing, and asks just those
that it believes to be *requesting*: one of them has the token, or will have it soon. The
guesses start as a staircase (site i believes that all sites below i are requesting, and
site 0 has the token), so of any two sites at least one would ask the other. Every step
keeps that: who learns of a request while requesting itself asks back if it has not asked
that site already. The token carries guesses too; a site that leaves compares them with its
own, keeps whichever has the higher sequence number, and passes the token to a requesting
site. Old requests are known by their sequence number and dropped.

**Assumptions.** A complete graph; reliable channels, **not** FIFO (each request carries its
number, and a number that the token has seen served is never believed again, so a late
REQUEST does no harm); no crash; a client leaves in finite time.

======================  ======================  ==========================================
paper                   here                    meaning
======================  ======================  ==========================================
SV_i                    states                  of each site, as far as known: "R" requesting, "E"
                                                executing, "H" holding the idle token, "N" none
SN_i                    numbers                 highest known number of a request of each
TSV                     token_states            the same guesses as they travel with the
TSN                     token_numbers           token; empty at a site without it
======================  ======================  ==========================================

**Departures.** The notes we start from stop before the end of the release; the erratum's
number (docs/algorithms/singhal.md) marks what was added:

- S1 on leaving, the token goes to a site known to be requesting. Taking the lowest number
  starves the high ones. *Fair* takes the first one after us in the order of the ring
  i+1, i+2 ... i: a waiting site cannot be passed over, so once the token knows of its
  request at most N - 1 others enter before it, whatever happened in earlier times. (The
  least served site first, by sequence number, is fair in the long run only: a newcomer may
  overtake an old site as often as it has been served less.)
- S2 the staircase.
- S3 a site does not ask itself.
- S4 a site that holds the idle token enters at once.
- S5 a repair. The token may overtake a REQUEST that is still on its way to us from a site
  that has been served since; once the token has raised our number of that site, the late
  REQUEST is dropped, and then neither of the two would ask the other any more. With three
  sites and two requests each that ends in a deadlock, on FIFO links too. So what the token knows
  of a request that has not reached us counts as that REQUEST, come while we are requesting:
  we ask back. It costs what the REQUEST would have cost, and nothing when none is late.

**Cost**, with the token counted: (N+1)/2 messages per entry at light load (exactly
(N+1)/2 - 1/N on average if one request at a time comes from any site, the holder
included: who was served d sites ago asks the d - 1 served since), N at saturation;
synchronisation delay one message delay T; mean wait at light load 2T(1-1/N).
"""

from __future__ import annotations

from typing import ClassVar

from meshlock.algorithms.actor import NIL, Algorithm, Assumptions, Effect, Frozen, Message, Network
from meshlock.algorithms.site import Numbered, OneClientSite, TokenMessage, sites


class Request(Numbered):
    """REQUEST(i, sn): the sender asks for the sn-th time."""


class Token(TokenMessage):
    """The token with its vectors TSV and TSN."""

    wire: ClassVar = ("letters", "counts")

    def __init__(self, receiver: int, states: str, numbers: tuple[int, ...]) -> None:
        super().__init__(receiver)
        self.states = states
        self.numbers = numbers


class SinghalNode(OneClientSite):
    no_state: ClassVar = ("size", "fair")

    def __init__(self, me: int, out: list[Effect], network: Network, order: str) -> None:
        super().__init__(me, out, network)
        self.fair = order == "fair"
        self.states = ["R" if other < me else "N" for other in range(self.size)]  # S2
        self.numbers = [0] * self.size
        self.token_states: list[str] = []
        self.token_numbers: list[int] = []
        if me == 0:
            self.states[me] = "H"
            self.token_states = ["N"] * self.size
            self.token_numbers = [0] * self.size

    # -- 1. requesting the critical section -------------------------------------------

    def request(self, client: int, want: int, priority: int) -> None:
        """1a."""
        self.client = client
        if self.states[self.me] == "H":  # S4
            self.execute()
            return
        self.states[self.me] = "R"
        self.numbers[self.me] += 1
        for site in self.others():  # S3
            if self.states[site] == "R":
                self.send(Request(site, self.numbers[self.me]))

    def receive(self, message: Message) -> None:
        if isinstance(message, Request):
            self.receive_request(message.sender, message.number)
        elif isinstance(message, Token):
            self.receive_token(message)

    def receive_request(self, i: int, sn: int) -> None:
        """1b: when a site receives REQUEST(i, sn)."""
        if self.numbers[i] >= sn:  # outdated
            return
        known = self.states[i]
        self.numbers[i] = sn
        self.states[i] = "R"
        match self.states[self.me]:
            case "N" | "E":
                pass
            case "R":
                if known != "R":
                    self.send(Request(i, self.numbers[self.me]))
            case "H":
                self.token_states[i] = "R"
                self.token_numbers[i] = sn
                self.states[self.me] = "N"
                self.pass_token(i)

    def receive_token(self, token: Token) -> None:
        self.token_states = list(token.states)
        self.token_numbers = list(token.numbers)
        self.ask_back()
        self.execute()

    def ask_back(self) -> None:
        """S5: the token has overtaken requests that are still on their way to us."""
        for site in self.others():
            if self.token_numbers[site] > self.numbers[site]:
                self.receive_request(site, self.token_numbers[site])

    # -- 2. executing the critical section, and releasing it ------------------------------

    def execute(self) -> None:
        self.states[self.me] = "E"
        self.enter(self.client)

    def release(self, client: int) -> None:
        self.client = NIL
        self.states[self.me] = "N"
        self.token_states[self.me] = "N"
        self.compare()
        waiting = [site for site in range(self.size) if self.states[site] == "R"]
        if waiting:
            self.pass_token(self.arbitrate(waiting))  # S1
        else:
            self.states[self.me] = "H"

    def compare(self) -> None:
        """Of two guesses the one with the higher number is the younger."""
        for site in range(self.size):
            if self.numbers[site] > self.token_numbers[site]:
                self.token_states[site] = self.states[site]
                self.token_numbers[site] = self.numbers[site]
            else:
                self.states[site] = self.token_states[site]
                self.numbers[site] = self.token_numbers[site]

    def arbitrate(self, waiting: list[int]) -> int:
        above = [site for site in waiting if site > self.me]
        return above[0] if self.fair and above else waiting[0]

    def pass_token(self, site: int) -> None:
        self.send(Token(site, "".join(self.token_states), tuple(self.token_numbers)))
        self.token_states = []
        self.token_numbers = []

    # -- observers ------------------------------------------------------------------------

    def tokens(self) -> int:
        return 1 if self.token_states else 0

    def free_permits(self) -> int:
        return 1 if self.states[self.me] == "H" else 0

    def freeze(self) -> Frozen:
        """The guesses are written as words, one letter for each site."""
        words = {"states": "".join(self.states), "token_states": "".join(self.token_states)}
        found = zip(self.variables, super().freeze(), strict=True)
        return tuple([words.get(name, value) for name, value in found])


ALGORITHMS = [
    Algorithm(
        "singhal",
        "Singhal's heuristic: ask only those who may have the token",
        "Singhal, IEEE Transactions on Computers 38(5), 1989",
        "mutex",
        sites(SinghalNode, option="arbitration"),
        (Request, Token),
        assumes=Assumptions(complete_graph=True),
        structure=("reaches-token",),
        options={"arbitration": ("fair", "lowest-id")},
    )
]
