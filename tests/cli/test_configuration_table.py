"""Every key of the agent's configuration has a flag, and its row in the documentation."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from meshlock.cli.main import app
from meshlock.live.interfaces.configuration import PoolSettings, Settings, keys

PAGE = Path(__file__).parents[2] / "docs" / "operate" / "agent.md"
BEGIN, END = "<!-- keys: begin -->\n", "<!-- keys: end -->"
SINGULAR = {"peers": "peer", "http-names": "http-name", "options": "option", "links": "link"}
"""Flags that are repeated name one of what the key lists."""


def flags() -> set[str]:
    command = app.get_command(click.Context(app), "agent")
    assert command is not None
    return {flag for option in command.params for flag in option.opts}


def flag_of(key: str) -> str:
    return "--pool NAME=PERMITS" if key == "permits" else f"--{SINGULAR.get(key, key)}"


def shown(default: object) -> str:
    if default is None or default in ([], {}):
        return ""
    if isinstance(default, bool):
        return str(default).lower()
    return f"{default:,}" if isinstance(default, int) else str(default)


def table(prefix: str, settings: type[Settings] | type[PoolSettings]) -> list[str]:
    return [
        f"| `{prefix}{key}` | `{flag_of(key)}` | {shown(default)} | {meaning} |"
        for key, (meaning, default) in keys(settings).items()
    ]


@pytest.mark.parametrize("settings", [Settings, PoolSettings])
def test_every_key_has_a_meaning_and_a_flag(settings: type[Settings] | type[PoolSettings]) -> None:
    fields = {name.replace("_", "-") for name in settings.__struct_fields__} - {"pools"}
    assert set(keys(settings)) == fields
    assert {flag_of(key).split()[0] for key in fields} <= flags()


def test_the_table_in_the_documentation_is_that_of_the_code() -> None:
    rows = ["| key | flag | default | |", "|---|---|---|---|"]
    rows += [*table("", Settings), *table("pools.NAME.", PoolSettings)]
    written = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    assert written == "\n".join(rows) + "\n"
