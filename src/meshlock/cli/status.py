"""meshlock status: what the agent of this machine knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from meshlock.cli.flags import JSON, SOCKET
from meshlock.cli.output import UNBOUNDED, report, table
from meshlock.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.table import Table

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
    from json import loads

    from meshlock.live.interfaces.agent_protocol import AgentGone

    try:
        found = agent.ask("GET", "/v1/status", timeout=0.0)
        for name, pool in list(found["pools"].items()):
            if pool["known"]:
                status, said = agent.call("GET", f"/v1/pools/{name}/who", timeout=0.0)
                if status == 200:
                    pool["who"] = loads(said)
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
    from rich.console import Group
    from rich.text import Text

    protected = "protected by TLS" if found["protected"] else "not protected: this machine only"
    return Group(
        Text(f"{found['node']} at {found['address']}, links {protected}\n", style="bold"),
        *pools(found, rates),
        Text(),
        clients(found, most_clients),
        Text(),
        links(found["links"]),
        *[
            Text(f"no link to {address}: {reason}", style="yellow")
            for address, reason in sorted(found.get("no_link", {}).items())
        ],
        Text(),
        chart(found["node"], found["map"]),
    )


def links(known: dict[str, Any]) -> RenderableType:
    from rich.text import Text

    if not known:
        return Text("no links: this node is alone", style="yellow")
    rows: Rows = []
    for peer, link in sorted(known.items()):
        state = Text("up", style="green") if link["up"] else Text("down", style="red")
        if link["left"] or link.get("gone"):
            state = Text("left" if link["left"] else "gone", style="dim")
        rows.append([peer, state, link["address"] or "", str(link["unacknowledged"] or "")])
    return Narrowing(["link", "state", "address", "unacknowledged>"], rows)


def pools(found: dict[str, Any], rates: dict[str, float] | None) -> list[RenderableType]:
    """A row for each pool, and below them what is wrong with any."""
    from rich.text import Text

    if not found["pools"]:
        return [Text("no pools: make one with --pool NAME=PERMITS", style="yellow")]
    names = ["pool", "permits>", "token", "free>", "held>", "waiting>", "longest>", "entries here>"]
    rows: Rows = []
    remarks: list[RenderableType] = []
    for name, pool in sorted(found["pools"].items()):
        if not pool["known"]:
            rows.append([name, "?"])
            remarks.append(Text(f"{name}: {pool['why']}", style="yellow"))
            continue
        who = pool["who"]
        longest = max((one["seconds"] for one in who["waiting"]), default=None)
        row: list[RenderableType] = [
            name,
            str(who["permits"]),
            who["token"] or "?",
            "?" if who["free"] is None else str(who["free"]),
            "?" if who["held"] is None else str(who["held"]),
            str(who["queued"]),
            "" if longest is None else lasting(longest),
            f"{pool['entries']:,}",
        ]
        if rates is not None:
            row.append(f"{rates[name]:.1f}" if name in rates else "")
        rows.append(row)
        if who["why"]:
            unknown = f"{name}: holders unknown: {who['why']}"
            remarks.append(Text(unknown, style="yellow"))
        if who["surplus"]:
            surplus = f"{name} was made smaller: {who['surplus']} to be released before any is free"
            remarks.append(Text(surplus, style="yellow"))
        if pool["conflict"]:
            remarks.append(Text(f"{name}: {pool['conflict']}", style="red"))
        if pool.get("lease"):
            remarks.append(leases(name, pool, known=not who["why"]))
        elif pool["recovery"]:
            remarks.append(Text(f"{name}: {pool['recovery']}"))
        if not pool.get("lease") and pool.get("why"):
            remarks.append(Text(f"{name}: {pool['why']}", style="red"))
    return [Narrowing([*names, *([] if rates is None else ["per s>"])], rows), *remarks]


def leases(name: str, pool: dict[str, Any], known: bool) -> RenderableType:
    """Of a pool that survives crashes: how it is, and why one waits. If its holders are not
    ``known``, that was asked later and says why, so nothing older is said of it."""
    from rich.text import Text

    epoch = "no epoch yet" if pool["epoch"] is None else f"epoch {pool['epoch']}"
    members, reached = len(pool["members"]), pool["members_reachable"]
    quorum = f"{reached} of {members} members reachable (quorum: {pool['quorum']})"
    text = Text(f"{name}: {epoch}, leases of {pool['lease']:g} s")
    if known:
        text.append(f", {quorum}" if members else ", members not known yet")
    if pool["members_without_vote"]:
        text.append(f"; without a vote: {', '.join(pool['members_without_vote'])}", style="red")
    if pool["unreachable"]:
        text.append(f"; unreachable: {', '.join(pool['unreachable'])}", style="red")
    if members == 1:
        text.append(f"\n{name}: {pool['recovery']}")
    if pool["unready"] not in ("", pool["conflict"]) and known:
        text.append(f"\n{name}: {pool['unready']}", style="red")
    elif pool["why"] and known:
        text.append(f"\n{name}: requests wait: {pool['why']}", style="yellow")
    return text


def clients(found: dict[str, Any], most: int) -> RenderableType:
    """Who holds permits and who waits for them, in the whole mesh, as ledgers of tokens say."""
    from rich.console import Group
    from rich.text import Text

    rows: Rows = []
    unlisted = unlisted_permits = 0
    for name, pool in sorted(found["pools"].items()):
        who = pool.get("who")
        if who is None:
            continue
        for one in who["holding"]:
            holds = Text("lapses", style="red") if one["lapsing"] else Text("holds", style="green")
            slots = " ".join(one["slots"])
            rows.append(
                [name, holds, str(one["want"]), *person(one), slots and short(slots), "", ""],
            )
        for one in who["waiting"]:
            waits, priority = Text("waits", style="yellow"), str(one["priority"])
            deadline = "" if one["deadline"] is None else left(one["deadline"])
            rows.append([name, waits, str(one["want"]), *person(one), "", priority, deadline])
        unlisted += who["queued"] - len(who["waiting"])
        if who["held"] is not None:
            out = who["held"] + who["surplus"]
            unlisted_permits += out - sum(one["want"] for one in who["holding"])
    if not rows:
        return Text("nobody holds or waits", style="dim")
    headings = ["pool", "client", "permits>", "for>", "node", "label", "slots", "priority>"]
    if any(row[-1] for row in rows):
        headings.append("deadline>")
    rest = []
    if len(rows) + (unlisted + unlisted_permits > 0) > most:
        unlisted += len(rows) - most + 1
        rows = rows[: most - 1]
    if unlisted:
        rest.append(f"... and {unlisted} more")
    if unlisted_permits:
        rest.append(f"... and holders of {unlisted_permits} more permits")
    return Group(Narrowing(headings, rows), *[Text(line, style="dim") for line in rest])


def person(one: dict[str, Any]) -> tuple[str, str, str]:
    """For how long, where, and who."""
    return lasting(one["seconds"]), one["node"], short(one["label"])


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


def chart(me: str, known: dict[str, Any]) -> RenderableType:
    """The whole mesh, the nearest first, those who cannot be reached last."""
    from rich.console import Group
    from rich.text import Text

    def place(name: str) -> tuple[bool, int, str]:
        distance = known[name]["distance"]
        return distance is None, distance or 0, name

    nodes = table("node", "links away>", "linked to")
    for name in sorted(known, key=place):
        distance, links = known[name]["distance"], " ".join(known[name]["links"])
        if known[name]["left"] or known[name].get("gone"):
            nodes.add_row(name, Text("left" if known[name]["left"] else "gone", style="dim"))
        elif distance is None:
            nodes.add_row(name, Text("unreachable", style="red"), Text(links, style="dim"))
        else:
            nodes.add_row(name, "here" if name == me else str(distance), links)
    only = [
        Text(
            f"{name} is a single point of failure: without it, other nodes cannot reach each other",
            "yellow",
        )
        for name in sorted(known)
        if known[name]["only_way"]
    ]
    return Group(nodes, *only)


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
