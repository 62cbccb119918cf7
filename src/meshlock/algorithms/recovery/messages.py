"""What nodes say to each other and to the outside in order to recover; see :mod:`.node`."""

from __future__ import annotations

from typing import ClassVar

from meshlock.algorithms.interface import NIL, Effect, Message

Epoch = tuple[int, int, int]
Fence = tuple[Epoch, int]
Entry = tuple[int, Fence, int, bool]
"""Of a ledger: node, fence, how many permits, is it lapsing."""
Asked = tuple[int, int, int]
"""Of a queue: node, its boot, how many permits."""
Papers = tuple[Epoch, int, int, tuple[Entry, ...], int]
"""A token on paper: epoch, hop, free permits, ledger, how many grants were made in this epoch."""
Doubt = tuple[Papers, int, int]
"""A token sent, to whom, and to which boot."""
Report = tuple[
    int,  # boot
    Epoch,  # the highest answered or adopted
    Epoch,  # adopted
    tuple[tuple[Fence, int], ...],  # valid grants
    tuple[Epoch, int],  # hop seen
    Papers | None,  # the token, surrendered
    Doubt | None,
]

GRANTS_PER_EPOCH = 32
"""Bits for the count of grants in the number of a fence."""

NO_EPOCH: Epoch = (0, NIL, 0)
NEVER = 0


def fence_number(fence: Fence) -> int:
    """The fence as one integer that grows as it does, for resources that compare numbers.

    A member promises each counter once, so that of two epochs with the same counter only one
    can have a majority, and grants: the counter alone tells epochs apart."""
    epoch, count = fence
    return epoch[0] << GRANTS_PER_EPOCH | count


class Granted(Effect):
    """This client now holds its permits, until then unless the lease is renewed."""

    def __init__(self, client: int, fence: Fence, until: int) -> None:
        self.client = client
        self.fence = fence
        self.until = until


class Lost(Effect):
    """This client's lease has run out: it must have stopped by now."""

    def __init__(self, client: int, fence: Fence) -> None:
        self.client = client
        self.fence = fence


class Keep(Effect):
    """Write this epoch to disk before any message behind this leaves."""

    def __init__(self, promised: Epoch) -> None:
        self.promised = promised


class Propose(Message):
    kind: ClassVar[str] = "PROPOSE"
    fields: ClassVar[tuple[str, ...]] = ("epoch",)

    def __init__(self, receiver: int, epoch: Epoch) -> None:
        super().__init__(receiver)
        self.epoch = epoch


class Promise(Message):
    kind: ClassVar[str] = "PROMISE"
    fields: ClassVar[tuple[str, ...]] = ("epoch", "report")

    def __init__(self, receiver: int, epoch: Epoch, report: Report) -> None:
        super().__init__(receiver)
        self.epoch = epoch
        self.report = report


class Higher(Message):
    """No: I have promised this epoch already."""

    kind: ClassVar[str] = "HIGHER"
    fields: ClassVar[tuple[str, ...]] = ("epoch",)

    def __init__(self, receiver: int, epoch: Epoch) -> None:
        super().__init__(receiver)
        self.epoch = epoch


class Ledger(Message):
    """These grants are kept in this epoch; also its first renewal, sent at that time."""

    kind: ClassVar[str] = "LEDGER"
    fields: ClassVar[tuple[str, ...]] = ("epoch", "kept", "boot", "sent")

    def __init__(
        self, receiver: int, epoch: Epoch, kept: tuple[Entry, ...], boot: int, sent: int
    ) -> None:
        super().__init__(receiver)
        self.epoch = epoch
        self.kept = kept
        self.boot = boot
        self.sent = sent


class Renew(Message):
    """Is this epoch still the highest you know? Sent by that boot, at that time."""

    kind: ClassVar[str] = "RENEW"
    fields: ClassVar[tuple[str, ...]] = ("epoch", "boot", "sent")

    def __init__(self, receiver: int, epoch: Epoch, boot: int, sent: int) -> None:
        super().__init__(receiver)
        self.epoch = epoch
        self.boot = boot
        self.sent = sent


class Still(Message):
    """Yes: to what that boot sent at that time; ``mine`` is who says so."""

    kind: ClassVar[str] = "STILL"
    fields: ClassVar[tuple[str, ...]] = ("epoch", "boot", "sent", "mine")

    def __init__(self, receiver: int, epoch: Epoch, boot: int, sent: int, mine: int) -> None:
        super().__init__(receiver)
        self.epoch = epoch
        self.boot = boot
        self.sent = sent
        self.mine = mine


class Token(Message):
    """The token, for that boot of the receiver only. ``left`` of the lease at sending; whoever
    carries it fills in ``travelled``, an upper bound of the time under way."""

    kind: ClassVar[str] = "TOKEN"
    fields: ClassVar[tuple[str, ...]] = ("papers", "boot", "queue", "left", "travelled")

    def __init__(
        self,
        receiver: int,
        papers: Papers,
        boot: int,
        queue: tuple[Asked, ...],
        left: int,
        travelled: int,
    ) -> None:
        super().__init__(receiver)
        self.papers = papers
        self.boot = boot
        self.queue = queue
        self.left = left
        self.travelled = travelled

    def tokens(self) -> int:
        return 1


class Got(Message):
    """The TOKEN of that epoch and hop is here."""

    kind: ClassVar[str] = "GOT"
    fields: ClassVar[tuple[str, ...]] = ("epoch", "hop")

    def __init__(self, receiver: int, epoch: Epoch, hop: int) -> None:
        super().__init__(receiver)
        self.epoch = epoch
        self.hop = hop


class Request(Message):
    kind: ClassVar[str] = "REQUEST"
    fields: ClassVar[tuple[str, ...]] = ("epoch", "asked")

    def __init__(self, receiver: int, epoch: Epoch, asked: Asked) -> None:
        super().__init__(receiver)
        self.epoch = epoch
        self.asked = asked


class Release(Message):
    """The grant with this fence is over; ``node`` wants to know that the holder has heard it."""

    kind: ClassVar[str] = "RELEASE"
    fields: ClassVar[tuple[str, ...]] = ("epoch", "fence", "h", "node")

    def __init__(self, receiver: int, epoch: Epoch, fence: Fence, h: int, node: int) -> None:
        super().__init__(receiver)
        self.epoch = epoch
        self.fence = fence
        self.h = h
        self.node = node


class Released(Message):
    kind: ClassVar[str] = "RELEASED"
    fields: ClassVar[tuple[str, ...]] = ("epoch", "fence")

    def __init__(self, receiver: int, epoch: Epoch, fence: Fence) -> None:
        super().__init__(receiver)
        self.epoch = epoch
        self.fence = fence


KINDS: list[type[Message]] = [
    Propose,
    Promise,
    Higher,
    Ledger,
    Renew,
    Still,
    Token,
    Got,
    Request,
    Release,
    Released,
]
