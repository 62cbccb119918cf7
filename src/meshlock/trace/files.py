"""Files that commands write where they are told to."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from meshlock.errors import Attempt


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file to write, which takes the place of this one when it is whole.

    Of a link, what it leads to is replaced. What is no regular file, such as a pipe or a device,
    is written to as it is: a file in its place would be another thing.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    target = Path(os.path.realpath(path))
    partial = target.with_name(target.name + ".part")
    try:
        with partial.open("wb") as file:
            yield file
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def packing(file: IO[bytes], path: Path) -> Iterator[IO[bytes]]:
    """What to write a trace to, if its file has this name: one in .gz is compressed.

    Neither the name nor the time is in it, for the same run gives the same bytes.
    """
    if path.suffix != ".gz":
        yield file
        return
    with gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
        yield cast(IO[bytes], packed)


@contextmanager
def trace_file(path: Path) -> Iterator[IO[bytes]]:
    """A file that can be read while the run goes on that writes its trace to it."""
    with (
        Attempt(f"write the trace to {path}"),
        path.open("wb", buffering=1 << 20) as file,
        packing(file, path) as sink,
    ):
        yield sink
