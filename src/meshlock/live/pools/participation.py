"""How a node takes part in a pool: it begins, its links come and go, it leaves.

Which pool that is, :mod:`.birth` and :mod:`.peers` decide; only here is that carried out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from logging import ERROR, WARNING
from time import monotonic
from typing import TYPE_CHECKING

from meshlock.algorithms.actor import Actor
from meshlock.algorithms.registry import find
from meshlock.errors import Refused
from meshlock.live.links.frames import BadFrame, Carry, Content, RoutedFrame
from meshlock.live.machine import limits
from meshlock.live.machine.logs import log_event
from meshlock.live.pools.grants import Acquire
from meshlock.live.pools.members import LayerRunner
from meshlock.live.pools.pool_configuration import PoolConfiguration, made, reset
from meshlock.live.pools.promises import Promised

if TYPE_CHECKING:
    from meshlock.live.pools.pool import LocalPool

PULL = "pull"  # between nodes: have the token come to you, its holder wants to leave
LEAVING = "leaving"  # between nodes: whatever you have to hand over, do not give it to me
FAREWELL = 3.0  # seconds that a pool takes to hand over what others need when its node leaves


class Participation:
    def __init__(self, pool: LocalPool) -> None:
        self.pool = pool
        self.adapter = pool.adapter
        self.pulling = 0  # of our clients: who has the token come for nobody
        # What nodes say to each other, and no algorithm, by the kind of such a message: neighbours
        # about which pool this is, and nodes of this very pool.
        self.between_neighbours: dict[str, Callable[[str, bytes], None]] = {}
        self.within_pool: dict[str, Callable[[str, bytes], None]] = {
            PULL: self.pull,
            LEAVING: self.is_told_to_leave,
        }

    def adopt(
        self,
        configuration: PoolConfiguration,
        founding: bool = False,
        opened: bool = True,
        floor: int = 0,
    ) -> None:
        """The pool is this; take part in it. Requests wait until it is opened. ``floor``: the
        highest epoch known of the pool in whose place it is made."""
        adapter = self.adapter
        algorithm = find(configuration.algorithm)
        before, withdrawn = adapter.configuration, adapter.members
        adapter.configuration = configuration
        try:
            adapter.forget()
            if configuration.lease:
                if withdrawn is not None and self.pool.promises is not None:
                    self.pool.promises.forget(adapter.name)
                promises, willing = self.pool.promises, self.pool.willing
                adapter.members = LayerRunner(
                    adapter, algorithm, promises, founding, floor, willing
                )
                core: Actor = adapter.members.node
            else:
                adapter.members = None
                core = made(configuration, adapter.me, founding, adapter.out)
                for name in configuration.members:
                    adapter.meet(name)
        except Refused:
            adapter.configuration, adapter.members = before, withdrawn
            raise
        if withdrawn is not None:
            withdrawn.close()
        self.pool.founding = founding
        adapter.run(configuration, algorithm, core)
        if opened:
            self.pool.ready.set()
        self.pool.token_watch.since = monotonic()
        if algorithm.serves.token and not configuration.lease:
            self.pool.token_watch.begin()
        self.pool.peers.begin()
        if before is not None:
            self.pool.ask_anew()
        adapter.mesh.flush()

    def is_empty(self) -> bool:
        """Is nothing known of it but its name?"""
        early = self.pool.peers.custody() or self.pool.birth.matters()
        return self.adapter.configuration is None and not early

    def remember(self, replaced: int | None = None) -> bool:
        """Take part again in the pool that an earlier life of this node was in; or only if that
        is in place of this one. False if there is no such memory."""
        promises = self.pool.promises
        found = promises.read(self.adapter.name, Promised) if promises is not None else None
        if found is None or (replaced is not None and replaced not in found.pool.replaces):
            return False
        self.pool.peers.told_used = True
        self.adopt(found.pool)
        return True

    async def reset(self) -> int:
        adapter, pool = self.adapter, self.pool
        await pool.introduced()
        before, members = adapter.configuration, adapter.members
        assert before is not None and pool.permits is not None
        names = members.named() if members is not None else ()
        configuration = reset(before, adapter.me, pool.permits, names)
        floor = 0
        if members is not None:
            members.refuse_if_quorum()
            floor = max(1, members.member.promised.counter, members.member.highest.counter)
        elif adapter.core is not None and adapter.core.tokens() > 0:
            raise Refused(
                f"Cannot reset {adapter.name}: its token is at this node, so nothing is lost."
            )
        log_event(
            WARNING, "pool reset", pool=adapter.name, node=adapter.me, replaces=before.identity
        )
        pool.asked_permits = None
        pool.peers.reset()
        self.adopt(configuration, founding=True, floor=floor)
        return configuration.permits

    async def join(self, peer: str) -> int:
        """Give up our pool for another one of its name, in which that neighbour is; the result is
        how many permits that has. Who holds anything of ours has lost it."""
        await self.pool.introduced()
        self.pool.asked_permits = None
        self.pool.peers.join(peer)
        return self.pool.permits or 0

    def link_up(self, peer: str) -> None:
        number = self.adapter.meet(peer)
        self.adapter.before().link_up(number)
        self.adapter.carry_out("link-up", {"peer": number})

    def link_down(self, peer: str) -> None:
        number = self.adapter.meet(peer)
        self.adapter.before().link_down(number)
        self.adapter.carry_out("link-down", {"peer": number})

    def map_changed(self) -> None:
        """The mesh is another one; algorithms that know only neighbours do not care."""
        if self.adapter.members is not None:
            self.adapter.members.map_changed()

    def receive_control(self, sender: str, frame: Carry | RoutedFrame) -> None:
        kind = frame.kind
        if kind in self.between_neighbours and isinstance(frame, Carry):
            self.between_neighbours[kind](sender, frame.payload)
        elif self.adapter.core is None:
            self.pool.peers.wait(sender, frame)
        elif kind not in self.within_pool:
            raise BadFrame(f"an unknown message {kind[:64]!r}")
        elif frame.identity == self.adapter.identity:
            self.within_pool[kind](sender, frame.payload)

    def is_told_to_leave(self, peer: str, _: bytes) -> None:
        self.pool.peers.leaving.update({peer} & self.pool.peers.near)

    def give_up(self) -> None:
        """Another pool of this name goes on: nothing of ours is renewed."""
        if not self.adapter.stopped:
            self.adapter.stopped = True
            self.pool.end_all(Refused(self.pool.conflict))

    def announce_leaving(self) -> None:
        for peer in self.pool.peers.near:
            self.say(peer, LEAVING)

    def say(self, peer: str, word: str) -> None:
        adapter = self.adapter
        adapter.mesh.send(peer, Content(adapter.name, adapter.identity, word, b""))
        adapter.mesh.flush()

    async def hand_over(self, heir: str | None) -> None:
        """Have somebody else take the token, and wait until nobody needs us any more, or until
        nobody is left: our heir has gone, or we are the heir of our heir."""
        adapter = self.adapter
        core = adapter.core
        if core is None or heir is None or heir not in self.pool.peers.near:
            return
        if adapter.reliable and adapter.members is None:
            return
        try:
            async with asyncio.timeout(FAREWELL):
                asked = 0
                while adapter.members.needed() if adapter.members is not None else core.tokens():
                    if core.tokens() and asked == 0:  # it may come once more, from one that leaves
                        self.say(heir, PULL)
                    if adapter.members is not None and asked % 10 == 0:
                        adapter.members.surrender()
                    asked = asked + 1 if core.tokens() else 0
                    if heir in self.pool.peers.leaving or adapter.mesh.link_map.left(heir):
                        return
                    await asyncio.sleep(adapter.mesh.heartbeat / 10)
        except TimeoutError:
            if adapter.members is not None and not adapter.members.has_token():
                # what a client may use until its lease ends, or was for somebody who has died
                log_event(WARNING, "left with permits held", node=adapter.me, pool=adapter.name)
            else:
                log_event(
                    ERROR, "left without handing over the token", node=adapter.me, pool=adapter.name
                )

    def pull(self, *_: object) -> None:
        """Have the token come here, on behalf of nobody: its holder wants to leave."""
        pool = self.pool
        if self.pulling in self.adapter.clients:
            return
        least = Acquire(self.pool, 1, int(limits.PRIORITY.least), None, None)
        waiter = pool.new_waiter(least, "its node is leaving")
        waiter.abandoned = True
        self.pulling = waiter.number
        self.adapter.ask(waiter)

    def dissolve(self) -> None:
        """With the only node that was ever in it the pool is over."""
        members, promises = self.adapter.members, self.pool.promises
        if members is None or promises is None or self.pool.peers.shared or not self.pool.founding:
            return
        token = members.member.holding.token
        if token is not None and not token.ledger:
            promises.forget(self.adapter.name)

    def stop(self) -> None:
        """Nothing more is done or written, whatever state we are in."""
        adapter, pool = self.adapter, self.pool
        for waiter in adapter.clients.values():
            waiter.stays()
        pool.token_watch.close()
        if adapter.members is not None:
            adapter.members.close()
        if adapter.recording is not None:
            adapter.recording.close()
