"""The configuration of an agent: a TOML file, overridden by flags.

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
import sys
import tomllib
from logging import WARNING
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import msgspec

from meshlock.errors import Refused, setting
from meshlock.live.machine import limits
from meshlock.live.machine.limits import (
    CLOCK_RATE,
    DEAD,
    HEARTBEAT,
    LEASE,
    MEMBERS,
    MIN_LINKS,
    POOLS,
    STAY,
    TRACE_LIMIT,
    Permits,
)
from meshlock.live.machine.logs import log_event


def said(text: str) -> msgspec.Meta:
    """What a key means, for the table in the documentation."""
    return msgspec.Meta(description=text)


class PoolSettings(msgspec.Struct, rename="kebab", forbid_unknown_fields=True):
    permits: Annotated[
        Permits | list[str] | None,
        said("number of permits, or their names; without it the pool is only joined"),
    ] = None
    members: Annotated[
        list[str] | Literal["auto"],
        said(
            "the nodes whose quorum renews leases, the same list at every node; "
            "auto: they choose themselves"
        ),
    ] = "auto"
    most_members: Annotated[
        int, MEMBERS.meta, said("how many nodes may become members by themselves")
    ] = 5
    promote_after: Annotated[
        float, STAY.meta, said("seconds after which a node may become a member")
    ] = 10.0
    replace_after: Annotated[
        float, STAY.meta, said("seconds after which an unreachable member is replaced")
    ] = 30.0
    lease: Annotated[
        Annotated[float, LEASE.meta] | None,
        said("seconds for which permits are held unless they are renewed; default: 3"),
    ] = None
    algorithm: Annotated[
        str | None, said("algorithm that the pool runs; default: direct; jiang without recovery")
    ] = None
    options: Annotated[dict[str, str], said("options of the algorithm")] = {}
    recovery: Annotated[str | None, said('"none": no leases, as in the papers')] = None
    founder: Annotated[bool | None, said("make the pool at this node, without recovery")] = None
    links: Annotated[
        list[tuple[str, str]] | None, said("links of a fixed network, without recovery")
    ] = None


class Settings(msgspec.Struct, rename="kebab", forbid_unknown_fields=True):
    name: Annotated[str | None, said("name of this node; default: the host's name")] = None
    listen: Annotated[str | None, said("host:port at which this node accepts links")] = (
        "127.0.0.1:0"
    )
    peers: Annotated[list[str], said("host:port of nodes to link to")] = []
    secret_file: Annotated[str | None, said("file with the join secret")] = None
    certificates: Annotated[
        str | None, said("folder with ca.crt, NAME.crt and NAME.key, in place of a secret")
    ] = None
    discover: Annotated[bool, said("find peers on the local network by zeroconf")] = False
    heartbeat: Annotated[
        float, HEARTBEAT.meta, said("seconds without a message after which a heartbeat is sent")
    ] = 0.1
    dead: Annotated[
        float, DEAD.meta, said("seconds without a message after which a link has failed")
    ] = 0.5
    clock_rate: Annotated[
        float, CLOCK_RATE.meta, said("how fast the clock of leases runs; for tests only")
    ] = 1.0
    socket: Annotated[str | None, said("Unix socket for programs of this machine")] = None
    http: Annotated[str | None, said("host:port for HTTP and the page")] = None
    http_token_file: Annotated[
        str | None, said("file with the bearer token of the HTTP interface")
    ] = None
    http_names: Annotated[
        list[str], said("host names that are accepted in requests of browsers")
    ] = []
    allow_actions: Annotated[bool, said("whether the page may acquire permits and cut links")] = (
        False
    )
    trace: Annotated[str | None, said("folder to write traces to")] = None
    trace_limit: Annotated[int, TRACE_LIMIT.meta, said("bytes of trace to keep per pool")] = 10**9
    state: Annotated[
        str, said("folder for what the node must remember; none: no folder; auto: the platform's")
    ] = "auto"
    min_links: Annotated[
        int,
        MIN_LINKS.meta,
        said("number of links to keep, also to nodes that others know; 0: only to peers"),
    ] = 3
    most_pools: Annotated[
        int, POOLS.meta, said("how many pools programs may use, and as many peers announce")
    ] = 1000
    client_pools: Annotated[bool, said("whether programs may have pools made")] = False
    advertise: Annotated[
        str | None,
        said(
            "host or host:port that is announced to other nodes, if they cannot see it themselves"
        ),
    ] = None
    create: Annotated[
        bool, said("make the pools at once, unless a node that is reached knows them")
    ] = False
    member: Annotated[bool, said("whether this node may become a member of pools by itself")] = True
    zenoh: Annotated[
        dict[str, Any] | None, said("settings of a Zenoh network to join, as JSON")
    ] = None
    pools: dict[str, PoolSettings] = {}


def keys(settings: type[msgspec.Struct]) -> dict[str, tuple[str, Any]]:
    """What each key means, and its default."""
    found: dict[str, tuple[str, Any]] = {}
    for name, kind in get_type_hints(settings, include_extras=True).items():
        texts = [meta.description for meta in getattr(kind, "__metadata__", ())]
        default = getattr(settings(), name)
        if any(texts):
            found[name.replace("_", "-")] = (next(filter(None, texts)), default)
    return found


def read(path: Path) -> Settings:
    try:
        with path.open("rb") as file:
            return msgspec.convert(tomllib.load(file), Settings)
    except OSError as error:
        raise Refused(f"Cannot read {path}: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Refused(f"{path} is not TOML: {error}.") from None
    except msgspec.ValidationError as error:
        why = limits.in_words(error, Settings, PoolSettings)
        raise Refused(f"{path} is not an agent's configuration: {why}.") from None


def with_flags(settings: Settings, flags: dict[str, Any]) -> Settings:
    """The same settings, with the flags that were given."""
    for name, value in flags.items():
        if value is not None and value != []:
            setattr(settings, name, value)
    return settings


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
    given = {key.replace("_", "-"): value for key, value in more.items() if value is not None}
    if equals:
        field = f"permits ({setting('pool')} {name}=...)"
        count = names if len(names) > 1 else int(permits[: limits.SHOWN])
        limits.named_permits(count, field)
        given["permits"] = count
    try:
        return name, msgspec.convert(given, PoolSettings)
    except msgspec.ValidationError as error:
        raise Refused(
            f"The settings of pool {name} are not valid: {limits.in_words(error)}."
        ) from None


def secret(path: str | None) -> str | None:
    """The join secret: from its file, or from the environment."""
    if path is None:
        return os.environ.get("MESHLOCK_SECRET")
    try:
        warn_if_others_read(path)
        return Path(path).read_text().strip()
    except OSError as error:
        raise Refused(f"Cannot read the secret in {path}: {error.strerror}.") from None


def warn_if_others_read(path: str | Path) -> None:
    """A file whose content lets its readers in. Containers mount secrets so, so it is no error."""
    try:
        mode = Path(path).stat().st_mode & 0o777
    except OSError:
        return  # whoever reads it says why
    if sys.platform != "win32" and mode & 0o007:
        log_event(WARNING, "secret readable by others", file=str(path), mode=f"{mode:o}")
