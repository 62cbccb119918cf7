"""Which variables a node or a part of one has, its state as one value, and what a message consists
of.

The variables of a :class:`StatePart` are declared once, in its ``__init__``: whatever is assigned
there is state, but for what the class names in ``no_state``. So none can be forgotten. How each is
frozen follows from what it holds: lists, sets, dicts and parts become tuples, everything else has
to be a value already. Parts whose state depends on the time declare :class:`Variables` one by one:
all times freeze relative to now, and thaw at time 0. A message consists of what its constructor
takes.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, ClassVar, Final, NamedTuple

from meshlock.algorithms.subclassing import mypyc_attr

PLAIN, LIST, UNORDERED, BY_KEY, PART, DEADLINE, SPECIAL = range(7)
"""A list; a set, by its sorted values; a dictionary, by its sorted pairs; a part; a time, of which
one that is over is as good as now."""


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
    return Variable(name, BY_KEY)


def unordered(name: str) -> Variable:
    return Variable(name, UNORDERED)


def deadline(name: str) -> Variable:
    return Variable(name, DEADLINE)


def special(
    name: str, freeze: Callable[[Any, int], object], thaw: Callable[[Any, Any], None] = no_thaw
) -> Variable:
    """Found from the whole part and the time; the part thaws its other variables before. Without
    ``thaw`` it becomes what it froze to."""
    return Variable(name, SPECIAL, freeze, thaw)


class Variables:
    """Those of a class, in the order in which they freeze. A name alone stands for a value that
    freezes as it is."""

    def __init__(self, *given: str | Variable) -> None:
        fields = [Variable(one) if isinstance(one, str) else one for one in given]
        self.names: Final = tuple([one.name for one in fields])
        # special ones keep their place; and of one name attrgetter would make no tuple
        read = [one.name if one.kind != SPECIAL else "__class__" for one in fields]
        self.values: Final = attrgetter("__class__", *read)
        special = [(place, one) for place, one in enumerate(fields) if one.kind == SPECIAL]
        as_frozen = [(place, one.name) for place, one in special if one.thaw is no_thaw]
        self.plain: Final = places(fields, PLAIN, DEADLINE) + as_frozen
        self.lists: Final = places(fields, LIST)
        self.sets: Final = places(fields, UNORDERED)
        self.dicts: Final = places(fields, BY_KEY)
        self.parts: Final = places(fields, PART)
        self.times: Final = places(fields, DEADLINE)
        self.freezes: Final = [(place, one.freeze) for place, one in special]
        self.thaws: Final = [(place, one.thaw) for place, one in special if one.thaw is not no_thaw]

    def freeze(self, part: object, now: int = 0) -> tuple[object, ...]:
        frozen: list[Any] = list(self.values(part)[1:])
        for place, _ in self.lists:
            frozen[place] = tuple(frozen[place])
        for place, _ in self.sets:
            frozen[place] = tuple(sorted(frozen[place])) if frozen[place] else ()
        for place, _ in self.dicts:
            frozen[place] = tuple(sorted(frozen[place].items())) if frozen[place] else ()
        for place, _ in self.parts:
            frozen[place] = frozen[place].freeze()
        for place, _ in self.times:
            frozen[place] = max(0, frozen[place] - now)
        for place, freeze in self.freezes:
            frozen[place] = freeze(part, now)
        return tuple(frozen)

    def thaw(self, part: object, frozen: tuple[Any, ...], start: int = 0) -> int:
        """``part`` becomes what froze; its variables begin at ``start``. Where the next begin."""
        for place, name in self.plain:
            setattr(part, name, frozen[start + place])
        for place, name in self.lists:
            setattr(part, name, list(frozen[start + place]))
        for place, name in self.sets:
            setattr(part, name, set(frozen[start + place]))
        for place, name in self.dicts:
            setattr(part, name, dict(frozen[start + place]))
        for place, name in self.parts:
            getattr(part, name).thaw(frozen[start + place])
        for place, thaw in self.thaws:
            thaw(part, frozen[start + place])
        return start + len(self.names)


def places(fields: list[Variable], *kinds: int) -> list[tuple[int, str]]:
    return [(place, one.name) for place, one in enumerate(fields) if one.kind in kinds]


KNOWN: Final[dict[type, Variables]] = {}
"""Of each class of which one has been asked for its state."""


@mypyc_attr(allow_interpreted_subclasses=True)
class StatePart:
    """A node, or a part of a node's state, which is frozen and thawed with the node."""

    __slots__ = ()

    no_state: ClassVar[tuple[str, ...]] = ()
    """What is no variable: what is fixed at its birth, and what can be found from the others."""

    def declared(self) -> Variables:
        kind = type(self)
        known = KNOWN.get(kind)
        if known is None:
            fixed = ("me", "out", *self.no_state)
            names = [name for name in attributes(self) if name not in fixed]
            known = KNOWN[kind] = Variables(*[Variable(name, self.kind_of(name)) for name in names])
        return known

    def kind_of(self, name: str) -> int:
        value = getattr(self, name)
        kinds = ((list, LIST), (set, UNORDERED), (dict, BY_KEY), (StatePart, PART))
        return next((kind for known, kind in kinds if isinstance(value, known)), PLAIN)

    def freeze(self) -> tuple[object, ...]:
        """The whole state as a hashable value."""
        return self.declared().freeze(self)

    def thaw(self, frozen: tuple[Any, ...]) -> None:
        """Become what :meth:`freeze` described; what is no state may need an override."""
        self.declared().thaw(self, frozen)


def attributes(node: object) -> list[str]:
    """In the order in which they are declared, those of the base class first."""
    names: list[str] = []
    for kind in reversed(type(node).__mro__):  # compiled: each class lists its own, then its bases'
        names += [name for name in vars(kind).get("__mypyc_attrs__", ()) if name not in names]
    return names + list(getattr(node, "__dict__", ()))


def parameters(kind: Any) -> tuple[str, ...]:
    """What the constructor of a class takes (inspect.signature would cost 10 ms at the start)."""
    if hasattr(kind.__init__, "__code__"):
        code = kind.__init__.__code__
        return tuple(code.co_varnames[1 : code.co_argcount])
    for base in kind.__mro__[:-1]:  # compiled
        if base.__text_signature__:
            return tuple(base.__text_signature__[1:-1].split(", "))
    raise TypeError(f"{kind.__name__} has no signature: compile it with mypy 1.18 or later.")
