"""meshlock agent: the daemon."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from meshlock.cli.flags import Argument, Option

if TYPE_CHECKING:
    from meshlock.live.interfaces.configuration import Settings

POOLS = "Of the pools that --pool names"


def agent(
    configuration: Annotated[
        Path | None, Argument(help="A configuration file (TOML); flags override it.")
    ] = None,
    name: Annotated[str | None, Option(help="Of this node; the host's name if left out.")] = None,
    listen: Annotated[str | None, Option(help="host:port where others may link to us.")] = None,
    peer: Annotated[list[str] | None, Option(help="host:port of a node to link to.")] = None,
    secret_file: Annotated[str | None, Option(help="File with the join secret.")] = None,
    certificates: Annotated[
        str | None, Option(help="Folder with ca.crt, NAME.crt and NAME.key.")
    ] = None,
    discover: Annotated[
        bool, Option("--discover", help="Find peers on the local network by zeroconf.")
    ] = False,
    pool: Annotated[
        list[str] | None,
        Option(
            help="NAME=PERMITS joins or makes a pool, NAME=SLOT,SLOT,... one whose permits have "
            "names, NAME joins one."
        ),
    ] = None,
    socket: Annotated[str | None, Option(help="Unix socket for programs here.")] = None,
    http: Annotated[str | None, Option(help="host:port for HTTP and the page.")] = None,
    http_token_file: Annotated[
        str | None, Option(help="File with the bearer token of the HTTP interface.")
    ] = None,
    http_name: Annotated[
        list[str] | None, Option(help="A host name by which browsers may ask for us.")
    ] = None,
    allow_actions: Annotated[
        bool,
        Option("--allow-actions", help="Let the page acquire permits and cut links."),
    ] = False,
    trace: Annotated[str | None, Option(help="Folder to write traces to.")] = None,
    trace_limit: Annotated[
        int | None, Option(help="Bytes of trace to keep of each pool (1 GB if left out).")
    ] = None,
    state: Annotated[
        str | None,
        Option(
            help="Folder for what the node must remember; 'none': nothing. "
            "Unless given, where the platform has such folders."
        ),
    ] = None,
    member: Annotated[
        bool,
        Option("--member/--no-member", help="May this node become a member by itself?"),
    ] = True,
    min_links: Annotated[
        int | None,
        Option(help="Links to keep to nodes that others know of; 0: to --peer only."),
    ] = None,
    advertise: Annotated[
        str | None,
        Option(help="host or host:port where others can dial us, if they cannot see that."),
    ] = None,
    heartbeat: Annotated[
        float | None, Option(help="Seconds after which a silent link is used.")
    ] = None,
    dead: Annotated[
        float | None, Option(help="Seconds of silence after which a link has failed.")
    ] = None,
    clock_rate: Annotated[
        float | None, Option(help="For tests only: how fast the clock of leases runs.")
    ] = None,
    zenoh: Annotated[
        str | None, Option(help="Settings of a Zenoh network to join, as JSON.")
    ] = None,
    members: Annotated[
        str | None,
        Option(help="'auto', or names with commas between them.", group=POOLS),
    ] = None,
    most_members: Annotated[
        int | None, Option(help="Of those that choose themselves.", group=POOLS)
    ] = None,
    promote_after: Annotated[
        float | None,
        Option(help="Seconds after which a node becomes a member.", group=POOLS),
    ] = None,
    replace_after: Annotated[
        float | None,
        Option(help="Seconds after which an unreachable member is replaced.", group=POOLS),
    ] = None,
    lease: Annotated[
        float | None,
        Option(help="Seconds that permits are held unless they are renewed.", group=POOLS),
    ] = None,
    algorithm: Annotated[
        str | None, Option(help="jiang unless another is named; or a file.py.", group=POOLS)
    ] = None,
    option: Annotated[
        list[str] | None,
        Option(help="NAME=VALUE, of the algorithm (repeat).", group=POOLS),
    ] = None,
    recovery: Annotated[
        str | None,
        Option(help="'none': no leases, as in the papers.", group=POOLS),
    ] = None,
    founder: Annotated[
        bool,
        Option("--founder", help="Without recovery: this node makes them.", group=POOLS),
    ] = False,
    link: Annotated[
        list[str] | None,
        Option(help="A,B: without recovery, of a fixed network (repeat).", group=POOLS),
    ] = None,
    log_level: Annotated[str, Option(help="debug, info, warning or error.")] = "info",
) -> None:
    """Run a node for all programs of this machine.

    Example: meshlock agent --listen 0.0.0.0:7400 --secret-file secret --pool docks=3
    """
    import sys

    from meshlock.algorithms.outside import load
    from meshlock.cli.output import named_values
    from meshlock.errors import Refused
    from meshlock.live.interfaces import configuration as conf
    from meshlock.live.machine.error_text import error_text
    from meshlock.live.machine.logs import set_up
    from meshlock.live.machine.loop import run

    settings = conf.read(configuration) if configuration is not None else conf.Settings()
    flags = {
        "name": name,
        "listen": listen,
        "peers": peer,
        "secret_file": secret_file,
        "certificates": certificates,
        "discover": discover or None,
        "socket": socket,
        "http": http,
        "http_token_file": http_token_file,
        "http_names": http_name,
        "allow_actions": allow_actions or None,
        "trace": trace,
        "trace_limit": trace_limit,
        "state": state,
        "member": None if member else False,
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
        "options": named_values("--option", option) if option else None,
        "recovery": recovery,
        "founder": founder or None,
        "links": [text.split(",") for text in link] if link else None,
    }
    if not pool and any(value is not None for value in of_pools.values()):
        raise Refused("These flags are of the pools that --pool names: add --pool NAME=PERMITS.")
    settings.pools.update(conf.pool_flag(text, of_pools) for text in pool or [])
    if settings.trace is not None:
        try:
            Path(settings.trace).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Refused(f"No traces in {settings.trace}: {error_text(error)}.") from None
    set_up(sys.stderr, log_level)
    run(serve(settings))


async def serve(settings: Settings) -> None:
    """Until SIGTERM or SIGINT; then leave in good order."""
    import asyncio
    import signal
    from contextlib import AsyncExitStack
    from logging import INFO

    from meshlock.live.interfaces.asking import default_socket
    from meshlock.live.interfaces.configuration import secret
    from meshlock.live.interfaces.http import Interface, serving_port, serving_socket
    from meshlock.live.interfaces.node import Node
    from meshlock.live.interfaces.notify import Service
    from meshlock.live.machine.logs import tell

    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    node = Node.configured(settings)
    place = settings.socket or default_socket()
    async with AsyncExitStack() as stack:
        service = stack.enter_context(Service())
        await stack.enter_async_context(node)
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
        interface = Interface(node)
        await stack.enter_async_context(serving_socket(interface, place))
        if settings.http:
            from meshlock.web.live import LivePage

            token = secret(settings.http_token_file) if settings.http_token_file else None
            page = LivePage(settings.allow_actions)
            at_port = serving_port(
                interface, settings.http, token, page.routes, settings.http_names
            )
            await stack.enter_async_context(at_port)
        tell(INFO, "ready", node=node.name, address=node.address, socket=place)
        service.ready(node)
        await stop.wait()
        service.stopping()
        await node.close()  # who waits is told, while there is somebody to tell it
