"""Which variables a node has, its state as one value, and what a message consists of.

A node's variables are declared once, in its ``__init__``: whatever is assigned there is state,
but for what the class names in ``no_state``. So none can be forgotten. How each is frozen
follows from what it holds: lists, sets, dicts and parts become tuples, everything else has to be
a value already. A message consists of what its constructor takes.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from meshlock.algorithms.queues import Part


class Variables:
    """Those of one kind of node, found at the first of its nodes."""

    def __init__(self, node: object, no_state: tuple[str, ...]) -> None:
        self.names = tuple([name for name in attributes(node) if name not in no_state])
        self.values = attrgetter("__class__", *self.names)  # of one name it would make no tuple
        self.plain: list[tuple[int, str]] = []
        self.lists: list[tuple[int, str]] = []
        self.sets: list[tuple[int, str]] = []
        self.dicts: list[tuple[int, str]] = []
        self.parts: list[tuple[int, str]] = []
        for place, name in enumerate(self.names):
            value = getattr(node, name)
            if isinstance(value, list):
                self.lists.append((place, name))
            elif isinstance(value, set):
                self.sets.append((place, name))
            elif isinstance(value, dict):
                self.dicts.append((place, name))
            elif isinstance(value, Part):
                self.parts.append((place, name))
            else:
                self.plain.append((place, name))

    def freeze(self, node: object) -> tuple[object, ...]:
        frozen: list[Any] = list(self.values(node)[1:])
        for place, _ in self.lists:
            frozen[place] = tuple(frozen[place])
        for place, _ in self.sets:
            frozen[place] = tuple(sorted(frozen[place]))
        for place, _ in self.dicts:
            frozen[place] = tuple(sorted(frozen[place].items()))
        for place, _ in self.parts:
            frozen[place] = frozen[place].freeze()
        return tuple(frozen)

    def thaw(self, node: object, frozen: tuple[Any, ...]) -> None:
        for place, name in self.plain:
            setattr(node, name, frozen[place])
        for place, name in self.lists:
            setattr(node, name, list(frozen[place]))
        for place, name in self.sets:
            setattr(node, name, set(frozen[place]))
        for place, name in self.dicts:
            setattr(node, name, dict(frozen[place]))
        for place, name in self.parts:
            getattr(node, name).thaw(frozen[place])


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
