"""Commands made of functions: parameters are declared as settings are, or are records of them.

Parsing, help and completion are click's, which loads fast and brings no other package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from inspect import cleandoc, signature
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import click
from click.core import ParameterSource

from meshlock.errors import Refused, call_settings
from meshlock.settings import REQUIRED, Option, Settings, option

call_settings("--")

JSON = option(False, "Print one JSON object.")
SOCKET: str | None = option(None, "Use the agent at this Unix socket.")


def parameter(one: Option, kind: Any, shown: bool) -> click.Parameter:
    """It is of this kind, or may be None; or it is a tuple of any length, or pairs."""
    if one.as_text:
        kind = tuple[str, ...] if one.many else str
    many = get_origin(kind) in (tuple, dict)
    pairs = get_origin(kind) is dict
    kind = next((choice for choice in get_args(kind) if choice is not NoneType), kind)
    if kind is Path:
        kind = click.Path(path_type=Path)
    shared: dict[str, Any] = {
        "type": kind if one.least is None else click.FloatRange(min=one.least),
        "required": one.default is REQUIRED,
        "metavar": one.metavar,
    }
    if one.argument:
        return click.Argument([one.field], nargs=-1 if many else 1, **shared)
    if one.default is not REQUIRED and not pairs:  # None would be a default for click
        shared["default"] = one.default
    if kind is bool and one.default is True and "/" not in one.flags[0]:
        shared["flag_value"] = False
    return click.Option(
        [*one.flags, one.field],
        is_flag=kind is bool,
        multiple=many,
        callback=of_pairs if pairs else None,
        show_default=shown,
        help=one.help,
        **shared,
    )


def of_pairs(_: click.Context, of: click.Parameter, pairs: tuple[str, ...]) -> dict[str, str]:
    return named_values(of.opts[0], pairs)


def named_values(where: str, pairs: Iterable[str]) -> dict[str, str]:
    """NAME=VALUE pairs; ``where`` they were given is part of the error if one is not."""

    values: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise Refused(f"{where} takes NAME=VALUE, not '{pair}'.")
        values[name] = value
    return values


class Command(click.Command):
    """Calls a function with what flags and arguments say."""

    def __init__(self, name: str, function: Callable[..., None], own_words: bool = True) -> None:
        """Without ``own_words`` whatever follows the first argument is of another command."""
        self.declared: dict[str | None, Option] = {}
        self.records: dict[str, type[Settings]] = {}
        params: list[click.Parameter] = []
        hints = get_type_hints(function)
        for of in signature(function).parameters.values():
            kinds, found = hints, {of.name: of.default}
            in_record = of.default is of.empty
            if in_record:
                record: type[Settings] = hints[of.name]
                self.records[of.name] = record
                kinds, found = get_type_hints(record), record.with_flags()
            for field, one in found.items():
                self.declared[field] = one.named(field)
                params.append(parameter(one, kinds[field], one.shown or not in_record))
        super().__init__(
            name,
            help=cleandoc(function.__doc__ or ""),
            callback=function,
            params=params,
            context_settings={"allow_interspersed_args": own_words},
        )

    def invoke(self, ctx: click.Context) -> Any:
        for name, record in self.records.items():
            values = {field: ctx.params.pop(field) for field in record.with_flags()}
            ctx.params[name] = record(**{field: values[field] for field in given(ctx, values)})
        return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """What the arguments are; then the flags, those of a group together."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            one = self.declared.get(parameter.name)
            if one is not None and one.argument:
                sections["Arguments"].append((parameter.make_metavar(ctx), one.help))
                continue
            record = parameter.get_help_record(ctx)
            if record is not None:
                sections.setdefault(one.group if one else "Options", []).append(record)
        for title, rows in sections.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def given(ctx: click.Context, fields: Iterable[str]) -> list[str]:
    """Those of these settings that the command line gives."""
    return [one for one in fields if ctx.get_parameter_source(one) is not ParameterSource.DEFAULT]


class Commands(click.Group):
    """Commands by name, in this order, each imported when it is needed."""

    def __init__(self, name: str, title: str, homes: dict[str, str], **more: Any) -> None:
        """``homes`` are as ``replay:shrink``: what is called so in that module beside this one."""
        known = {command: click.Command(command) for command in homes}
        super().__init__(name, help=title, commands=known, no_args_is_help=True, **more)
        self.homes = homes

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.homes)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.homes:
            return None
        module, _, name = self.homes[cmd_name].partition(":")
        found = getattr(import_module(f"meshlock.cli.{module}"), name)
        return found if isinstance(found, click.Command) else Command(cmd_name, found)
