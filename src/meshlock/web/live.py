"""The agent's own page: one node of a running mesh, as it sees its pools. It only looks."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from meshlock.live.http import Interface
from meshlock.live.node import Node
from meshlock.live.pool import Pool
from meshlock.web.answers import file, static, told


def towards(pool: Pool) -> str | None:
    """The neighbour through which the token is reached, as far as this node knows."""
    core = pool.core
    if core is None or core.tokens():
        return None
    views, height = getattr(core, "views", None), getattr(core, "height", None)
    if isinstance(views, dict) and views:
        lowest = min(views, key=lambda number: views[number])
        return pool.names.get(lowest) if views[lowest] < height else None
    for name in ("father", "next", "last"):
        number = getattr(core, name, None)
        if isinstance(number, int):
            return pool.names.get(number)
    return None


def here(host: str) -> bool:
    """Was this machine asked by its own name, and not by one that a stranger gave it?"""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def view(node: Node) -> dict[str, Any]:
    """The node's status, and what the charts need."""
    shown = node.status()
    for name, pool in node.pools.items():
        shown["pools"][name] |= {"towards": towards(pool), "waited": pool.measures.waited}
    return shown


def routes(interface: Interface) -> list[Route]:
    """The page is for everybody who reaches the port; what it shows needs the bearer token."""

    async def start(_request: Request) -> Response:
        return RedirectResponse("/live", 307)

    async def page(_request: Request) -> Response:
        return static("live.html")

    async def shown(request: Request) -> Response:
        if interface.token is None and not here(request.url.hostname or ""):
            raise HTTPException(403, "Without a token only this machine is answered.")
        return told(view(interface.node))

    return [
        Route("/", start),
        Route("/live", page),
        Route("/page/{name}", file),
        Route("/view.json", interface.guarded(shown)),
    ]
