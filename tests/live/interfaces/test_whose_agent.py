"""Whose agent, socket, state and secret it is: nobody else's."""

from __future__ import annotations

import logging
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import meshlock
from meshlock import Refused
from meshlock.live.interfaces import agent_connection, serving
from meshlock.live.interfaces.agent_connection import Connection, default_socket
from meshlock.live.interfaces.configuration import secret
from waiting import run_in_real_time, sooner_or_later

OTHER = 12345
FAKE = f"""
import os, socket, sys
os.setgroups([])
os.setgid({OTHER})
os.setuid({OTHER})
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
print("here", flush=True)
kept = []
while True:
    kept.append(listener.accept())
"""
AS_ROOT = pytest.mark.skipif(
    os.geteuid() != 0 or not hasattr(socket, "SO_PEERCRED"), reason="only root can be two users"
)


@contextmanager
def agent_of_another_user(mode: int, owner: int) -> Iterator[str]:
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    os.chown(folder, owner, owner)
    folder.chmod(mode)
    place = str(folder / "meshlock.sock")
    fake = subprocess.Popen([sys.executable, "-c", FAKE, place], stdout=subprocess.PIPE, cwd="/")
    try:
        assert fake.stdout is not None and fake.stdout.readline() == b"here\n"
        yield place
    finally:
        fake.kill()
        fake.communicate()
        shutil.rmtree(folder)


@AS_ROOT
@pytest.mark.parametrize(
    ("mode", "owner"), [(0o1777, 0), (0o777, OTHER), (0o775, OTHER), (0o1777, OTHER)]
)
def test_an_agent_of_another_user_in_a_shared_folder_is_refused(mode: int, owner: int) -> None:
    why = rf"^The agent at \S+ is of user {OTHER}, and in \S+ it could be of anybody: use a socket"
    with agent_of_another_user(mode, owner) as place:
        with pytest.raises(Refused, match=why):
            meshlock.connect(place)

        async def story() -> None:
            with pytest.raises(Refused, match=why):
                await meshlock.aconnect(place)

        run_in_real_time(story)
        done = subprocess.run(
            [
                *(sys.executable, "-c", "from meshlock.cli.main import run; run()"),
                *("exec", "--socket", place, "--pool", "docks", "--", "true"),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert f"is of user {OTHER}" in done.stderr


@AS_ROOT
def test_an_agent_of_another_user_in_a_folder_of_its_own_is_used_where_it_was_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with agent_of_another_user(0o755, OTHER) as place:
        Connection(place).close()
        monkeypatch.setattr(agent_connection, "own_folder", lambda: str(Path(place).parent))
        with pytest.raises(Refused, match="could be of anybody"):
            Connection(place)


def test_the_default_socket_is_in_a_folder_of_this_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MESHLOCK_SOCKET", raising=False)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    assert default_socket() == "/tmp/meshlock-4711/meshlock.sock"
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/4711")
    assert default_socket() == "/run/user/4711/meshlock.sock"


def test_the_folder_of_the_default_socket_is_private() -> None:
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    folder.rmdir()
    try:
        serving.make_private(folder)
        serving.make_private(folder)
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        folder.chmod(0o770)
        with pytest.raises(Refused, match=f"{folder} is not a folder of this user alone"):
            serving.make_private(folder)
        folder.rmdir()
        folder.symlink_to("/tmp")
        with pytest.raises(Refused, match="is not a folder of this user alone"):
            serving.make_private(folder)
        folder.unlink()
        folder.write_text("")
        with pytest.raises(Refused, match="Cannot listen in"):
            serving.make_private(folder)
    finally:
        folder.unlink(missing_ok=True)


def test_nobody_else_can_read_what_a_node_remembers(tmp_path: Path) -> None:
    state = tmp_path / "deep" / "state"
    before = os.umask(0)
    try:
        with meshlock.BlockingNode("a", state=state, secret="only the nodes know") as node:
            node.pool("docks", permits=1).acquire().release()
            sooner_or_later(lambda: (state / "docks.promised").exists())
            files = [path for path in state.rglob("*") if path.is_file()]
            assert stat.S_IMODE(state.stat().st_mode) == 0o700
            assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    finally:
        os.umask(before)


def test_a_secret_that_others_can_read_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "secret"
    path.write_text("only the nodes know\n")
    for mode, warnings in ((0o600, 0), (0o640, 0), (0o644, 1)):
        path.chmod(mode)
        caplog.clear()
        with caplog.at_level(logging.WARNING, "meshlock"):
            assert secret(str(path)) == "only the nodes know"
        assert caplog.text.count("secret readable by others") == warnings
