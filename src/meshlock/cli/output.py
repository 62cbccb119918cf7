"""How commands print: a record as JSON or as text, and how far a long run is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import click

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table
    from rich.text import Text

UNBOUNDED = 10_000
"""Columns; no line is as long."""


def report(json: bool, record: Any, shown: Callable[[], RenderableType], code: int = 0) -> None:
    """Print the record for machines or for people; any ``code`` but 0 ends the command."""
    if json:
        print_json(record)
    else:
        show(shown())
    if code:
        raise click.exceptions.Exit(code)


def print_json(value: Any) -> None:
    """The one object that ``--json`` promises, and nothing else."""
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def show(shown: RenderableType) -> None:
    """A text is printed as it is, without rich, which takes a while to load."""
    if isinstance(shown, str):
        click.echo(shown)
        return
    from rich.console import Console

    console = Console()
    if not console.is_terminal:
        console.width = UNBOUNDED  # a pipe has no edge
    console.print(shown)


@contextmanager
def progress(what: str) -> Iterator[Callable[..., None]]:
    """A bar on standard error, if that is a terminal. It is moved by ``(done, of, what)``, of which
    the end and other words may be left out."""
    if not sys.stderr.isatty():
        yield lambda *moved: None
        return
    from rich import progress as bars
    from rich.console import Console

    columns = (
        *(bars.TextColumn("{task.description}"), bars.BarColumn(), bars.MofNCompleteColumn()),
        *(bars.TimeElapsedColumn(), bars.TextColumn("left:"), bars.TimeRemainingColumn()),
    )
    with bars.Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        bar = shown.add_task(what, total=None)

        def move(done: int, of: int | None = None, words: str = what) -> None:
            shown.update(bar, completed=done, total=of, description=words)

        yield move


def columns(rows: Sequence[Sequence[str]]) -> str:
    """Columns without rich; the first row is the heading, and the last column is folded to the
    width of the terminal. A pipe gets a line for each row."""
    import shutil
    import textwrap

    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    indent = sum(widths) + 2 * len(widths)
    edge = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
    found = []
    for row in rows:
        start = "".join(cell.ljust(width + 2) for cell, width in zip(row, widths, strict=False))
        folded = textwrap.wrap(row[-1], max(16, edge - indent))
        found += [start + folded[0], *(" " * indent + more for more in folded[1:])]
    return "\n".join([click.style(found[0], bold=True), *found[1:]])


def text(words: str = "", style: str = "") -> Text:
    from rich.text import Text

    return Text(words, style)


def group(*shown: RenderableType) -> Group:
    from rich.console import Group

    return Group(*shown)


def table(*headings: str, steady: bool = False) -> Table:
    """Columns with these headings; one that ends in > stands to the right, as numbers do. A
    ``steady`` column is as wide as its heading even where there is no room."""
    from rich.table import Table

    made = Table(box=None, header_style="bold", pad_edge=False)
    for heading in headings:
        name = heading.rstrip(">")
        justify: Literal["left", "right"] = "left" if name == heading else "right"
        made.add_column(name, justify=justify, min_width=len(name) if steady else None)
    return made
