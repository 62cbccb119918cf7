"""A client of the agent on this machine, for any program: :func:`meshlock.connect`.

Permits belong to a *session*, a connection that the client keeps open: if the program dies, they
come back at once. Questions go over other connections, one for each thread that waits. A child
process made by fork has nothing of its parent: its client makes connections of its own.

An agent may be stopped, or too busy to speak. So a grant ends with the lease that its client knows
of, unless the agent says in time that it was renewed: it is asked while a third is left.

Pools and grants are used like those of a :class:`meshlock.BlockingNode`. Imports little, so that
programs start quickly.
"""

from __future__ import annotations

import os
import time
from _thread import allocate_lock  # threading takes long to import
from weakref import WeakSet

from meshlock.errors import NotInTime, Refused
from meshlock.live.interfaces.agent_connection import (
    GRACE,
    LATER,
    TOO_OLD,
    AgentGone,
    Connection,
    NoAgent,
    Unreleased,
    acquire_body,
    change_body,
    default_socket,
    json_body,
    pool_name,
    refusal,
    understood,
)
from meshlock.live.machine import clock
from meshlock.live.machine.labels import default as default_label
from meshlock.live.pools.grants import AnyBlockingPool, BlockingGrant, part

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from meshlock.live.pools.status import Picture, Status

PATIENCE = 30.0
"""Seconds for which a request goes on asking for an agent that went away."""

CLOSED = "This client is closed."
RETRY = 0.05
SLOWEST_RETRY = 0.5
"""Seconds between two requests to an agent that is not there, or has no place for us."""

MOST_OWED = 32


def connect(socket: str | None = None) -> BlockingClient:
    """Be a client of the agent that answers at this socket; default: ``$MESHLOCK_SOCKET``, or the
    agent's default socket.

    With ``with meshlock.connect() as agent:`` all permits go back at the end of the block, else
    when the client is closed or the process ends. :class:`meshlock.Refused` says why there is
    no agent.
    """
    return BlockingClient(socket)


class Session:
    """A connection to which permits belong."""

    def __init__(
        self, place: str | None, leases: bool = False, among: set[Connection] | None = None
    ) -> None:
        self.line = Connection(place, among)
        try:
            status, said = self.line.call("POST", "/v1/sessions", timeout=0.0)
            if status == 404:
                raise Refused(TOO_OLD.format(place=self.line.place))
            if status != 201:
                raise refusal(status, said)
            self.name: str = understood(said)["session"]
            self.line.follow(f"/v1/sessions/{self.name}/events{'?leases=true' * leases}")
        except BaseException as error:
            self.line.hang_up()
            self.line.close()
            if among is not None:
                among.discard(self.line)
            if isinstance(error, (AgentGone, TimeoutError)):
                raise NoAgent(str(error)) from None
            raise
        self.grants: dict[str, ClientGrant] = {}
        self.over = False
        self.reading = allocate_lock()

    def receive(self, seconds: float = 0.0) -> None:
        """Events of the agent; the thread that receives one passes it to its grant."""
        if not self.reading.acquire(timeout=seconds or 0.0):
            return  # another thread receives it
        try:
            if self.over:
                return
            for event in self.line.events(seconds):
                grant = self.grants.pop(event["grant"], None)  # all that it says is: lost
                if grant is not None:
                    grant.end(lost=True)
        except AgentGone:
            self.end()
        finally:
            self.reading.release()

    def end(self) -> None:
        self.over = True
        self.line.close()
        while self.grants:
            self.grants.popitem()[1].end(lost=True)


class BlockingClient:
    """A client of the agent; any number of threads may use it.

    If the agent is restarted, what was held is lost, and whoever waits asks again.
    """

    _leases = False
    """Does the session say how far the leases of its grants were renewed?"""

    def __init__(self, socket: str | None = None) -> None:
        self.place = socket or default_socket()
        self.start_anew()
        self.closed = False
        CLIENTS.add(self)
        self.session()

    def start_anew(self) -> None:
        self._lock = allocate_lock()
        self._session: Session | None = None
        self._idle: list[Connection] = []
        self._lines: set[Connection] = set()  # all that are open, also those in use
        self._unreleased: dict[str, Unreleased] = {}  # by grant

    def pool(
        self, name: str, permits: int | list[str] | tuple[str, ...] | None = None
    ) -> BlockingClientPool:
        """The pool of this name. With ``permits`` it is made unless there is one, as by
        :meth:`meshlock.Node.pool`, if the agent allows that (``--client-pools``)."""
        if permits is not None:
            self.ask("POST", f"/v1/pools/{pool_name(name)}/join", json_body(permits=permits))
        return BlockingClientPool(self, pool_name(name))

    def status(self) -> Status:
        """What the agent knows, as ``meshlock status --json`` shows it."""
        found: Status = self.ask("GET", "/v1/status")
        return found

    def close(self) -> None:
        """Give everything back; requests that wait are withdrawn, and further ones are refused."""
        with self._lock:
            self.closed = True
            session, self._session = self._session, None
        for line in list(self._lines):
            line.hang_up()  # whoever waits for an answer closes it
        if session is not None:
            session.end()
            self._lines.discard(session.line)
        self.drop_idle()

    def __enter__(self) -> BlockingClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- asking ------------------------------------------------------------------------

    def session(self) -> Session:
        session = self._session
        if session is None or session.over:
            with self._lock:
                if self.closed:
                    raise Refused(CLOSED)
                session = self._session
                if session is None or session.over:
                    if session is not None:
                        self._lines.discard(session.line)
                    session = Session(self.place, self._leases, self._lines)
                    self._session = session
        return session

    def call(
        self,
        method: str,
        path: str,
        body: str = "",
        timeout: float | None = None,
        grace: float = GRACE,
    ) -> tuple[int, bytes]:
        """Over a connection that nobody uses. One that is interrupted is ended: then the agent
        withdraws what it has granted or would."""
        line = self.idle()
        try:
            found = line.call(method, path, body, timeout, grace=grace)
        except BaseException:
            self.drop(line)
            raise
        if line.last:
            self.drop(line)
        else:
            self._idle.append(line)
        return found

    def release(self, what: Unreleased, held: int) -> None:
        """Say so without waiting for the answer: that comes with the next one on the same
        connection."""
        line = None
        try:
            line = self.idle()
            if len(line.owed) >= MOST_OWED:
                line.call("GET", f"/v1/grants/{what.grant}")
            line.owed.append(what)
            line.send("DELETE", what.path(held), more=LATER)
        except (AgentGone, NoAgent):
            if line is None:
                self._unreleased[what.grant] = what
            else:
                self.drop(line)
            self.gone()
            return
        except BaseException:
            if line is not None:
                self.drop(line)
            raise
        self._idle.append(line)

    def release_again(self) -> None:
        """What the agent may not know of, because it closed the connection over which it was said;
        it may have closed that one only."""
        try:
            for name, what in list(self._unreleased.items()):
                status, held = 200, 1
                if what.left:  # a part, which must be released once
                    status, said = self.call("GET", f"/v1/grants/{name}", timeout=0.0)
                    held = understood(said)["want"] if status == 200 else 0
                if held > what.left:
                    status, _ = self.call("DELETE", what.path(held), timeout=0.0)
                if status < 500:
                    self._unreleased.pop(name, None)
        except (AgentGone, NoAgent, TimeoutError):
            pass  # it is done before we next ask for anything

    def idle(self) -> Connection:
        try:
            line = self._idle.pop()
        except IndexError:
            line = Connection(self.place, self._lines)
        if self.closed:  # if it is closed later, it finds this line among the others
            self.drop(line)
            raise NoAgent(CLOSED)
        return line

    def drop(self, line: Connection) -> None:
        """Also if another process has a copy of it, as a child may for a moment."""
        self._unreleased.update((what.grant, what) for what in line.owed)
        line.hang_up()
        line.close()
        self._lines.discard(line)

    def drop_idle(self) -> None:
        while True:
            try:
                line = self._idle.pop()
            except IndexError:
                return
            self.drop(line)

    def ask(self, method: str, path: str, body: str = "") -> Any:
        """The answer; the agent is asked again if it was restarted since the last time."""
        for left in reversed(range(len(self._idle) + 2)):  # all that are idle may have ended
            try:
                status, said = self.call(method, path, body)
                break
            except AgentGone as error:
                self.gone()
                if not left:
                    raise Refused(str(error)) from None
        if status >= 400:
            raise refusal(status, said)
        return understood(said) if said else None

    def gone(self) -> None:
        """The agent closed a connection: that one only, or it went away. As long as it is there,
        the others stay: with them go grants whose answers it believes to be unread."""
        session = self._session
        if session is not None:
            session.receive()
        if session is None or session.over:
            self.drop_idle()
            self._unreleased.clear()
        else:
            self.release_again()

    def acquire(
        self,
        pool: str,
        want: int,
        priority: int,
        timeout: float | None,
        label: str | None,
        due: float | None = None,
        request: str = "",
    ) -> tuple[Session, dict[str, Any]]:
        """Whatever becomes of the agent meanwhile, as long as there is one again soon."""
        end = None if timeout is None else time.monotonic() + real_number(timeout)
        lost: float | None = None  # the agent, since when
        before, pause = self._session, RETRY
        name = default_label() if label is None else label
        if self._unreleased:
            self.release_again()
        left = timeout
        while True:
            try:
                session = self.session()
                if session is not before:
                    before, lost, pause = session, None, RETRY
                body = acquire_body(want, priority, left, name, session.name, request, due)
                status, said = self.call("POST", f"/v1/pools/{pool}/acquire", body, left)
                if status == 503:
                    raise NoAgent(str(refusal(status, said)))
            except (AgentGone, NoAgent) as error:
                self.gone()
                now = time.monotonic()
                lost = now if lost is None else lost
                if end is not None and now >= end:
                    raise NotInTime(str(error)) from None
                if now - lost > PATIENCE:
                    raise Refused(str(error)) from None
                time.sleep(pause if end is None else min(pause, end - now))
                pause = min(2 * pause, SLOWEST_RETRY)
                left = None if end is None else max(0.0, end - time.monotonic())
                continue
            if status == 200:
                return session, understood(said)
            if status == 404:
                session.receive()
            if not session.over:
                raise refusal(status, said)
            left = None if end is None else max(0.0, end - time.monotonic())

    def forked(self) -> None:
        """We are in a child process, and what the parent holds is not ours. Its connections are
        closed here, also those in use there, and not ended: the parent goes on with them."""
        lines, session = self._lines, self._session
        self.start_anew()
        for line in lines:
            line.close()
        if session is not None:
            session.reading = allocate_lock()
            session.end()


def real_number(timeout: float) -> float:
    if type(timeout) in (int, float) and 0 <= timeout <= 1e9:
        return timeout
    from meshlock.live.machine import limits

    return limits.real(limits.TIMEOUT, timeout, "timeout")


CLIENTS: WeakSet[BlockingClient] = WeakSet()


def forked() -> None:
    for client in list(CLIENTS):
        client.forked()


os.register_at_fork(after_in_child=forked)


class BlockingClientPool(AnyBlockingPool):
    """A pool, as the agent knows it; used like :class:`meshlock.BlockingPool`."""

    def __init__(self, client: BlockingClient, name: str) -> None:
        self._client = client
        self.name = name

    @property
    def permits(self) -> int | None:
        """k, once the pool is known to the agent."""
        status = self._client.ask("GET", f"/v1/pools/{self.name}")["status"]
        return status.get("permits")  # type: ignore[no-any-return]

    def _acquired(
        self,
        want: int,
        priority: int,
        timeout: float | None,
        label: str | None,
        deadline: float | None = None,
        request: str | None = None,
    ) -> BlockingGrant:
        name = "" if request is None else pool_name(request)
        session, given = self._client.acquire(
            self.name, want, priority, timeout, label, deadline, name
        )
        return ClientGrant(self._client, session, given)

    def _ask(self, method: str, what: str, **asked: object) -> Any:
        body = json_body(**asked) if asked else ""
        return self._client.ask(method, f"/v1/pools/{self.name}/{what}", body)

    def picture(self) -> Picture:
        return self._ask("GET", "who")  # type: ignore[no-any-return]

    def set_permits(
        self, permits: int | list[str] | tuple[str, ...], *, timeout: float | None = None
    ) -> int:
        return self._ask("POST", "permits", permits=permits, timeout=timeout)["permits"]  # type: ignore[no-any-return]

    def change_members(
        self, *, add: str | None = None, remove: str | None = None, timeout: float | None = None
    ) -> list[str]:
        asked = self._ask("POST", "members", add=add, remove=remove, timeout=timeout)
        return asked["members"]  # type: ignore[no-any-return]

    def reset(self) -> int:
        return self._ask("POST", "reset")["permits"]  # type: ignore[no-any-return]

    def change(
        self, request: str, *, priority: int | None = None, deadline: float | None = None
    ) -> bool:
        body = change_body(priority, deadline)
        path = f"/v1/requests/{pool_name(request)}/priority"
        try:
            status, said = self._client.call("POST", path, body)
        except (AgentGone, NoAgent):
            self._client.gone()
            return False
        if status in (200, 404):
            return status == 200
        raise refusal(status, said)


class ClientGrant(BlockingGrant):
    __slots__ = ("_client", "_held", "_lost", "_name", "_session", "_third", "_until")

    def __init__(self, client: BlockingClient, session: Session, given: dict[str, Any]) -> None:
        slots = tuple(given["slots"])
        super().__init__(
            given["pool"], given["want"], given["priority"], given["fence"], slots, given["met"]
        )
        self._client = client
        self._session = session
        self._name: str = given["grant"]
        self._held = True
        self._lost = False
        self._until: float | None = given["until"]  # as far as the agent has said
        self._third = third(given["lease"])
        session.grants[self._name] = self
        if session.over:
            self.end(lost=True)

    def end(self, lost: bool) -> None:
        if self._held:
            self._held, self._lost = False, lost

    @property
    def held(self) -> bool:
        if self._held:
            self.look()
        return self._held

    @property
    def lost(self) -> bool:
        if self._held:
            self.look()
        return self._lost

    @property
    def until(self) -> float | None:
        if self._held:
            self.look(now=True)
        return self._until if self._held else None

    def look(self, now: bool = False) -> None:
        """Hear what the agent says; if it must, have it say until when the lease was renewed."""
        self._session.receive()
        if self._held and self._until is not None and (now or self.left() <= self._third):
            self.ask_until()

    def left(self) -> float:
        """Seconds of the lease that we know of."""
        return NO_END if self._until is None else self._until - clock.seconds()

    def ask_until(self) -> None:
        """An agent that does not answer before the lease is over cannot renew it either."""
        path = f"/v1/grants/{self._name}"
        status, said = 0, b""
        try:
            status, said = self._client.call("GET", path, timeout=self._third, grace=0.0)
        except TimeoutError:
            pass
        except (AgentGone, NoAgent):  # this connection only, unless the session has ended as well
            self._client.gone()
        if status == 200:
            self._until = understood(said)["until"]
        if self._held and (status == 404 or self.left() <= 0):
            self.end(lost=True)
            self._session.grants.pop(self._name, None)
            self.give_back()  # whatever the agent thinks of it

    def wait_lost(self, timeout: float | None = None) -> bool:
        end = None if timeout is None else time.monotonic() + real_number(timeout)
        while self._held:
            wait = LISTEN if end is None else min(LISTEN, end - time.monotonic())
            if wait <= 0:
                break
            self._session.receive(min(wait, max(self.left() - self._third, self._third / 8)))
            self.look()
        return self._lost

    def release(self, permits: int | None = None) -> None:
        if self._held and permits is not None and part(permits, self.want):
            self.want -= permits
            self.slots = self.slots[: self.want]
            self.give_back(self.want, permits)
        elif self._held:
            self._held = False
            self._session.grants.pop(self._name, None)
            try:
                self.give_back()
            except BaseException:  # an interrupt, or whatever a signal handler raises
                self.give_back()
                raise

    def give_back(self, left: int = 0, permits: int = 0) -> None:
        self._client.release(Unreleased(self._name, left), left + permits)


def third(lease: float | None) -> float:
    """Of a lease: for so long an agent has time to say that it was renewed."""
    return max(0.1, (lease or 0.0) / 3)


LISTEN = 0.25
"""Seconds after which whoever waits for a loss looks whether the grant was released elsewhere."""

NO_END = float("inf")
