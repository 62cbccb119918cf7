"""meshlock status and top: what the agent of this machine knows, once or refreshed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from meshlock.cli.flags import JSON, SOCKET
from meshlock.cli.output import UNBOUNDED, group, report, table, text
from meshlock.errors import Refused
from meshlock.settings import option

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.table import Table
    from rich.text import Text

    from meshlock.live.interfaces.agent_connection import Connection

    Rows = list[list[RenderableType]]

LONGEST = 36
"""Characters of a label, or of the names of permits."""


def status(
    socket: str | None = SOCKET,
    json: bool = JSON,
) -> None:
    """Show the pools, their holders and waiting clients in the whole mesh, and the agent's links.

    Example: meshlock status
    """
    from meshlock.live.interfaces.agent_connection import Connection

    found = read_status(Connection(socket))
    report(json, found, lambda: picture(found))


def read_status(agent: Connection) -> dict[str, Any]:
    """What the agent knows, and of each pool ``who`` holds and waits, wherever they are."""
    from meshlock.live.interfaces.agent_protocol import AgentGone, patience, understood

    try:
        found = agent.ask("GET", "/v1/status", timeout=0.0)
        for name, pool in list(found["pools"].items()):
            if pool["known"]:
                status, said = agent.call("GET", f"/v1/pools/{name}/who", "", patience())
                if status == 200:
                    pool["who"] = understood(said)
                else:  # it was removed just now
                    del found["pools"][name]
    except (AgentGone, TimeoutError) as error:  # it is stopped, or hangs
        raise Refused(str(error)) from None
    return found


def picture(
    found: dict[str, Any], rates: dict[str, float] | None = None, most_clients: int = 20
) -> RenderableType:
    """What matters most comes first, since a small screen shows no more than that.

    With entries per second where they were measured.
    """
    protected = "protected by TLS" if found["protected"] else "not protected: this machine only"
    return group(
        text(f"{found['node']} at {found['address']}, links {protected}\n", style="bold"),
        *pools(found, rates),
        text(),
        *clients(found, most_clients),
        text(),
        links(found["links"]),
        *[
            text(f"no link to {address}: {reason}", style="yellow")
            for address, reason in sorted(found.get("no_link", {}).items())
        ],
        text(),
        *chart(found["node"], found["map"]),
    )


def links(known: dict[str, Any]) -> RenderableType:
    if not known:
        return text("no links: this node is alone", style="yellow")
    rows: Rows = []
    for peer, link in sorted(known.items()):
        state = text("up", style="green") if link["up"] else text("down", style="red")
        rows.append(
            [peer, away(link) or state, link["address"] or "", str(link["unacknowledged"] or "")]
        )
    return Narrowing(["link", "state", "address", "unacknowledged>"], rows)


def away(one: dict[str, Any]) -> Text | None:
    """A node that left in good order, or that is not missed any more."""
    word = "left" if one["left"] else "gone" if one.get("gone") else ""
    return text(word, style="dim") if word else None


def pools(found: dict[str, Any], rates: dict[str, float] | None) -> list[RenderableType]:
    """A row for each pool, and below them what is wrong with any."""
    if not found["pools"]:
        return [text("no pools: make one with --pool NAME=PERMITS", style="yellow")]
    names = ["pool", "permits>", "token", "free>", "held>", "waiting>", "longest>", "entries here>"]
    rows: Rows = []
    remarks: list[RenderableType] = []
    for name, pool in sorted(found["pools"].items()):
        known = pool["known"]
        rows.append([name, *figures(pool)] if known else [name, "?"])
        if known and rates is not None:
            rows[-1].append(f"{rates[name]:.1f}" if name in rates else "")
        said = remarks_on(name, pool) if known else [(f"{name}: {pool['why']}", "yellow")]
        remarks += [text(words, style) for words, style in said]
    return [Narrowing([*names, *([] if rates is None else ["per s>"])], rows), *remarks]


def figures(pool: dict[str, Any]) -> list[str]:
    who = pool["who"]
    longest = max((one["seconds"] for one in who["waiting"]), default=None)
    return [
        str(who["permits"]),
        who["token"] or "?",
        *["?" if who[key] is None else str(who[key]) for key in ("free", "held")],
        str(who["queued"]),
        "" if longest is None else lasting(longest),
        f"{pool['entries']:,}",
    ]


def remarks_on(name: str, pool: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What is wrong with a pool, and what is so, each with its colour."""
    who = pool["who"]
    if who["why"]:
        unknown = "holders unknown: " if who["held"] is None else ""
        yield f"{name}: {unknown}{who['why']}", "yellow"
    if who["surplus"]:
        smaller = f"{name} was made smaller: {who['surplus']} to be released before any is free"
        yield smaller, "yellow"
    if pool["conflict"]:
        yield f"{name}: {pool['conflict']}", "red"
    if pool.get("lease"):
        yield from leases(name, pool, known=not who["why"])
        return
    if pool["recovery"]:
        yield f"{name}: {pool['recovery']}", ""
    if pool.get("why"):
        yield f"{name}: {pool['why']}", "red"


def leases(name: str, pool: dict[str, Any], known: bool) -> Iterator[tuple[str, str]]:
    """Of a pool that survives crashes: how it is, and why one waits. If its holders are not
    ``known``, that was asked later and says why, so nothing older is said of it."""
    epoch = "no epoch yet" if pool["epoch"] is None else f"epoch {pool['epoch']}"
    members, reached = len(pool["members"]), pool["members_reachable"]
    quorum = f"{reached} of {members} members reachable (quorum: {pool['quorum']})"
    line = f"{name}: {epoch}, leases of {pool['lease']:g} s"
    if known:
        line += f", {quorum}" if members else ", members not known yet"
    missing = {"without a vote": pool["members_without_vote"], "unreachable": pool["unreachable"]}
    for what, nodes in missing.items():
        line += f"; {what}: {', '.join(nodes)}" if nodes else ""
    yield line, "red" if any(missing.values()) else ""
    if members == 1:
        yield f"{name}: {pool['recovery']}", ""
    if pool["unready"] not in ("", pool["conflict"]) and known:
        yield f"{name}: {pool['unready']}", "red"
    elif pool["why"] and known:
        yield f"{name}: requests wait: {pool['why']}", "yellow"


def clients(found: dict[str, Any], most: int) -> list[RenderableType]:
    """Who holds permits and who waits for them, in the whole mesh, as ledgers of tokens say."""
    rows: Rows = []
    unlisted = unlisted_permits = 0
    for name, pool in sorted(found["pools"].items()):
        who = pool.get("who", {"holding": [], "waiting": [], "queued": 0, "held": None})
        for one in who["holding"]:
            holds = text("lapses", style="red") if one["lapsing"] else text("holds", style="green")
            slots = " ".join(one["slots"])
            rows.append([name, holds, *person(one), slots and short(slots), "", ""])
        for one in who["waiting"]:
            deadline = "" if one["deadline"] is None else left(one["deadline"])
            waits = text("waits", style="yellow")
            rows.append([name, waits, *person(one), "", str(one["priority"]), deadline])
        unlisted += who["queued"] - len(who["waiting"])
        if who["held"] is not None:
            out = who["held"] + who["surplus"]
            unlisted_permits += out - sum(one["want"] for one in who["holding"])
    if not rows:
        return [text("nobody holds or waits", style="dim")]
    headings = ["pool", "client", "permits>", "for>", "node", "label", "slots", "priority>"]
    if any(row[-1] for row in rows):
        headings.append("deadline>")
    if len(rows) + (unlisted + unlisted_permits > 0) > most:
        unlisted += len(rows) - most + 1
        rows = rows[: most - 1]
    rest = [f"... and {unlisted} more"] if unlisted else []
    rest += [f"... and holders of {unlisted_permits} more permits"] if unlisted_permits else []
    return [Narrowing(headings, rows), *[text(line, style="dim") for line in rest]]


def person(one: dict[str, Any]) -> tuple[str, str, str, str]:
    """How many permits, for how long, where, and who."""
    return str(one["want"]), lasting(one["seconds"]), one["node"], short(one["label"])


def short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def left(seconds: float) -> str:
    """Until a deadline."""
    return f"in {lasting(seconds)}" if seconds >= 0 else f"{lasting(-seconds)} ago"


def lasting(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes = int(seconds) // 60
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02} min"


def chart(me: str, known: dict[str, Any]) -> list[RenderableType]:
    """The whole mesh, the nearest first, those who cannot be reached last."""
    nodes = table("node", "links away>", "linked to")
    reached = [name for name in known if known[name]["distance"] is not None]
    nearest = sorted(reached, key=lambda name: (known[name]["distance"], name))
    for name in [*nearest, *sorted(known.keys() - reached)]:
        node, links = known[name], " ".join(known[name]["links"])
        if shown := away(node):
            nodes.add_row(name, shown)
        elif node["distance"] is None:
            nodes.add_row(name, text("unreachable", style="red"), text(links, style="dim"))
        else:
            nodes.add_row(name, "here" if name == me else str(node["distance"]), links)
    only = "{} is a single point of failure: without it, other nodes cannot reach each other"
    alone = [name for name in sorted(known) if known[name]["only_way"]]
    return [nodes, *[text(only.format(name), "yellow") for name in alone]]


class Narrowing:
    """A table that loses its last columns, rather than parts of its figures, where it must."""

    def __init__(self, headings: list[str], rows: Rows) -> None:
        self.headings = headings
        self.rows = rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Table]:
        unbounded = options.update(max_width=UNBOUNDED)
        for columns in range(len(self.headings), 0, -1):
            shown = table(*self.headings[:columns])
            for row in self.rows:
                shown.add_row(*row[:columns])
            if console.measure(shown, options=unbounded).maximum <= options.max_width:
                break
        yield shown


WINDOW = 5.0
"""Seconds over which entries per second are counted, so that the figure can be read."""


def top(
    socket: str | None = SOCKET,
    every: float = option(0.5, "Set the seconds between two refreshes.", least=0.05),
) -> None:
    """Watch pools, holders, waiting clients and links; Ctrl-C ends it.

    Example: meshlock top
    """
    import time
    from contextlib import suppress

    from rich.console import Console
    from rich.live import Live

    from meshlock.live.interfaces.agent_connection import Connection

    agent = Connection(socket)
    console = Console()
    if not console.is_terminal:
        raise Refused("top needs a terminal to draw on: use 'meshlock status', or its --json.")
    past: list[tuple[float, dict[str, int]]] = []
    with suppress(KeyboardInterrupt), Live(console=console, screen=True) as live:
        while True:
            found = read_status(agent)
            clients = max(3, console.height - len(found["pools"]) - len(found["links"]) - 9)
            live.update(picture(found, rates(past, found), clients), refresh=True)
            time.sleep(every)


def rates(past: list[tuple[float, dict[str, int]]], found: dict[str, Any]) -> dict[str, float]:
    """Entries per second of each pool since the oldest look that is remembered."""
    import time

    now = time.monotonic()
    entries = {name: pool.get("entries", 0) for name, pool in found["pools"].items()}
    past.append((now, entries))
    while len(past) > 2 and now - past[1][0] >= WINDOW:
        past.pop(0)
    then, before = past[0]
    if len(past) == 1:
        return {}
    return {
        name: (count - before.get(name, count)) / (now - then) for name, count in entries.items()
    }
