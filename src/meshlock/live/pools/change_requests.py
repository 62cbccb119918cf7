"""Changes of a pool, asked for at any node: a member makes them, any other node asks a member.

A request is routed to a member that can be reached, best effort, and repeated until it is answered:
what has been done already is not done twice, since a change that is made is made. It names the
epoch in which it was sent, and counts in no other: what comes late must not undo later changes.
Should that member be unreachable or no longer be a member, another one is asked. The answer is
nothing, or a sentence.

Where certificates tell nodes apart, members do this for each other only: else any node that is
admitted could take a pool over.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated

import msgspec

from meshlock.algorithms.recovery.records import Change
from meshlock.errors import Refused
from meshlock.live.links.frames import reader
from meshlock.live.machine import limits
from meshlock.live.machine.limits import MOST_NAMED, Count, EpochCount, Name, Share, Word
from meshlock.live.pools.members import LayerRunner
from meshlock.live.pools.pool_configuration import refuse_permits
from meshlock.live.pools.questions import Questions

if TYPE_CHECKING:
    from meshlock.live.pools.pool import LocalPool

CHANGE, CHANGED = "change", "changed"

AGAIN = 1.0  # seconds until a request is repeated
LASTS = 5.0  # seconds for which a member works on a request that is not repeated
MOST_REQUESTS = 8  # that a member works on at once, for all nodes
LONGEST = 1000  # characters of a sentence

MAY_STILL = " It may still change: look at its status."
"""Added to the sentence that a pool did not change in time, where members may go on with it."""


class ChangeRequest(msgspec.Struct, array_like=True, frozen=True):
    """A node to add, or to remove, or a number of permits, or permits of these names."""

    question: Count = 0
    epoch: EpochCount = 0
    add: Word = ""
    remove: Word = ""
    permits: Share = 0
    names: Annotated[tuple[Name, ...], msgspec.Meta(max_length=MOST_NAMED)] = ()


class Answer(msgspec.Struct, array_like=True, frozen=True):
    """``why`` not, if not. ``elsewhere``: ask another, this is no member."""

    question: Count
    why: Annotated[str, msgspec.Meta(max_length=LONGEST)]
    elsewhere: bool


read_request = reader(ChangeRequest, f"a {CHANGE}")
read_answer = reader(Answer, f"a {CHANGED}")


class ChangeRequests:
    def __init__(self, pool: LocalPool) -> None:
        self.pool = pool
        self.adapter = pool.adapter
        self.questions: Questions[Answer] = Questions()
        self.working: dict[tuple[str, int], asyncio.Timeout] = {}  # by whom and its question
        self.may_still = False  # what timed out last may have been written, or asked of a member
        pool.participation.within_pool |= {CHANGE: self.asked, CHANGED: self.told}

    # -- for users -------------------------------------------------------------------------

    async def resize(
        self, permits: int | list[str] | tuple[str, ...], timeout: float | None
    ) -> int:
        permits, names = limits.named_permits(permits)
        await self.pool.introduced()
        if self.adapter.members is None or self.adapter.algorithm is None:
            raise Refused(
                f"The permits of {self.pool.name} cannot be changed: the pool has no leases."
            )
        self.refuse_names(permits, names, self.adapter.members.slot_names())
        refuse_permits(self.pool.name, self.adapter.algorithm, permits)
        async with self.within(timeout):
            await self.have(ChangeRequest(permits=permits, names=names))
        return permits

    def refuse_names(self, permits: int, names: tuple[str, ...], known: tuple[str, ...]) -> None:
        """``known``: all names that permits of this pool have or had."""
        if names and not known:
            raise Refused(
                f"The permits of {self.pool.name} have no names: give a number, or make "
                "another pool whose permits have names."
            )
        if known and not names and permits > len(known):
            raise Refused(
                f"Pool {self.pool.name} has {len(known)} named permits, {known[0]} to "
                f"{known[-1]}: give all {permits} names."
            )
        if len({*known, *names}) > limits.MOST_NAMED:
            raise Refused(
                f"Pool {self.pool.name} has had {len(known)} names, and {limits.MOST_NAMED} is "
                "the limit: reuse some of them, or make another pool."
            )

    async def change_members(
        self, add: str | None, remove: str | None, timeout: float | None
    ) -> list[str]:
        await self.pool.introduced()
        if self.adapter.members is None:
            raise Refused(f"The pool {self.pool.name} has no members: it was made without leases.")
        if (add is None) == (remove is None):
            raise Refused("Members change one at a time: give one to add or one to remove.")
        name = limits.name(add if remove is None else remove, "node")
        async with self.within(timeout):
            members = self.members()
            if add is not None and not members.reaches(name):
                raise Refused(f"{name} is not on the link map: start it, then add it.")
            if remove is not None and members.member.members == (self.adapter.meet(name),):
                raise Refused(
                    f"Cannot remove {name}: it is the last member of {self.pool.name}. Add another "
                    "one first."
                )
            await self.have(ChangeRequest(add=add or "", remove=remove or ""))
            members.map_changed()
            return members.names()

    @contextlib.asynccontextmanager
    async def within(self, timeout: float | None) -> AsyncIterator[None]:
        self.may_still = False
        try:
            async with asyncio.timeout(limits.timeout(timeout)):
                yield
        except TimeoutError:
            if timeout is None:
                raise
            obstacle = self.pool.obstacle()
            why = f" within {timeout:g} s: {obstacle}" if obstacle else f" within {timeout:g} s"
            why = f"{why}.{MAY_STILL if self.may_still else ''}"
            raise TimeoutError(f"The pool {self.pool.name} did not change{why}") from None

    # -- having it done --------------------------------------------------------------------

    def members(self) -> LayerRunner:
        assert self.adapter.members is not None
        return self.adapter.members

    async def have(self, request: ChangeRequest) -> None:
        """Make this change, or have a member make it; done when we know of it, too."""
        members, change = self.members(), self.change(request)
        if members.member.is_member():
            await self.make(members, change)
            return
        self.may_still = True
        await self.ask(request)
        while not change.is_made(members.member.config):
            await asyncio.sleep(members.mesh.heartbeat)

    def change(self, request: ChangeRequest) -> Change:
        if request.add:
            return Change(add=self.adapter.meet(request.add))
        if request.remove:
            return Change(remove=self.adapter.meet(request.remove))
        return Change(names=request.names) if request.names else Change(permits=request.permits)

    async def make(self, members: LayerRunner, change: Change) -> None:
        """Have an epoch make this change; done when one goes by it, and has its token: a ledger
        that was written and not confirmed may be forgotten. So may what is not on disk yet: other
        members confirm when it is, but we may be the only one."""
        node, timers = members.node, members.node.timers
        if timers.change is not None:
            raise Refused("Another change of the pool is under way: try again when it is done.")
        before = node.member.adopted
        while (
            node.member.holding.holder_hop < 0
            or not change.is_made(node.member.config)
            or members.disk.is_behind()
        ):
            timers.change = change
            members.set_time()
            members.sleep_until_due()
            try:
                await asyncio.sleep(members.mesh.heartbeat)
            except asyncio.CancelledError:  # not in time
                node.member.drop_change(change)
                self.may_still = node.member.adopted != before  # we adopt what we write
                raise
            finally:
                timers.change = None

    # -- asking ----------------------------------------------------------------------------

    async def ask(self, request: ChangeRequest) -> None:
        """Have a member make this change; raises what it says against it."""
        turn = 0
        while True:
            members = self.within_reach()
            if not members:
                raise Refused(
                    f"No member of {self.pool.name} is reachable, and only members can change "
                    "a pool: start the members, or mend their links."
                )
            answer = await self.answered(members[turn % len(members)], request)
            if answer is not None and not answer.elsewhere:
                if answer.why:
                    raise Refused(answer.why)
                return
            turn += 1
            if turn % len(members) == 0:
                await asyncio.sleep(AGAIN)  # nobody is what we take it for: we shall hear

    def within_reach(self) -> list[str]:
        reaches = self.pool.mesh.link_map.reaches
        return [name for name in self.members().names() if name != self.pool.me and reaches(name)]

    async def answered(self, member: str, request: ChangeRequest) -> Answer | None:
        """What this member says; None if it cannot be reached any more."""
        with self.questions.ask(member) as (number, future):
            while self.pool.mesh.link_map.reaches(member):
                now = msgspec.structs.replace(request, question=number, epoch=self.epoch())
                self.adapter.route(member, CHANGE, now)
                await asyncio.wait([future], timeout=AGAIN)
                if future.done():
                    return future.result()
            return None

    def epoch(self) -> int:
        return self.members().member.adopted.counter

    # -- being asked -----------------------------------------------------------------------

    def asked(self, sender: str, payload: bytes) -> None:
        self.begin(sender, read_request(payload))

    def told(self, sender: str, payload: bytes) -> None:
        answer = read_answer(payload)
        self.questions.answered(sender, answer.question, answer)

    def begin(self, sender: str, request: ChangeRequest) -> None:
        mesh = self.pool.mesh
        limit = self.working.get((sender, request.question))
        if limit is not None:
            limit.reschedule(mesh.loop.time() + LASTS)
        elif self.adapter.members is None or not self.adapter.members.member.is_member():
            self.answer(sender, Answer(request.question, "This node is not a member.", True))
        elif mesh.security.tells_apart and sender not in self.adapter.members.names():
            names, pool = ", ".join(self.adapter.members.names()), self.pool.name
            why = f"{sender} is not a member of {pool}, and where nodes have certificates only "
            why += f"members change a pool: do it at one of {names}."
            mesh.refusals.note(sender, f"it requested a change of {pool} and is not a member")
            self.answer(sender, Answer(request.question, why[:LONGEST], False))
        elif request.epoch != self.epoch():
            return  # it is said again, if it still holds
        elif len(self.working) >= MOST_REQUESTS:
            self.answer(sender, Answer(request.question, "Other changes are under way.", False))
        else:
            mesh.start(self.work(sender, request))

    async def work(self, sender: str, request: ChangeRequest) -> None:
        key, why = (sender, request.question), ""
        try:
            async with asyncio.timeout(LASTS) as limit:
                self.working[key] = limit
                if request.add or request.remove:
                    await self.change_members(request.add or None, request.remove or None, None)
                else:
                    await self.resize(request.names or request.permits, None)
        except Refused as error:
            why = str(error)[:LONGEST]
        except TimeoutError:
            return
        finally:
            self.working.pop(key, None)
        self.answer(sender, Answer(request.question, why, False))

    def answer(self, sender: str, answer: Answer) -> None:
        self.adapter.route(sender, CHANGED, answer)
