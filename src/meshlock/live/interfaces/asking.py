"""Ask the agent of this machine; plain blocking code, so that commands start quickly."""

from __future__ import annotations

import socket
from typing import Any

import msgspec

from meshlock.errors import Refused
from meshlock.live.interfaces.configuration import default_socket


class Ask:
    """A connection to the agent. What it holds goes back when it is closed."""

    def __init__(self, place: str | None) -> None:
        place = place or default_socket()
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.socket.connect(place)
        except OSError as error:
            raise Refused(
                f"No agent answers at {place} ({error.strerror}): start one with "
                f"'meshlock agent', or say where with --socket or MESHLOCK_SOCKET."
            ) from None
        self.reader = self.socket.makefile("rb")

    def send(self, **request: Any) -> None:
        fields = {name: value for name, value in request.items() if value is not None}
        self.socket.sendall(msgspec.json.encode(fields) + b"\n")

    def hear(self) -> dict[str, Any]:
        """The agent's next line; empty if it is gone."""
        try:
            line = self.reader.readline()
        except OSError:
            line = b""
        return msgspec.json.decode(line, type=dict[str, Any]) if line else {}

    def ask(self, **request: Any) -> dict[str, Any]:
        self.send(**request)
        answer = self.hear()
        if not answer:
            raise Refused("The agent went away.")
        if not answer.get("ok") and answer.get("error") != "timeout":
            raise Refused(str(answer.get("why", "The agent refused.")))
        return answer

    def close(self) -> None:
        self.socket.close()
