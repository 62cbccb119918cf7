"""The reference is that of the code, and every key of the configuration has a flag."""

from __future__ import annotations

import click
import pytest
import reference

import meshlock
from meshlock.cli.main import app
from meshlock.live.interfaces.agent_settings import AgentSettings, PoolSettings


@pytest.mark.parametrize("name", [*reference.WRITTEN, *reference.PARTS])
def test_a_page_is_as_the_code_makes_it(name: str) -> None:
    written = (reference.FOLDER / name).read_text(encoding="utf-8")
    assert written == reference.page(name), "run make reference"


@pytest.mark.parametrize("settings", [AgentSettings, PoolSettings])
def test_every_key_has_a_flag(settings: type[AgentSettings] | type[PoolSettings]) -> None:
    command = app.get_command(click.Context(app), "agent")
    assert command is not None
    flags = {flag for option in command.params for flag in option.opts}
    assert {
        one.flags[0].split()[0].partition("/")[0] for one in settings.declared.values()
    } <= flags


@pytest.mark.parametrize("name", ["Node", "BlockingNode", "Grant", "Client", "BlockingClient"])
def test_all_that_has_no_underscore_is_in_the_reference(name: str) -> None:
    """Or in the docstring of the class, if it is a plain attribute."""
    kind = getattr(meshlock, name)
    public = {one for one in dir(kind) if not one.startswith("_")}
    public -= set(getattr(kind, "__slots__", ()))
    assert public <= set(reference.MEMBERS[name])
