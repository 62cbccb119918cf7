"""Mistakes one could make with an (h,k)-arbiter."""

from __future__ import annotations

from meshlock.algorithms.arbiter import ArbiterNode, Claim, Grant, Yield
from meshlock.algorithms.interface import Effect, Message, Network, Node
from meshlock.algorithms.mutants.mutant import Case, Make, Mutant
from meshlock.algorithms.registry import find


class MajoritiesForAll(ArbiterNode):
    def quorum_for(self, want: int) -> list[int]:
        return super().quorum_for(self.permits)


class CountsHeads(ArbiterNode):
    def free(self) -> int:
        return self.permits - len(self.granted)


class NeverAsksBack(ArbiterNode):
    def ask_back(self, first: Claim) -> None:
        pass


class YieldsWhileInside(ArbiterNode):
    def inquire(self, member: int) -> None:
        if member in self.granted_by:
            self.granted_by.remove(member)
            self.send(Yield(member))


class ForgetsWhoYields(ArbiterNode):
    def yielded(self, site: int) -> None:
        self.take_back(site)
        self.serve()


class ServesNobodyAfterARelease(ArbiterNode):
    def returned(self, site: int, count: int) -> None:
        self.take_back(site)


class KeepsItsQuorum(ArbiterNode):
    def release_some(self, client: int, permits: int) -> None:
        self.held -= permits
        self.release_claims()
        self.handle_own()


class TakesAnyGrant(ArbiterNode):
    def handle(self, message: Message) -> None:
        if isinstance(message, Grant):
            message.number = self.number
        super().handle(message)


class ReleasesBeforeItIsGranted(ArbiterNode):
    def release_some(self, client: int, permits: int) -> None:
        super().release_some(client, permits)
        self.release_claims()
        self.handle_own()


def nodes_of(kind: type[ArbiterNode]) -> Make:
    def make(
        network: Network, permits: int, options: dict[str, str], out: list[Effect]
    ) -> list[Node]:
        return [kind(me, out, network.size, permits) for me in range(network.size)]

    return make


ARBITER = find("arbiter")

CROWD = [
    "request 0",
    *[f"deliver {kind}" for kind in ("REQUEST 0>1", "REQUEST 0>2", "GRANT 1>0", "GRANT 2>0")],
    *[f"request {site}" for site in (1, 2, 3)],
    *[f"deliver REQUEST {way}" for way in ("1>2", "1>3", "1>4", "2>3", "2>4", "2>0")],
    *[f"deliver REQUEST {way}" for way in ("3>4", "3>0", "3>1")],
    *[f"deliver GRANT {way}" for way in ("3>1", "4>1", "3>2", "4>2", "4>3")],
]
"""A site is in with all permits; three others have the grants of all sites that it did not ask."""

MUTANTS: list[Mutant] = [
    Mutant(
        ARBITER,
        "majorities-for-all",
        "every request asks a majority, as if it were for all k",
        nodes_of(MajoritiesForAll),
        Case(3, "complete", "0 1 2", permits=2),
        breaks="safety",
        steps=9,
    ),
    Mutant(
        ARBITER,
        "counts-heads",
        "a member counts the requests that it has granted, not their permits",
        nodes_of(CountsHeads),
        Case(3, "complete", "0:2 1:2", permits=3),
        breaks="safety",
        steps=10,
    ),
    Mutant(
        ARBITER,
        "never-asks-back",
        "a member does not recall permits for an earlier request",
        nodes_of(NeverAsksBack),
        Case(3, "complete", "0 1 2"),
        breaks="served",
        steps=6,
    ),
    Mutant(
        ARBITER,
        "yields-while-inside",
        "a site that is inside yields permits when it receives INQUIRE",
        nodes_of(YieldsWhileInside),
        Case(3, "complete", "0 1 2"),
        breaks="safety",
        steps=6,
    ),
    Mutant(
        ARBITER,
        "forgets-who-yields",
        "a member whose permits were yielded does not queue the site that yielded them",
        nodes_of(ForgetsWhoYields),
        Case(3, "complete", "0 1 2"),
        breaks="served",
        steps=8,
    ),
    Mutant(
        ARBITER,
        "serves-nobody-after-a-release",
        "a member whose permits are released does not grant them to the next request",
        nodes_of(ServesNobodyAfterARelease),
        Case(3, "complete", "0 1"),
        breaks="served",
        steps=7,
    ),
    Mutant(
        ARBITER,
        "keeps-its-quorum",
        "a part is released to the quorum of the larger request, which the smaller one keeps",
        nodes_of(KeepsItsQuorum),
        Case(5, "complete", "0:3 1 2 3", permits=3, release_parts=["0:2"], lead=CROWD),
        breaks="safety",
        steps=29,
    ),
    Mutant(
        ARBITER,
        "releases-before-it-is-granted",
        "a part is released at once, while the sites that are missing in the quorum are asked",
        nodes_of(ReleasesBeforeItIsGranted),
        Case(5, "complete", "0:3 1 2 3", permits=3, release_parts=["0:2"], lead=CROWD),
        breaks="safety",
        steps=30,
    ),
    Mutant(
        ARBITER,
        "takes-any-grant",
        "a grant counts for the present request, whichever it was for",
        nodes_of(TakesAnyGrant),
        Case(3, "complete", "0:2 0:2 1:2 2", permits=2, release_parts=["0:1"]),
        breaks="safety",
        steps=7,
    ),
]
