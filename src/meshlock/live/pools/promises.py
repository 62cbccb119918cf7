"""What a node remembers of its pools: written before a promise leaves, read at start.

One file per pool in the node's state folder, and a lock, so that no two processes are the same
node. A write replaces the file as a whole and waits for the disk; it happens once per epoch, never
when permits change hands. Its first line names the version and a checksum of the rest. No former
file is kept: a member that went by an older promise could promise again what it had refused. When
to write, and what must wait for it, :mod:`.members` and :mod:`.birth` know.
"""

from __future__ import annotations

import hashlib
import os
import sys
from logging import ERROR
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeVar

import msgspec

from meshlock.errors import Refused
from meshlock.live.machine.error_text import error_text
from meshlock.live.machine.logs import log_event
from meshlock.live.pools.pool_configuration import PoolConfiguration
from meshlock.live.pools.wire import CONFIG, EPOCH

if TYPE_CHECKING:
    from meshlock.algorithms.recovery.records import Config, Epoch
else:
    Config, Epoch = CONFIG, EPOCH

Kind = TypeVar("Kind")

HEAD = b"meshlock-state 1 "  # and the checksum. Files of 0.2.0 have no such line


class Promised(msgspec.Struct):
    promised: Epoch
    config: Config
    names: dict[int, str]  # of the members: the configuration has their numbers
    pool: PoolConfiguration


class Voted(msgspec.Struct):
    """For whom this node voted to make the pool (0: for nobody), and which candidates were
    withdrawn."""

    identity: int
    founder: str
    withdrawn: tuple[int, ...]


FILES: dict[type, str] = {Promised: "promised", Voted: "vote"}
"""How the names of such files end."""


def default_folder(node: str) -> Path:
    """Where this node's state belongs by the platform's convention."""
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        base = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return base / "meshlock" / node


def signed(body: bytes) -> bytes:
    return HEAD + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def verified(data: bytes) -> bytes:
    """What was signed; raises ValueError if it was not this."""
    if data.startswith(b"{"):
        return data
    head, _, body = data.partition(b"\n")
    if not head.startswith(HEAD):
        raise ValueError("it is damaged, or of another version of meshlock")
    if head != signed(body).partition(b"\n")[0]:
        raise ValueError("it is damaged: its checksum is wrong")
    return body


class Promises:
    """Of one node, for all its pools."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lock: IO[bytes] | None = None
        self.failure = ""  # why the disk does not take what has to be written now

    def path(self, pool: str, kind: type) -> Path:
        return self.folder / f"{pool}.{FILES[kind]}"

    def open(self) -> None:
        """Be the only process with this folder."""
        if self.lock is not None:
            return
        try:
            self.folder.mkdir(0o700, parents=True, exist_ok=True)
            (self.folder / "lock").touch(0o600)
            lock = (self.folder / "lock").open("wb")
        except OSError as error:
            raise Refused(
                f"Cannot write to the state folder {self.folder}: {error.strerror}. Use "
                "another one, or state 'none'."
            ) from None
        if sys.platform != "win32":
            import fcntl

            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                lock.close()
                raise Refused(
                    f"Another process uses the state folder {self.folder}: give this node "
                    "another name or state folder."
                ) from None
        self.lock = lock

    def close(self) -> None:
        if self.lock is not None:
            self.lock.close()
            self.lock = None

    def read(self, pool: str, kind: type[Kind]) -> Kind | None:
        """What the last life of this node promised; None if there is no memory of one."""
        path = self.path(pool, kind)
        try:
            path.stat()
        except FileNotFoundError:
            return None
        except OSError:
            pass  # of what else is wrong, the next lines say
        self.open()
        try:
            return msgspec.json.decode(verified(path.read_bytes()), type=kind)
        except (OSError, ValueError) as error:
            raise Refused(
                f"Cannot use {path}: {error}. Remove the file: the node then starts like one "
                "that has lost its state, and has no vote until the other members give it one."
            ) from None

    def write(self, promised: Promised) -> bool:
        """False if the disk does not take it: then nothing that rests on it may be said."""
        return self.store(promised.pool.pool, promised)

    def store(self, pool: str, value: Promised | Voted) -> bool:
        path = self.path(pool, type(value))
        draft = path.with_name(f"{path.name}.draft")
        try:
            draft.touch(0o600)
            with draft.open("wb") as file:
                file.write(signed(msgspec.json.encode(value)))
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
            folder = os.open(self.folder, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            if not self.failure:
                log_event(ERROR, "promise not written", file=str(path), reason=str(error))
            self.failure = f"cannot write {path}: {error_text(error)}"
            return False
        self.failure = ""
        return True

    def forget(self, pool: str) -> None:
        """A pool that nobody else has been in, and that is no more. The disk is not waited for: if
        it loses this, that is as if we had stopped before."""
        try:
            for kind in FILES:
                self.path(pool, kind).unlink(missing_ok=True)
        except OSError as error:
            log_event(ERROR, "pool file not removed", pool=pool, reason=str(error))
