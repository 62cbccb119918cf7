"""How the parts of a layer freeze: each class declares its variables once.

All times freeze relative to now, and thaw at time 0. A variable that is declared by its name alone
freezes as it is. What a class does not declare is no state: its owner sets it anew when it thaws.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final, NamedTuple

from meshlock.algorithms.actor import Frozen

PLAIN, BY_KEY, UNORDERED, DEADLINE, SPECIAL = range(5)


def no_freeze(part: Any, now: int) -> object:
    raise NotImplementedError


def no_thaw(part: Any, frozen: Any) -> None:
    raise NotImplementedError


class Variable(NamedTuple):
    name: str
    kind: int = PLAIN
    freeze: Callable[[Any, int], object] = no_freeze
    thaw: Callable[[Any, Any], None] = no_thaw


def by_key(name: str) -> Variable:
    """A dictionary: its sorted pairs."""
    return Variable(name, BY_KEY)


def unordered(name: str) -> Variable:
    """A set: its sorted values."""
    return Variable(name, UNORDERED)


def deadline(name: str) -> Variable:
    """A time; one that is over is as good as now."""
    return Variable(name, DEADLINE)


def special(
    name: str, freeze: Callable[[Any, int], object], thaw: Callable[[Any, Any], None] = no_thaw
) -> Variable:
    """Found from the whole part and the time; the part thaws its other variables before. Without
    ``thaw`` it becomes what it froze to."""
    return Variable(name, SPECIAL, freeze, thaw)


class Declared:
    """The variables of a class of parts, in the order in which they freeze: at least two."""

    def __init__(self, *given: str | Variable) -> None:
        fields = [Variable(one) if isinstance(one, str) else one for one in given]
        self.names: Final = tuple([one.name for one in fields])
        # special ones keep their place
        read = [one.name if one.kind != SPECIAL else "__class__" for one in fields]
        self.values: Final = attrgetter(*read)
        special = [(place, one) for place, one in enumerate(fields) if one.kind == SPECIAL]
        as_frozen = [(place, one.name) for place, one in special if one.thaw is no_thaw]
        self.plain: Final = places(fields, PLAIN, DEADLINE) + as_frozen
        self.dicts: Final = places(fields, BY_KEY)
        self.sets: Final = places(fields, UNORDERED)
        self.times: Final = places(fields, DEADLINE)
        self.freezes: Final = [(place, one.freeze) for place, one in special]
        self.thaws: Final = [(place, one.thaw) for place, one in special if one.thaw is not no_thaw]

    def freeze(self, part: object, now: int) -> Frozen:
        frozen: list[Any] = list(self.values(part))
        for place, _ in self.dicts:
            frozen[place] = tuple(sorted(frozen[place].items())) if frozen[place] else ()
        for place, _ in self.sets:
            frozen[place] = tuple(sorted(frozen[place])) if frozen[place] else ()
        for place, _ in self.times:
            frozen[place] = max(0, frozen[place] - now)
        for place, freeze in self.freezes:
            frozen[place] = freeze(part, now)
        return tuple(frozen)

    def thaw(self, part: object, frozen: tuple[Any, ...], start: int = 0) -> int:
        """``part`` becomes what froze; its variables begin at ``start``. Where the next begin."""
        for place, name in self.plain:
            setattr(part, name, frozen[start + place])
        for place, name in self.dicts:
            setattr(part, name, dict(frozen[start + place]))
        for place, name in self.sets:
            setattr(part, name, set(frozen[start + place]))
        for place, thaw in self.thaws:
            thaw(part, frozen[start + place])
        return start + len(self.names)


def places(fields: list[Variable], *kinds: int) -> list[tuple[int, str]]:
    return [(place, one.name) for place, one in enumerate(fields) if one.kind in kinds]
