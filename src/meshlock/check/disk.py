"""States that outgrow memory: the latest at hand, all of them on disk, in order of discovery.

A state is one integer (:mod:`.packing`), on disk too: nothing is hashed, and no two states are
taken for one. Whether a state was seen before is asked of those at hand first. Whatever is not
among them is a *candidate*; when a level of the search is over, or too much is at hand, all that
lies on disk passes by once, and the candidates that it does not contain are new
(:meth:`Store.settle`). So the disk is read from one end to the other, once per level, and never
here and there. As long as nothing had to leave memory, nothing is read at all.

In memory stay, besides, the parts that states consist of: the model's tables.

The files have no names. However the process ends, they are gone with it.
"""

from __future__ import annotations

from array import array
from mmap import ACCESS_READ, mmap
from tempfile import TemporaryFile
from typing import Final

CHUNK: Final = 1 << 16
"""States that are read from disk together."""
BYTES: Final = 160
"""What a state at hand takes, and a copy of it while it is looked for."""
GIB: Final = 1 << 30


class Space:
    """Where states go, and how many of them stay at hand."""

    def __init__(self, folder: str, at_hand: int) -> None:
        self.folder = folder
        self.at_hand = at_hand

    def shared(self, count: int) -> Space:
        """The same for each of this number of processes."""
        return Space(self.folder, max(1, self.at_hand // count))

    def trouble(self, error: OSError) -> str:
        return f"Cannot keep states in {self.folder}: {error.strerror}."


def space(folder: str, gib: float) -> Space:
    """With so much memory; raises OSError if nothing can be written there."""
    Row(folder, "q").close()
    return Space(folder, max(1, int(gib * GIB / BYTES)))


class Row:
    """A row of machine numbers in a file; only its end grows."""

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


class Store:
    """Of each state, itself and its source: one number that says where it was reached from."""

    def __init__(self, space: Space, numbering: bool) -> None:
        self.space = space
        self.numbering = numbering
        self.states = Row(space.folder, "q")
        self.sources = Row(space.folder, "q")
        self.away = 0  # states before this one are on disk only
        self.candidates = array("q")  # in order of discovery, none twice
        self.origins = array("q")  # their sources
        self.old: dict[int, int] = {}  # candidates that are not new: their numbers, or near them
        self.backward = 0  # of these, those below the number given
        self.ahead = array("q")  # some states in a row
        self.ahead_of = 0  # the number of the first of them

    def state(self, number: int) -> int:
        """One of those that are asked for in their order."""
        at = number - self.ahead_of
        if not 0 <= at < len(self.ahead):
            self.ahead = self.states.part(number, min(number + CHUNK, self.states.size))
            self.ahead_of, at = number, 0
        return self.ahead[at]

    def look(self, below: int) -> None:
        """Find the candidates that are old; ``backward`` counts those with a number below this.
        Numbers are exact if ``numbering``; else they only lie on the right side of ``below``."""
        old = self.old
        old.clear()
        self.backward = 0
        if self.away == 0 or len(self.candidates) == 0:
            return
        wanted = set(self.candidates)
        for start in range(0, self.away, CHUNK):
            some = self.states.part(start, min(start + CHUNK, self.away))
            found = wanted.intersection(some)
            if found and (self.numbering or start < below < start + CHUNK):
                for k, state in enumerate(some):
                    if state in found:
                        old[state] = start + k
                        self.backward += start + k < below
            elif found:
                old.update(dict.fromkeys(found, start))
                self.backward += len(found) if start < below else 0

    def name(self, numbers: dict[int, int]) -> None:
        """Enter what :meth:`look` found, and the numbers that :meth:`settle` will give."""
        old, following = self.old, self.states.size
        for state in self.candidates:
            known = old.get(state, -1)
            if known < 0:
                known = following
                following += 1
            numbers[state] = known

    def settle(self, most: int) -> None:
        """Keep the first ``most`` candidates that are new; the others are forgotten."""
        fresh, sources = array("q"), array("q")
        old, origins = self.old, self.origins
        for k, state in enumerate(self.candidates):
            if len(fresh) == most:
                break
            if state not in old:
                fresh.append(state)
                sources.append(origins[k])
        self.sources.append(sources)
        self.states.append(fresh)
        self.candidates, self.origins = array("q"), array("q")

    def leave(self) -> None:
        """What is at hand is forgotten: from now on it is looked for on disk."""
        self.away = self.states.size

    def close(self) -> None:
        self.states.close()
        self.sources.close()
