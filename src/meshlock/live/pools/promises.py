"""What a node has promised, in a small file: written before the promise leaves, read at start.

One file per pool in the node's state directory. A write replaces the file as a whole and
waits for the disk; it happens once per epoch, never when permits change hands.
"""

from __future__ import annotations

import os
from logging import ERROR
from pathlib import Path

import msgspec

from meshlock.errors import Refused
from meshlock.live.machine.logs import tell
from meshlock.live.pools.fields import Config, Epoch


class Promised(msgspec.Struct):
    promised: Epoch
    config: Config
    names: dict[int, str]  # of the members: the configuration has their numbers


class Promises:
    def __init__(self, folder: Path, pool: str) -> None:
        self.path = folder / f"{pool}.promised"
        self.muted = False
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Refused(f"Cannot keep promises in {folder}: {error.strerror}.") from None

    def read(self) -> Promised | None:
        """What the last life of this node promised; None if there is no memory of one."""
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=Promised)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as error:
            raise Refused(
                f"{self.path} cannot be read ({error}): if the disk failed, remove it; the node "
                f"then starts as one that has forgotten, which is safe."
            ) from None

    def write(self, promised: Promised) -> bool:
        """False if the disk does not take it: then nothing that rests on it may be said."""
        draft = self.path.with_suffix(".draft")
        try:
            with draft.open("wb") as file:
                file.write(msgspec.json.encode(promised))
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self.path)
            folder = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            if not self.muted:
                tell(ERROR, "cannot keep a promise", file=str(self.path), reason=str(error))
            self.muted = True
            return False
        self.muted = False
        return True
