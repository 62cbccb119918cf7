"""The agent's own page: the whole mesh as this node knows it, and one pool on it.

It only looks, unless the agent allows actions; then a reader with the bearer token
may acquire permits at this node and cut its links. Actions come as JSON with the token in a
header, which no page of another site can send, from our own origin
(:mod:`meshlock.live.interfaces.serving` checks that for everything).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from meshlock.errors import Refused, setting
from meshlock.live.interfaces.http import Interface
from meshlock.live.interfaces.http_requests import HTTPError, HTTPRequest
from meshlock.live.interfaces.local_node import LocalNode
from meshlock.live.interfaces.serving import Access
from meshlock.live.interfaces.site import Response, Route
from meshlock.live.machine import limits
from meshlock.live.machine.limits import CutFor, Priority, Want
from meshlock.live.pools.status import Picture
from meshlock.live.pools.views import View, brief
from meshlock.web.alarms import alarms
from meshlock.web.answers import as_json, file, static
from meshlock.web.page_requests import PageRequests

T = TypeVar("T")

MOST_BYTES = 10_000

OLD = 3.0
"""Rounds of questions: what was received longer ago is stale, and no part of the picture."""


def view(node: LocalNode, pool: str) -> dict[str, Any]:
    """Everything that the page shows of this pool (the first one, if it is not there)."""
    status = node.status()
    names = sorted(node.pools)
    pool = pool if pool in node.pools else names[0] if names else ""
    every = node.views.pause()
    heard: dict[str, tuple[float, View]] = {}
    who: Picture | None = None
    if pool:
        heard = node.views.watch(pool) | {node.name: (0.0, brief(node.pools[pool]))}
        who = node.pools[pool].composed(
            {
                name: pool_view
                for name, (age, pool_view) in heard.items()
                if age <= OLD * every and (name == node.name or node.mesh.link_map.reaches(name))
            }
        )
    nodes = {}
    for name, known in status["map"].items():
        age, pool_view = heard.get(name, (None, None))
        age = age if age is None else round(age, 2)
        told = msgspec.to_builtins(pool_view)
        nodes[name] = known | {"age": age, "pool_view": told, "holds": holds(name, told, who)}
    keys = ("node", "address", "protected", "in_doubt", "links")
    shown: dict[str, Any] = {key: value for key, value in status.items() if key in keys}
    shown |= {"pool": pool, "pools": names, "nodes": nodes, "every": every, "old": OLD * every}
    return shown | {"who": who, "alarms": alarms(shown)}


def holds(name: str, told: dict[str, Any] | None, who: Picture | None) -> int | None:
    """How many permits are out to this node, by the one picture; None if unknown."""
    if who is None or who["held"] is None or told is None or not told["known"]:
        return None
    wants: list[int] = [one["want"] for one in who["holding"] if one["node"] == name]
    return sum(wants)


class AcquireAction(msgspec.Struct, forbid_unknown_fields=True):
    pool: str
    want: Want = 1
    priority: Priority = 0


class ReleaseAction(msgspec.Struct, forbid_unknown_fields=True):
    request: str


class CutAction(msgspec.Struct, forbid_unknown_fields=True):
    peer: str
    seconds: CutFor = 30.0


class Restore(msgspec.Struct, forbid_unknown_fields=True):
    peer: str


class LivePage:
    """The page is for everybody who reaches the port; what it shows needs the bearer token."""

    def __init__(self, allowed: bool = False) -> None:
        self.allowed = allowed

    def routes(self, interface: Interface, access: Access) -> list[Route]:
        if self.allowed and access.token is None:
            raise Refused(
                f"Actions from the page need a bearer token: use {setting('http-token-file')}."
            )
        node = interface.node
        requests = PageRequests(node)

        def start(_request: HTTPRequest) -> Response:
            return Response(status=307, headers={"Location": "/live"})

        def page(_request: HTTPRequest) -> Response:
            return static("live.html")

        def shown(request: HTTPRequest) -> Response:
            asked = request.asked
            requests.mark_seen(asked.get("keep", "")[:MOST_BYTES].split())
            under_way = [request.describe() for request in requests.all.values()]
            more = {"allowed": self.allowed, "requests": under_way}
            return as_json(view(node, asked.get("pool", "")) | more)

        actions: dict[str, tuple[type[Any], Callable[[Any], object]]] = {
            "acquire": (
                AcquireAction,
                lambda body: requests.start(body.pool, body.want, body.priority).describe(),
            ),
            "release": (ReleaseAction, lambda body: requests.release(body.request).describe()),
            "cut": (CutAction, lambda body: node.mesh.cut(body.peer, body.seconds)),
            "restore": (Restore, lambda body: node.mesh.restore(body.peer)),
        }

        def action(name: str) -> Route:
            kind, act = actions[name]

            def answer(request: HTTPRequest) -> Response:
                return as_json(act(self.asked(request, kind)) or {})

            return Route("POST", f"/actions/{name}", access.guarded(answer))

        return [
            Route("GET", "/", start),
            Route("GET", "/live", page),
            Route("GET", "/page/{name}", file),
            Route("GET", "/view.json", access.guarded(shown)),
            *map(action, actions),
        ]

    def asked(self, request: HTTPRequest, kind: type[T]) -> T:
        """What the page asks for, if it may."""
        if not self.allowed:
            raise HTTPError(
                403, f"This agent does not allow actions: start it with {setting('allow-actions')}."
            )
        if request.header("content-type") != "application/json":
            raise HTTPError(415, "Send JSON.")
        return limits.decoded(request.body[:MOST_BYTES], kind, "an action")
