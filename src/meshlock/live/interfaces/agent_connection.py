"""Ask the agent of this machine: HTTP over its unix socket, in plain blocking code.

Imports little, so that commands and programs start quickly.
"""

from __future__ import annotations

import json
import os
import re
import select
import socket
import stat
import sys
from json.encoder import encode_basestring_ascii as quoted

from meshlock.errors import NotInTime, Refused, setting
from meshlock.live.machine import clock
from meshlock.live.machine.labels import fitting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ENCODE = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
SAFE = re.compile(r"[A-Za-z0-9._-]{1,64}").fullmatch
DECODE = json.JSONDecoder().raw_decode
LATER = "Prefer: answer-later\r\n"
"""Of a request whose answer nobody waits for."""

GRACE = 5.0
"""Seconds after the timeout of a request in which the agent must have answered."""

TOO_OLD = (
    "{place} is not the socket of an agent of this version of meshlock: "
    "restart the agent after an upgrade, or set MESHLOCK_SOCKET."
)

SILENT = "The agent at {place} did not answer in time."


class NoAgent(Refused):
    """Nobody answers at the socket, or whoever does has no place for us or is leaving."""


class AgentGone(Exception):
    """The connection ended. A sentence, for those who cannot go on without the agent."""


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


def json_body(**values: Any) -> str:
    """JSON of what is asked for; the agent checks it."""
    try:
        return ENCODE(values)
    except (TypeError, ValueError):  # numbers of other classes, or no numbers at all
        return checked_body(**values)


def change_body(priority: int | None, deadline: float | None) -> str:
    """What is changed of a request that waits; the ``deadline`` is in so many seconds."""
    changed = {"priority": priority, "deadline": deadline}
    return json_body(**{name: value for name, value in changed.items() if value is not None})


def checked_body(**values: Any) -> str:
    """The same, checked here as a node would."""
    from meshlock.live.machine import limits

    return json.dumps({name: limits.checked(name, value) for name, value in values.items()})


def acquire_body(
    want: int,
    priority: int,
    timeout: float | None,
    label: str,
    session: str,
    request: str = "",
    due: float | None = None,
) -> str:
    """The same for what is asked for most, ten times as fast."""
    if isinstance(label, str):
        label = fitting(label)
    left = None if due is None else max(0.0, due - clock.seconds())
    if type(want) is not int or type(priority) is not int or type(label) is not str:
        numbers = {"want": want, "priority": priority, "deadline": left, "timeout": timeout}
        return checked_body(**numbers, label=label, session=session, request=request or None)
    patience = "null" if timeout is None else repr(timeout)
    named = f',"request":"{request}"' if request else ""
    named += "" if left is None else f',"deadline":{left!r}'
    try:
        return (
            f'{{"want":{want},"priority":{priority},"timeout":{patience},'
            f'"label":{quoted(label)},"session":"{session}"{named}}}'
        )
    except ValueError:  # a number with more digits than Python writes
        return checked_body(want=want, priority=priority)


def understood(answer: bytes) -> dict[str, Any]:
    """What an agent says in JSON."""
    return DECODE(answer.decode())[0]  # type: ignore[no-any-return]


def pool_name(name: str) -> str:
    """As it can be in a path."""
    if not isinstance(name, str) or not SAFE(name):
        from meshlock.live.machine import limits

        limits.name(name)
    return name


def request(method: str, path: str, body: str = "", more: str = "") -> bytes:
    length = f"Content-Length: {len(body)}\r\n" if body else ""
    return f"{method} {path} HTTP/1.1\r\nHost: agent\r\n{more}{length}\r\n{body}".encode("ascii")


def split_head(data: bytes) -> tuple[int, int, int] | None:
    """Of an answer: its status, where its body begins and ends (-1: it is a stream)."""
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return None
    status = int(data[9:12])
    at = data.find(b"Content-Length: ", 0, end)
    if at >= 0:
        line = data.find(b"\r\n", at)
        return status, end + 4, end + 4 + int(data[at + 16 : line])
    return status, end + 4, end + 4 if status == 204 else -1


def closes(data: bytes, begin: int) -> bool:
    """Is this answer, whose body begins there, the last on its connection?"""
    return data.find(b"\r\nConnection: close\r\n", 0, begin) >= 0


class Unreleased:
    """Permits of a grant that the agent may not know to be released."""

    __slots__ = ("grant", "left")

    def __init__(self, grant: str, left: int) -> None:
        self.grant = grant
        self.left = left  # of its permits, so many are not released

    def path(self, held: int) -> str:
        """What releases them, if so many are held."""
        some = f"?permits={held - self.left}" if self.left else ""
        return f"/v1/grants/{self.grant}{some}"


class Connection:
    """One connection to the agent: a question, an answer, and so on; or in the end a stream."""

    __slots__ = ("chunks", "last", "owed", "place", "socket", "text")

    def __init__(self, place: str | None = None, among: set[Connection] | None = None) -> None:
        """It is ``among`` those which their owner knows from before it can be used."""
        self.place = place or default_socket()
        try:
            self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        except OSError as error:  # this program has too many files open
            raise no_agent(self.place, error) from None
        if among is not None:
            among.add(self)
        self.owed: list[Unreleased] = []  # whose answers nobody waits for
        self.last = False  # the agent answers no more on it
        self.chunks = b""  # of a stream: what was received and not read
        self.text = b""
        try:
            self.socket.connect(self.place)
            refuse_stranger(self.socket, self.place)
        except (OSError, Refused) as error:
            self.socket.close()
            if among is not None:
                among.discard(self)
            raise (no_agent(self.place, error) if isinstance(error, OSError) else error) from None

    def call(
        self,
        method: str,
        path: str,
        body: str = "",
        timeout: float | None = None,
        more: str = "",
        grace: float = GRACE,
    ) -> tuple[int, bytes]:
        """The status and the body of the answer. With ``timeout``, the answer must come soon after
        that; if not, or if this is interrupted, the connection must not be used again."""
        if timeout is not None:
            self.socket.settimeout(timeout + grace)
        self.send(method, path, body, more)
        found = self.receive()
        if timeout is not None:
            self.socket.settimeout(None)
        return found

    def send(self, method: str, path: str, body: str = "", more: str = "") -> None:
        try:
            self.socket.sendall(request(method, path, body, more))
        except TimeoutError:
            raise NotInTime(SILENT.format(place=self.place)) from None
        except OSError:
            raise AgentGone("The agent closed the connection.") from None

    def receive(self) -> tuple[int, bytes]:
        """The answer to what was sent last."""
        data = b""
        head: tuple[int, int, int] | None = None
        try:
            while True:
                if head is None or len(data) < head[2]:
                    part = self.socket.recv(16384)
                    if not part:
                        raise AgentGone("The agent closed the connection.")
                    data += part
                    if not data.startswith(b"HTTP/1.1 "[: len(data)]):
                        raise Refused(TOO_OLD.format(place=self.place))
                elif self.owed:
                    del self.owed[0]
                    data = data[head[2] :]
                else:
                    break
                head = split_head(data)
        except TimeoutError:
            raise NotInTime(SILENT.format(place=self.place)) from None
        except OSError:
            raise AgentGone("The agent closed the connection.") from None
        status, begin, end = head
        self.last = closes(data, begin)
        if end < 0:
            self.chunks, end = data[begin:], begin
        return status, data[begin:end]

    def ask(
        self, method: str, path: str, body: str = "", timeout: float | None = None
    ) -> dict[str, Any]:
        """What the agent says; if that is no success, :class:`Refused` or TimeoutError."""
        try:
            status, said = self.call(method, path, body, timeout)
        except AgentGone as error:
            raise Refused(str(error)) from None
        if status >= 400:
            raise refusal(status, said)
        return understood(said) if said else {}

    # -- streams -----------------------------------------------------------------------

    def follow(self, path: str) -> None:
        """Have the agent send events from now on; :meth:`events` reads them."""
        status, said = self.call("GET", path, more="Accept: text/event-stream\r\n")
        if status != 200:
            raise refusal(status, said)

    def events(self, seconds: float | None) -> list[dict[str, Any]]:
        """Those that have come, or come within so many seconds (None: whenever that is). They
        may be none although there is more to come. :class:`AgentGone` at the end."""
        if not self.chunks:
            poll = select.poll()  # select knows the first 1,024 files of a process only
            poll.register(self.socket, select.POLLIN)
            if not poll.poll(None if seconds is None else seconds * 1000):
                return []
            try:
                data = self.socket.recv(65536)
            except OSError:
                data = b""
            if not data:
                raise AgentGone("The agent closed the connection.")
            self.chunks = data
        self.unchunk()
        *whole, self.text = self.text.split(b"\n\n")
        found = [one.partition(b"data: ")[2] for one in whole]
        return [json.loads(data) for data in found if data]

    def unchunk(self) -> None:
        """The agent sends every event as one chunk; the rest of one that has begun is near."""
        while self.chunks:
            line = self.chunks.find(b"\r\n")
            end = line + 2 + int(self.chunks[:line], 16) if line >= 0 else -1
            if end < 0 or len(self.chunks) < end + 2:
                data = self.socket.recv(65536)
                if not data:
                    raise AgentGone("The agent closed the connection.")
                self.chunks += data
                continue
            if end == line + 2:
                raise AgentGone("The session has ended.")
            self.text += self.chunks[line + 2 : end]
            self.chunks = self.chunks[end + 2 :]

    def fileno(self) -> int:
        return self.socket.fileno()

    def hang_up(self) -> None:
        """End it for both sides, whoever else has it open; a thread that waits for an answer or
        for events gets :class:`AgentGone`."""
        from contextlib import suppress

        with suppress(OSError):  # the agent was faster
            self.socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.socket.close()


def refusal(status: int, said: bytes) -> Exception:
    """What a Node would have raised."""
    try:
        answer = json.loads(said)
        why = str(answer["why"])
    except (ValueError, KeyError, TypeError):
        answer, why = {}, f"The agent answered {status}."
    if answer.get("timed_out"):
        return NotInTime(why)
    return NoAgent(why) if status == 503 else Refused(why)
