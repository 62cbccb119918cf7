"""meshlock algorithms: what there is, what it solves, what it assumes."""

from __future__ import annotations

from typing import Annotated

import typer


def algorithms(
    json: Annotated[bool, typer.Option("--json", help="One JSON list.")] = False,
) -> None:
    """List the algorithms.

    Example: meshlock algorithms
    """
    from meshlock.algorithms.registry import ALGORITHMS
    from meshlock.cli.output import print_json

    entries = ALGORITHMS.values()
    if json:
        print_json(
            [
                {
                    "name": entry.name,
                    "title": entry.title,
                    "source": entry.source,
                    "problem": entry.problem,
                    "priorities": entry.priorities,
                    "changing_links": entry.changing_links,
                    "needs_fifo": entry.needs_fifo,
                    "needs_complete_graph": entry.needs_complete_graph,
                    "routed": entry.routed,
                    "many_clients": entry.many_clients,
                    "messages": entry.messages(),
                    "options": {name: list(values) for name, values in entry.options.items()},
                }
                for entry in entries
            ]
        )
        return
    shares = {"mutex": "1 permit", "k": "1 of k", "h-of-k": "h of k"}
    rows = [("name", "shares", "links", "what it is")]
    for entry in entries:
        links = ["may change"] if entry.changing_links else []
        links += ["fifo"] if entry.needs_fifo else []
        links += ["complete"] if entry.needs_complete_graph else []
        what = shares[entry.problem] + (", by priority" if entry.priorities else "")
        rows.append((entry.name, what, ", ".join(links) or "any", entry.title))
    heading, *listed = lines(rows)
    typer.secho(heading, bold=True)
    typer.echo("\n".join(listed))


def lines(rows: list[tuple[str, str, str, str]]) -> list[str]:
    """Columns without rich, which takes a while to load; a pipe gets a line for each row."""
    import shutil
    import sys
    import textwrap

    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    indent = sum(widths[:3]) + 3 * 2
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
    found = []
    for row in rows:
        start = "".join(cell.ljust(width + 2) for cell, width in zip(row[:3], widths, strict=False))
        folded = textwrap.wrap(row[3], max(16, columns - indent))
        found += [start + folded[0], *(" " * indent + more for more in folded[1:])]
    return found
