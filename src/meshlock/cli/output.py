"""What the commands share when they print."""

from __future__ import annotations

from typing import Any

import typer


def print_json(value: Any) -> None:
    """The one object that ``--json`` promises, and nothing else."""
    import msgspec

    typer.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
