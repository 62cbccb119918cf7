"""meshlock agent: run a node as a daemon."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from meshlock.errors import Attempt, Refused
from meshlock.live.interfaces.agent_settings import AgentSettings, PoolSettings
from meshlock.settings import argument, option


def agent(
    *,
    configuration: Path | None = argument(
        None, "Read settings from this file (TOML). Flags override it."
    ),
    pool: tuple[str, ...] = option(
        (),
        "Join or make a pool: NAME=PERMITS, or NAME=SLOT,SLOT,... for permits with names. NAME "
        "alone joins a pool. May be repeated.",
    ),
    given: AgentSettings,
    of_pools: PoolSettings,
    log_level: str = option(
        "info", "Log events of this level and above: debug, info, warning or error."
    ),
) -> None:
    """Run a node for all programs of this machine.

    Example: meshlock agent --listen 0.0.0.0:7400 --secret-file secret --pool docks=3
    """
    import sys

    from meshlock.algorithms.outside import load
    from meshlock.live.interfaces import configuration as conf
    from meshlock.live.machine.logs import set_up
    from meshlock.live.machine.loop import run

    settings = conf.read(configuration) if configuration is not None else AgentSettings()
    flags = {**settings.given, **given.given}
    if "zenoh" in given.given:
        flags["zenoh"] = conf.json_flag("--zenoh", flags["zenoh"])
    settings = AgentSettings(settings.pools, **flags)
    more = dict(of_pools.given)
    if more and not pool:
        raise Refused("A flag for pools was given, but no pool: add --pool NAME=PERMITS.")
    if more.get("members", "auto") != "auto":
        more["members"] = more["members"].split(",")
    if "algorithm" in more:
        more["algorithm"] = load(more["algorithm"])
    if "links" in more:
        more["links"] = [text.split(",") for text in more["links"]]
    settings.pools.update(conf.pool_flag(text, more) for text in pool)
    if settings.trace is not None:
        with Attempt(f"write traces to {settings.trace}"):
            Path(settings.trace).mkdir(parents=True, exist_ok=True)
    set_up(sys.stderr, log_level)
    run(serve(settings))


async def serve(settings: AgentSettings) -> None:
    """Until SIGTERM or SIGINT; then leave in good order."""
    import asyncio
    import signal
    from contextlib import AsyncExitStack
    from logging import INFO

    from meshlock.live.interfaces.agent_connection import default_socket
    from meshlock.live.interfaces.configuration import secret
    from meshlock.live.interfaces.http import Interface
    from meshlock.live.interfaces.node import Node
    from meshlock.live.interfaces.notify import Service
    from meshlock.live.interfaces.serving import serving_port, serving_socket
    from meshlock.live.machine.logs import log_event

    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    node = Node.configured(settings)
    place = settings.socket or default_socket()
    async with AsyncExitStack() as stack:
        service = stack.enter_context(Service())
        await stack.enter_async_context(node)
        promises = node._local.promises
        if promises is not None:
            promises.open()  # if nothing can be kept there, say so before anybody relies on it
        if settings.discover:
            from meshlock.live.interfaces.discovery import Discovery

            await stack.enter_async_context(Discovery(node))
        for name, pool in settings.pools.items():
            node.pool(name, **pool.given)
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
