"""A program that uses permits: asks its agent, writes to the resource, gives them back.

It is a process of its own, so that it can be killed and stopped by itself, and knows no more
of meshlock than the agent's socket. It stops when it is told that its grant is lost, and by
the machine's clock when the lease ends, whatever becomes of the agent. If the agent dies it works
on until then: that is what permits under a lease are.

Run as ``python -m meshlock.live.chaos.client`` with its orders as the argument. Its standard input
says how it works: as it likes, in a hurry, or keeping what it has; it takes no new work once that
ends.
"""

from __future__ import annotations

import os
import select
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from meshlock.errors import Refused
from meshlock.live.chaos import record as lines
from meshlock.live.chaos.record import Writer, now
from meshlock.live.chaos.resource import Resource
from meshlock.live.interfaces.agent_client import AgentClient, finished
from meshlock.live.interfaces.agent_connection import Connection
from meshlock.live.interfaces.agent_protocol import AgentGone, json_body, refusal
from meshlock.live.interfaces.client import WIRES

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
    record: str
    resource: str
    take_all: bool = False  # one grant of everything, and done


class ChaosClient:
    def __init__(self, orders: ClientOrders) -> None:
        self.orders = orders
        self.random = Random(f"{orders.seed}:{orders.name}")
        self.record = Writer(Path(orders.record))
        self.resource = Resource(Path(orders.resource))
        self.agent: AgentClient | None = None
        self.session = ""  # its name
        self.events: Any = None  # its connection
        self.line: Connection | None = None
        self.other: Connection | None = None  # while the first one waits for permits
        self.finishing = False
        self.mood = AT_EASE
        self.number = 0

    def work(self) -> None:
        while not self.finishing:
            if self.agent is None and not self.connect():
                self.sleep(RETRY)
                continue
            try:
                served = self.use_permits()
            except AgentGone:
                self.disconnect()
                continue
            if self.orders.take_all and served:
                return
            if self.mood != HURRY and self.random.random() < 0.6:
                self.sleep(self.random.expovariate(5.0))

    # -- one request -----------------------------------------------------------------------

    def use_permits(self) -> bool:
        c, lease = self.orders.name, self.orders.lease
        self.number += 1
        n = self.number
        want = self.orders.permits if self.orders.take_all else self.want()
        priority = self.random.randint(0, 1 if self.mood == HURRY else 9)
        patient = self.random.random() < 0.3 or self.orders.take_all or self.mood == HURRY
        timeout = None if patient else round(self.random.uniform(1.0, 6.0) * lease, 3)
        deadline = round(self.random.uniform(0.0, 3.0) * lease, 3)
        due = deadline if self.random.random() < DUE else None
        urgent: dict[str, Any] = {
            "want": want,
            "priority": priority,
            "timeout": timeout,
            "deadline": due,
        }
        self.record.write(lines.AskedLine(t=now(), c=c, n=n, node=self.orders.node, **urgent))
        try:
            body = json_body(**urgent, session=self.session, request=f"{c}-{n}")
            path = f"/v1/pools/{self.orders.pool}/acquire"
            status, said = self.ask("POST", path, body, self.random.random() < FICKLE)
        except AgentGone:
            self.record.write(lines.NotServed(t=now(), c=c, n=n, why="gone"))
            raise
        if status != 200:
            late = isinstance(refusal(status, said), TimeoutError)
            why = "timeout" if late else "failed" if status >= 500 else "refused"
            self.record.write(lines.NotServed(t=now(), c=c, n=n, why=why))
            if why == "refused":
                self.sleep(RETRY)
            return False
        ChaosGrant(self, n, want, msgspec.json.decode(said)).hold()
        return True

    def want(self) -> int:
        """Mostly few, often all: only those show whether fences are in order."""
        kind = self.random.random()
        if kind < 0.2:
            return self.orders.permits
        return 1 if kind < 0.8 else self.random.randint(1, self.orders.permits)

    # -- the agent -------------------------------------------------------------------------

    def connect(self) -> bool:
        try:
            self.agent = AgentClient(self.orders.socket, WIRES, leases=True)
            session = finished(self.agent.current())
            self.session, self.events = session.name, session.line
            self.line = Connection(self.orders.socket)
            self.other = Connection(self.orders.socket)
        except Refused:
            self.disconnect()
            return False
        return True

    def disconnect(self) -> None:
        if self.agent is not None:
            self.agent.close()
        for line in (self.line, self.other):
            if line is not None:
                line.close()
        self.agent = self.line = self.other = None

    def ask(
        self, method: str, path: str, body: str = "", fickle: bool = False
    ) -> tuple[int, bytes]:
        assert self.line is not None
        self.line.send(method, path, body)
        if fickle and not self.wait(self.random.expovariate(5.0), self.line):
            self.change_priority()
        self.wait(None, self.line)
        return self.line.receive()

    def change_priority(self) -> None:
        """Of the request that waits, if it still does."""
        c, n, priority = self.orders.name, self.number, self.random.randint(0, 9)
        assert self.other is not None
        self.other.send("POST", f"/v1/requests/{c}-{n}/priority", json_body(priority=priority))
        self.wait(None, self.other)
        if self.other.receive()[0] == 200:
            self.record.write(lines.Changed(t=now(), c=c, n=n, priority=priority))

    def heard(self, seconds: float | None) -> list[dict[str, Any]]:
        """What the agent says within this number of seconds."""
        found: list[dict[str, Any]] = []
        if self.wait(seconds, self.events):
            found = self.events.events(0.0)
        return found

    def wait(self, seconds: float | None, agent: Connection | None = None) -> bool:
        """Until the agent speaks; our input ends meanwhile if no new work is wanted."""
        end = None if seconds is None else time.monotonic() + seconds
        while True:
            sources: list[Any] = [agent] if agent is not None else []
            if not self.finishing:
                sources.append(sys.stdin)
            left = None if end is None else max(0.0, end - time.monotonic())
            ready = select.select(sources, [], [], left)[0]
            if sys.stdin in ready:
                self.mood = os.read(sys.stdin.fileno(), 1)
                self.finishing = not self.mood
            if agent in ready:
                return True
            if not ready or (agent is None and self.finishing):
                return False

    def sleep(self, seconds: float) -> None:
        self.wait(seconds)


class ChaosGrant:
    """One grant, from the answer to its end."""

    def __init__(self, client: ChaosClient, n: int, want: int, answer: dict[str, Any]) -> None:
        self.client = client
        self.c, self.n, self.want = client.orders.name, n, want
        self.grant: str = answer["grant"]
        self.fence: int | None = answer["fence"]
        self.exclusive = want == client.orders.permits
        self.until: float | None = answer["until"]
        self.shown = False
        told = {key: answer[key] for key in ("fence", "until", "permits", "slots")}
        self.note(lines.GrantedLine, want=want, **told)

    def note(self, kind: type[lines.RequestLine], t: float | None = None, **more: Any) -> None:
        """What happens to this grant, now unless it is said when."""
        time = now() if t is None else t
        self.client.record.write(kind(t=time, c=self.c, n=self.n, **more))

    def hold(self) -> None:
        client = self.client
        end = now() + self.length()
        agent_gone, to_show = False, client.random.random() < AGAIN
        if self.want > 1 and client.mood != KEEP and client.random.random() < PARTING:
            agent_gone = agent_gone or not self.part()
        while True:
            if (to_show or client.mood == KEEP) and not self.shown and not agent_gone:
                agent_gone = not self.reach("GET")
            left = end - now()
            pause = left if 0.0 < left < BETWEEN_WRITES else BETWEEN_WRITES
            if agent_gone:
                client.sleep(pause)
            else:
                try:
                    over = any(self.told(said) for said in client.heard(pause))
                except AgentGone:
                    agent_gone, over = True, False
                    if self.until is not None and client.random.random() < CLINGING:
                        end = self.until
                if over:
                    self.once_more()
                    return
            t = now()
            if self.until is not None and t >= self.until:
                self.note(lines.Expired, self.until)
                self.once_more()
                agent_gone = agent_gone or not self.wait_for_word()
                break
            if t >= end and client.mood != KEEP:
                self.note(lines.Released)
                break
            self.write(late=False)
        if agent_gone:
            raise AgentGone
        client.ask("DELETE", f"/v1/grants/{self.grant}")

    def reach(self, method: str, part: str = "") -> bool:
        """Say it of the grant; False if the agent is gone."""
        try:
            self.client.ask(method, f"/v1/grants/{self.grant}{part}")
        except AgentGone:
            return False
        return True

    def wait_for_word(self) -> bool:
        """The lease is over: the agent says so, soon; False if it is gone."""
        client = self.client
        end = now() + client.orders.lease
        try:
            while now() < end:
                if any(one.get("grant") == self.grant for one in client.heard(end - now())):
                    return True
        except AgentGone:
            return False
        self.note(lines.Untold)
        return True

    def part(self) -> bool:
        """Release some; False if the agent is gone."""
        permits = self.client.random.randint(1, self.want - 1)
        self.want -= permits
        self.exclusive = False
        self.note(lines.ReleasedSome, left=self.want)
        return self.reach("DELETE", f"?permits={permits}")

    def length(self) -> float:
        """Mostly a fraction of a lease; now and then it must be renewed to last."""
        random, lease = self.client.random, self.client.orders.lease
        if self.client.orders.take_all:
            return BETWEEN_WRITES
        if random.random() < LONG:
            return random.uniform(0.2, 1.5) * lease
        return min(random.expovariate(20.0), 0.4 * lease)

    def told(self, said: dict[str, Any]) -> bool:
        """What the agent says unasked; True if the grant is over."""
        if said.get("grant") != self.grant:
            return False
        t = now()
        if said.get("event") == "lost":
            self.note(lines.LostLine, t)
            return True
        if said.get("event") == "lease":
            self.until = said["until"]
            self.note(lines.RenewedLine, t, until=self.until)
        return False

    def write(self, late: bool) -> None:
        t = now()
        outcome = self.client.resource.write(self.fence or 0, self.c, self.want, self.exclusive)
        wrote = {"fence": self.fence, "exclusive": self.exclusive, "outcome": outcome}
        self.note(lines.Wrote, t, end=now(), late=late, **wrote)

    def once_more(self) -> None:
        """The lease is over; some programs do not care."""
        client = self.client
        if self.exclusive and client.random.random() < CARELESS:
            client.sleep(client.random.uniform(0.0, 2.5) * client.orders.lease)
            self.write(late=True)


def main() -> None:
    ChaosClient(msgspec.json.decode(sys.argv[1], type=ClientOrders)).work()


if __name__ == "__main__":
    main()
