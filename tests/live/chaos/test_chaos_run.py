"""Chaos with real processes: a short run of every kind of fault, and how a run ends."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from waiting import LIMIT, sooner_or_later

pytest.importorskip("cryptography")

from meshlock.live.chaos import plan as plans
from meshlock.live.chaos.judge import judge
from meshlock.live.chaos.record import Changed, SettledLine, read
from meshlock.live.chaos.relay import Relay
from meshlock.live.links.dialler import split

PROGRAM = [sys.executable, "-c", "from meshlock.cli.main import run; run()", "chaos"]
LEASE = 2.0
WITHIN = LIMIT / 4
"""Seconds for a grant after a fault: in how many it comes is judged in virtual time."""


def children(parent: int) -> set[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(parent)], capture_output=True)
    return {int(pid) for pid in found.stdout.split()}


def alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def test_two_minutes_of_chaos_break_no_promise(tmp_path: Path):
    keep = tmp_path / "kept"
    arguments = ["--seconds", "100", "--seed", "405", "--lease", str(LEASE), "--keep", str(keep)]
    arguments += ["--within", str(WITHIN)]
    run = subprocess.run([*PROGRAM, *arguments, "--json"], capture_output=True, text=True)
    assert run.returncode in (0, 1), run.stderr
    found = json.loads(run.stdout)
    assert found["violations"] == [], (keep / "plan.json").read_text()
    assert found["violated"] == [] and run.returncode == 0
    assert run.stderr == ""

    # it was chaos, and there was work going on
    assert found["kills"] >= 2 and found["pauses"] >= 2 and found["restarts"] >= 5
    struck = {"agent left", "agent restarted", "crowd", "disk lost", "members changed"}
    struck |= {"minority cut off", "partition", "resized"}
    assert len(struck & set(found["faults"])) >= 6  # a fault may be left out while another lasts
    assert found["restarts_without_memory"] >= 1
    assert found["grants"] > 200
    assert found["most_permits"] == found["permits"] == 3

    # what was kept says the same again
    record = read(keep / "record.jsonl")
    assert any(isinstance(line, SettledLine) for line in record)  # all were members again
    assert any(isinstance(line, Changed) for line in record)
    verdict = judge(record)
    assert any(use.parts for use in verdict.uses)
    assert verdict.violated == []
    assert {slot for use in verdict.uses for slot in use.slots} == {"slot0", "slot1", "slot2"}
    assert plans.load(keep / "plan.json") == plans.make(
        405, lease=LEASE, seconds=100, within=WITHIN
    )


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="children end with us on Linux")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_leaves_no_process_behind_however_it_ends(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    run = subprocess.Popen([*PROGRAM, "--nodes", "3", "--clients-per-node", "1", "--json"])
    sooner_or_later(lambda: len(children(run.pid)) == 6)  # three agents, three clients
    started = children(run.pid)
    run.send_signal(number)
    code = run.wait(timeout=LIMIT)
    sooner_or_later(lambda: not any(alive(pid) for pid in started))
    if number != signal.SIGKILL:  # nobody can tidy up after that
        assert code == 128 + number
        assert list(tmp_path.iterdir()) == []


def test_a_silent_cut_holds_back_the_end_of_a_connection_too():
    """Else the death of a process would be heard of through a cut cable."""

    async def story() -> None:
        async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            relay.cut()
            writer.close()

        server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
        relay = await Relay(*server.sockets[0].getsockname()[:2]).start()
        reader, writer = await asyncio.open_connection(*split(relay.address))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await reader.read()
        relay.heal()
        async with asyncio.timeout(LIMIT):
            assert await reader.read() == b""
        writer.close()
        server.close()
        await relay.close()

    asyncio.run(story())


def test_a_folder_that_exists_is_not_overwritten(tmp_path: Path):
    run = subprocess.run([*PROGRAM, "--keep", str(tmp_path)], capture_output=True, text=True)
    assert run.returncode == 2
    assert run.stderr == f"meshlock: {tmp_path} exists already: --keep needs a new folder.\n"
