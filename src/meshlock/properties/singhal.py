"""Singhal's central claim: a request reaches a site that has the token or will have it.

**reaches-token**: a site *asks* another if its REQUEST is on its way there, or will be: who
requests and receives a REQUEST of a site that it does not believe to be requesting asks back, and
what the token knows of a request counts as that REQUEST. A request *comes to* the sites that
believe in it, that its site asks, or that it will ask back because they ask it. Start from a site
that requests, and go to all sites to which its request comes; if one of them requests itself, on to
all to which that request comes. Among these sites is the one that has the token or to which the
token is on its way; or the token itself knows of the request.

The paper argues for it by the staircase of the first guesses: of two sites, one asks the other.
"""

from __future__ import annotations

from typing import Final, NamedTuple, cast

from meshlock.algorithms.actor import Actor, Frozen, Message
from meshlock.algorithms.singhal import Request, SinghalNode, Token
from meshlock.properties.structure import Clients, Structure, Wrong

REACHES_TOKEN: Final = "reaches-token"

Requests = frozenset[tuple[int, int]]
"""Sites, and the numbers of their requests."""


class Guesses(NamedTuple):
    """What is seen of one site."""

    number: int  # of the request for which it waits; 0 if it waits for none
    believes: Requests
    coming: Requests  # REQUESTs on their way to here
    asks_back: frozenset[int]  # whom it will ask because of what is on its way to here
    token_knows: Requests | None  # of the token that is here, or on its way to here


class ReachesToken(Structure):
    def glimpse(self, node: Actor, inbox: list[Message], clients: Clients) -> Frozen:
        site = cast(SinghalNode, node)
        coming = [(one.sender, one.number) for one in inbox if isinstance(one, Request)]
        news = list(coming)
        known = None
        if site.tokens() > 0:
            known = requesting(site.token_states, site.token_numbers)
        for one in inbox:
            if isinstance(one, Token):
                known = requesting(one.states, one.numbers)
                news += enumerate(one.numbers)
        waits = site.states[site.me] == "R"
        back = [
            other
            for other, number in news
            if waits and site.states[other] != "R" and number > site.numbers[other]
        ]
        return Guesses(
            site.numbers[site.me] if waits else 0,
            requesting(site.states, site.numbers),
            frozenset(coming),
            frozenset(back),
            known,
        )

    def wrong(self, seen: tuple[int, ...], neighbours: list[list[int]]) -> list[Wrong]:
        sites = [cast(Guesses, self.glimpses[number]) for number in seen]
        for i, site in enumerate(sites):
            if site.number > 0 and site.token_knows is None and not reaches(sites, i):
                text = f"the request of {i} comes to nobody who has the token or will have it"
                return [(REACHES_TOKEN, text)]
        return []


def requesting(states: str | list[str], numbers: tuple[int, ...] | list[int]) -> Requests:
    found = enumerate(zip(states, numbers, strict=True))
    return frozenset([(site, number) for site, (state, number) in found if state == "R"])


def asks(sites: list[Guesses], i: int, j: int) -> bool:
    return (i, sites[i].number) in sites[j].coming or j in sites[i].asks_back


def comes(sites: list[Guesses], i: int, j: int) -> bool:
    """Does the request of i come to j?"""
    if (i, sites[i].number) in sites[j].believes or asks(sites, i, j):
        return True
    return asks(sites, j, i) and not any(site == j for site, _ in sites[i].believes)


def reaches(sites: list[Guesses], start: int) -> bool:
    """Does the request of this site reach the token?"""
    reached = {start}
    todo = [start]
    while todo:
        i = todo.pop()
        for j, site in enumerate(sites):
            known, came = site.token_knows, j != i and comes(sites, i, j)
            if known is not None and (came or (i, sites[i].number) in known):
                return True
            if came and j not in reached and site.number > 0:
                reached.add(j)
                todo.append(j)
    return False
