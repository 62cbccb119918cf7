"""What the commands share when they print."""

from __future__ import annotations

from typing import Any

import typer


def print_json(value: Any) -> None:
    """The one object that ``--json`` promises, and nothing else."""
    import msgspec

    typer.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def setting_pairs(where: str, pairs: list[str]) -> dict[str, str | int]:
    """NAME=VALUE pairs as settings, numbers where numbers belong."""
    from meshlock.algorithms.registry import Refused
    from meshlock.simulate.settings import NUMBERS

    settings: dict[str, str | int] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise Refused(f"{where} takes NAME=VALUE, not '{pair}'.")
        if name in NUMBERS:
            try:
                settings[name] = int(value)
            except ValueError:
                raise Refused(f"{name} takes a whole number, not '{value}'.") from None
        else:
            settings[name] = value
    return settings
