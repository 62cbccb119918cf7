"""meshlock pool: look at pools, and change them while they are used."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from meshlock.cli.flags import JSON, SOCKET, Commands
from meshlock.cli.output import columns, report
from meshlock.errors import NoSuchPool, Refused
from meshlock.settings import REQUIRED, argument, option

if TYPE_CHECKING:
    from meshlock.live.interfaces.agent_connection import Connection

pool = Commands(
    "pool",
    "Show and change the pools that the agent of this machine knows.",
    {
        "list": "pool:list_",
        "show": "pool:show",
        "create": "pool:create",
        "join": "pool:join",
        "set": "pool:set_",
        "members": "pool:members",
        "reset": "pool:reset",
        "remove": "pool:remove",
    },
)

NAME: str = argument(REQUIRED, "Use this pool.", complete="pools")
TIMEOUT: float = option(30.0, "Wait this many seconds for a quorum.")


def list_(socket: str | None = SOCKET, json: bool = JSON) -> None:
    """List the pools of the mesh.

    Example: meshlock pool list
    """

    pools = {name: said for name, said in known(connected(socket)).items() if said["known"]}
    record = {"pools": [{"pool": name, **pools[name]} for name in sorted(pools)]}
    rows = [row(name, pools[name]) for name in sorted(pools)]
    heading = ("pool", "permits", "algorithm", "lease", "members")
    none = "no pools: make one with 'meshlock agent --pool NAME=PERMITS'"
    report(json, record, lambda: columns([heading, *rows]) if rows else none)


def row(name: str, said: dict[str, Any]) -> tuple[str, ...]:
    lease = f"{said['lease']:g} s" if said.get("lease") else "none"
    members = ", ".join(said.get("members", ())) or "none"
    return (name, str(said["permits"]), said["algorithm"], lease, members)


def show(name: str = NAME, socket: str | None = SOCKET, json: bool = JSON) -> None:
    """Show everything that the agent knows about a pool.

    Example: meshlock pool show docks
    """

    said = status_of(connected(socket), name)
    rows = [(WORDS.get(key, key.replace("_", " ")), text(said[key])) for key in said]
    shown = [("pool", name), *[row for row in rows if row[0]]]
    report(json, {"pool": name, **said}, lambda: columns(shown))


WORDS = {
    "known": "",
    "sent": "",
    "slots": "names of permits",
    "founder": "made by",
    "neighbours": "neighbours in it",
    "token_here": "token is here",
    "free_here": "free permits here",
    "holding": "held here",
    "waiting": "waiting here",
    "queued": "requests waiting here",
    "entries": "grants here",
    "received": "messages received",
    "conflict": "conflicting configuration",
    "recovery": "crash recovery",
    "lease": "lease (seconds)",
    "members_reachable": "members reachable",
    "members_without_vote": "members without a vote",
    "disk": "disk",
    "unready": "why nobody is served",
    "quorum": "quorum",
    "proposer": "epoch proposed by",
    "unreachable": "unreachable",
    "why": "why requests wait",
    "unseen": "token not seen for (seconds)",
}
"""What people call what is in the status; nothing: they are not shown."""


def text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(text, value)) or "none"
    if isinstance(value, dict):
        return " ".join(f"{key} {text(part)}" for key, part in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None or value == "" else str(value)


def create(
    name: str = argument(REQUIRED, "Make this pool."),
    permits: int | None = option(
        None, "Set the number of permits. Default: as the agent was started."
    ),
    slots: str | None = option(
        None, "Set the names of the permits, separated by commas.", metavar="NAMES"
    ),
    socket: str | None = SOCKET,
    json: bool = JSON,
) -> None:
    """Make a pool at the agent of this machine, for which it waits for other nodes.

    Do this once, at one node, if the nodes for which it waits have never had the pool.

    Example: meshlock pool create docks
    """
    from meshlock.live.machine import limits

    limits.name(name)
    if permits is not None and slots is not None:
        raise Refused("Give --permits NUMBER or --slots NAMES, not both.")
    wanted = permits if slots is None else slots.split(",")
    if wanted is not None:
        limits.named_permits(wanted, "--permits" if slots is None else "--slots")
    there = ask(connected(socket), name, "create", {"permits": wanted})["permits"]
    report(json, {"pool": name, "permits": there}, lambda: f"{name}: {there} permits")


def join(
    name: str = NAME,
    from_: str = option(REQUIRED, "Join the pool in which this node is.", "--from", metavar="NODE"),
    socket: str | None = SOCKET,
    json: bool = JSON,
) -> None:
    """Give up a pool for another of the same name, in which a neighbour is.

    Programs that hold permits of the pool that is given up lose them.

    Example: meshlock pool join docks --from north
    """
    from meshlock.live.machine import limits

    limits.name(from_, "node")
    there = ask(connected(socket), name, "join-from", {"node": from_})["permits"]
    report(json, {"pool": name, "permits": there}, lambda: f"{name}: joined, {there} permits")


def set_(
    name: str = NAME,
    permits: str | None = option(None, "Set the number of permits.", metavar="NUMBER"),
    slots: str | None = option(
        None, "Set the names of the permits, separated by commas.", metavar="NAMES"
    ),
    timeout: float = TIMEOUT,
    socket: str | None = SOCKET,
    json: bool = JSON,
) -> None:
    """Change the number or the names of the permits of a pool with leases.

    Grants stay valid. If more permits are held than the new number, nothing is granted until
    enough are released. A name that was removed is not granted again.

    Example: meshlock pool set docks --permits 5
    """
    from meshlock.live.machine import limits

    limits.timeout(timeout, "--timeout")
    if permits is not None and slots is not None:
        raise Refused("Leave out --permits: the names of --slots say how many there are.")
    if permits is None and slots is None:
        raise Refused("Nothing to set: give --permits NUMBER or --slots NAMES.")
    wanted: int | list[str]
    if slots is not None:
        wanted = slots.split(",")
        limits.named_permits(wanted, "--slots")
    elif permits is None or not permits.isdecimal():
        raise Refused(
            f"--permits takes a number, not {limits.shown(permits)}: use --slots for names."
        )
    else:
        wanted = limits.PERMITS.whole(int(permits[: limits.SHOWN]), "--permits")
    body = {"permits": wanted, "timeout": timeout}
    there = ask(connected(socket), name, "permits", body)["permits"]
    report(json, {"pool": name, "permits": there}, lambda: f"{name}: {there} permits")


def members(
    name: str = NAME,
    add: str | None = option(None, "Add a node as a member.", complete="nodes"),
    remove: str | None = option(None, "Remove a member.", complete="nodes"),
    timeout: float = TIMEOUT,
    socket: str | None = SOCKET,
    json: bool = JSON,
) -> None:
    """Show the members of a pool with leases, or add or remove one.

    Example: meshlock pool members docks --add robot-6
    """
    from meshlock.live.machine import limits

    limits.timeout(timeout, "--timeout")
    for node in (add, remove):
        if node is not None:
            limits.name(node, "node")
    agent = connected(socket)
    if add is None and remove is None:
        said = status_of(agent, name)
        if "members" not in said:
            raise Refused(f"The pool {name} has no members: it was made without leases.")
        names = said["members"]
    else:
        body = {"add": add, "remove": remove, "timeout": timeout}
        names = ask(agent, name, "members", body)["members"]
    report(json, {"pool": name, "members": names}, lambda: "\n".join(names))


RISK = """\
Reset {name} only if {lost} lost for good. This node makes the pool again, alone, under a new
identity. If unreachable nodes still run the old pool, both grant permits until they are linked: up
to {twice} instead of {permits}. {then}
"""


def reset(
    name: str = NAME,
    yes: bool = option(False, "Reset without asking."),
    socket: str | None = SOCKET,
    json: bool = JSON,
) -> None:
    """Make a pool again that has lost its quorum, or without leases its token, for good.

    Example: meshlock pool reset docks
    """
    agent = connected(socket)
    said = status_of(agent, name)
    if not yes:
        permits = said["permits"]
        leased = "members" in said
        lost = "the quorum of its members is" if leased else "its token is"
        then = (
            "It grants when all leases of the old pool are surely over."
            if leased
            else "It grants at once, even if permits of the old pool are still in use."
        )
        risk = {"name": name, "lost": lost, "permits": permits, "twice": 2 * permits, "then": then}
        if said.get("unready"):
            click.echo(f"{name}: {said['unready']}.", err=True)
        click.echo(RISK.format(**risk), err=True, nl=False)
        if not confirmed(f"Reset {name}?"):
            click.echo(f"{name} was not reset. Nothing has changed.", err=True)
            sys.exit(1)
    there = ask(agent, name, "reset", {})["permits"]
    report(json, {"pool": name, "permits": there}, lambda: f"{name}: reset, {there} permits")


def confirmed(question: str) -> bool:
    """No, if nobody is there to answer."""
    try:
        return click.confirm(question, err=True)
    except click.Abort:
        click.echo(err=True)
        return False


def remove(
    name: str = NAME,
    socket: str | None = SOCKET,
    json: bool = JSON,
) -> None:
    """Remove a pool that no other node has and no program uses.

    Example: meshlock pool remove docks
    """
    agent = connected(socket)
    status_of(agent, name)
    ask(agent, name, "remove", {})
    report(json, {"pool": name, "removed": True}, lambda: f"{name}: removed")


# -- what they share -------------------------------------------------------------------


def connected(socket: str | None) -> Connection:
    from meshlock.live.interfaces.agent_connection import Connection

    return Connection(socket)


def known(agent: Connection) -> dict[str, Any]:
    try:
        pools: dict[str, Any] = agent.ask("GET", "/v1/status", timeout=0.0)["pools"]
    except TimeoutError as error:  # it is stopped, or hangs
        raise Refused(str(error)) from None
    return pools


def status_of(agent: Connection, name: str) -> dict[str, Any]:
    pools = known(agent)
    if name not in pools or not pools[name]["known"]:
        raise NoSuchPool.among(name, [other for other, said in pools.items() if said["known"]])
    said: dict[str, Any] = pools[name]
    return said


def ask(agent: Connection, name: str, what: str, body: dict[str, Any]) -> dict[str, Any]:
    """The answer; or exit 1, if there was none in time."""
    from meshlock.live.interfaces.agent_protocol import json_body, pool_name

    path = f"/v1/pools/{pool_name(name)}/{what}"
    try:
        return agent.ask("POST", path, json_body(**body), body.get("timeout"))
    except TimeoutError as error:
        click.echo(f"meshlock: {error}", err=True)
        sys.exit(1)
