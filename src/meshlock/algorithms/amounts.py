"""Amounts of permits: how many of each kind, as one integer.

A pool of one kind has plain integers. In a pool of several kinds an amount is one integer, too:
each kind has a field of FIELD bits, the first kind the lowest. The integer is the sum of number
times 2 ** (FIELD * place), so + and - are as they are, and a field may be below 0. Only *fits* and
*which kinds* are new: the top bit of a field, its guard, shows the field's sign once GUARDS is
added.

One kind has at most MOST permits. So an amount of permits above that says itself that there are
several kinds, and no algorithm need be told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final

from meshlock.errors import Refused

FIELD: Final = 21
"""Bits of a kind: 20 and the guard."""

MOST: Final = (1 << FIELD - 1) - 1
"""Permits of one kind."""

MOST_KINDS: Final = 8

GUARDS: Final = sum([1 << FIELD * place + FIELD - 1 for place in range(MOST_KINDS)])
"""The guard bits of all fields."""

FIRST_KIND: Final = MOST + 1

FULL: Final = sum([MOST << FIELD * place for place in range(MOST_KINDS)])
"""An amount that has MOST in every field."""

NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,39}")
"""Of a kind."""

Outward = int | dict[str, int]
"""An amount as people and programs see it: a number, or a number per kind if there are several."""


def several(permits: int) -> bool:
    """Does a pool of these permits have several kinds?"""
    return permits > MOST


def fits(want: int, free: int) -> bool:
    """Are there as many of each kind? Free permits may be below 0. In a pool of one kind this is
    ``want <= free``."""
    if want <= MOST and free <= MOST:  # of the first kind only, or free is below 0 in some kind
        return want <= free
    return (free - want + GUARDS) & GUARDS == GUARDS


def kinds_of(want: int) -> int:
    """The set of kinds that an amount has one or more of, as guard bits."""
    return FIRST_KIND if 0 < want <= MOST else (want + FULL) & GUARDS


def fields(amount: int) -> list[int]:
    """How many of each kind, up to the last one that is not 0."""
    found: list[int] = []
    rest = amount + GUARDS
    while rest > 0 and rest != GUARDS >> FIELD * len(found):
        found.append((rest & (1 << FIELD) - 1) - MOST - 1)
        rest >>= FIELD
    return found


def in_all(amount: int) -> int:
    """How many permits, whatever their kinds."""
    return amount if -MOST <= amount <= MOST else sum(fields(amount))


def amount_of(numbers: Sequence[int]) -> int:
    """The amount with these numbers, in the order of the kinds."""
    return sum([number << FIELD * place for place, number in enumerate(numbers)])


def positive(amount: int) -> int:
    """Of each kind as many, or none where there are less."""
    if amount >= 0 and amount <= MOST:
        return amount
    return amount_of([max(0, number) for number in fields(amount)])


# -- single permits, by number: the place of the kind times 2 ** FIELD, and which of it -----------


def numbers_of(amount: int) -> tuple[int, ...]:
    """The permits of an amount, the first kind first."""
    if amount <= MOST:
        return tuple(range(amount))
    counts = enumerate(fields(amount))
    return tuple([place << FIELD | one for place, count in counts for one in range(count)])


def is_among(number: int, amount: int) -> bool:
    """Is it one of :func:`numbers_of` that amount?"""
    if number <= MOST:
        return number < (amount if amount <= MOST else fields(amount)[0])
    counts = fields(amount)
    place = number >> FIELD
    return place < len(counts) and number & MOST < counts[place]


def how_many(numbers: Sequence[int]) -> int:
    """The amount that consists of these permits, which ascend."""
    if len(numbers) == 0 or numbers[-1] <= MOST:
        return len(numbers)
    return sum([1 << FIELD * (number >> FIELD) for number in numbers])


def first_of(numbers: Sequence[int], amount: int) -> tuple[int, ...]:
    """Of these permits, which ascend, the first of each kind that make the amount."""
    if len(numbers) == 0 or (amount <= MOST and numbers[-1] <= MOST):
        return tuple(numbers[:amount])
    counts = [*fields(amount), *[0] * MOST_KINDS]
    found = []
    for number in numbers:
        if counts[number >> FIELD] > 0:
            counts[number >> FIELD] -= 1
            found.append(number)
    return tuple(found)


def is_part(part: int, amount: int) -> bool:
    """Is it some of the amount, and not all?"""
    return 0 < part != amount and fits(part, amount)


def most_of_each(amounts: Sequence[int]) -> int:
    """Of every kind as many as the largest of these amounts has."""
    if all(0 <= amount <= MOST for amount in amounts):
        return max(amounts, default=0)
    rows = [fields(amount) for amount in amounts]
    return amount_of([max(column) for column in zip_longest(*rows, fillvalue=0)])


class Kinds:
    """The kinds of permits of a pool, in order: names, numbers, and names of permits if they have
    some. A pool of one kind without a name has the name ''."""

    def __init__(
        self,
        numbers: Mapping[str, int],
        slots: Mapping[str, Sequence[str]] | None = None,
        removed: Sequence[str] = (),
    ) -> None:
        self.names = tuple(numbers)
        self.slots = {name: tuple(names) for name, names in (slots or {}).items()}
        self.several = len(self.names) > 1
        if not 1 <= len(self.names) - len(removed) <= len(self.names) <= MOST_KINDS:
            raise Refused(f"A pool has 1 to {MOST_KINDS} kinds of permits, not {len(self.names)}.")
        for name, number in numbers.items():
            if name not in removed or number != 0:
                self.refuse_kind(name, number)
        self.permits = amount_of(list(numbers.values()))

    def change(self, new: Kinds) -> Kinds:
        """The same pool with the kinds and numbers of ``new``. Every kind keeps its place: a new
        one comes last, and one that is gone has 0 permits, for some may still be held."""
        if "" in (self.names[0], new.names[0]) and self.names != new.names:
            raise Refused(
                f"Permits of one kind without a name cannot become permits of several kinds: "
                f"make another pool for {new}."
            )
        numbers = dict.fromkeys(self.names, 0)
        for name in new.names:
            numbers[name] = new.number(name)
        gone = [name for name, number in numbers.items() if number == 0]
        return Kinds(numbers, new.slots, gone)

    def refuse_kind(self, name: str, number: int) -> None:
        if (name or self.several) and not NAME.fullmatch(name):
            raise Refused(
                f"'{name[:40]}' is no name for a kind of permits: use up to 40 letters, digits, "
                "dots, dashes and underscores, a letter first."
            )
        if type(number) is not int or not 1 <= number <= MOST:
            of = f" of the kind {name}" if name else ""
            raise Refused(
                f"There must be at least one permit{of}, and at most {MOST:,}, not {number}: use "
                f"another number."
            )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Kinds):
            return NotImplemented
        return (self.names, self.permits, self.slots) == (other.names, other.permits, other.slots)

    def __hash__(self) -> int:
        return hash((self.names, self.permits))

    def __str__(self) -> str:
        return self.write(self.permits)

    # -- amounts, as people write them ----------------------------------------------------

    def write(self, amount: int) -> str:
        """``2``, or ``gpu:2,licence:1``."""
        if not self.several:
            return str(amount)
        return ",".join([f"{name}:{number}" for name, number in self.each(amount)]) or "nothing"

    def outward(self, amount: int) -> Outward:
        """For JSON and Python: a number, or a number per kind without those that are 0."""
        return dict(self.each(amount)) if self.several else amount

    def each(self, amount: int) -> Iterator[tuple[str, int]]:
        """Kind and number, but for kinds of which the amount has none."""
        numbers = fields(amount) if self.several else [amount]
        for name, number in zip(self.names, numbers, strict=False):
            if number != 0:
                yield name, number

    def parse(self, text: str) -> int:
        """What somebody wrote: ``2``, ``gpu:2,licence:1`` or ``gpu:2+licence:1``."""
        return self.amount(numbers_in(text))

    def amount(self, value: object) -> int:
        """An amount that a request may ask for: a number, or a number per kind."""
        if not isinstance(value, Mapping):
            if self.several:
                raise Refused(
                    f"The permits are of several kinds, {', '.join(self.names)}: say how many of "
                    f"which, such as {self.names[0]}:1, not {shown(value)}."
                )
            value = {self.names[0]: value}
        found = [0] * len(self.names)
        for name, number in value.items():
            if name not in self.names:
                raise Refused(self.unknown(name))
            if type(number) is not int or number < 0:
                of = f" of the kind {name}" if name else ""
                raise Refused(f"{shown(number)} is no number of permits{of}: use 0 or more.")
            found[self.names.index(name)] = min(number, MOST + 1)
        if not any(found):
            raise Refused("A request is for at least one permit.")
        for name, number in zip(self.names, found, strict=True):
            most = self.number(name)
            if number > most:
                of = f" of the kind {name}" if name else ""
                raise Refused(
                    f"A request for {number} of {most} permits{of} can never be granted: ask for "
                    "less, or raise the number of permits."
                )
        return amount_of(found)

    def total(self, numbers: Mapping[str, int]) -> int:
        """The amount that :meth:`outward` wrote, whatever there is."""
        if not all(name in self.names and type(one) is int for name, one in numbers.items()):
            raise Refused(f"{shown(numbers)} is no amount of {self}.")
        return amount_of([numbers.get(name, 0) for name in self.names])

    def number(self, name: str) -> int:
        """How many permits of this kind there are."""
        if not self.several:
            return self.permits
        place = self.names.index(name)
        numbers = fields(self.permits)
        return numbers[place] if place < len(numbers) else 0

    def unknown(self, name: object) -> str:
        if self.names == ("",):
            return (
                f"The permits are of one kind, without a name: ask for a number, not {shown(name)}."
            )
        return f"There is no kind of permits {shown(name)}: the kinds are {', '.join(self.names)}."


def shown(value: object) -> str:
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 40 else f"{text[:39]}…"


def numbers_in(text: str) -> object:
    """``2`` as a number, ``gpu:2,licence:1`` as a number per kind."""
    if ":" not in text:
        return whole(text, text)
    found: dict[str, int] = {}
    for part in text.replace("+", ",").split(","):
        name, _, number = part.strip().partition(":")
        if name in found:
            raise Refused(f"{shown(text)} names the kind {shown(name)} twice.")
        found[name] = whole(number, text)
    return found


def whole(number: str, text: str) -> int:
    if not number.strip().isdecimal() or len(number) > 18:
        raise Refused(
            f"{shown(text)} is no amount of permits: write a number, or one per kind, such as "
            "gpu:2,licence:1."
        )
    return int(number)


def parse_kinds(text: str) -> Kinds:
    """``4``, or ``gpu:4,licence:5``."""
    return kinds_from(numbers_in(text))


def kinds_from(value: object) -> Kinds:
    """A number, a list of names, or one of both per kind."""
    if isinstance(value, Kinds):
        return value
    rows: dict[str, Any] = dict(value) if isinstance(value, Mapping) else {"": value}
    slots = {name: one for name, one in rows.items() if isinstance(one, list | tuple)}
    return Kinds({name: len(one) if name in slots else one for name, one in rows.items()}, slots)
