"""What waits for the disk: nothing behind a promise is said or done before it is written.

Writing is done by threads: a slow disk holds up what rests on the promise and nothing else.
"""

from __future__ import annotations

import asyncio
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from meshlock.algorithms.actor import Effect, Enter, Lost, Message, Save
from meshlock.algorithms.recovery.messages import Hello
from meshlock.algorithms.recovery.records import NO_EPOCH, Durable
from meshlock.live.pools.fields import Config, Epoch
from meshlock.live.pools.promises import Promised, Promises

if TYPE_CHECKING:
    from meshlock.live.pools.members import Members

WRITERS = ThreadPoolExecutor(8, "promises")
"""For all nodes of this process; a pool writes one thing at a time."""

RETRY = 0.3
"""Seconds until it is tried again what the disk did not take."""

MOST_WAITING = 10_000
"""Messages; what comes then is lost, as on a network."""

Waiting = deque[tuple[Effect, int]]
"""Effects, and the mesh's clock when they were asked for: a token's lease goes on running."""


class Disk:
    """Without ``promises`` nothing is kept, and nothing waits."""

    def __init__(self, members: Members, promises: Promises | None) -> None:
        self.members = members
        self.mesh = members.mesh
        self.promises = promises
        self.writing: asyncio.Future[bool] | None = None
        self.written: Promised | None = None  # what is being written, or has to be tried again
        self.waiting: Waiting = deque()  # for that
        self.unsaved: Promised | None = None  # what has to be written next
        self.behind: Waiting = deque()  # what waits for that
        self.on_disk = NO_EPOCH
        if promises is not None:
            promises.open()

    def read(self) -> Promised | None:
        """What is known there of this very pool. Where members are by name, users may have changed
        what they were given since."""
        pool, ours = self.members.pool.name, self.members.configuration
        found = self.promises.read(pool) if self.promises is not None else None
        if found is None:
            return None
        if found.pool.identity != ours.identity and not (found.pool.by_name and ours.by_name):
            return None
        self.on_disk = found.promised
        return found

    def is_behind(self) -> bool:
        """Is there anything that it has not taken yet?"""
        return self.written is not None or self.unsaved is not None

    # -- what the node says ------------------------------------------------------------------

    def pass_on(self, effects: list[Effect]) -> list[Effect]:
        """What can be done at once."""
        if not self.is_behind():
            for effect in effects:
                if isinstance(effect, Save):
                    break
            else:
                return effects
        if self.promises is None:
            return [effect for effect in effects if not isinstance(effect, Save)]
        at_once: list[Effect] = []
        for effect in effects:
            if isinstance(effect, Save):
                self.unsaved = self.recorded(effect.record)
            elif not self.is_behind() or self.may_pass(effect):
                at_once.append(effect)
                if isinstance(effect, Lost):
                    self.forget(effect.client)
            else:
                self.hold(effect)
        if self.unsaved is not None and self.written is None:
            self.write_next()
        return at_once

    def recorded(self, kept: object) -> Promised:
        assert isinstance(kept, Durable)
        names = {number: self.members.name(number) for number in kept.config.members}
        epoch, config = Epoch(*kept.promised), kept.config
        config = Config(Epoch(*config.epoch), *config[1:])
        return Promised(epoch, config, names, self.members.configuration)

    def may_pass(self, effect: Effect) -> bool:
        """A lease that has ended is told at once."""
        if isinstance(effect, Message):
            return not self.members.node.member.rests_on_disk(effect, self.on_disk)
        return isinstance(effect, Lost)

    def refuses(self) -> str:
        """Why nobody is served here; empty unless it does not take what has to be written."""
        failure = self.promises.failure if self.promises is not None else ""
        return f"the disk refuses: {failure}" if failure and self.is_behind() else ""

    def forget(self, client: int) -> bool:
        """It must not be let in any more: its lease has ended, or it gave up, before it could be
        told of it. False if it was let in already, or waits for something else."""
        for line in (self.waiting, self.behind):
            for one in list(line):
                if isinstance(one[0], Enter) and one[0].client == client:
                    line.remove(one)
                    return True
        return False

    def hold(self, effect: Effect) -> None:
        line = self.waiting if self.unsaved is None else self.behind
        if len(line) < MOST_WAITING or not isinstance(effect, Message):
            line.append((effect, self.members.clock))

    # -- what the disk says --------------------------------------------------------------------

    def write_next(self) -> None:
        """The latest promise stands for all before it."""
        if self.unsaved is not None:
            self.written, self.unsaved = self.unsaved, None
            self.waiting += self.behind
            self.behind = deque()
        if self.written is not None and self.promises is not None:
            self.writing = self.mesh.loop.run_in_executor(
                WRITERS, self.promises.write, self.written
            )
            self.writing.add_done_callback(self.done)

    def done(self, writing: asyncio.Future[bool]) -> None:
        if self.members.closed or writing.cancelled():
            return
        self.mesh.failures.run("disk", self.go_on, writing)

    def go_on(self, writing: asyncio.Future[bool]) -> None:
        if writing.exception() is not None or not writing.result():
            self.waiting = deque([one for one in self.waiting if not is_repeated(one[0])])
            self.mesh.failures.later(RETRY, "disk", self.write_next)
            return
        assert self.written is not None
        self.on_disk = self.written.promised
        while self.waiting:  # what comes meanwhile is behind it
            effect, self.members.clock = self.waiting.popleft()
            self.mesh.failures.run("disk", self.members.pool.do, "timer", {}, [effect])
        self.written = None
        self.write_next()
        self.mesh.flush()

    def close(self) -> None:
        if self.writing is not None:
            self.writing.cancel()


def is_repeated(effect: Effect) -> bool:
    """What recovery says itself is said again anyway."""
    return isinstance(effect, Message) and effect.seal is None and not isinstance(effect, Hello)
