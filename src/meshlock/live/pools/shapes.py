"""Messages as bytes: encoded once, and checked before the algorithm sees them."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import msgspec

from meshlock.algorithms.actor import Algorithm, Message
from meshlock.algorithms.recovery.messages import KINDS
from meshlock.algorithms.recovery.records import Seal
from meshlock.errors import Refused
from meshlock.live.links.frames import UNREADABLE, BadFrame
from meshlock.live.pools.fields import FIELDS, SEAL, row

encode = msgspec.msgpack.Encoder().encode


class Shape:
    """The fields of one kind of message; ``sealed`` where recovery has added to it."""

    def __init__(self, kind: type[Message], algorithm: str, sealed: bool) -> None:
        self.kind: Callable[..., Message] = kind
        self.name = kind.kind
        self.sealed = sealed
        fields: list[Any] = []
        for name in kind.fields:
            if name not in FIELDS:
                raise Refused(
                    f"Live nodes cannot encode the field '{name}' of {kind.kind}: rename it "
                    f"to one of {', '.join([known for known in FIELDS if ' ' not in known])}."
                )
            fields.append(FIELDS.get(f"{algorithm} {name}", FIELDS[name]))
        self.decode: Callable[[bytes], tuple[Any, ...]]
        self.decode = msgspec.msgpack.Decoder(row(*([SEAL] if sealed else []), *fields)).decode
        self.names = kind.fields
        self.values = attrgetter(*kind.fields) if len(kind.fields) > 1 else self.few

    def few(self, message: Message) -> tuple[Any, ...]:
        return tuple([getattr(message, name) for name in self.names])

    def pack(self, message: Message) -> bytes:
        seal = message.seal
        if seal is None:
            return encode(self.values(message))
        sealed = (
            *(seal.epoch, seal.boot, seal.state, seal.left, seal.returned),
            *(seal.lent, seal.proofs),
        )
        return encode((sealed, *self.values(message)))

    def message(self, receiver: int, payload: bytes) -> Message:
        try:
            fields = self.decode(payload)
        except UNREADABLE as error:
            raise BadFrame(f"a {self.name} with wrong fields: {error}") from None
        if not self.sealed:
            return self.kind(receiver, *fields)
        epoch, boot, state, left, returned, lent, proofs = fields[0]
        message = self.kind(receiver, *fields[1:])
        message.seal = seal = Seal(epoch, boot, state, left, returned, lent)
        seal.proofs = proofs
        return message


def shapes(algorithm: Algorithm, members: bool) -> dict[str, Shape]:
    """Of all messages that nodes of such a pool send."""
    found = {kind.kind: Shape(kind, algorithm.name, sealed=members) for kind in algorithm.kinds}
    if members:
        found |= {kind.kind: Shape(kind, "", sealed=False) for kind in KINDS}
    return found
