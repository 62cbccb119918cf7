"""What the commands share when they print."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import click

if TYPE_CHECKING:
    from rich.table import Table


def print_json(value: Any) -> None:
    """The one object that ``--json`` promises, and nothing else."""
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def print_columns(rows: Sequence[Sequence[str]]) -> None:
    """Columns without rich, which takes a while to load; the first row is the heading."""
    heading, *listed = lines(rows)
    click.secho(heading, bold=True)
    click.echo("\n".join(listed))


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


def lines(rows: Sequence[Sequence[str]]) -> list[str]:
    """The last column folded to the width of the terminal; a pipe gets a line for each row."""
    import shutil
    import sys
    import textwrap

    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    indent = sum(widths) + 2 * len(widths)
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
    found = []
    for row in rows:
        start = "".join(cell.ljust(width + 2) for cell, width in zip(row, widths, strict=False))
        folded = textwrap.wrap(row[-1], max(16, columns - indent))
        found += [start + folded[0], *(" " * indent + more for more in folded[1:])]
    return found
