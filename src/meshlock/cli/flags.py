"""Commands made of functions: how a parameter is annotated says which flag or argument it is.

Parsing, help and completion are click's, which loads fast and brings no other package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from inspect import Parameter, cleandoc, signature
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import click

from meshlock.errors import call_settings

call_settings("--")

Names = Iterable[tuple[str, str]]
"""What can come next, and what it is."""

KINDS: dict[object, Any] = {
    bool: None,
    float: click.FLOAT,
    int: click.INT,
    str: click.STRING,
    Path: click.Path(path_type=Path),
}


class Word:
    """What is said of a parameter beside its type and default."""

    def __init__(
        self,
        *names: str,
        help: str,  # noqa: A002
        metavar: str | None = None,
        complete: Callable[[click.Context], Names] | None = None,
        group: str = "Options",
        least: float | None = None,
    ) -> None:
        self.names = names
        self.help = help
        self.metavar = metavar
        self.complete = complete
        self.group = group
        self.least = least

    def completed(self, ctx: click.Context, _: click.Parameter, begun: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        if self.complete is None:
            return []
        names = self.complete(ctx)
        return [CompletionItem(name, help=text) for name, text in names if name.startswith(begun)]


class Option(Word):
    """A flag, called as its parameter unless names say otherwise."""

    def made(self, of: Parameter, kind: Any, many: bool) -> click.Parameter:
        flag = of.name.replace("_", "-")
        required = of.default is Parameter.empty
        default = {} if required else {"default": of.default}  # None would be one for click
        return click.Option(
            [*(self.names or [f"--{flag}" if kind else f"--{flag}/--no-{flag}"]), of.name],
            type=kind if self.least is None else click.FloatRange(min=self.least),
            is_flag=kind is None,
            multiple=many,
            required=required,
            **default,
            show_default=True,
            help=self.help,
            metavar=self.metavar,
            shell_complete=self.completed if self.complete else None,
        )


class Argument(Word):
    def made(self, of: Parameter, kind: Any, many: bool) -> click.Parameter:
        return click.Argument(
            [of.name],
            type=kind,
            nargs=-1 if many else 1,
            required=of.default is Parameter.empty,
            metavar=self.metavar,
            shell_complete=self.completed if self.complete else None,
        )


class Command(click.Command):
    """Calls a function with what flags and arguments say."""

    def __init__(self, name: str, function: Callable[..., None], own_words: bool = True) -> None:
        """Without ``own_words`` whatever follows the first argument is of another command."""
        self.words: dict[str | None, Word] = {}
        self.lists: list[str] = []
        hints = get_type_hints(function, include_extras=True)
        super().__init__(
            name,
            help=cleandoc(function.__doc__ or ""),
            callback=function,
            params=[
                self.parameter(of, *get_args(hints[of.name]))
                for of in signature(function).parameters.values()
            ],
            context_settings={"allow_interspersed_args": own_words},
        )

    def parameter(self, of: Parameter, kind: Any, word: Option | Argument) -> click.Parameter:
        """It is of this kind, or may be None; or there may be a list of them."""
        kinds = [choice for choice in get_args(kind) if choice is not NoneType]
        if get_origin(kind) is not list and kinds:
            (kind,) = kinds
        many = get_origin(kind) is list
        if many:
            self.lists.append(of.name)
            (kind,) = get_args(kind)
        self.words[of.name] = word
        return word.made(of, KINDS[kind], many)

    def invoke(self, ctx: click.Context) -> Any:
        for name in self.lists:
            ctx.params[name] = list(ctx.params[name]) or None
        return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """What the arguments are; then the flags, those of a group together."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            word = self.words.get(parameter.name)
            if word is not None and isinstance(parameter, click.Argument):
                sections["Arguments"].append((parameter.make_metavar(ctx), word.help))
                continue
            record = parameter.get_help_record(ctx)
            if record is not None:
                sections.setdefault(word.group if word else "Options", []).append(record)
        for title, rows in sections.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


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
