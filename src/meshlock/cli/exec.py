"""meshlock exec: run a command while holding permits."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import subprocess

    from meshlock.live.asking import Ask

NOT_IN_TIME = 75
"""Exit code when there were no permits in time (EX_TEMPFAIL: try again later)."""

GRACE = 10.0
"""Seconds between SIGTERM and SIGKILL when the permits are lost under the command."""


def execute(
    command: Annotated[list[str], typer.Argument(help="The command and its arguments, after --.")],
    pool: Annotated[str, typer.Option(help="The pool.")],
    want: Annotated[int, typer.Option(help="How many permits.")] = 1,
    priority: Annotated[int, typer.Option(help="Larger is more urgent.")] = 0,
    timeout: Annotated[
        float | None, typer.Option(help="Seconds to wait for the permits; for ever if left out.")
    ] = None,
    socket: Annotated[str | None, typer.Option(help="The agent's unix socket.")] = None,
) -> None:
    """Run a command while holding permits; they go back when it ends, however it ends.

    The exit code is the command's (128 + N if signal N ended it), or 75 if there were no
    permits in time. The command finds MESHLOCK_POOL, MESHLOCK_WANT and MESHLOCK_FENCE in its
    environment.

    Example: meshlock exec --pool docks --want 2 --priority 9 --timeout 30 -- ./unload.sh
    """
    from meshlock.live.asking import Ask

    agent = Ask(socket)
    grant = agent.ask(do="acquire", pool=pool, want=want, priority=priority, timeout=timeout)
    if not grant["ok"]:
        typer.echo(f"meshlock: {grant['why']}", err=True)
        sys.exit(NOT_IN_TIME)
    code = run(command, pool, grant, agent)
    agent.close()
    sys.exit(code)


def run(command: list[str], pool: str, grant: dict[str, Any], agent: Ask) -> int:
    import os
    import signal
    import subprocess
    import threading

    from meshlock.algorithms.registry import Refused

    environment = {
        **os.environ,
        "MESHLOCK_POOL": pool,
        "MESHLOCK_WANT": str(grant["want"]),
        "MESHLOCK_FENCE": str(grant["fence"] or ""),
    }
    try:
        child = subprocess.Popen(command, env=environment, preexec_fn=die_with_parent())
    except OSError as error:
        raise Refused(f"Cannot run {command[0]}: {error.strerror}.") from None
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal tells the command itself
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda received, _: child.send_signal(received))
    threading.Thread(target=stop_when_lost, args=(agent, child), daemon=True).start()
    code = child.wait()
    return code if code >= 0 else 128 - code


def stop_when_lost(agent: Ask, child: subprocess.Popen[bytes]) -> None:
    """The agent speaks again only to say that the grant is lost; or it is gone."""
    import contextlib
    import subprocess

    agent.hear()
    if child.poll() is None:
        typer.echo("meshlock: the permits are lost; the command is stopped.", err=True)
        with contextlib.suppress(ProcessLookupError):
            child.terminate()
            try:
                child.wait(GRACE)
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
