"""meshlock status: what the agent of this machine knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.table import Table

    Rows = list[list[RenderableType]]

UNBOUNDED = 10_000
"""Columns; no line is as long."""


def status(
    socket: Annotated[str | None, typer.Option(help="The agent's unix socket.")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Show links, pools and who waits, as the agent of this machine sees them.

    Example: meshlock status
    """
    from meshlock.live.interfaces.asking import Connection

    found = Connection(socket).ask("GET", "/v1/status")
    if json:
        from meshlock.cli.output import print_json

        print_json(found)
    else:
        from rich.console import Console

        console = Console()
        if not console.is_terminal:
            console.width = UNBOUNDED  # a pipe has no edge
        console.print(picture(found))


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
        if link["left"]:
            state = Text("left", style="dim")
        rows.append([peer, state, link["address"] or "", str(link["in_custody"] or "")])
    return Narrowing(["link", "state", "address", "in custody>"], rows)


def pools(found: dict[str, Any], rates: dict[str, float] | None) -> list[RenderableType]:
    """A row for each pool, and below them what is wrong with any."""
    from rich.text import Text

    if not found["pools"]:
        return [Text("no pools: make one with --pool NAME=PERMITS", style="yellow")]
    names = ["pool", "permits>", "token", "free>", "held>", "waiting>", "longest>", "entries>"]
    rows: Rows = []
    remarks: list[RenderableType] = []
    for name, pool in sorted(found["pools"].items()):
        if not pool["known"]:
            rows.append([name, "?"])
            remarks.append(Text(f"{name}: {pool['why']}", style="yellow"))
            continue
        longest = max((client["seconds"] for client in pool["waiting"]), default=None)
        row: list[RenderableType] = [
            name,
            str(pool["permits"]),
            "here" if pool["token_here"] else "away",
            str(pool["free_here"]) if pool["token_here"] else "",
            str(sum(grant["want"] for grant in pool["holding"])),
            str(pool["queued"]),
            "" if longest is None else f"{longest:.1f} s",
            f"{pool['entries']:,}",
        ]
        if rates is not None:
            row.append(f"{rates[name]:.1f}" if name in rates else "")
        rows.append(row)
        if pool["conflict"]:
            remarks.append(Text(f"{name}: {pool['conflict']}", style="red"))
        if pool.get("lease"):
            remarks.append(leases(name, pool))
        elif pool["recovery"]:
            remarks.append(Text(f"{name}: {pool['recovery']}"))
        if not pool.get("lease") and pool.get("why"):
            remarks.append(Text(f"{name}: {pool['why']}", style="red"))
    return [Narrowing([*names, *([] if rates is None else ["per s>"])], rows), *remarks]


def leases(name: str, pool: dict[str, Any]) -> RenderableType:
    """Of a pool that survives crashes: how it is, and why one waits."""
    from rich.text import Text

    epoch = "no epoch yet" if pool["epoch"] is None else f"epoch {pool['epoch']}"
    reached = f"{pool['members_reached']} of {len(pool['members'])} members reached"
    text = Text(f"{name}: {epoch}, leases of {pool['lease']:g} s, {reached}")
    text.append(f" ({pool['majority']} are needed)")
    if len(pool["members"]) == 1:
        text.append(f"\n{name}: {pool['recovery']}")
    if pool["suspected"]:
        text.append(f"; cannot be reached: {', '.join(pool['suspected'])}", style="red")
    if pool["why"]:
        text.append(f"\n{name}: waiting, because {pool['why']}", style="yellow")
    return text


def clients(found: dict[str, Any], most: int) -> RenderableType:
    """Who holds permits here, and who waits for them, the longest first."""
    from rich.console import Group
    from rich.text import Text

    rows: Rows = []
    for name, pool in sorted(found["pools"].items()):
        for grant in pool.get("holding", ()):
            holds = Text("holds", style="green")
            fence = "" if grant["fence"] is None else f"fence {grant['fence']}"
            rows.append([name, holds, str(grant["want"]), str(grant["priority"]), fence])
        for waiter in sorted(pool.get("waiting", ()), key=lambda w: w["seconds"], reverse=True):
            waits, since = Text("waits", style="yellow"), f"{waiter['seconds']:.1f} s"
            rows.append([name, waits, str(waiter["want"]), str(waiter["priority"]), since])
    if not rows:
        return Text("nobody here holds or waits", style="dim")
    headings = ["pool", "client", "permits>", "priority>", "fence or time>"]
    if len(rows) <= most:
        return Narrowing(headings, rows)
    more = Text(f"... and {len(rows) - most + 1} more", style="dim")
    return Group(Narrowing(headings, rows[: most - 1]), more)


def chart(me: str, known: dict[str, Any]) -> RenderableType:
    """The whole mesh, the nearest first, those who cannot be reached last."""
    from rich.text import Text

    def place(name: str) -> tuple[bool, int, str]:
        distance = known[name]["distance"]
        return distance is None, distance or 0, name

    nodes = table(["node", "links away>", "linked to"])
    for name in sorted(known, key=place):
        distance, links = known[name]["distance"], " ".join(known[name]["links"])
        if known[name]["left"]:
            nodes.add_row(name, Text("left", style="dim"))
        elif distance is None:
            nodes.add_row(name, Text("unreachable", style="red"), Text(links, style="dim"))
        else:
            nodes.add_row(name, "here" if name == me else str(distance), links)
    return nodes


def table(headings: list[str]) -> Table:
    """Columns with these headings; one that ends in > stands to the right, as numbers do."""
    from rich.table import Table

    made = Table(box=None, header_style="bold", pad_edge=False)
    for name in headings:
        made.add_column(name.rstrip(">"), justify="right" if name.endswith(">") else "left")
    return made


class Narrowing:
    """A table that loses its last columns, rather than parts of its figures, where it must."""

    def __init__(self, headings: list[str], rows: Rows) -> None:
        self.headings = headings
        self.rows = rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Table]:
        unbounded = options.update(max_width=UNBOUNDED)
        for columns in range(len(self.headings), 0, -1):
            shown = table(self.headings[:columns])
            for row in self.rows:
                shown.add_row(*row[:columns])
            if console.measure(shown, options=unbounded).maximum <= options.max_width:
                break
        yield shown
