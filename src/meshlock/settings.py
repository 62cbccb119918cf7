"""Settings, each declared once: its type, default, help and flag.

A group of settings is a class, and its fields are the settings::

    class Search(Settings):
        workers: int = option(1, "Search with this many processes.")

The command line, files, messages and the reference read this declaration.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar, TypeVar, get_args, get_type_hints

T = TypeVar("T")

REQUIRED: Any = object()
"""The default of a setting that must be given."""


class Option:
    """What is declared of a setting beside its type."""

    def __init__(self, default: object, text: str, flags: tuple[str, ...], **more: Any) -> None:
        self.default = default
        self.help = text.replace("{}", str(default))
        self.flags = flags
        self.group: str = more.get("group", "Options")  # where the help lists it
        self.metavar: str | None = more.get("metavar")
        self.least: float | None = more.get("least")
        self.within: str | None = more.get("within")  # the range of this name in live's limits
        self.as_text: bool = more.get("as_text", False)  # a flag gives it as a text to be parsed,
        self.many: bool = more.get("many", False)  # or as several
        self.in_files_only: bool = more.get("in_files_only", False)  # it has no flag of its own
        self.shown: bool = more.get("shown", False)  # the help shows the default
        self.argument: bool = more.get("argument", False)  # it has no flag, only a place

    def named(self, field: str) -> Option:
        """It is the setting of this field; flags may have another name."""
        self.field = field
        self.flags = self.flags or (f"--{field.rstrip('_').replace('_', '-')}",)
        self.key = self.flags[0].partition("/")[0].removeprefix("--")  # in files and sentences
        return self


def option(default: T, text: str, *flags: str, **more: Any) -> T:
    """Declare a setting; ``{}`` in the text stands for its default.

    What is declared is not a ``T``, but its field has that type in a record, and so has a
    parameter in the function of a command.
    """
    return Option(default, text, flags, **more)  # type: ignore[return-value]


def argument(default: T, text: str, **more: Any) -> T:
    """Declare a setting that the command line gives by its place."""
    return Option(default, text, (), argument=True, **more)  # type: ignore[return-value]


class Settings:
    """A record of settings, at their defaults unless they are ``given``."""

    declared: ClassVar[dict[str, Option]] = {}
    keys: ClassVar[dict[str, Option]] = {}  # the same by the names that files and flags have

    def __init_subclass__(cls, **more: Any) -> None:
        """``more`` holds for each of these settings."""
        found = {name: one for name, one in vars(cls).items() if isinstance(one, Option)}
        cls.declared = {**cls.declared, **found}
        for name, one in found.items():
            vars(one.named(name)).update(more)
            setattr(cls, name, one.default)
        cls.keys = {one.key: one for one in cls.declared.values()}

    def __init__(self, **given: Any) -> None:
        for name, value in given.items():
            if name not in self.declared:
                raise TypeError(f"{type(self).__name__} has no setting '{name}'")
            if isinstance(value, list) and isinstance(self.declared[name].default, tuple):
                given[name] = tuple(value)  # files and programs give lists
        self.given = given
        vars(self).update(given)

    @classmethod
    def with_flags(cls) -> dict[str, Option]:
        return {name: one for name, one in cls.declared.items() if not one.in_files_only}

    def given_keys(self) -> dict[str, Any]:
        """What is given, by the names that files and flags have."""
        return {self.declared[name].key: value for name, value in self.given.items()}

    def flags(self) -> str:
        """The flags of a command line that gives these settings."""
        words: list[str] = []
        for name, one in self.declared.items():
            value = self.given.get(name)
            if value is None or (value == one.default and not isinstance(value, str)):
                continue
            if isinstance(value, dict):
                value = [f"{key}={part}" for key, part in value.items()]
            for each in value if isinstance(value, list | tuple) else [value]:
                text = f'"{each}"' if " " in str(each) else each
                words.append(one.flags[0] if isinstance(each, bool) else f"{one.flags[0]} {text}")
        return " ".join(words)


types_of: Callable[[type], dict[str, Any]] = cache(get_type_hints)
"""Of the fields of a record; to find them takes longer than to read a line of flags."""


def read_flags(words: list[str], *records: type[Settings]) -> dict[str, Any]:
    """The fields of these records that flags give: the way back from :meth:`Settings.flags`."""
    kinds: dict[str, Any] = {}
    known: dict[str, Option] = {}
    for record in records:
        kinds |= types_of(record)
        known |= {one.flags[0]: one for one in record.declared.values()}
    given: dict[str, Any] = {}
    left = iter(words)
    for word in left:
        one = known[word]
        if isinstance(one.default, bool):
            given[one.field] = not one.default
            continue
        text = next(left)
        kind = kinds[one.field]
        value = int(text) if int in (kind, *get_args(kind)) else text
        if isinstance(one.default, tuple):
            given[one.field] = [*given.get(one.field, []), value]
        elif isinstance(one.default, dict):
            name, _, part = text.partition("=")
            given[one.field] = {**given.get(one.field, {}), name: part}
        else:
            given[one.field] = value
    return given
