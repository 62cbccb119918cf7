"""The agent's own page: the whole mesh as this node knows it, and one pool on it.

It only looks, unless the agent allows actions; then a reader with the bearer token
may acquire permits at this node and cut its links. Actions come as JSON with the token in a
header, which no page of another site can send, from our own origin
(:mod:`meshlock.live.interfaces.serving` checks that for everything).
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import msgspec
from msgspec.structs import asdict

from meshlock.errors import Refused, setting
from meshlock.live.interfaces.http import Interface
from meshlock.live.interfaces.local_node import LocalNode
from meshlock.live.interfaces.serving import Access
from meshlock.live.interfaces.site import Handler, HTTPError, HTTPRequest, Response, Route
from meshlock.live.machine import limits
from meshlock.live.machine.limits import CutFor, Priority, Want
from meshlock.live.pools.grants import Grant, Pool
from meshlock.live.pools.status import Picture
from meshlock.live.pools.views import View, brief
from meshlock.web.answers import MOST_BYTES, as_json, file, json_of, static

ABANDONED_AFTER = 15.0
"""Seconds without the page that asked: then it counts as closed."""

MOST = 100
KEPT = 60.0
"""Seconds for which the end of a request is still shown."""


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


class PageRequest:
    """One request from the page, from asking to the end."""

    work: asyncio.Task[None]

    def __init__(self, asked: AcquireAction) -> None:
        self.name = secrets.token_urlsafe(9)
        self.asked = asked
        self.state = "waiting"  # then held, and in the end: released, refused or lost
        self.why = ""
        self.grant: Grant | None = None
        self.timer: asyncio.TimerHandle | None = None

    @property
    def over(self) -> bool:
        return self.state not in ("waiting", "held")

    def describe(self) -> dict[str, Any]:
        fence = str(self.grant.fence) if self.grant and self.grant.fence else None
        more = {"state": self.state, "why": self.why, "fence": fence}
        return {"request": self.name, **asdict(self.asked), **more}


class PageRequests:
    def __init__(self, node: LocalNode) -> None:
        self.node = node
        self.all: dict[str, PageRequest] = {}

    def start(self, asked: AcquireAction) -> PageRequest:
        if sum(not request.over for request in self.all.values()) >= MOST:
            raise Refused(f"{MOST} requests from the page are open: withdraw or release some.")
        if asked.pool not in self.node.pools:
            raise Refused(f"This node has no pool '{asked.pool[:64]}'.")
        self.node.pools[asked.pool].refuse_impossible(asked.want, asked.priority)
        request = PageRequest(asked)
        self.all[request.name] = request
        self.mark_seen([request.name])
        request.work = asyncio.get_running_loop().create_task(self.run(request))
        self.node.mesh.failures.mind("page", request.work)
        return request

    async def run(self, request: PageRequest) -> None:
        asked = request.asked
        try:
            pool = Pool(self.node.registry.use(asked.pool))
            request.grant = await pool.acquire(asked.want, priority=asked.priority)
            request.state = "held"
            if await request.grant.wait_lost():
                self.end(request, "lost", "the permits were revoked")
        except Refused as error:
            self.end(request, "refused", str(error))
        except Exception as error:
            self.end(request, "refused", f"the agent failed ({error!r})")
            raise

    def release(self, name: str, why: str = "") -> PageRequest:
        request = self.all.get(name)
        if request is None:
            raise Refused("There is no such request: it has ended.")
        if not request.over:
            request.work.cancel()
            if request.grant is not None:
                request.grant.release()
            self.end(request, "released", why)
        return request

    def end(self, request: PageRequest, state: str, why: str) -> None:
        request.state, request.why = state, why
        self.wait(request, KEPT, self.all.pop, request.name)

    def mark_seen(self, names: list[str]) -> None:
        """The page that asked for these is still there."""
        for name in names:
            request = self.all.get(name)
            if request is not None and not request.over:
                self.wait(request, ABANDONED_AFTER, self.release, name, "the page was closed")

    def wait(
        self, request: PageRequest, seconds: float, work: Callable[..., object], *given: str
    ) -> None:
        """What happens to the request next, unless something else does first."""
        if request.timer is not None:
            request.timer.cancel()
        request.timer = self.node.mesh.failures.later(seconds, "page", work, *given)


LONG = 30.0
"""Seconds that are too long to wait for permits."""

SILENT = 5.0
"""Rounds of questions after which a node that can be reached should have answered."""


def alarms(shown: dict[str, Any]) -> list[str]:
    """Of what the page shows: see :func:`.live.view`."""
    return [*of_pool(shown), *of_nodes(shown), *of_links(shown)]


def of_pool(shown: dict[str, Any]) -> Iterator[str]:
    views = {name: node["pool_view"] for name, node in shown["nodes"].items() if node["pool_view"]}
    conflicts = dict.fromkeys(view["conflict"] for view in views.values() if view["conflict"])
    yield from conflicts
    mine = views.get(shown["node"])
    if mine and not mine["known"]:
        yield f"{shown['pool']}: {mine['why']}."
    few = [name for name, view in views.items() if view["reachable"] < view["quorum"]]
    if few:
        yield (
            f"Quorum lost: {listed(few)} cannot reach {views[few[0]]['quorum']} of "
            f"the {views[few[0]]['members']} members, and no permits are granted there."
        )
    left = {name for name, node in shown["nodes"].items() if node["left"] or node["gone"]}
    unreachable = sorted({name for view in views.values() for name in view["unreachable"]} - left)
    if unreachable:
        yield f"{listed(unreachable)} unreachable in this pool."
    if shown["in_doubt"]:
        yield (
            f"Permits in doubt: {shown['in_doubt']} messages that carried them were "
            "sent to a node that restarted."
        )
    for name, view in views.items():
        slow = [one["seconds"] for one in view["waiting"] if one["seconds"] > LONG]
        if slow:
            yield f"{len(slow)} at {name} waiting for more than {LONG:.0f} s."


def of_nodes(shown: dict[str, Any]) -> Iterator[str]:
    nodes, patience = shown["nodes"], SILENT * shown["every"]
    away = {name: node for name, node in nodes.items() if node["distance"] is None}
    missed = {name: node for name, node in away.items() if not (node["left"] or node["gone"])}
    if missed:
        longest = max(node["unreachable_for"] or 0.0 for node in missed.values())
        since = f"for {longest:.0f} s" if len(missed) == 1 else f"for up to {longest:.0f} s"
        yield f"{listed(missed)} unreachable ({since})."
    for name in sorted(name for name, node in nodes.items() if node["only_way"]):
        yield (
            f"{name} is a single point of failure: without it, other nodes cannot reach each other."
        )
    silent = [name for name in nodes.keys() - away if (nodes[name]["age"] or 0.0) > patience]
    if silent:
        yield f"{listed(silent)} did not answer for {patience:.0f} s, but is reachable."


def of_links(shown: dict[str, Any]) -> Iterator[str]:
    for peer, link in shown["links"].items():
        if link["cut_for"] is not None:
            yield f"The link to {peer} is cut on purpose for another {link['cut_for']:.0f} s."
        elif not link["up"] and not link["gone"] and (link["unacknowledged"] or not link["left"]):
            owed = link["unacknowledged"]
            carried = "a message with permits for it waits"
            if owed > 1:
                carried = f"{owed} messages with permits for it wait"
            yield f"The link to {peer} is down{f'; {carried}' if owed else ''}."


def listed(given: Iterable[str]) -> str:
    names = sorted(given)
    if len(names) > 4:
        return f"{', '.join(names[:3])} and {len(names) - 3} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


T = TypeVar("T")

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

        def shown(request: HTTPRequest) -> Response:
            asked = request.asked
            requests.mark_seen(asked.get("keep", "")[:MOST_BYTES].split())
            under_way = [request.describe() for request in requests.all.values()]
            more = {"allowed": self.allowed, "requests": under_way}
            return as_json(view(node, asked.get("pool", "")) | more)

        actions: dict[str, tuple[type[Any], Callable[[Any], object]]] = {
            "acquire": (AcquireAction, lambda body: requests.start(body).describe()),
            "release": (ReleaseAction, lambda body: requests.release(body.request).describe()),
            "cut": (CutAction, lambda body: node.mesh.cut(body.peer, body.seconds)),
            "restore": (Restore, lambda body: node.mesh.restore(body.peer)),
        }

        def action(kind: type[Any], act: Callable[[Any], object]) -> Handler:
            return lambda request: as_json(act(self.asked(request, kind)) or {})

        return [
            Route("GET", "/", lambda _: Response(status=307, headers={"Location": "/live"})),
            Route("GET", "/live", lambda _: static("live.html")),
            Route("GET", "/page/{name}", file),
            Route("GET", "/view.json", access.guarded(shown)),
            *[
                Route("POST", f"/actions/{name}", access.guarded(action(*one)))
                for name, one in actions.items()
            ],
        ]

    def asked(self, request: HTTPRequest, kind: type[T]) -> T:
        """What the page asks for, if it may."""
        if not self.allowed:
            raise HTTPError(
                403, f"This agent does not allow actions: start it with {setting('allow-actions')}."
            )
        return limits.decoded(json_of(request), kind, "an action")
