"""What nodes say to each other in order to recover; see :mod:`.layer`.

A message of the algorithm inside goes in an envelope, :class:`Inner`.
"""

from __future__ import annotations

from typing import ClassVar, Final

from meshlock.algorithms.actor import NIL, Effect, Frozen, Message
from meshlock.algorithms.recovery.records import (
    Config,
    Entry,
    Epoch,
    Fence,
    FirstLedger,
    Parts,
    Report,
    Returns,
    TokenState,
)
from meshlock.algorithms.subclassing import mypyc_attr


class Inner(Message):
    """A message of the algorithm inside, for that epoch and that life of the receiver only.

    A token's ``state`` goes with it, and what is ``left`` of its lease at sending; the carrier
    fills in ``travelled``, an upper bound of the time under way. ``returned``: parts of grants that
    it brings back. ``lent``: the entry of a grant that it makes to the receiver, under the same
    lease. Nodes have their numbers on the envelope, and in it the names that the algorithm gives
    them.
    """

    def __init__(
        self,
        receiver: int,
        epoch: Epoch,
        boot: int,
        message: Message,
        state: TokenState | None = None,
        left: int = 0,
        returned: Parts = (),
        lent: Entry | None = None,
        travelled: int = 0,
    ) -> None:
        self.sender = NIL
        self.receiver = receiver
        self.epoch = epoch
        self.boot = boot
        self.message = message
        self.state = state
        self.left = left
        self.returned = returned
        self.lent = lent
        self.travelled = travelled
        self.urgent = message.urgent
        self.proofs: tuple[bytes, ...] = ()  # of what is returned, where nodes need some

    def tokens(self) -> int:
        return self.message.tokens()

    def permits(self) -> int:
        return self.message.permits()

    def lends(self) -> int:
        return self.message.lends()

    def is_timed(self) -> bool:
        """Is it good for a time only, from its sending?"""
        return self.state is not None or self.lent is not None

    def seal(self) -> Frozen:
        """What recovery adds to the message."""
        return (
            *(self.epoch, self.boot, self.state, self.left, self.returned),
            *(self.lent, self.travelled),
        )

    def freeze(self) -> Frozen:
        return (self.kind, *self.seal(), self.message.freeze())


def content(message: Message) -> Message:
    """What it says: itself, or the message of the algorithm inside that is in it."""
    return message.message if isinstance(message, Inner) else message


@mypyc_attr(allow_interpreted_subclasses=True)
class OfEpoch(Message):
    """It speaks of an epoch."""

    wire: ClassVar[tuple[object, ...]] = (Epoch,)

    def __init__(self, receiver: int, epoch: Epoch) -> None:
        super().__init__(receiver)
        self.epoch = epoch


@mypyc_attr(allow_interpreted_subclasses=True)
class OfToken(OfEpoch):
    """It speaks of the token of an epoch, at a hop."""

    wire: ClassVar[tuple[object, ...]] = (Epoch, "hop")

    def __init__(self, receiver: int, epoch: Epoch, hop: int) -> None:
        super().__init__(receiver, epoch)
        self.hop = hop


class Propose(OfEpoch):
    """Promise this epoch, and report."""

    wire: ClassVar = (Epoch, Config)

    def __init__(self, receiver: int, epoch: Epoch, config: Config) -> None:
        super().__init__(receiver, epoch)
        self.config = config


class Promise(OfEpoch):
    """Yes: nothing lower any more; and this is what I have."""

    wire: ClassVar = (Epoch, Report)

    def __init__(self, receiver: int, epoch: Epoch, report: Report) -> None:
        super().__init__(receiver, epoch)
        self.report = report


class Refuse(Message):
    """No: your configuration is not mine, which is this."""

    wire: ClassVar = (Config,)

    def __init__(self, receiver: int, config: Config) -> None:
        super().__init__(receiver)
        self.config = config


class Higher(OfEpoch):
    """No: I have promised this epoch already."""


class Ledger(Message):
    """With this the epoch begins; also its first renewal, sent at that time by that boot."""

    wire: ClassVar = (FirstLedger, "count", "clock")

    def __init__(self, receiver: int, first: FirstLedger, boot: int, sent: int) -> None:
        super().__init__(receiver)
        self.first = first
        self.boot = boot
        self.sent = sent


class Renew(OfEpoch):
    """Is this epoch still the highest you know? Sent by that boot, at that time. ``hop``: that
    of the sender's token, or MINTING or GRANTS."""

    wire: ClassVar = (Epoch, "count", "hop", "clock")

    def __init__(self, receiver: int, epoch: Epoch, boot: int, hop: int, sent: int) -> None:
        super().__init__(receiver, epoch)
        self.boot = boot
        self.hop = hop
        self.sent = sent


class Confirm(OfEpoch):
    """Yes: to what that boot sent at that time; ``mine`` is the boot that says so."""

    wire: ClassVar = (Epoch, "count", "clock", "count")

    def __init__(self, receiver: int, epoch: Epoch, boot: int, sent: int, mine: int) -> None:
        super().__init__(receiver, epoch)
        self.boot = boot
        self.sent = sent
        self.mine = mine


class Hello(OfEpoch):
    """Over a link: which epoch this boot has adopted, and whether it takes part in it."""

    wire: ClassVar = (Epoch, "count", "flag")

    def __init__(self, receiver: int, epoch: Epoch, boot: int, inside: bool) -> None:
        super().__init__(receiver, epoch)
        self.boot = boot
        self.inside = inside


class AskLedger(Message):
    """With what did the epoch begin, and what is out now? That boot of ``node`` wants to know.
    ``hop``: of the pointer to the holder that it followed; only a later one is followed next. With
    GRANTS a participant is answered by the node it asks, with MINTING by the holder too."""

    wire: ClassVar = ("node", "count", "hop")
    kind: ClassVar[str] = "ASK"

    def __init__(self, receiver: int, node: int, boot: int, hop: int) -> None:
        super().__init__(receiver)
        self.node = node
        self.boot = boot
        self.hop = hop


class Copy(Message):
    """The first ledger, for anybody; or from the token's holder, with the ledger of now, at that
    hop, after these ``grants``, for that boot of the receiver only. ``number``: of the latest
    request of the receiver that is known there. It renews nothing."""

    wire: ClassVar = (FirstLedger, "ledger or none", "hop", "count", "count", "count")

    def __init__(
        self,
        receiver: int,
        first: FirstLedger,
        ledger: tuple[Entry, ...] | None,
        hop: int,
        grants: int,
        number: int,
        boot: int,
    ) -> None:
        super().__init__(receiver)
        self.first = first
        self.ledger = ledger
        self.hop = hop
        self.grants = grants
        self.number = number
        self.boot = boot


class Suggest(OfEpoch):
    """I may not propose an epoch, but there is reason to: nothing is known of the token since that
    hop, or wherever it is, permits are ``lost``, or I am left out."""

    wire: ClassVar = (Epoch, "hop", "flag")

    def __init__(self, receiver: int, epoch: Epoch, hop: int, lost: bool) -> None:
        super().__init__(receiver, epoch)
        self.hop = hop
        self.lost = lost


class Voteless(Message):
    """I have lost my state: whatever you think, I have no vote."""


class Offer(OfEpoch):
    """I have been here for a while, in that epoch, and would be a member."""


class Sent(OfToken):
    """A token of that epoch and hop was sent to you: has it arrived?"""


class Accepted(OfToken):
    """The token of that epoch and hop is here."""


class Received(OfEpoch):
    """Grants that you made to clients of mine are here, and this is what is to be said of them."""

    wire: ClassVar = (Epoch, "notes")

    def __init__(
        self, receiver: int, epoch: Epoch, received: tuple[tuple[Fence, str], ...]
    ) -> None:
        super().__init__(receiver, epoch)
        self.received = received


class Forgotten(OfEpoch):
    """You could not be reached from here, so what you asked for was struck out: ask again."""


class Return(OfEpoch):
    """Of the grant with this fence these permits are ``left``, none if it is over; ``node``
    wants to know when the others are struck out. ``hop`` as of ASK."""

    wire: ClassVar = (Epoch, Fence, "share", "node", "hop")

    def __init__(
        self, receiver: int, epoch: Epoch, fence: Fence, left: int, node: int, hop: int
    ) -> None:
        super().__init__(receiver, epoch)
        self.fence = fence
        self.left = left
        self.node = node
        self.hop = hop


class Returned(OfEpoch):
    """They are struck out of the ledger, but for this number of permits of each."""

    wire: ClassVar = (Epoch, "returns")

    def __init__(self, receiver: int, epoch: Epoch, fences: Returns) -> None:
        super().__init__(receiver, epoch)
        self.fences = fences


class Conflict(Effect):
    """That node has a conflicting configuration: the two ignore each other until they agree."""

    def __init__(self, node: int, config: Config) -> None:
        self.node = node
        self.config = config


LINK, RELIABLE, BEST_EFFORT = range(3)


def carrier(message: Message, changing_links: bool) -> int:
    """What must carry it, where nodes recover and the algorithm inside is for such links.

    LINK: over the link to a neighbour, in order, lost when the link fails. RELIABLE: in order
    whatever links there are, as long as both ends live. BEST_EFFORT: recovery repeats what it says.
    """
    if isinstance(message, Inner):
        return LINK if changing_links else RELIABLE
    return LINK if changing_links and isinstance(message, Hello) else BEST_EFFORT


ROUTES: Final[dict[str, tuple[type[Message], ...]]] = {
    "member": (Propose, Refuse, Higher),
    "layer": (Promise, Ledger, Renew, Confirm, AskLedger, Copy),
    "epoch": (Hello, Received, Forgotten, Return),
    "keeper": (Sent, Accepted, Returned),
    "news": (Suggest, Voteless),
    "autopilot": (Offer,),
}
"""Which part receives what, by its method ``receive_`` and the kind. Messages of the node inside go
to the epoch."""

KINDS: Final = [kind for kinds in ROUTES.values() for kind in kinds]
