"""meshlock members: who counts for the majority of a pool with leases."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from meshlock.cli import completion


def members(
    pool: Annotated[str, typer.Option(help="The pool.", autocompletion=completion.pools)],
    add: Annotated[
        str | None,
        typer.Option(help="Add a node as a member.", autocompletion=completion.nodes),
    ] = None,
    remove: Annotated[
        str | None, typer.Option(help="Remove a member.", autocompletion=completion.nodes)
    ] = None,
    timeout: Annotated[float, typer.Option(help="Seconds to wait for the majority.")] = 30.0,
    socket: Annotated[str | None, typer.Option(help="The agent's unix socket.")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Show the members of a pool with leases, or add or remove one; ask a member's agent.

    Example: meshlock members --pool docks --add robot-6
    """
    from meshlock.errors import Refused
    from meshlock.live.interfaces.asking import Connection, wish
    from meshlock.live.machine import limits

    limits.name(pool)
    limits.timeout(timeout, "--timeout")
    for name in (add, remove):
        if name is not None:
            limits.name(name, "node")
    agent = Connection(socket)
    if add is None and remove is None:
        known = agent.ask("GET", "/v1/status")["pools"].get(pool, {})
        if "members" not in known:
            raise Refused(f"The agent knows no pool {pool} with members.")
        found = known["members"]
    else:
        change = wish(add=add, remove=remove, timeout=timeout)
        try:
            found = agent.ask("POST", f"/v1/pools/{pool}/members", change, timeout)["members"]
        except TimeoutError as error:
            typer.echo(f"meshlock: {error}", err=True)
            sys.exit(1)
    if json:
        from meshlock.cli.output import print_json

        print_json({"pool": pool, "members": found})
    else:
        typer.echo("\n".join(found))
