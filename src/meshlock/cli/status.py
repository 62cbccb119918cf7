"""meshlock status: what the agent of this machine knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import RenderableType


def status(
    socket: Annotated[str | None, typer.Option(help="The agent's unix socket.")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Show links, pools and who waits, as the agent of this machine sees them.

    Example: meshlock status
    """
    from meshlock.live.asking import Ask

    agent = Ask(socket)
    found = agent.ask(do="status")["status"]
    if json:
        from meshlock.cli.output import print_json

        print_json(found)
    else:
        from rich.console import Console

        Console().print(picture(found))


def picture(found: dict[str, Any]) -> RenderableType:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    protected = "protected by TLS" if found["protected"] else "not protected: this machine only"
    title = Text(f"{found['node']} at {found['address']}, links {protected}", style="bold")
    links = Table(box=None, header_style="bold", pad_edge=False)
    for column in ("link", "state", "address", "in custody"):
        links.add_column(column)
    for peer, link in sorted(found["links"].items()):
        state = Text("up", style="green") if link["up"] else Text("down", style="red")
        links.add_row(peer, state, link["address"] or "", str(link["in_custody"] or ""))
    pools = Table(box=None, header_style="bold", pad_edge=False)
    for column in ("pool", "permits", "token", "free here", "held here", "waiting", "entries"):
        pools.add_column(column)
    for name, pool in sorted(found["pools"].items()):
        if not pool["known"]:
            pools.add_row(name, "?", pool["why"])
            continue
        pools.add_row(
            name,
            str(pool["permits"]),
            "here" if pool["token_here"] else "elsewhere",
            str(pool["free_here"]),
            str(sum(grant["want"] for grant in pool["holding"])),
            waiting(pool["waiting"]),
            f"{pool['entries']:,}",
        )
        if pool["conflict"]:
            pools.add_row("", Text(pool["conflict"], style="red"))
    return Group(title, Text(), links, Text(), chart(found["node"], found["map"]), Text(), pools)


def chart(me: str, known: dict[str, Any]) -> RenderableType:
    """The whole mesh, the nearest first, those who cannot be reached last."""
    from rich.table import Table
    from rich.text import Text

    def place(name: str) -> tuple[bool, int, str]:
        distance = known[name]["distance"]
        return distance is None, distance or 0, name

    nodes = Table(box=None, header_style="bold", pad_edge=False)
    for column in ("node", "links away", "linked to"):
        nodes.add_column(column)
    for name in sorted(known, key=place):
        distance, links = known[name]["distance"], " ".join(known[name]["links"])
        if distance is None:
            nodes.add_row(name, Text("unreachable", style="red"), Text(links, style="dim"))
        else:
            nodes.add_row(name, "here" if name == me else str(distance), links)
    return nodes


def waiting(clients: list[dict[str, Any]]) -> str:
    if not clients:
        return "0"
    longest = max(client["seconds"] for client in clients)
    highest = max(client["priority"] for client in clients)
    return f"{len(clients)} (longest {longest:.1f} s, highest priority {highest})"
