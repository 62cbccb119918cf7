"""What a node holds under leases: grants to its clients, and the token.

Rules 1 and 9 as far as they concern the ledger. Nothing here sends anything or knows a clock.
"""

from __future__ import annotations

from typing import Any

from meshlock.algorithms.actor import NIL, Frozen, Message
from meshlock.algorithms.amounts import first_of, how_many, numbers_of
from meshlock.algorithms.recovery.records import (
    GRANTS,
    MINTING,
    NEVER,
    Config,
    Entry,
    Epoch,
    Fence,
    ReleasedPart,
    TokenState,
    Unaccepted,
    new,
)
from meshlock.algorithms.subclassing import mypyc_attr
from meshlock.algorithms.variables import Variables, special


class OwnGrant:
    """Invariant: the ledger of ``epoch`` has an entry for it, of as many permits or more."""

    def __init__(
        self,
        client: int,
        permits: int,
        epoch: Epoch,
        until: int,
        slots: tuple[int, ...],
        label: str,
    ) -> None:
        self.client = client
        self.permits = permits
        self.epoch = epoch  # an older one than adopted: it runs out and is not renewed
        self.until = until
        self.slots = slots
        self.label = label


class HeldToken:
    """Invariant: free + the permits of all entries = the permits of the epoch."""

    def __init__(self, state: TokenState, until: int) -> None:
        self.epoch = state.epoch
        self.hop = state.hop
        self.free = state.free
        self.ledger = state.ledger
        self.grants = state.grants
        self.until = until

    def state(self) -> TokenState:
        fields = (self.epoch, self.hop, self.free, self.ledger, self.grants)
        state: TokenState = new(TokenState, fields)
        return state

    def strike(self, part: ReleasedPart) -> tuple[int, int]:
        """Rule 9: what is not out any more is not struck out twice. Whose grant it was, NIL if it
        is not here, and how many of its permits are out."""
        ledger = self.ledger
        for place, entry in enumerate(ledger):
            if entry.fence == part.fence:
                rest = without(entry, part)
                left = rest.permits if rest is not None else 0
                self.free += entry.permits - left
                kept = (rest,) if rest is not None else ()
                self.ledger = ledger[:place] + kept + ledger[place + 1 :]
                return entry.node, left
        return NIL, 0

    def name(self, fence: Fence, node: int, label: str) -> bool:
        """What the owner of a grant says of it; False if it has none such."""
        for place, entry in enumerate(self.ledger):
            if entry.fence == fence and entry.node == node:
                named = entry._replace(label=label)
                self.ledger = (*self.ledger[:place], named, *self.ledger[place + 1 :])
                return True
        return False

    def left(self, fence: Fence) -> int:
        """How many permits of that grant are out."""
        for entry in self.ledger:
            if entry.fence == fence:
                return entry.permits
        return 0

    def first_slots(self, want: int, config: Config) -> tuple[int, ...]:
        """Of those that there are and that are not out. There are enough: of k at most as many
        are out as permits are."""
        out = {slot for entry in self.ledger for slot in entry.slots}
        there = config.slots if len(config.slots) > 0 else numbers_of(config.permits)
        return first_of([slot for slot in there if slot not in out], want)


def without(entry: Entry, part: ReleasedPart) -> Entry | None:
    """What is out of a grant when this part has come back; None: nothing."""
    out = entry.numbers if len(entry.numbers) > 0 else numbers_of(entry.permits)
    kept = [place for place, number in enumerate(out) if not part.has(number)]
    if len(kept) == 0:
        return None
    numbers = tuple([out[place] for place in kept])
    slots = tuple([entry.slots[place] for place in kept]) if len(entry.slots) > 0 else ()
    permits = how_many(numbers)
    if numbers == numbers_of(permits):
        numbers = ()  # the first ones
    return entry._replace(permits=permits, slots=slots, numbers=numbers)


@mypyc_attr(allow_interpreted_subclasses=True)
class TokenHolding:
    """In one epoch: the token if it is here, or was sent from here, or what is known of it; and
    the answers to renewals. Made when an epoch is adopted, dropped with the next.

    Invariant: there is no token here while one that was sent from here is not acknowledged.
    """

    def __init__(self, lease: int, holder: int, hop: int) -> None:
        self.lease = lease
        self.token: HeldToken | None = None
        # a token that we sent, that nobody has acknowledged and that we have not reported
        self.unaccepted: Unaccepted | None = None
        self.unaccepted_message: Message | None = None
        self.unaccepted_until = NEVER
        self.holder = holder  # the last we know of where the token is, or will be ...
        self.holder_hop = hop  # ... at which hop; only news of a later one counts
        self.heard: dict[int, int] = {}  # member: when we sent the latest renewal it answered

    def clear_unaccepted(self) -> None:
        self.unaccepted = None
        self.unaccepted_message = None

    def surrender(self) -> None:
        """A token is reported to one proposer only, the one here and the one that we sent: else
        two ledgers could count it. If no ledger does, one lease is waited out."""
        self.token = None
        self.clear_unaccepted()

    def hop(self, proposing: bool) -> int:
        """That of our token, or what stands for it."""
        if self.token is not None:
            return self.token.hop
        return MINTING if proposing else GRANTS


def freeze_token(part: TokenHolding, now: int) -> Frozen:
    """One whose lease has ended freezes as one that never had any. That answers questions for the
    ledger which the other does not: an answer less is one that was lost."""
    return () if part.token is None else (part.token.state(), max(0, part.token.until - now))


def thaw_token(part: TokenHolding, frozen: Any) -> None:
    part.token = HeldToken(*frozen) if frozen else None


def freeze_heard(part: TokenHolding, now: int) -> Frozen:
    """Answers that a lease may still rest on."""
    heard, lease = part.heard, part.lease
    return tuple(sorted([(who, at - now) for who, at in heard.items() if at + lease > now]))


def thaw_heard(part: TokenHolding, frozen: Any) -> None:
    part.heard = dict(frozen)


HOLDING_VARIABLES = Variables(
    special("token", freeze_token, thaw_token),
    "holder",
    "holder_hop",
    special("heard", freeze_heard, thaw_heard),
)
"""But for the token that was sent: :mod:`.epoch` knows its message."""
