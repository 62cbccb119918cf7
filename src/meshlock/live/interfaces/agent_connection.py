"""Ask the agent of this machine in plain blocking code, over its Unix socket."""

from __future__ import annotations

import os
import select
import socket
import stat
import sys
from _thread import allocate_lock  # threading takes long to import

from meshlock.errors import NotInTime, Refused, setting
from meshlock.live.interfaces.agent_protocol import (
    ENDED,
    LATER,
    SILENT,
    STREAM,
    AgentExchange,
    AgentGone,
    NoAgent,
    Unreleased,
    patience,
    refusal,
    repeated_request,
    request,
    understood,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST_OWED = 32
"""Releases whose answers may come with a later one."""


def default_socket() -> str:
    """Where the agent of this machine, or of this user, is asked."""
    given = os.environ.get("MESHLOCK_SOCKET")
    if given:
        return given
    return f"{own_folder()}/meshlock.sock"


def own_folder() -> str:
    """Where the socket of this user's agent is, unless another place is given."""
    user = os.geteuid()
    return os.environ.get("XDG_RUNTIME_DIR") or (f"/tmp/meshlock-{user}" if user else "/run")


def refuse_stranger(line: socket.socket, place: str) -> None:
    """An agent that another user put there could grant anything. We use our own, that of root, and
    where a place was chosen, one in a folder in which only root and the agent's user can write."""
    if not hasattr(socket, "SO_PEERCRED"):
        return
    known = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    user = int.from_bytes(known[4:8], sys.byteorder)
    if user in (0, os.geteuid()):
        return
    folder = place.rpartition("/")[0] or "."
    found = os.stat(folder)  # noqa: PTH116  # pathlib takes long to import
    if folder != own_folder() and found.st_uid in (0, user) and not found.st_mode & 0o022:
        return
    raise Refused(
        f"The agent at {place} is of user {user}, and in {folder} it could be of anybody: use a "
        "socket in a folder in which only root or the agent's user can write."
    )


def no_agent(place: str, error: OSError) -> Refused:
    """Why there is no connection, and what to do."""
    if isinstance(error, PermissionError):
        whose = ""
        try:
            owner = os.stat(place)  # noqa: PTH116  # pathlib takes long to import
            whose = f" (user {owner.st_uid}, group {owner.st_gid}, {stat.filemode(owner.st_mode)})"
        except OSError:
            pass
        return Refused(
            f"Permission denied to use the agent at {place}{whose}: join the group of "
            "its socket, or start an agent of your own."
        )
    return NoAgent(
        f"No agent answers at {place} ({error.strerror or error}): start one with "
        f"'meshlock agent', or set {setting('socket')} or MESHLOCK_SOCKET."
    )


def of_handler(error: OSError) -> bool:
    """Did Python code raise it below the place where it is caught? The socket's own has no frame
    there."""
    return error.__traceback__ is not None and error.__traceback__.tb_next is not None


class Connection:
    """One connection to the agent, for one thread at a time."""

    __slots__ = ("exchange", "place", "reading", "socket")
    over = False
    """That it has ended is seen when it is used."""

    def __init__(self, place: str | None = None, among: set[Any] | None = None) -> None:
        """It is ``among`` those which their owner knows from before it can be used."""
        self.place = place or default_socket()
        try:
            self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        except OSError as error:  # this program has too many files open
            raise no_agent(self.place, error) from None
        if among is not None:
            among.add(self)
        self.exchange = AgentExchange(self.place)
        self.reading = allocate_lock()  # of the thread that reads events
        try:
            self.socket.connect(self.place)
            refuse_stranger(self.socket, self.place)
        except (OSError, Refused) as error:
            self.socket.close()
            if among is not None:
                among.discard(self)
            raise (no_agent(self.place, error) if isinstance(error, OSError) else error) from None

    def call(
        self, method: str, path: str, body: str = "", within: float | None = None, more: str = ""
    ) -> tuple[int, bytes]:
        """The status and the body of the answer, which must come ``within`` these seconds: if not,
        or if this is interrupted, the connection must not be used again."""
        if within is not None:
            self.socket.settimeout(within)
        self.send(method, path, body, more)
        found = self.receive()
        if within is not None:
            self.socket.settimeout(None)
        return found

    def send(
        self, method: str, path: str, body: str = "", more: str = "", asked: object = None
    ) -> None:
        self.exchange.asked.append(asked)
        written = repeated_request if body else request
        try:
            self.socket.sendall(written(method, path, body, more))
        except OSError as error:
            raise self.failed(error) from None

    def release(self, what: Unreleased, held: int) -> None:
        """Say so without waiting for the answer: that comes with the next one."""
        if len(self.exchange.asked) >= MOST_OWED:
            self.call("GET", f"/v1/grants/{what.grant}")
        self.send("DELETE", what.path(held), "", LATER, what)

    def receive(self) -> tuple[int, bytes]:
        """The answer to what was sent last."""
        exchange = self.exchange
        while exchange.asked:
            exchange.receive(self.read())
        answer: tuple[int, bytes] = exchange.answers[-1][1]
        exchange.answers.clear()
        return answer

    def read(self) -> bytes:
        try:
            data = self.socket.recv(16384)
        except OSError as error:
            raise self.failed(error) from None
        if not data:
            raise AgentGone(ENDED)
        return data

    def failed(self, error: OSError) -> Exception:
        """What an error of the socket means. One that a handler of a signal has raised meanwhile is
        the program's own, such as the TimeoutError of an alarm."""
        if of_handler(error):
            return error
        if isinstance(error, TimeoutError):
            return NotInTime(SILENT.format(place=self.place))
        return AgentGone(ENDED)

    def ask(
        self, method: str, path: str, body: str = "", timeout: float | None = None
    ) -> dict[str, Any]:
        """What the agent says; if that is no success, :class:`Refused` or TimeoutError."""
        try:
            status, said = self.call(method, path, body, patience(timeout))
        except AgentGone as error:
            raise Refused(str(error)) from None
        if status >= 400:
            raise refusal(status, said)
        return understood(said) if said else {}

    # -- streams -----------------------------------------------------------------------

    def follow(self, path: str) -> tuple[int, bytes]:
        """Have the agent send events from now on; :meth:`events` reads them."""
        self.exchange.follows = True
        return self.call("GET", path, "", patience(), STREAM)

    def events(self, seconds: float | None) -> list[dict[str, Any]]:
        """Those that have come, or come within this many seconds (None: whenever that is). They
        may be none although there is more to come. :class:`AgentGone` at the end."""
        found = self.exchange.events()
        if not found:
            poll = select.poll()  # select knows the first 1,024 files of a process only
            poll.register(self.socket, select.POLLIN)
            if not poll.poll(None if seconds is None else seconds * 1000):
                return []
            self.exchange.receive(self.read())
            found = self.exchange.events()
        return found

    def fileno(self) -> int:
        return self.socket.fileno()

    def shut_down(self) -> None:
        """End it for both sides, also where another process has it open; a thread that waits for an
        answer or for events gets :class:`AgentGone`."""
        from contextlib import suppress  # a client that never fails starts without it

        with suppress(OSError):  # the agent was faster
            self.socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.shut_down()
        self.socket.close()
