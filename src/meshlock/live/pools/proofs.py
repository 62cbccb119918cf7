"""That permits come back from whom they were granted to, and what a ledger says of a grant."""

from __future__ import annotations

import re
import struct
from hashlib import blake2b
from secrets import randbits
from typing import Final

from meshlock.algorithms.recovery.layer import Layer
from meshlock.algorithms.recovery.records import Entry, Fence, Parts, ReleasedPart
from meshlock.live.machine import limits
from meshlock.live.machine.labels import fitting

Proof = bytes

SIZE: Final = 16  # bytes of a proof
NUMBERS = struct.Struct("!QQQ")

NONE_YET: Final = "-"

NOTE: Final = re.compile(
    r"([0-9]{1,16}) ([0-9]{1,16}) (-|[0-9]{1,16}\.[0-9A-Za-z]{32}) (.*)", re.DOTALL
)
"""Client, milliseconds of the wall clock, commitment, label."""


class Proofs:
    """That permits come back from whom they were granted to.

    Permits return with messages of the algorithm inside, from node to node, until they meet the
    token; a node on the way could say that a grant is over which is not. Therefore its entry in the
    ledger has a *commitment*: a value, hashed once for each permit of the grant. Who releases some
    tells a value that is that much nearer to the first one. No other node knows it, each node that
    meets the token can check it, and it is good for nothing but this.

    The owner of a grant commits itself when the token leaves: before, no other node can strike it
    out. What was lent, and comes back while the token is still here, its owner brings itself; it
    commits itself when it acknowledges the grant, which is before the token leaves. What stands in
    the first ledger of an epoch comes back by way of the founder, to whom its owner says so itself:
    the founder commits itself when it mints the token.
    """

    def __init__(self, node: Layer) -> None:
        self.node = node
        self.member = node.member
        self.key = randbits(256).to_bytes(32)  # of this life
        self.told: dict[ReleasedPart, Proof] = {}  # of others, which go along with what is pending

    def minted(self, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
        """The founder commits itself in place of the owners."""
        return tuple([self.committed(entry) for entry in entries])

    def handed(self, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
        """What was granted since the token came here, and goes along with it."""
        fresh = [entry for entry in entries if commitment(entry.label) == NONE_YET]
        if len(fresh) == 0:
            return entries
        return tuple([self.committed(entry) if entry in fresh else entry for entry in entries])

    def committed(self, entry: Entry) -> Entry:
        ours = f"{entry.permits}.{self.value(entry.fence, entry.permits).hex()}"
        return entry._replace(label=committed(entry.label, ours))

    def value(self, fence: Fence, left: int) -> Proof:
        """What shows that at most this number of permits are still held."""
        what = NUMBERS.pack(fence.epoch.counter, fence.number, self.member.adopted.counter)
        return hashed(blake2b(what, key=self.key, digest_size=SIZE).digest(), left)

    # -- on the way ----------------------------------------------------------------------------

    def attach(self, returned: Parts) -> tuple[Proof, ...]:
        """To a message that brings them back."""
        return tuple([self.told.pop(part, b"") or self.own(part.fence) for part in returned])

    def own(self, fence: Fence) -> Proof:
        node = self.node
        if fence.epoch != self.member.adopted:
            return self.value(fence, node.epoch.stand_ins.get(fence, (0, 0))[1])
        grant = self.member.grants.get(fence)
        return self.value(fence, grant.permits if grant is not None else 0)

    def learn(self, returned: Parts, proofs: tuple[Proof, ...]) -> None:
        """They will be pending here."""
        self.told.update(zip(returned, proofs, strict=False))
        if len(self.told) > 4 * limits.LEASED_PERMITS.most:
            pending = self.node.epoch.keeper.pending
            self.told = {part: one for part, one in self.told.items() if part in pending}

    # -- where the token is --------------------------------------------------------------------

    def refutes(
        self, ledger: tuple[Entry, ...], sender: int, returned: Parts, proofs: tuple[Proof, ...]
    ) -> bool:
        """Does any of these come back from somebody else than it was granted to?"""
        if len(proofs) != len(returned):
            return True
        entries = {entry.fence: entry for entry in ledger if entry.node != sender}
        return any(
            part.fence in entries and not self.is_proved(entries[part.fence], part, proof)
            for part, proof in zip(returned, proofs, strict=True)
        )

    def unproved(self, ledger: tuple[Entry, ...]) -> list[ReleasedPart]:
        """What is pending here, would be struck out of this ledger, and may not be."""
        node = self.node
        entries = {entry.fence: entry for entry in ledger}
        return [
            part
            for part in node.epoch.keeper.pending
            if part.fence in entries
            and not self.is_proved(
                entries[part.fence], part, self.told.get(part) or self.own(part.fence)
            )
        ]

    def is_proved(self, entry: Entry, part: ReleasedPart, proof: Proof) -> bool:
        committed_to = commitment(entry.label)
        if not committed_to:
            return True  # nobody has ever waited for it
        number, _, value = committed_to.partition(".")
        if not number.isdecimal() or int(number) > limits.LEASED_PERMITS.most:
            return False  # or it has never left its owner
        all_permits = int(number)
        over = max(0, all_permits - part.left)  # this number is no longer held, it says
        reached = hashed(proof, over)
        for _ in range(all_permits - over + 1):
            if reached.hex() == value:
                return True
            reached = hashed(reached, 1)
        return False


def hashed(value: bytes, times: int) -> bytes:
    for _ in range(times):
        value = blake2b(value, digest_size=SIZE).digest()
    return value


# -- notes: what a ledger says of a grant ------------------------------------------------------


def is_note(note: str) -> bool:
    """Is it as :func:`.members.note` writes it, or :func:`committed`?"""
    found = NOTE.fullmatch(note)
    return found is not None and found[4] == fitting(found[4])


def commitment(note: str) -> str:
    """A word; empty where there never is one."""
    words = note.split(" ", 3)
    return words[2] if len(words) == 4 else ""


def committed(note: str, commitment: str) -> str:
    """The same with another one, if it has one."""
    words = note.split(" ", 3)
    return " ".join([*words[:2], commitment, words[3]]) if len(words) == 4 else note
