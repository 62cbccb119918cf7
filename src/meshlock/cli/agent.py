"""meshlock agent: run a node as a daemon."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from meshlock.settings import argument, option

if TYPE_CHECKING:
    from meshlock.live.interfaces.configuration import Settings

POOLS = "Settings of the pools that --pool names"


def agent(
    configuration: Path | None = argument(
        None, "Read settings from this file (TOML). Flags override it."
    ),
    name: str | None = option(None, "Set the name of this node. Default: the host's name."),
    listen: str | None = option(None, "Accept links of other nodes at this host:port."),
    peer: tuple[str, ...] = option((), "Link to the node at this host:port. May be repeated."),
    secret_file: str | None = option(None, "Read the join secret from this file."),
    certificates: str | None = option(None, "Read ca.crt, NAME.crt and NAME.key from this folder."),
    discover: bool = option(False, "Find peers on the local network by zeroconf."),
    pool: tuple[str, ...] = option(
        (),
        "Join or make a pool: NAME=PERMITS, or NAME=SLOT,SLOT,... for permits "
        "with names. NAME alone joins a pool. May be repeated.",
    ),
    create: bool = option(False, "Make the pools at once: this node is the first of them."),
    socket: str | None = option(None, "Listen at this Unix socket for programs of this machine."),
    http: str | None = option(None, "Serve HTTP and the page at this host:port."),
    http_token_file: str | None = option(
        None, "Read the bearer token of the HTTP interface from this file."
    ),
    http_name: tuple[str, ...] = option(
        (), "Accept this host name in requests of browsers. May be repeated."
    ),
    allow_actions: bool = option(False, "Let the page acquire permits and cut links."),
    trace: str | None = option(None, "Write traces to this folder."),
    trace_limit: int | None = option(
        None, "Keep at most this many bytes of trace per pool. Default: 1 GB."
    ),
    state: str | None = option(
        None,
        "Keep what the node must remember in this folder, or 'none'. Default: "
        "the platform's folder for state.",
    ),
    member: bool = option(
        True, "Let this node become a member by itself, or not.", "--member/--no-member"
    ),
    most_pools: int | None = option(
        None, "Let programs use this many pools, and peers announce as many. 1,000 if unset."
    ),
    client_pools: bool = option(False, "Let programs of this machine make pools."),
    min_links: int | None = option(
        None, "Keep at least this many links, also to nodes that others know. 0: only to --peer."
    ),
    advertise: str | None = option(
        None, "Announce this host or host:port to other nodes, if they cannot see it themselves."
    ),
    heartbeat: float | None = option(
        None, "Send a heartbeat after this many seconds without a message."
    ),
    dead: float | None = option(
        None, "Count a link as failed after this many seconds without a message."
    ),
    clock_rate: float | None = option(
        None, "Set how fast the clock of leases runs. For tests only."
    ),
    zenoh: str | None = option(None, "Join the Zenoh network with these settings (JSON)."),
    members: str | None = option(
        None,
        "Name the members, separated by commas, or 'auto': they choose themselves.",
        group=POOLS,
    ),
    most_members: int | None = option(
        None, "Let at most this many nodes become members by themselves.", group=POOLS
    ),
    promote_after: float | None = option(
        None, "Let a node become a member after this many seconds.", group=POOLS
    ),
    replace_after: float | None = option(
        None, "Replace an unreachable member after this many seconds.", group=POOLS
    ),
    lease: float | None = option(
        None,
        "Set the lease: for how many seconds permits are held unless they are renewed.",
        group=POOLS,
    ),
    algorithm: str | None = option(
        None,
        "Run this algorithm (name or file.py). Default: direct; jiang without recovery.",
        group=POOLS,
    ),
    options: dict[str, str] = option(
        {},
        "Set an option of the algorithm as NAME=VALUE. May be repeated.",
        "--option",
        group=POOLS,
    ),
    recovery: str | None = option(
        None, "Choose 'none' to have no leases, as in the papers.", group=POOLS
    ),
    founder: bool = option(False, "Make the pools at this node, without recovery.", group=POOLS),
    link: tuple[str, ...] = option(
        (), "Link A,B in a fixed network, without recovery. May be repeated.", group=POOLS
    ),
    log_level: str = option(
        "info", "Log events of this level and above: debug, info, warning or error."
    ),
) -> None:
    """Run a node for all programs of this machine.

    Example: meshlock agent --listen 0.0.0.0:7400 --secret-file secret --pool docks=3
    """
    import sys

    from meshlock.algorithms.outside import load
    from meshlock.errors import Refused
    from meshlock.live.interfaces import configuration as conf
    from meshlock.live.machine.error_text import error_text
    from meshlock.live.machine.logs import set_up
    from meshlock.live.machine.loop import run

    settings = conf.read(configuration) if configuration is not None else conf.Settings()
    flags = {
        "name": name,
        "listen": listen,
        "peers": list(peer),
        "secret_file": secret_file,
        "certificates": certificates,
        "discover": discover or None,
        "create": create or None,
        "socket": socket,
        "http": http,
        "http_token_file": http_token_file,
        "http_names": list(http_name),
        "allow_actions": allow_actions or None,
        "trace": trace,
        "trace_limit": trace_limit,
        "state": state,
        "member": None if member else False,
        "most_pools": most_pools,
        "client_pools": client_pools or None,
        "min_links": min_links,
        "advertise": advertise,
        "heartbeat": heartbeat,
        "dead": dead,
        "clock_rate": clock_rate,
        "zenoh": conf.json_flag("--zenoh", zenoh) if zenoh is not None else None,
    }
    conf.with_flags(settings, flags)
    of_pools = {
        "members": members if members in (None, "auto") else members.split(","),
        "most_members": most_members,
        "promote_after": promote_after,
        "replace_after": replace_after,
        "lease": lease,
        "algorithm": None if algorithm is None else load(algorithm),
        "options": options or None,
        "recovery": recovery,
        "founder": founder or None,
        "links": [text.split(",") for text in link] if link else None,
    }
    if not pool and any(value is not None for value in of_pools.values()):
        raise Refused("A flag for pools was given, but no pool: add --pool NAME=PERMITS.")
    settings.pools.update(conf.pool_flag(text, of_pools) for text in pool)
    if settings.trace is not None:
        try:
            Path(settings.trace).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Refused(
                f"Cannot write traces to {settings.trace}: {error_text(error)}."
            ) from None
    set_up(sys.stderr, log_level)
    run(serve(settings))


async def serve(settings: Settings) -> None:
    """Until SIGTERM or SIGINT; then leave in good order."""
    import asyncio
    import signal
    from contextlib import AsyncExitStack
    from logging import INFO

    from meshlock.live.interfaces.agent_connection import default_socket
    from meshlock.live.interfaces.configuration import secret
    from meshlock.live.interfaces.http import Interface, serving_port, serving_socket
    from meshlock.live.interfaces.node import Node
    from meshlock.live.interfaces.notify import Service
    from meshlock.live.machine.logs import log_event

    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    node = Node.configured(settings)
    place = settings.socket or default_socket()
    async with AsyncExitStack() as stack:
        service = stack.enter_context(Service())
        await stack.enter_async_context(node)
        if node.promises is not None:
            node.promises.open()  # if nothing can be kept there, say so before anybody relies on it
        if settings.discover:
            from meshlock.live.interfaces.discovery import Discovery

            await stack.enter_async_context(Discovery(node))
        for name, pool in settings.pools.items():
            node.pool(
                name,
                pool.permits,
                founder=pool.founder,
                algorithm=pool.algorithm,
                options=pool.options,
                members=pool.members,
                links=pool.links,
                lease=pool.lease,
                recovery=pool.recovery,
                most_members=pool.most_members,
                promote_after=pool.promote_after,
                replace_after=pool.replace_after,
            )
        interface = Interface(node, settings.client_pools)
        places: dict[str, Any] = {"socket": place}
        await stack.enter_async_context(serving_socket(interface, place))
        if settings.http:
            from meshlock.web.live import LivePage

            token = secret(settings.http_token_file) if settings.http_token_file else None
            page = LivePage(settings.allow_actions)
            at_port = serving_port(
                interface, settings.http, token, page.routes, settings.http_names
            )
            places["http"] = await stack.enter_async_context(at_port)
        log_event(INFO, "ready", node=node.name, address=node.address, **places)
        service.ready(node)
        await stop.wait()
        service.stopping()
        await node.close()  # waiting requests are answered while their clients are connected
