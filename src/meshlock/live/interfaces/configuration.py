"""What an agent is told: a TOML file, overridden by flags.

::

    name = "robot-1"
    listen = "0.0.0.0:7400"
    peers = ["10.0.0.2:7400"]
    secret-file = "/etc/meshlock/secret"     # or: certificates = "/etc/meshlock/certs"

    [pools.docks]
    permits = 3                              # joined if a neighbour knows it, made otherwise
    lease = 3.0

Its members choose themselves, unless they are named, the same everywhere::

    members = ["robot-1", "robot-2", "robot-3"]

A pool of the papers, for nodes that do not fail::

    recovery = "none"
    founder = true                           # on one node only
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from meshlock.errors import Refused
from meshlock.live.machine import limits
from meshlock.live.machine.limits import (
    CLOCK_RATE,
    DEAD,
    HEARTBEAT,
    LEASE,
    MEMBERS,
    STAY,
    TRACE_LIMIT,
    Permits,
)


class PoolSettings(msgspec.Struct, rename="kebab", forbid_unknown_fields=True):
    permits: Permits | None = None
    founder: bool | None = None
    algorithm: str | None = None
    options: dict[str, str] = {}
    members: list[str] | Literal["auto"] = "auto"
    most_members: Annotated[int, MEMBERS.meta] = 5  # of those that choose themselves
    promote_after: Annotated[float, STAY.meta] = 10.0
    replace_after: Annotated[float, STAY.meta] = 30.0
    lease: Annotated[float, LEASE.meta] | None = None
    recovery: str | None = None  # "none": without leases; members and links are a fixed network
    links: list[tuple[str, str]] | None = None


class Settings(msgspec.Struct, rename="kebab", forbid_unknown_fields=True):
    name: str | None = None
    listen: str | None = "127.0.0.1:0"
    peers: list[str] = []
    secret_file: str | None = None
    certificates: str | None = None
    discover: bool = False
    heartbeat: Annotated[float, HEARTBEAT.meta] = 0.1
    dead: Annotated[float, DEAD.meta] = 0.5
    # of the clock of leases, for tests of clocks that differ
    clock_rate: Annotated[float, CLOCK_RATE.meta] = 1.0
    socket: str | None = None
    http: str | None = None
    http_token_file: str | None = None
    http_names: list[str] = []  # what this machine is called by those who ask over HTTP
    allow_actions: bool = False  # may the page acquire permits and cut links?
    trace: str | None = None
    trace_limit: Annotated[int, TRACE_LIMIT.meta] = 10**9  # bytes, for each pool
    state: str = "auto"  # a folder; "none": remember nothing
    member: bool = True  # may this node become a member of pools by itself?
    zenoh: dict[str, Any] | None = None
    pools: dict[str, PoolSettings] = {}


def read(path: Path) -> Settings:
    try:
        with path.open("rb") as file:
            return msgspec.convert(tomllib.load(file), Settings)
    except OSError as error:
        raise Refused(f"Cannot read {path}: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise Refused(f"{path} is not a configuration of an agent: {error}.") from None


def with_flags(settings: Settings, flags: dict[str, Any]) -> Settings:
    """The same settings, with the flags that were given."""
    for name, value in flags.items():
        if value is not None and value != []:
            setattr(settings, name, value)
    return settings


def pool_flag(text: str) -> tuple[str, PoolSettings]:
    """``docks=3`` joins or makes a pool of three permits, ``docks`` joins one."""
    name, equals, permits = text.partition("=")
    if equals and not permits.isdecimal():
        raise Refused(f"--pool takes NAME or NAME=PERMITS, not {limits.shown(text)}.")
    limits.name(name)
    if equals:
        number = limits.permits(int(permits[: limits.SHOWN]), f"permits (--pool {name}=...)")
        return name, PoolSettings(permits=number)
    return name, PoolSettings()


def secret(path: str | None) -> str | None:
    """The join secret: from its file, or from the environment."""
    if path is None:
        return os.environ.get("MESHLOCK_SECRET")
    try:
        return Path(path).read_text().strip()
    except OSError as error:
        raise Refused(f"Cannot read the secret in {path}: {error.strerror}.") from None
