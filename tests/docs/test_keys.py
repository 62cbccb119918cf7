"""The ten minutes as a reader has them: four terminals, lines pasted into shells, and keys pressed.

The blocks are those of the page. The shells run on pseudo-terminals, so that Ctrl-C and Ctrl-\\ are
keys and no signals that a test sends.
"""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pages import ROOT, blocks

from ports import free_port
from waiting import LIMIT, sooner_or_later

PAGE = ROOT / "docs" / "start" / "ten-minutes.md"
ENDED = re.compile(r"ended with (\d+)\r?\n")
QUIT, INTERRUPT, UP = "\x1c", "\x03", "\x1b[A"


class Shell:
    """A shell on a terminal of its own."""

    def __init__(self, folder: Path) -> None:
        self.shown = ""
        self.pid, self.keys = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.environ |= {
                "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
                "XDG_STATE_HOME": str(folder / "state"),
                "XDG_RUNTIME_DIR": str(folder),
                "HOME": str(folder),
                "TERM": "xterm",
                "PS1": "$ ",
                "COLUMNS": "200",
            }
            os.execv("/bin/bash", ["bash", "--norc", "--noprofile"])
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self) -> None:
        try:
            while select.select([self.keys], [], []) and (more := os.read(self.keys, 65536)):
                self.shown += more.decode(errors="replace")
        except OSError:
            pass  # the shell has ended

    def press(self, keys: str) -> None:
        os.write(self.keys, keys.encode())

    def shows(self, pattern: str, after: int = 0) -> re.Match[str]:
        sooner_or_later(lambda: re.search(pattern, self.shown[after:]))
        found = re.search(pattern, self.shown[after:])
        assert found is not None
        return found

    def runs(self, lines: str) -> str:
        """What they print, once the last has ended well."""
        before = len(self.shown)
        self.press("".join(f"{line}\n" for line in [*lines.splitlines(), "echo ended with $?"]))
        ended = self.shows(ENDED.pattern, before)
        said = self.shown[before : before + ended.start()]
        assert ended[1] == "0", said
        return said

    def close(self) -> None:
        os.kill(self.pid, signal.SIGHUP)
        os.waitpid(self.pid, 0)
        self.reader.join(LIMIT)
        os.close(self.keys)


@contextmanager
def four(folder: Path) -> Iterator[list[Shell]]:
    shells = [Shell(folder) for _ in range(4)]
    try:
        yield shells
    finally:
        for shell in shells[:3]:
            shell.press(QUIT)
        for shell in shells:
            shell.close()


def pasted() -> dict[str, str]:
    """The blocks of the page by their first words, with ports that are free."""
    ports = {f"740{number}": str(free_port()) for number in (1, 2, 3)}
    found = {}
    for block in blocks(PAGE):
        text = re.sub(r"\b740[123]\b", lambda port: ports[port[0]], block.text)
        found[" ".join(text.split()[:4])] = text
    return found


@pytest.mark.skipif(not Path("/bin/bash").exists(), reason="needs bash")
def test_the_keys_of_the_ten_minutes(tmp_path: Path) -> None:
    block = pasted()
    with four(tmp_path) as (*agents, shell):
        shell.runs(block["(umask 077; meshlock certs"])
        names = ["north", "south", "west"]
        terminals = dict(zip(names, agents, strict=True))
        for name, terminal in terminals.items():
            terminal.press(block[f"meshlock agent --name {name}"])
            terminal.shows(r"\bready\b")
        status = block[next(key for key in block if key.startswith("export MESHLOCK_SOCKET"))]
        sooner_or_later(lambda: "3 of 3 members reachable (quorum: 2)" in shell.runs(status))
        row = re.search(r"docks +3 +(\w+)", shell.runs(status))
        assert row is not None, "the third column has the holder of the token"
        name = row[1]

        terminals[name].press(QUIT)
        terminals[name].shows(r"Quit")
        if name == "south":
            shell.runs("export MESHLOCK_SOCKET=$PWD/north.sock")
        said = shell.runs(block["meshlock exec --pool docks"])
        assert "all three are back" in said and "2 of 3 members reachable" in said

        before = len(terminals[name].shown)
        terminals[name].press(UP + "\n")
        terminals[name].shows(r"link up", before)
        sooner_or_later(lambda: "3 of 3 members reachable" in shell.runs("meshlock status"))
        other = terminals["west" if name != "west" else "north"]
        other.press(INTERRUPT)
        other.runs("")  # the exit code is the agent's
