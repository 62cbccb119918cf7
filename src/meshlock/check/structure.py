"""Which properties of whole states are judged of an algorithm, and at what cost.

Of each place only the number of its glimpse is kept, and each combination of these is judged
once, or again after too many others: they are far fewer than the states.
"""

from __future__ import annotations

from typing import Final

from meshlock.algorithms.actor import Algorithm
from meshlock.check.links import Pair
from meshlock.errors import Refused
from meshlock.properties.downhill import DOWNHILL, Downhill
from meshlock.properties.own import OwnProperties, own_name
from meshlock.properties.scheme import PROPERTIES as SCHEME
from meshlock.properties.scheme import Scheme
from meshlock.properties.singhal import REACHES_TOKEN, ReachesToken
from meshlock.properties.structure import Both, Structure, Wrong

NAMES: Final = (DOWNHILL, REACHES_TOKEN, *SCHEME)
MOST_SOUND: Final = 1 << 16


def structure(algorithm: Algorithm, judged: set[str]) -> Structure | None:
    """What is to be judged of every state of this algorithm, if anything."""
    own = [one for one in algorithm.structure if not isinstance(one, str)]
    names = {one for one in algorithm.structure if isinstance(one, str)}
    for name in names:
        if name not in NAMES:
            known = ", ".join(NAMES)
            raise Refused(f"{algorithm.name} claims '{name}'; a structure is one of {known}.")
    proved = proved_by_papers(judged & names)
    own = [judge for judge in own if own_name(judge) in judged]
    if not own:
        return proved
    return OwnProperties(own) if proved is None else Both(proved, OwnProperties(own))


def proved_by_papers(names: set[str]) -> Structure | None:
    if not names:
        return None
    if DOWNHILL in names:
        return Downhill(names)
    return ReachesToken(names) if REACHES_TOKEN in names else Scheme(names)


class Sound:
    """Judges combinations of glimpses, and keeps those in which nothing was wrong."""

    def __init__(self, structure: Structure, size: int) -> None:
        self.structure = structure
        self.size = size
        self.known: set[tuple[int, ...]] = set()
        self.neighbours: dict[frozenset[Pair], list[list[int]]] = {}

    def wrong(self, seen: tuple[int, ...], links: frozenset[Pair]) -> list[Wrong]:
        found = self.structure.wrong(seen, self.near(links))
        if not found:
            if len(self.known) >= MOST_SOUND:
                self.known.clear()
            self.known.add(seen)
        return found

    def near(self, links: frozenset[Pair]) -> list[list[int]]:
        """Each node's neighbours."""
        found = self.neighbours.get(links)
        if found is None:
            found = [[] for _ in range(self.size)]
            for one, other in links:
                found[one].append(other)
                found[other].append(one)
            self.neighbours[links] = found
        return found
