"""Write the reference from the code: ``make reference``. A test compares it with what is there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib import import_module
from inspect import cleandoc
from pathlib import Path
from typing import Any

import appendices
import click
import rooms

import meshlock
from meshlock.cli.flags import Command
from meshlock.cli.main import app
from meshlock.live.interfaces import messages
from meshlock.live.interfaces.agent_settings import AgentSettings, PoolSettings
from meshlock.live.interfaces.http import Interface
from meshlock.live.interfaces.operations import description
from meshlock.live.pools import status
from meshlock.live.pools.grants import Acquire

FOLDER = Path(__file__).parents[2] / "docs"
MADE = "<!-- Made from the code: edit there, then run make reference. -->"


TYPED = re.compile(r"meshlock \w+(?: --?[\w-]+(?: [^\s-]\S*)?)+|(?<![\w-])--[\w-]+")
"""Commands and flags within a sentence."""


def cell(text: str) -> str:
    """As part of a table, with nothing in it taken for a link or a tag."""
    return re.sub(r"([|<\[*_])", r"\\\1", " ".join(text.split()))


def prose(text: str) -> str:
    return re.sub(r"``(.*?)``", r"`\1`", " ".join(text.split()))


# -- the command line ------------------------------------------------------------------


def cli() -> Iterator[str]:
    yield "# Command line"
    yield prose(
        """
        Every command of `meshlock` with all its options, as `--help` shows them. Exit codes: 0,
        done and all properties hold; 1, a property is violated or a request was never served; 2,
        the command line or the configuration is wrong; 3, `check` ended before it had seen every
        state. `exec` has [exit codes of its own](#meshlock-exec). With `--json` a command writes
        one JSON object to standard output and nothing else.
        """
    )
    yield from command(click.Context(app, info_name="meshlock"), 2)


def command(ctx: click.Context, level: int) -> Iterator[str]:
    yield f"{'#' * level} {ctx.command_path}"
    for paragraph in cleandoc(ctx.command.help or "").split("\n\n"):
        text = " ".join(paragraph.split())
        intro, example, line = text.partition("Example: ")
        yield f"{intro}{example}`{line}`" if example else TYPED.sub(r"`\g<0>`", text)
    pieces = " ".join(ctx.command.collect_usage_pieces(ctx))
    yield f"```text\n{ctx.command_path} {pieces}\n```"
    yield from tables(ctx)
    if isinstance(ctx.command, click.Group):
        for name in ctx.command.list_commands(ctx):
            found = ctx.command.get_command(ctx, name)
            assert found is not None
            yield from command(click.Context(found, info_name=name, parent=ctx), level + 1)


def tables(ctx: click.Context) -> Iterator[str]:
    """Arguments, then options, those of a group together."""
    words = ctx.command.declared if isinstance(ctx.command, Command) else {}
    sections: dict[str, list[str]] = {"Arguments": [], "Options": []}
    for parameter in ctx.command.get_params(ctx):
        word = words.get(parameter.name)
        if isinstance(parameter, click.Argument):
            assert word is not None
            name = parameter.make_metavar(ctx)
            sections["Arguments"].append(f"| `{name}` | | {cell(word.help)} |")
        elif isinstance(parameter, click.Option) and "--help" not in parameter.opts:
            section = sections.setdefault(word.group if word else "Options", [])
            section.append(option(ctx, parameter))
    for title, rows in sections.items():
        if rows:
            yield "\n".join([f"| {title} | Default | |", "|---|---|---|", *rows])


def option(ctx: click.Context, parameter: click.Option) -> str:
    names = ", ".join(parameter.opts)
    if parameter.secondary_opts:
        names += " / " + ", ".join(parameter.secondary_opts)
    if not parameter.is_flag:
        names += f" {parameter.make_metavar(ctx)}"
    extra = parameter.get_help_extra(ctx)
    default = "required" if parameter.required else extra.get("default", "")
    if "range" in extra:
        default = f"{default} ({extra['range']})".strip()
    return f"| `{names}` | {cell(default)} | {cell(parameter.help or '')} |"


# -- the configuration of an agent -----------------------------------------------------


def configuration() -> Iterator[str]:
    yield "# Configuration"
    yield prose(
        """
        Every key of the agent's configuration file. `meshlock agent FILE` reads TOML; a
        flag overrides its key. Keys of a pool are in a section of its own, `[pools.docks]`;
        on the command line the flags of pools apply to all pools that `--pool` names.
        """
    )
    rows = ["| key | flag | default | meaning |", "|---|---|---|---|"]
    rows += [*table("", AgentSettings), *table("pools.NAME.", PoolSettings)]
    yield "\n".join(rows)


def table(prefix: str, settings: type[AgentSettings] | type[PoolSettings]) -> list[str]:
    return [
        f"| `{prefix}{name.replace('_', '-')}` | `{one.flags[0].partition('/')[0]}` | "
        f"{shown(one.default)} | {cell(one.help)} |"
        for name, one in settings.declared.items()
    ]


def shown(default: object) -> str:
    if default is None or default in ((), {}):
        return ""
    if isinstance(default, bool):
        return str(default).lower()
    return f"{default:,}" if isinstance(default, int) else str(default)


# -- HTTP ------------------------------------------------------------------------------


def http() -> Iterator[str]:
    said = description(Interface.operations, token=True)
    yield "# HTTP"
    yield prose(
        """
        Every call that an agent answers, on its Unix socket and, with `--http`, at a port:
        a table made from the same description as `GET /openapi.json` (OpenAPI 3.1). At a
        port with a token each call carries `Authorization: Bearer TOKEN`, except those
        marked *open*. Calls marked *stream* send events as they come to a client that accepts
        `text/event-stream`. Any call may be answered 500 with `Why`; with a token also 401
        or 403.
        """
    )
    yield "## Calls"
    rows = ["| call | | query or body | answers |", "|---|---|---|---|"]
    for path, methods in said["paths"].items():
        rows += [call(method.upper(), path, one) for method, one in methods.items()]
    yield "\n".join(rows)
    yield "## Bodies and answers"
    for name, one in said["components"]["schemas"].items():
        yield from schema(name, one)


def call(method: str, path: str, one: dict[str, Any]) -> str:
    marks = [" *Open.*"] if one.get("security") == [] else []
    if "text/event-stream" in one["responses"].get("200", {}).get("content", {}):
        marks.append(" *Stream.*")
    query = ", ".join(f"`?{it['name']}`" for it in one["parameters"] if it["in"] == "query")
    body = one.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    answers = []
    for code, response in sorted(one["responses"].items()):
        if code in ("401", "403", "500"):
            continue
        kinds = [kind(it["schema"]) for it in list(response.get("content", {}).values())[:1]]
        answers.append(" ".join([code, *kinds]))
    takes = kind(body) if body else query
    return (
        f"| `{method} {path}` | {one['summary']}{''.join(marks)} | {takes} | {', '.join(answers)} |"
    )


def kind(of: dict[str, Any]) -> str:
    """In words: a type, or the name of another table."""
    if "$ref" in of:
        name = of["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in of:
        return " or ".join(kind(it) for it in of["anyOf"])
    if of.get("type") == "array":
        return f"list of {kind(of['items'])}" if of.get("items") else "list"
    if of.get("type") == "object" and of.get("additionalProperties"):
        return f"object of {kind(of['additionalProperties'])}"
    if "enum" in of:
        return " or ".join(f"`{it}`" for it in of["enum"])
    bounds = [
        f"{word} {of[name]:,}"
        for name, word in (
            ("minimum", "≥"),
            ("exclusiveMinimum", ">"),
            ("maximum", "≤"),
            ("maxLength", "length ≤"),
        )
        if name in of
    ]
    return " ".join([of.get("type", "anything"), *([f"({', '.join(bounds)})"] if bounds else [])])


def schema(name: str, one: dict[str, Any]) -> Iterator[str]:
    yield f"### {name}"
    kinds = vars(messages) | vars(status)
    own = vars(kinds[name]).get("__doc__") if name in kinds else None
    if own and "description" in one:
        yield prose(one["description"])
    rows = ["| field | type | default |", "|---|---|---|"]
    needed = one.get("required", [])
    for field, it in one.get("properties", {}).items():
        default = (
            "required" if field in needed else f"`{it['default']!r}`" if "default" in it else ""
        )
        rows.append(f"| `{field}` | {kind(it)} | {default.replace('None', 'null')} |")
    yield "\n".join(rows)


# -- Python ----------------------------------------------------------------------------

PYTHON = {
    "A node in your program": (
        "Node",
        "Pool",
        "Grant",
        "BlockingNode",
        "BlockingPool",
        "BlockingGrant",
    ),
    "Clients of an agent": (
        "connect",
        "aconnect",
        "BlockingClient",
        "BlockingClientPool",
        "Client",
        "ClientPool",
    ),
    "Locks with the interface of Python's": (
        "Lock",
        "Semaphore",
        "RWLock",
        "AsyncLock",
        "AsyncSemaphore",
        "AsyncRWLock",
    ),
    "Errors": ("Refused", "NotInTime", "NoSuchPool"),
}
OF_A_NODE = ("start", "close", "pool", "create_pool", "connect", "address", "status")
MEMBERS = {
    "Node": (*OF_A_NODE, "configured"),
    "Grant": ("pool", "held", "lost", "until", "lease", "wait_lost", "at_end", "release"),
    "BlockingNode": OF_A_NODE,
    "BlockingClient": ("pool", "status", "close"),
    "BlockingClientPool": (),
    "Client": ("pool", "status", "close"),
    "ClientPool": (),
}
"""What users need of them, where that is not all that has no underscore, or was said before."""

ANSWERS = ("Picture", "GrantView", "RequestView", "Status", "PoolStatus", "Holder", "Waiting")
LABORATORY = (
    "meshlock.lab",
    "meshlock.algorithms.actor",
    "meshlock.algorithms.registry",
    "meshlock.simulate.settings",
    "meshlock.simulate.engine",
    "meshlock.properties.monitor",
    "meshlock.trace.reader",
    "meshlock.trace.audit",
)


def first_sentence(name: str) -> str:
    text = prose(cleandoc(getattr(meshlock, name).__doc__ or "").partition("\n\n")[0])
    return re.sub(r":\w+:`\.*([\w.]+)`", r"`\1`", text).replace("|", "\\|")


def api() -> Iterator[str]:
    assert sorted(name for names in PYTHON.values() for name in names) == sorted(meshlock.__all__)
    yield "# Python"
    yield prose(
        """
        What a program can import from `meshlock`, and the modules that an algorithm or an
        experiment builds on. The site that `make docs` builds shows every signature and
        docstring below its heading.
        """
    )
    for title, names in PYTHON.items():
        yield f"## {title}"
        rows = [f"| `meshlock.{name}` | {first_sentence(name)} |" for name in names]
        yield "\n".join(["| name | |", "|---|---|", *rows])
        for name in names:
            yield shown_class(f"{getattr(meshlock, name).__module__}.{name}", MEMBERS.get(name))
        if "Pool" in names:
            yield shown_class(f"{Acquire.__module__}.Acquire", ("priority", "deadline", "change"))
    yield "## What pools and nodes say"
    for name in ANSWERS:
        yield shown_class(f"{status.__name__}.{name}", None)
    yield "## Algorithms and laboratory"
    for module in LABORATORY:
        yield f"::: {module}\n    options:\n      heading_level: 3"


def shown_class(home: str, members: tuple[str, ...] | None) -> str:
    """What the site shows of it; with no ``members`` named, all that has no underscore."""
    options = {"heading_level": "3", "inherited_members": "true"}
    if home.startswith(status.__name__):
        options["show_if_no_docstring"] = "true"
    if members is not None:
        module, _, name = home.rpartition(".")
        for member in members:
            assert getattr(getattr(import_module(module), name), member).__doc__, (home, member)
        options["members"] = f"[{', '.join(members)}]" if members else "false"
        options["inherited_members"] = "false"
    return "\n      ".join(
        [f"::: {home}\n    options:", *(f"{name}: {value}" for name, value in options.items())]
    )


WRITTEN: dict[str, Callable[[], Iterator[str]]] = {
    "reference/api.md": api,
    "reference/cli.md": cli,
    "reference/configuration.md": configuration,
    "reference/http.md": http,
    "appendices/mutants.md": appendices.mutants,
}


PARTS: dict[str, Callable[[], str]] = {"how-it-works/architecture.md": rooms.table}
"""Pages with a part that the code makes, between two marks."""
BEGIN, END = "<!-- made from the code: begin -->\n", "<!-- made from the code: end -->\n"


def page(name: str) -> str:
    if name in PARTS:
        head, _, rest = (FOLDER / name).read_text(encoding="utf-8").partition(BEGIN)
        return f"{head}{BEGIN}{PARTS[name]()}\n{END}{rest.partition(END)[2]}"
    title, *rest = WRITTEN[name]()
    return "\n\n".join([MADE, title, *rest]) + "\n"


if __name__ == "__main__":
    for name in (*WRITTEN, *PARTS):
        (FOLDER / name).write_text(page(name), encoding="utf-8")
