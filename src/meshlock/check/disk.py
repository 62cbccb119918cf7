"""Rows of numbers on disk, and how many states stay in memory."""

from __future__ import annotations

from array import array
from mmap import ACCESS_READ, mmap
from tempfile import TemporaryFile
from typing import Final

AT_HAND: Final = 6_700_000
"""States that stay in memory. Each takes 160 bytes there, with a copy while it is looked for."""


class Space:
    """Where states go, and how many of them stay at hand."""

    def __init__(self, folder: str, at_hand: int) -> None:
        self.folder = folder
        self.at_hand = at_hand

    def trouble(self, error: OSError) -> str:
        return f"Cannot keep states in {self.folder}: {error.strerror}."


def space(folder: str) -> Space:
    """Raises OSError if nothing can be written there."""
    Row(folder, "q").close()
    return Space(folder, AT_HAND)


class Row:
    """A row of machine numbers in a file without a name; only its end grows. However the process
    ends, the file is gone with it."""

    def __init__(self, folder: str, code: str) -> None:
        self.code = code
        self.width = array(code).itemsize
        self.size = 0
        self.file = TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115

    def append(self, numbers: array[int]) -> None:
        """All of them; if that fails, it is as if none had come."""
        self.file.seek(self.size * self.width)
        left = memoryview(numbers).cast("B")
        while len(left) > 0:
            left = left[self.file.write(left) :]
        self.size += len(numbers)

    def part(self, start: int, stop: int) -> array[int]:
        numbers = array(self.code)
        self.file.seek(start * self.width)
        numbers.fromfile(self.file, stop - start)
        return numbers

    def at(self, number: int) -> int:
        return self.part(number, number + 1)[0]

    def view(self) -> memoryview[int]:
        """The whole row, which the system reads as it is looked at."""
        if self.size == 0:
            return memoryview(array(self.code))
        whole = mmap(self.file.fileno(), self.size * self.width, access=ACCESS_READ)
        return memoryview(whole).cast(self.code)  # type: ignore[call-overload,no-any-return]

    def close(self) -> None:
        self.file.close()
