"""meshlock exec: run a command while holding permits."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from meshlock.cli.flags import SOCKET, Command
from meshlock.errors import Refused
from meshlock.settings import REQUIRED, argument, option

if TYPE_CHECKING:
    import subprocess

    from meshlock.live.interfaces.agent_client import AgentSession

NOT_IN_TIME = 75
"""Exit code when there were no permits in time (EX_TEMPFAIL: try again later)."""

NOT_FOUND, NOT_RUN = 127, 126
"""Exit codes when there is no such command, or it cannot be run, as a shell has them."""

GRACE = 10.0
"""Seconds between SIGTERM and SIGKILL when the permits are lost under the command."""

IN_TIME = 1 / 6
"""The part of a lease that is left for the command to end when it is not renewed any more. More
would stop it for pauses of its agent after which the lease is renewed in time."""

SILENT = 2.0
"""Seconds after which a command that waits for a pool nobody has made says so."""

LAST_MOMENT = 0.05
"""Seconds before the end of the lease when the command is killed."""


def execute(
    command: tuple[str, ...] = argument(REQUIRED, "Run this command with its arguments, after --."),
    pool: str = option(REQUIRED, "Use this pool."),
    want: int = option(1, "Request this many permits."),
    priority: int = option(0, "Set the priority. Larger is more urgent."),
    deadline: float | None = option(
        None,
        "Set the deadline, in seconds from now. Of one priority, the earliest goes first.",
        metavar="SECONDS",
    ),
    timeout: float | None = option(
        None, "Wait this many seconds for the permits. 0: do not wait. Default: no limit."
    ),
    label: str | None = option(
        None, "Set what others see of this command. Default: user, host, command and process."
    ),
    slots_to: str | None = option(
        None,
        "Put the names of the permits into this variable, too, such as CUDA_VISIBLE_DEVICES.",
        metavar="VARIABLE",
    ),
    socket: str | None = SOCKET,
) -> None:
    """Run a command while holding permits, which are released when it ends, however it ends.

    The exit code is the command's (128 + N if signal N ended it), 75 if there were no permits
    in time, 127 if there is no such command, 126 if it cannot be run. If the lease of the permits
    is not renewed, the command gets SIGTERM while a sixth of the lease is left, and SIGKILL before
    the lease ends. Its environment has
    MESHLOCK_POOL, MESHLOCK_WANT, MESHLOCK_FENCE and MESHLOCK_SLOTS. A command whose deadline has
    passed runs all the same, with a warning.

    Example: meshlock exec --pool docks --want 2 --priority 9 --timeout 30 -- ./unload.sh
    """
    from functools import partial
    from threading import Timer

    from meshlock.live.interfaces.agent_client import AgentClient, finished
    from meshlock.live.interfaces.agent_connection import default_socket
    from meshlock.live.interfaces.agent_protocol import acquire_body, understood
    from meshlock.live.interfaces.client import WIRES
    from meshlock.live.machine import labels, limits
    from meshlock.live.pools.grants import moment

    limits.name(pool)
    wanted = (limits.WANT.whole(want, "--want"), limits.PRIORITY.whole(priority, "--priority"))
    limits.timeout(timeout, "--timeout")
    due = moment(None if deadline is None else limits.DEADLINE.real(deadline, "--deadline"))
    known_as = labels.of_command(list(command)) if label is None else label
    if slots_to is not None and not slots_to.isidentifier():
        raise Refused(
            f"--slots-to takes the name of a variable, such as CUDA_VISIBLE_DEVICES, not "
            f"{limits.shown(slots_to)}."
        )
    variables = ["MESHLOCK_SLOTS"] if slots_to is None else ["MESHLOCK_SLOTS", slots_to]
    agent = AgentClient(socket or default_socket(), WIRES, leases=True)
    finished(agent.current())
    if slots_to is not None:
        status, answer = finished(agent.call("GET", f"/v1/pools/{pool}"))
        if status == 200 and understood(answer)["status"].get("slots") == []:
            raise Refused(nameless(pool, slots_to))
    said = Timer(SILENT, say_why, (pool, socket))
    said.daemon = True
    said.start()
    try:
        body = partial(acquire_body, *wanted, known_as, due, "")
        session, grant = finished(agent.acquire(pool, timeout, body))
    except TimeoutError as error:
        click.echo(f"meshlock: {error}", err=True)
        sys.exit(NOT_IN_TIME)
    finally:
        said.cancel()
    if slots_to is not None and not grant["slots"]:
        raise Refused(nameless(pool, slots_to))
    if grant["met"] is False:
        click.echo(f"meshlock: the permits came after the deadline of {deadline:g} s.", err=True)
    code = run(command, pool, grant, session, variables)
    agent.close()
    sys.exit(code)


def say_why(pool: str, socket: str | None) -> None:
    """Say for which nodes a pool waits that no node has made yet."""
    import contextlib

    from meshlock.live.interfaces.agent_connection import Connection

    with contextlib.suppress(Refused, OSError):
        said = Connection(socket).ask("GET", f"/v1/pools/{pool}", timeout=0.0)["status"]
        if not said["known"]:
            click.echo(f"meshlock: {pool}: {said['why']}", err=True)


def nameless(pool: str, variable: str) -> str:
    return (
        f"The permits of {pool} have no names, so {variable} would be empty: leave out --slots-to, "
        f"or make a pool whose permits have names, such as --pool {pool}=0,1."
    )


def run(
    command: tuple[str, ...],
    pool: str,
    grant: dict[str, Any],
    session: AgentSession,
    variables: list[str],
) -> int:
    import os
    import signal
    import subprocess
    import threading

    environment = {
        **os.environ,
        "MESHLOCK_POOL": pool,
        "MESHLOCK_WANT": str(grant["want"]),
        "MESHLOCK_FENCE": str(grant["fence"] or ""),
        **dict.fromkeys(variables, ",".join(grant["slots"])),
    }
    try:
        child = subprocess.Popen(command, env=environment, preexec_fn=die_with_parent())
    except OSError as error:
        click.echo(f"meshlock: cannot run {command[0]}: {error.strerror}.", err=True)
        return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_RUN
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal signals the command itself
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda received, _: child.send_signal(received))
    threading.Thread(target=watch, args=(child, grant, session), daemon=True).start()
    code = child.wait()
    return code if code >= 0 else 128 - code


def watch(child: subprocess.Popen[bytes], grant: dict[str, Any], session: AgentSession) -> None:
    """Stop the command when its permits go: the agent sends how long the lease is, or that it is
    lost; or the connection ends."""
    from meshlock.live.interfaces.agent_protocol import AgentGone

    line: Any = session.line
    until: float | None = grant["until"]  # of CLOCK_BOOTTIME
    notice, why = IN_TIME * (grant["lease"] or 0.0), ""
    try:
        while not why and (left := left_until(until)) > notice:
            for news in line.events(min(left - notice, 1.0)):
                if news["event"] == "lost":
                    why = "the permits were revoked"
                else:
                    until = news["until"]
    except AgentGone:
        why = "the agent closed the connection"
    stop(child, why or "the lease was not renewed", until)


def left_until(end: float | None) -> float:
    from meshlock.live.machine import clock

    return GRACE if end is None else end - clock.seconds()


def stop(child: subprocess.Popen[bytes], why: str, until: float | None) -> None:
    import contextlib
    import subprocess

    if child.poll() is not None:
        return
    click.echo(f"meshlock: {why}; the command is stopped.", err=True)
    with contextlib.suppress(ProcessLookupError):
        child.terminate()
        try:
            child.wait(max(0.0, min(GRACE, left_until(until) - LAST_MOMENT)))
        except subprocess.TimeoutExpired:
            child.kill()


def die_with_parent() -> Any:
    """What the child does first: ask the kernel to end it if we are killed (Linux only)."""
    if not sys.platform.startswith("linux"):
        return None
    import ctypes
    import signal

    prctl = ctypes.CDLL(None).prctl
    return lambda: prctl(1, signal.SIGKILL)  # 1 = PR_SET_PDEATHSIG


command = Command("exec", execute, own_words=False)
