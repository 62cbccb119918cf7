"""meshlock pool: look at pools, and change them while they are used."""

from __future__ import annotations

import sys
from functools import cached_property
from typing import TYPE_CHECKING, Any

import click

from meshlock.cli.flags import JSON, SOCKET, Commands
from meshlock.cli.output import columns, report
from meshlock.errors import NoSuchPool, Refused
from meshlock.settings import REQUIRED, Settings, argument, option

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

NAME: str = argument(REQUIRED, "Use this pool.")
SLOTS: str | None = option(
    None, "Set the names of the permits, separated by commas.", metavar="NAMES"
)


TIMEOUT = 30.0
"""Seconds that a change may take, as the agent has it."""


class AskedAgent(Settings):
    """Which agent is asked, and how its answer is printed."""

    socket: str | None = SOCKET
    json: bool = JSON

    @cached_property
    def connection(self) -> Connection:
        from meshlock.live.interfaces.agent_connection import Connection

        return Connection(self.socket)

    def known(self) -> dict[str, Any]:
        """What it says of every pool."""
        try:
            pools: dict[str, Any] = self.connection.ask("GET", "/v1/status", timeout=0.0)["pools"]
        except TimeoutError as error:  # it is stopped, or hangs
            raise Refused(str(error)) from None
        return {name: pools[name] for name in sorted(pools) if pools[name]["known"]}

    def status_of(self, name: str) -> dict[str, Any]:
        known = self.known()
        if name not in known:
            raise NoSuchPool.among(name, list(known))
        said: dict[str, Any] = known[name]
        return said

    def ask(self, name: str, what: str, **body: Any) -> dict[str, Any]:
        """The answer; or exit 1, if there was none in time."""
        from meshlock.live.interfaces.agent_protocol import json_body, pool_name

        path = f"/v1/pools/{pool_name(name)}/{what}"
        try:
            return self.connection.ask("POST", path, json_body(**body), TIMEOUT)
        except TimeoutError as error:
            click.echo(f"meshlock: {error}", err=True)
            sys.exit(1)

    def change(self, name: str, what: str, done: str = "", **body: Any) -> None:
        """Have this done, and print how many permits there are then."""
        there = self.ask(name, what, **body)["permits"]
        record = {"pool": name, "permits": there}
        report(self.json, record, lambda: f"{name}: {done}{there} permits")


def list_(agent: AskedAgent) -> None:
    """List the pools of the mesh.

    Example: meshlock pool list
    """
    pools = agent.known()
    record = {"pools": [{"pool": name, **said} for name, said in pools.items()]}
    rows = [("pool", "permits", "algorithm", "lease", "members")]
    for name, said in pools.items():
        lease = f"{said['lease']:g} s" if said.get("lease") else "none"
        members = ", ".join(said.get("members", ())) or "none"
        rows.append((name, str(said["permits"]), said["algorithm"], lease, members))
    none = "no pools: make one with 'meshlock agent --pool NAME=PERMITS'"
    report(agent.json, record, lambda: columns(rows) if pools else none)


def show(*, name: str = NAME, agent: AskedAgent) -> None:
    """Show everything that the agent knows about a pool.

    Example: meshlock pool show docks
    """
    said = agent.status_of(name)
    rows = [(WORDS.get(key, key.replace("_", " ")), text(said[key])) for key in said]
    shown = [("pool", name), *[row for row in rows if row[0]]]
    report(agent.json, {"pool": name, **said}, lambda: columns(shown))


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
    "unready": "why nobody is served",
    "proposer": "epoch proposed by",
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
    *,
    name: str = argument(REQUIRED, "Make this pool."),
    permits: int | None = option(
        None, "Set the number of permits. Default: as the agent was started."
    ),
    slots: str | None = SLOTS,
    agent: AskedAgent,
) -> None:
    """Make a pool at the agent of this machine, for which it waits for other nodes.

    Do this once, at one node, if the nodes for which it waits have never had the pool.

    Example: meshlock pool create docks
    """
    from meshlock.live.machine import limits

    limits.name(name)
    agent.change(name, "create", permits=chosen(permits, slots))


def chosen(permits: int | str | None, slots: str | None) -> int | list[str] | None:
    """The permits that one of these flags says."""
    from meshlock.live.machine import limits

    if slots is not None:
        if permits is not None:
            raise Refused("Leave out --permits: the names of --slots say how many there are.")
        limits.named_permits(slots.split(","), "--slots")
        return slots.split(",")
    if isinstance(permits, str):
        if not permits.isdecimal():
            raise Refused(
                f"--permits takes a number, not {limits.shown(permits)}: use --slots for names."
            )
        permits = int(permits[: limits.SHOWN])
    return None if permits is None else limits.PERMITS.whole(permits, "--permits")


def join(
    *,
    name: str = NAME,
    from_: str = option(REQUIRED, "Join the pool in which this node is.", "--from", metavar="NODE"),
    agent: AskedAgent,
) -> None:
    """Give up a pool for another of the same name, in which a neighbour is.

    Programs that hold permits of the pool that is given up lose them.

    Example: meshlock pool join docks --from north
    """
    from meshlock.live.machine import limits

    limits.name(from_, "node")
    agent.change(name, "join-from", "joined, ", node=from_)


def set_(
    *,
    name: str = NAME,
    permits: str | None = option(None, "Set the number of permits.", metavar="NUMBER"),
    slots: str | None = SLOTS,
    agent: AskedAgent,
) -> None:
    """Change the number or the names of the permits of a pool with leases.

    Grants stay valid. If more permits are held than the new number, nothing is granted until
    enough are released. A name that was removed is not granted again.

    Example: meshlock pool set docks --permits 5
    """
    if permits is None and slots is None:
        raise Refused("Nothing to set: give --permits NUMBER or --slots NAMES.")
    agent.change(name, "permits", permits=chosen(permits, slots))


def members(
    *,
    name: str = NAME,
    add: str | None = option(None, "Add a node as a member."),
    remove: str | None = option(None, "Remove a member."),
    agent: AskedAgent,
) -> None:
    """Show the members of a pool with leases, or add or remove one.

    Example: meshlock pool members docks --add robot-6
    """
    from meshlock.live.machine import limits

    for node in (add, remove):
        if node is not None:
            limits.name(node, "node")
    if add is None and remove is None:
        said = agent.status_of(name)
        if "members" not in said:
            raise Refused(f"The pool {name} has no members: it was made without leases.")
    else:
        said = agent.ask(name, "members", add=add, remove=remove)
    record = {"pool": name, "members": said["members"]}
    report(agent.json, record, lambda: "\n".join(said["members"]))


RISK = """\
Reset {name} only if {lost} lost for good. This node makes the pool again, alone, under a new
identity. If unreachable nodes still run the old pool, both grant permits until they are linked: up
to {twice} instead of {permits}. {then}
"""


def reset(
    *,
    name: str = NAME,
    yes: bool = option(False, "Reset without asking."),
    agent: AskedAgent,
) -> None:
    """Make a pool again that has lost its quorum, or without leases its token, for good.

    Example: meshlock pool reset docks
    """
    said = agent.status_of(name)
    if not yes:
        lost, then = "its token is", "It grants at once, even if old permits are still in use."
        if "members" in said:
            lost = "the quorum of its members is"
            then = "It grants when all leases of the old pool are surely over."
        permits = said["permits"]
        if said.get("unready"):
            click.echo(f"{name}: {said['unready']}.", err=True)
        risk = RISK.format(name=name, lost=lost, permits=permits, twice=2 * permits, then=then)
        click.echo(risk, err=True, nl=False)
        try:
            yes = click.confirm(f"Reset {name}?", err=True)
        except click.Abort:  # nobody is there to answer
            click.echo(err=True)
        if not yes:
            click.echo(f"{name} was not reset. Nothing has changed.", err=True)
            sys.exit(1)
    agent.change(name, "reset", "reset, ")


def remove(*, name: str = NAME, agent: AskedAgent) -> None:
    """Remove a pool that no other node has and no program uses.

    Example: meshlock pool remove docks
    """
    agent.status_of(name)
    agent.ask(name, "remove")
    report(agent.json, {"pool": name, "removed": True}, lambda: f"{name}: removed")
