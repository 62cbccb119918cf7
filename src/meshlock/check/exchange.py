"""What the processes of one search say to each other.

A process writes what it has to say itself, as far as the other side has room, and the rest when
there is more. The queues of :mod:`multiprocessing` leave that to a thread, which gets its turn only
when the search waits for something: the last word about a level then lay there until the next level
was searched, and two processes worked by turns instead of together.
"""

from __future__ import annotations

import pickle
import select
import socket
import struct
from typing import Any

LENGTH = struct.Struct("!I")
AT_ONCE = 1 << 20
"""Bytes that are read together."""


def between(count: int) -> list[dict[int, socket.socket]]:
    """For each of ``count`` processes, a socket to each of the others."""
    ends: list[dict[int, socket.socket]] = [{} for _ in range(count)]
    for one in range(count):
        for other in range(one):
            ends[one][other], ends[other][one] = socket.socketpair()
    return ends


class Exchange:
    """One process's part of it: it forked with all ``ends``, and keeps those that are its own."""

    def __init__(self, me: int, ends: list[dict[int, socket.socket]]) -> None:
        self.sockets = ends[me]
        close(ends[:me] + ends[me + 1 :])
        self.others = {one.fileno(): other for other, one in self.sockets.items()}
        self.unsent = {other: bytearray() for other in self.sockets}
        self.unread = {other: bytearray() for other in self.sockets}
        self.poll = select.poll()
        for one in self.sockets.values():
            one.setblocking(False)
            self.poll.register(one, select.POLLIN)

    def put(self, other: int, said: object) -> None:
        if other in self.sockets:
            data = pickle.dumps(said, pickle.HIGHEST_PROTOCOL)
            self.unsent[other] += LENGTH.pack(len(data)) + data
            self.write(other)

    def get(self, seconds: float) -> list[Any]:
        """What was said to us; if nothing was, wait for it for so long."""
        found: list[Any] = []
        for number, events in self.poll.poll(seconds * 1000):
            other = self.others[number]
            if events & select.POLLOUT:
                self.write(other)
            if events & ~select.POLLOUT and other in self.sockets:
                found += self.read(other)
        return found

    def finish(self, patience: float) -> None:
        """Until all is said that there is to say; nothing is said to us any more."""
        while any(self.unsent.values()):
            self.get(patience)

    def write(self, other: int) -> None:
        unsent, one = self.unsent[other], self.sockets[other]
        try:
            while unsent:
                del unsent[: one.send(unsent)]
        except BlockingIOError:
            self.poll.modify(one, select.POLLIN | select.POLLOUT)
        except OSError:
            self.lose(other)
        else:
            self.poll.modify(one, select.POLLIN)

    def lose(self, other: int) -> None:
        """It has ended; the process that started us all will see that."""
        self.unsent[other].clear()
        self.poll.unregister(self.sockets.pop(other))

    def read(self, other: int) -> list[Any]:
        unread = self.unread[other]
        try:
            data = self.sockets[other].recv(AT_ONCE)
        except OSError:
            data = b""
        if not data:
            self.lose(other)
            return []
        unread += data
        found: list[Any] = []
        while len(unread) >= LENGTH.size:
            end = LENGTH.size + LENGTH.unpack_from(unread)[0]
            if len(unread) < end:
                break
            found.append(pickle.loads(unread[LENGTH.size : end]))
            del unread[:end]
        return found


def close(ends: list[dict[int, socket.socket]]) -> None:
    for sockets in ends:
        for one in sockets.values():
            one.close()
