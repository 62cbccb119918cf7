"""The configuration of an agent: a TOML file, overridden by flags."""

from __future__ import annotations

import os
import sys
import tomllib
from functools import reduce
from logging import WARNING
from operator import or_
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import msgspec

from meshlock.errors import Attempt, Refused, setting
from meshlock.live.interfaces.agent_settings import AgentSettings, PoolSettings
from meshlock.live.machine import limits
from meshlock.live.machine.logs import log_event
from meshlock.settings import Option, Settings


def shape(of: type[Settings], **more: Any) -> type[msgspec.Struct]:
    """What a file may say of these settings, and ``more``: the values are within their ranges."""
    kinds = get_type_hints(of)
    fields = [(name, within(one, kinds[name]), one.default) for name, one in of.declared.items()]
    fields += [(name, kind, {}) for name, kind in more.items()]
    return msgspec.defstruct(of.__name__, fields, rename="kebab", forbid_unknown_fields=True)


def within(one: Option, kind: Any) -> Any:
    """The same type, its numbers within the range of the setting."""
    if one.within is None:
        return kind
    meta = getattr(limits, one.within).meta
    parts = [
        Annotated[part, meta] if part in (int, float) else part for part in get_args(kind) or [kind]
    ]
    return reduce(or_, parts)


POOL = shape(PoolSettings)
AGENT = shape(AgentSettings, pools=dict[str, POOL])  # type: ignore[valid-type]


def given(table: dict[str, Any], converted: Any) -> dict[str, Any]:
    """Those fields that a table has."""
    names = [key.replace("-", "_") for key in table]
    return {name: getattr(converted, name) for name in names}


def read(path: Path) -> AgentSettings:
    try:
        with Attempt(f"read {path}"), path.open("rb") as file:
            table = tomllib.load(file)
        found = given(table, msgspec.convert(table, AGENT))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Refused(f"{path} is not TOML: {error}.") from None
    except msgspec.ValidationError as error:
        why = limits.in_words(error, AGENT, POOL)
        raise Refused(f"{path} is not an agent's configuration: {why}.") from None
    pools = {
        name: PoolSettings(**given(table["pools"][name], pool))
        for name, pool in found.pop("pools", {}).items()
    }
    return AgentSettings(pools, **found)


def json_flag(flag: str, text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text.encode(), type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise Refused(f"{flag} takes a JSON object: {error}.") from None


def pool_flag(text: str, more: dict[str, Any]) -> tuple[str, PoolSettings]:
    """``docks=3`` joins or makes a pool of three permits, ``gpus=gpu0,gpu1`` one of two that have
    names, ``docks`` joins one; with the ``more`` that flags say of all these pools."""
    name, equals, permits = text.partition("=")
    names = permits.split(",")
    if equals and len(names) == 1 and not permits.isdecimal():
        raise Refused(
            f"{setting('pool')} takes NAME, NAME=PERMITS or NAME=SLOT,SLOT,..., not "
            f"{limits.shown(text)}."
        )
    limits.name(name)
    said = {key.replace("_", "-"): value for key, value in more.items()}
    if equals:
        field = f"permits ({setting('pool')} {name}=...)"
        count = names if len(names) > 1 else int(permits[: limits.SHOWN])
        limits.named_permits(count, field)
        said["permits"] = count
    try:
        return name, PoolSettings(**given(said, msgspec.convert(said, POOL)))
    except msgspec.ValidationError as error:
        raise Refused(
            f"The settings of pool {name} are not valid: {limits.in_words(error)}."
        ) from None


def secret(path: str | None) -> str | None:
    """The join secret: from its file, or from the environment."""
    if path is None:
        return os.environ.get("MESHLOCK_SECRET")
    warn_if_others_read(path)
    with Attempt(f"read the secret in {path}"):
        text = Path(path).read_text()
    return text.strip()


def warn_if_others_read(path: str | Path) -> None:
    """A file whose content lets its readers in. Containers mount secrets so, so it is no error."""
    try:
        mode = Path(path).stat().st_mode & 0o777
    except OSError:
        return  # the reader of the file says why
    if sys.platform != "win32" and mode & 0o007:
        log_event(WARNING, "secret readable by others", file=str(path), mode=f"{mode:o}")
