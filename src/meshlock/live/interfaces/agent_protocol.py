"""What is said between a client and the agent of its machine: requests, answers, events.

Rules of this file: it does no I/O, has no clock but that of deadlines, and imports little, so that
commands and programs start quickly. Who connects and waits is in :mod:`.agent_connection` for
threads and in :mod:`.async_client` for event loops; what becomes of sessions and grants when a
connection ends is in :mod:`.agent_client`.
"""

from __future__ import annotations

import json
import re
from collections import deque
from functools import lru_cache

from meshlock.errors import NoSuchPool, NotInTime, Refused
from meshlock.live.machine import clock
from meshlock.live.machine.labels import fitting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Answer = tuple[int, bytes]  # its status and its body

ENCODE = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
SAFE = re.compile(r"[A-Za-z0-9._-]{1,64}").fullmatch
DECODE = json.JSONDecoder().raw_decode
LATER = "Prefer: answer-later\r\n"
"""Of a request whose answer nobody waits for."""

STREAM = "Accept: text/event-stream\r\n"

GRACE = 5.0
"""Seconds after the timeout of a request in which the agent must have answered."""

TOO_OLD = (
    "{place} is not the socket of an agent of this version of meshlock: "
    "restart the agent after an upgrade, or set MESHLOCK_SOCKET."
)

SILENT = "The agent at {place} did not answer in time."
ENDED = "The agent closed the connection."


class NoAgent(Refused):
    """No agent answers at the socket, or it has no place for us or is leaving."""


class AgentGone(Exception):
    """The connection ended. A sentence, for those who cannot go on without the agent."""


# -- requests ---------------------------------------------------------------------------------


def request(method: str, path: str, body: str = "", more: str = "") -> bytes:
    length = f"Content-Length: {len(body)}\r\n" if body else ""
    return f"{method} {path} HTTP/1.1\r\nHost: agent\r\n{more}{length}\r\n{body}".encode("ascii")


repeated_request = lru_cache(maxsize=64)(request)
"""A program repeats its requests."""


def patience(timeout: float | None = 0.0) -> float | None:
    """Seconds within which a request must be answered that may wait for the ``timeout``."""
    return None if timeout is None else timeout + GRACE


def pool_name(name: str) -> str:
    """As it can be in a path."""
    if not isinstance(name, str) or not SAFE(name):
        from meshlock.live.machine import limits

        limits.name(name)
    return name


def json_body(**values: Any) -> str:
    """JSON of what is asked for; the agent checks it."""
    if isinstance(label := values.get("label"), str):
        values["label"] = fitting(label)
    try:
        return ENCODE(values)
    except (TypeError, ValueError):  # numbers of other classes, or none, or with too many digits
        from meshlock.live.machine import limits

        return ENCODE({name: limits.checked(name, value) for name, value in values.items()})


repeated_body = lru_cache(maxsize=64, typed=True)(json_body)


def acquire_body(
    want: int,
    priority: int,
    label: str,
    due: float | None,
    request: str,
    session: str,
    timeout: float | None,
) -> str:
    """The same for what is asked for most; the deadline ``due`` is by :func:`.clock.seconds`. What
    changes from one attempt to the next comes last."""
    if not (type(want) is int and type(priority) is int and type(label) is str):
        from meshlock.live.machine import limits

        want, priority = limits.WANT.whole(want), limits.PRIORITY.whole(priority)
        label = limits.label(label)
    given = {"want": want, "priority": priority, "timeout": timeout, "label": label}
    body = repeated_body(**given, session=session)
    if request:
        body = f'{body[:-1]},"request":"{request}"}}'
    if due is not None:
        body = f'{body[:-1]},"deadline":{max(0.0, due - clock.seconds())!r}}}'
    return body


class Unreleased:
    """Permits of a grant that the agent may not know to be released."""

    __slots__ = ("grant", "left")

    def __init__(self, grant: str, left: int = 0) -> None:
        self.grant = grant
        self.left = left  # this many of its permits stay with the client

    def path(self, held: int) -> str:
        """What releases them, if this many are held."""
        some = f"?permits={held - self.left}" if self.left else ""
        return f"/v1/grants/{self.grant}{some}"


# -- answers ----------------------------------------------------------------------------------


def understood(answer: bytes) -> dict[str, Any]:
    """What an agent says in JSON."""
    return DECODE(answer.decode())[0]  # type: ignore[no-any-return]


def refusal(status: int, said: bytes) -> Exception:
    """What a Node would have raised."""
    try:
        answer = json.loads(said)
        why = str(answer["why"])
    except (ValueError, KeyError, TypeError):
        answer, why = {}, f"The agent answered {status}."
    if answer.get("timed_out"):
        return NotInTime(why)
    return {404: NoSuchPool, 503: NoAgent}.get(status, Refused)(why)


class AgentExchange:
    """One connection: requests out, answers in, in the same order; in the end perhaps a stream.

    The answers are read by llhttp (:mod:`httptools`), which calls the methods ``on_...``. What it
    cannot read is of another program (:data:`TOO_OLD`).
    """

    __slots__ = (
        *("answers", "asked", "body", "follows", "last"),
        *("over", "parser", "place", "streams"),
    )

    def __init__(self, place: str) -> None:
        from httptools import HttpResponseParser  # a program that never connects starts without it

        self.place = place
        self.parser = HttpResponseParser(self)
        self.asked: deque[Any] = deque()
        """Whose answers are to come: an :class:`Unreleased`, for whose answer nobody waits, or
        what the caller knows its request by."""
        self.answers: deque[tuple[Any, Answer]] = deque()
        """What has come, each with what was ``asked``."""
        self.body = b""  # of the next answer, or what has come of the next event
        self.last = False  # the agent answers no more on it
        self.follows = False  # a stream was asked for
        self.streams = False  # events follow instead of answers
        self.over = False  # no more of them

    def receive(self, data: bytes | memoryview) -> None:
        try:
            self.parser.feed_data(data)
        except Exception:  # the parser's
            raise Refused(TOO_OLD.format(place=self.place)) from None

    def on_headers_complete(self) -> None:
        if self.follows and self.parser.get_status_code() == 200:
            self.streams = True
            self.answers.append((self.asked.popleft(), (200, b"")))

    def on_body(self, part: bytes) -> None:
        self.body += part

    def on_message_complete(self) -> None:
        if self.streams:
            self.over = True
        elif self.asked:  # else nobody waits for it
            self.last = not self.parser.should_keep_alive()
            answer = self.parser.get_status_code(), self.body
            self.answers.append((self.asked.popleft(), answer))
            self.body = b""

    def events(self) -> list[dict[str, Any]]:
        """Of the stream: those that have come."""
        *whole, self.body = self.body.split(b"\n\n")
        found = [understood(data) for one in whole if (data := one.partition(b"data: ")[2])]
        if self.over and not found:
            raise AgentGone("The session has ended.")
        return found

    def unsure(self) -> list[Unreleased]:
        """The releases that the agent may not have received, if the connection ended now."""
        return [one for one in self.asked if isinstance(one, Unreleased)]
