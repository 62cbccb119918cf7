"""How neighbours of a node come to share a pool: they tell each other its configuration.

Two separate pools of one name must never mix. One that nobody has used yet gives way to
the other; else both sides say so, and refuse.
"""

from __future__ import annotations

from logging import ERROR, INFO
from typing import TYPE_CHECKING

import msgspec

from meshlock.errors import Refused
from meshlock.live.links.frames import UNREADABLE, BadFrame, Carry, Content, Routed
from meshlock.live.links.session import OVERHEAD
from meshlock.live.machine.logs import tell
from meshlock.live.pools.pool_configuration import PoolConfiguration, refuse_incredible

if TYPE_CHECKING:
    from meshlock.live.pools.pool import Pool

CONFIGURATION = "configuration"
"""A word between adapters; the kinds of the algorithms' messages are in capitals."""

MOST_WAITING = 1024 * 1024
"""Bytes of messages that may come before the pool's configuration does."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[PoolConfiguration, bool]).decode


class Peers:
    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.mesh = pool.mesh
        self.near: set[str] = set()  # peers in this pool, with a link
        self.informed: set[str] = set()  # peers that have our configuration, in this generation
        self.early: list[tuple[str, Carry | Routed]] = []  # came before the configuration
        self.early_bytes = 0

    # -- links -------------------------------------------------------------------------

    def up(self, peer: str) -> None:
        if self.pool.configuration is not None:
            self.inform(peer)

    def down(self, peer: str) -> None:
        self.informed.discard(peer)
        if peer in self.near:
            self.near.discard(peer)
            self.pool.link_down(peer)

    def inform(self, peer: str) -> None:
        """Our configuration, and whether permits were ever granted under it as far as we know."""
        self.informed.add(peer)
        payload = _encode((self.pool.configuration, not self.unused()))
        self.mesh.send(peer, Content(self.pool.name, 0, CONFIGURATION, payload))

    def inform_all(self) -> None:
        """We have just learned it ourselves; what came before it can be read now."""
        for peer in self.mesh.linked:
            self.inform(peer)
        early, self.early, self.early_bytes = self.early, [], 0
        for sender, frame in early:
            try:
                self.pool.receive(sender, frame)
            except BadFrame as error:  # of whoever sent it, not of whoever told us
                self.mesh.accuse(sender, error)

    def unused(self) -> bool:
        """We founded the pool, and nobody has had anything of it yet."""
        pool = self.pool
        if not pool.founding or self.near or pool.clients:
            return False
        return pool.measures.entries == 0

    # -- messages ----------------------------------------------------------------------

    def wait(self, sender: str, frame: Carry | Routed) -> None:
        """It cannot be read before the configuration is known."""
        size = OVERHEAD + len(frame.payload)
        if self.early_bytes + size > MOST_WAITING:
            raise BadFrame(f"too many messages of {frame.pool[:64]!r} before its configuration")
        self.early_bytes += size
        self.early.append((sender, frame))

    def custody(self) -> bool:
        """Waits anything whose sender has been told that it arrived?"""
        frames = [frame for _, frame in self.early]
        return any(f.custody if isinstance(f, Carry) else f.number for f in frames)

    def receive(self, peer: str, payload: bytes) -> None:
        pool = self.pool
        try:
            configuration, used = _decode(payload)
            refuse_incredible(configuration, pool.name)
            configuration.number(peer)
            if pool.configuration is None:
                pool.adopt(configuration)
        except (*UNREADABLE, Refused) as error:
            raise BadFrame(f"a configuration that cannot be: {error}") from None
        assert pool.configuration is not None
        if configuration.identity != pool.configuration.identity:
            self.conflict(peer, configuration, used)
            return
        if peer not in self.informed:
            self.inform(peer)
        if peer not in self.near:
            pool.conflict = ""
            self.near.add(peer)
            pool.link_up(peer)

    def conflict(self, peer: str, other: PoolConfiguration, used: bool) -> None:
        pool, ours = self.pool, self.pool.configuration
        assert ours is not None
        unused = self.unused()
        if ours.lease or other.lease:
            pool.conflict = (
                f"{peer} has a conflicting configuration of the pool {pool.name} "
                f"({terms(other)}; ours: {terms(ours)}): give the same everywhere."
            )
            tell(ERROR, "conflicting configuration", pool=pool.name, peer=peer)
        elif unused and (used or ours.identity > other.identity):
            tell(INFO, "founding withdrawn", pool=pool.name, founder=other.founder)
            self.informed.clear()
            pool.adopt(other)
            self.receive(peer, _encode((other, used)))
        elif not unused:
            self.inform(peer)
            if used:
                pool.conflict = (
                    f"Two separate pools have the name {pool.name}, founded by {ours.founder} and "
                    f"by {other.founder}: close all nodes of one and let them join the other."
                )
                tell(ERROR, "two pools of one name", pool=pool.name, peer=peer)


def terms(configuration: PoolConfiguration) -> str:
    permits, algorithm = configuration.permits, configuration.algorithm
    if configuration.lease:
        return f"{permits} permits under leases of {configuration.lease / 1e6:g} s, {algorithm}"
    return f"{permits} permits without leases, {algorithm}, founded by {configuration.founder}"
