"""A program that uses permits: asks its agent, writes to the resource, releases them.

It is a process of its own, so that it can be killed and stopped by itself, and knows no more
of meshlock than the agent's socket. It stops when it is told that its grant is lost, and by
the machine's clock when the lease ends, whatever becomes of the agent. If the agent dies it works
on until then: that is what permits under a lease are. Its connections and its session are those of
:mod:`~meshlock.live.interfaces.async_client`; what a program may do wrong with a grant is its own.

Run as ``python -m meshlock.live.chaos.client`` with its orders as the argument. Its standard input
says how it works: as it likes, in a hurry, or keeping what it has; it takes no new work once that
ends.
"""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, cast

import msgspec

from meshlock.errors import Refused
from meshlock.live.chaos import record as lines
from meshlock.live.chaos.record import RECORD, Writer, now
from meshlock.live.chaos.resource import Resource
from meshlock.live.interfaces.agent_client import AgentClient, AgentSession
from meshlock.live.interfaces.agent_protocol import AgentGone, json_body, refusal
from meshlock.live.interfaces.async_client import Line, LoopWires
from meshlock.live.machine.loop import run

PARTING = 0.3
"""Share of grants of several permits of which some are released first."""

FICKLE = 0.2
"""Share of requests that become more or less urgent while they wait."""

AGAIN = 0.5
"""Share of grants whose client asks more on the connection that has brought it. Then the agent
knows that it was read, and only the end of the session can release it."""

AT_EASE, KEEP, HURRY = b"e", b"k", b"h"
"""How to work: as usual; use a grant until it is lost; or ask at once, without a timeout and with
one of two priorities, so that many wait and many are equal."""

BETWEEN_WRITES = 0.02
RETRY = 0.1
LONG = 0.08
"""Share of grants that are held for about a lease, so that faults find them."""

DUE = 0.2
"""Share of requests with a deadline."""

CLINGING = 0.7
"""Share of clients that use what they have to the end of its lease when their agent dies."""

CARELESS = 0.5
"""Share of grants of all permits whose client writes once more after the lease is over, as a
program that never looks at its lease would: the resource must be the one to refuse it."""


class ClientOrders(msgspec.Struct):
    name: str
    node: str
    socket: str
    pool: str
    permits: int
    lease: float
    seed: int
    folder: str
    take_all: bool = False  # one grant of everything, and done


class ChaosClient:
    def __init__(self, orders: ClientOrders) -> None:
        self.orders = orders
        self.random = Random(f"{orders.seed}:{orders.name}")
        self.record = Writer(Path(orders.folder) / RECORD)
        self.resource = Resource(Path(orders.folder))
        self.agent: AgentClient
        self.session: AgentSession
        self.said: asyncio.Queue[dict[str, Any]]  # by the agent, unasked
        self.finishing = asyncio.Event()
        self.mood = AT_EASE
        self.number = 0

    async def work(self) -> None:
        asyncio.get_running_loop().add_reader(sys.stdin, self.obey)
        while not self.finishing.is_set():
            self.agent = AgentClient(self.orders.socket, LoopWires(), leases=True)
            try:
                await self.connect()
                while not self.finishing.is_set():
                    if await self.use_permits() and self.orders.take_all:
                        return
                    if self.mood != HURRY and self.random.random() < 0.6:
                        await self.rest(self.random.expovariate(5.0))
            except (AgentGone, Refused):
                await self.rest(RETRY)
            finally:
                self.agent.close()

    async def connect(self) -> None:
        self.session = await self.agent.current()
        self.said = asyncio.Queue()
        cast(Line, self.session.line).told = self.said.put_nowait

    def obey(self) -> None:
        self.mood = os.read(sys.stdin.fileno(), 1)
        if not self.mood:
            self.finishing.set()
            asyncio.get_running_loop().remove_reader(sys.stdin)

    async def rest(self, seconds: float) -> None:
        """No longer than new work is wanted."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.finishing.wait()

    # -- one request -----------------------------------------------------------------------

    async def use_permits(self) -> bool:
        """Were any granted?"""
        orders, random, hurry = self.orders, self.random, self.mood == HURRY
        self.number += 1
        want = orders.permits if orders.take_all else self.want()
        patient = random.random() < 0.3 or orders.take_all or hurry
        urgent: dict[str, Any] = {
            "want": want,
            "priority": random.randint(0, 1 if hurry else 9),
            "timeout": None if patient else round(random.uniform(1.0, 6.0) * orders.lease, 3),
            "deadline": round(random.uniform(0.0, 3.0) * orders.lease, 3),
        }
        if random.random() >= DUE:
            urgent["deadline"] = None
        self.note(lines.AskedLine, node=orders.node, **urgent)
        try:
            status, said = await self.ask(urgent)
        except (AgentGone, Refused):
            self.note(lines.NotServed, why="gone")
            raise
        if status == 200:
            await ChaosGrant(self, want, msgspec.json.decode(said)).hold()
            return True
        late = isinstance(refusal(status, said), TimeoutError)
        why = "timeout" if late else "failed" if status >= 500 else "refused"
        self.note(lines.NotServed, why=why)
        if why == "refused":
            await self.rest(RETRY)
        return False

    def want(self) -> int:
        """Mostly few, often all: only those show whether fences are in order."""
        kind = self.random.random()
        if kind < 0.2:
            return self.orders.permits
        return 1 if kind < 0.8 else self.random.randint(1, self.orders.permits)

    async def ask(self, urgent: dict[str, Any]) -> tuple[int, bytes]:
        agent, name = self.agent, f"{self.orders.name}-{self.number}"
        body = json_body(**urgent, session=self.session.name, request=name)
        path = f"/v1/pools/{self.orders.pool}/acquire"
        asked = asyncio.ensure_future(agent.call("POST", path, body))
        if self.random.random() < FICKLE:
            await asyncio.wait([asked], timeout=self.random.expovariate(5.0))
            priority = self.random.randint(0, 9)
            with suppress(Refused):
                if not asked.done() and await agent.change(name, priority, None):
                    self.note(lines.Changed, priority=priority)
        return await asked

    def note(self, kind: type[lines.RequestLine], t: float | None = None, **more: Any) -> None:
        """What happens to our request, now unless it is said when."""
        time = now() if t is None else t
        self.record.write(kind(t=time, c=self.orders.name, n=self.number, **more))

    async def heard(self, seconds: float) -> dict[str, Any]:
        """What the agent says within this number of seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                return await self.said.get()
        return {}


class ChaosGrant:
    """One grant, from the answer to its end."""

    def __init__(self, client: ChaosClient, want: int, answer: dict[str, Any]) -> None:
        self.client = client
        self.note, self.random = client.note, client.random
        self.want = want
        self.grant: str = answer["grant"]
        self.fence: int | None = answer["fence"]
        self.exclusive = want == client.orders.permits
        self.until: float | None = answer["until"]
        told = {key: answer[key] for key in ("fence", "until", "permits", "slots")}
        self.note(lines.GrantedLine, want=want, **told)

    async def hold(self) -> None:
        """:class:`AgentGone` once it is over, if the agent went away meanwhile."""
        client, gone = self.client, False
        end = now() + self.length()
        to_show = self.random.random() < AGAIN
        if self.want > 1 and client.mood != KEEP and self.random.random() < PARTING:
            gone = not await self.part()
        while True:
            if (to_show or client.mood == KEEP) and not gone:
                gone = not await self.reach("GET")
            left = end - now()
            pause = left if 0.0 < left < BETWEEN_WRITES else BETWEEN_WRITES
            if self.ends(await client.heard(pause)):
                await self.once_more()
                return
            if client.session.over and not gone:
                gone = True
                if self.until is not None and self.random.random() < CLINGING:
                    end = self.until
            t = now()
            if self.until is not None and t >= self.until:
                self.note(lines.Expired, self.until)
                await self.once_more()
                gone = gone or not await self.is_told()
                break
            if t >= end and client.mood != KEEP:
                self.note(lines.Released)
                break
            self.write(late=False)
        if gone:
            raise AgentGone
        await client.agent.call("DELETE", f"/v1/grants/{self.grant}")

    async def reach(self, method: str, part: str = "") -> bool:
        """Say it of the grant; False if the agent is gone."""
        try:
            await self.client.agent.call(method, f"/v1/grants/{self.grant}{part}")
        except (AgentGone, Refused):
            return False
        return True

    async def is_told(self) -> bool:
        """The lease is over: the agent says so, soon; False if it is gone."""
        client = self.client
        end = now() + client.orders.lease
        while now() < end:
            if client.session.over:
                return False
            said = await client.heard(min(BETWEEN_WRITES, end - now()))
            if said.get("grant") == self.grant:
                return True
        self.note(lines.Untold)
        return True

    async def part(self) -> bool:
        """Release some; False if the agent is gone."""
        permits = self.random.randint(1, self.want - 1)
        self.want -= permits
        self.exclusive = False
        self.note(lines.ReleasedSome, left=self.want)
        return await self.reach("DELETE", f"?permits={permits}")

    def length(self) -> float:
        """Mostly a fraction of a lease; now and then it must be renewed to last."""
        lease = self.client.orders.lease
        if self.client.orders.take_all:
            return BETWEEN_WRITES
        if self.random.random() < LONG:
            return self.random.uniform(0.2, 1.5) * lease
        return min(self.random.expovariate(20.0), 0.4 * lease)

    def ends(self, said: dict[str, Any]) -> bool:
        """Does the agent say that the grant is lost?"""
        if said.get("grant") != self.grant:
            return False
        if said["event"] == "lease":
            self.until = said["until"]
            self.note(lines.RenewedLine, until=self.until)
        elif said["event"] == "lost":
            self.note(lines.LostLine)
            return True
        return False

    def write(self, late: bool) -> None:
        client, t = self.client, now()
        outcome = client.resource.write(
            self.fence or 0, client.orders.name, self.want, self.exclusive
        )
        wrote = {"fence": self.fence, "exclusive": self.exclusive, "outcome": outcome}
        self.note(lines.Wrote, t, end=now(), late=late, **wrote)

    async def once_more(self) -> None:
        """The lease is over; some programs do not care."""
        if self.exclusive and self.random.random() < CARELESS:
            await asyncio.sleep(self.random.uniform(0.0, 2.5) * self.client.orders.lease)
            self.write(late=True)


def main() -> None:
    run(ChaosClient(msgspec.json.decode(sys.argv[1], type=ClientOrders)).work())


if __name__ == "__main__":
    main()
