"""What nodes say to each other and to the outside in order to recover; see :mod:`.node`."""

from __future__ import annotations

from typing import ClassVar

from meshlock.algorithms.interface import NIL, Effect, Message

Epoch = tuple[int, int, int]
Fence = tuple[Epoch, int]
Config = tuple[Epoch, tuple[int, ...], int, int]
"""What an epoch goes by: the epoch, its members, the pool's permits, the lease."""
Change = tuple[bool, int]
"""Of the members: is this node to be added (or else removed)?"""
Entry = tuple[int, Fence, int, bool]
"""Of a ledger: node, fence, how many permits, is it lapsing."""
Asked = tuple[int, int, int, int, int, int]
"""Of a queue: node, its boot, how many permits, priority, how many grants had been made when
it lined up, which of its questions this is. With no permits it is a request withdrawn."""
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
    Config,  # the latest adopted, in this life or an earlier one
]

FENCE_BITS = 23
"""Of the number of a fence, for the count of grants in an epoch. With 30 more for the epoch it
fits into 53, which is what JSON carries everywhere."""
MOST_GRANTS = 2**FENCE_BITS - 1
"""In one epoch; :mod:`.pace` begins another long before."""

NO_EPOCH: Epoch = (0, NIL, 0)
NEVER = 0
MINTING = -1
"""In the place of a hop: the sender will have the token soon."""
GRANTS = -2
"""In the place of a hop: the sender has grants only."""


def fence_number(fence: Fence) -> int:
    """The fence as one integer that grows as it does, for resources that compare numbers.

    A member promises each counter once, so that of two epochs with the same counter only one
    can have a majority, and grants: the counter alone tells epochs apart."""
    epoch, count = fence
    return epoch[0] << FENCE_BITS | count


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
    """Write both to disk before any message behind this leaves; give them to ``start``."""

    def __init__(self, promised: Epoch, config: Config) -> None:
        self.promised = promised
        self.config = config


class Misfit(Effect):
    """That node goes by another number of permits, another lease or other members than this
    one: they do not listen to each other until their configurations agree."""

    def __init__(self, node: int, config: Config) -> None:
        self.node = node
        self.config = config


class Propose(Message):
    kind: ClassVar[str] = "PROPOSE"
    fields: ClassVar[tuple[str, ...]] = ("epoch", "config")

    def __init__(self, receiver: int, epoch: Epoch, config: Config) -> None:
        super().__init__(receiver)
        self.epoch = epoch
        self.config = config


class Refuse(Message):
    """No: your configuration is not mine, which is this."""

    kind: ClassVar[str] = "REFUSE"
    fields: ClassVar[tuple[str, ...]] = ("config",)

    def __init__(self, receiver: int, config: Config) -> None:
        super().__init__(receiver)
        self.config = config


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
    """These grants are kept in this epoch; also its first renewal, sent at that time. ``yours``:
    the boot of the receiver that promised, 0 if none did."""

    kind: ClassVar[str] = "LEDGER"
    fields: ClassVar[tuple[str, ...]] = ("epoch", "kept", "config", "yours", "boot", "sent")

    def __init__(
        self,
        receiver: int,
        epoch: Epoch,
        kept: tuple[Entry, ...],
        config: Config,
        yours: int,
        boot: int,
        sent: int,
    ) -> None:
        super().__init__(receiver)
        self.epoch = epoch
        self.kept = kept
        self.config = config
        self.yours = yours
        self.boot = boot
        self.sent = sent


class Renew(Message):
    """Is this epoch still the highest you know? Sent by that boot, at that time. ``hop``: that
    of the sender's token, or MINTING or GRANTS."""

    kind: ClassVar[str] = "RENEW"
    fields: ClassVar[tuple[str, ...]] = ("epoch", "boot", "hop", "sent")

    def __init__(self, receiver: int, epoch: Epoch, boot: int, hop: int, sent: int) -> None:
        super().__init__(receiver)
        self.epoch = epoch
        self.boot = boot
        self.hop = hop
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


class Which(Message):
    """Which epoch is it, and what does its ledger say? That boot of ``node`` wants to know."""

    kind: ClassVar[str] = "WHICH"
    fields: ClassVar[tuple[str, ...]] = ("node", "boot")

    def __init__(self, receiver: int, node: int, boot: int) -> None:
        super().__init__(receiver)
        self.node = node
        self.boot = boot


class Copy(Message):
    """The ledger as it is now, at that hop of the token, for that boot of the receiver only. It
    renews nothing."""

    kind: ClassVar[str] = "COPY"
    fields: ClassVar[tuple[str, ...]] = ("epoch", "ledger", "config", "hop", "boot")

    def __init__(
        self,
        receiver: int,
        epoch: Epoch,
        ledger: tuple[Entry, ...],
        config: Config,
        hop: int,
        boot: int,
    ) -> None:
        super().__init__(receiver)
        self.epoch = epoch
        self.ledger = ledger
        self.config = config
        self.hop = hop
        self.boot = boot


class Press(Message):
    """I may not propose an epoch, but there is reason to, as far as I know of this one."""

    kind: ClassVar[str] = "PRESS"
    fields: ClassVar[tuple[str, ...]] = ("epoch", "hop")

    def __init__(self, receiver: int, epoch: Epoch, hop: int) -> None:
        super().__init__(receiver)
        self.epoch = epoch
        self.hop = hop


class Token(Message):
    """The token, for that boot of the receiver only. ``left`` of the lease at sending; whoever
    carries it fills in ``travelled``, an upper bound of the time under way."""

    kind: ClassVar[str] = "TOKEN"
    fields: ClassVar[tuple[str, ...]] = ("papers", "config", "boot", "queue", "left", "travelled")

    def __init__(
        self,
        receiver: int,
        papers: Papers,
        config: Config,
        boot: int,
        queue: tuple[Asked, ...],
        left: int,
        travelled: int,
    ) -> None:
        super().__init__(receiver)
        self.papers = papers
        self.config = config
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
    """To whom the sender believes to have the token, or to get it, at that hop."""

    kind: ClassVar[str] = "REQUEST"
    fields: ClassVar[tuple[str, ...]] = ("epoch", "asked", "hop")

    def __init__(self, receiver: int, epoch: Epoch, asked: Asked, hop: int) -> None:
        super().__init__(receiver)
        self.epoch = epoch
        self.asked = asked
        self.hop = hop


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
    Refuse,
    Promise,
    Higher,
    Ledger,
    Renew,
    Still,
    Which,
    Copy,
    Press,
    Token,
    Got,
    Request,
    Release,
    Released,
]
