"""A terminal in which the blocks of a page are run, one after the other.

It has a folder, a home and an agent's socket of its own. Ports that a page names stand for free
ones, ``0.0.0.0`` and hosts in ``.example`` for this machine: nothing leaves it. Another machine,
where the page has one, is another home with other ports. ``pip`` installs nothing: all is there.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType

import pytest
from pages import ROOT, Block, blocks

from ports import free_port
from waiting import sooner_or_later

ADDRESS = re.compile(r"\b(0\.0\.0\.0|127\.0\.0\.1|localhost|(\w+)\.example):(\d{4})\b")
COMMAND = re.compile(r"^(?:\$ )?(?:meshlock|python) (?:.*\\\n)*.*?(?= +#|$)", re.MULTILINE)
STARTED = re.compile(r'"ready"|http://\S+')
"""What an agent or a page says when it is there."""

FAILED = re.compile(r"^(meshlock: .*|Traceback .*)", re.MULTILINE)


class Wrong(Exception):
    """A block does not do what its page says."""


class Terminal:
    def __init__(self, folder: Path, page: Path) -> None:
        self.folder = folder
        self.page = blocks(page)
        elsewhere = {block.marks.get("run elsewhere", "") for block in self.page}
        self.machines = elsewhere - {""}
        self.records = folder.with_name(f"{folder.name}-records")
        self.steps = 0
        self.ports: dict[tuple[str, str], int] = {}
        for path in (folder, self.records):
            path.mkdir()
        for name in ("studies", "campaigns", "benchmarks", "examples", "models"):
            (folder / name).symlink_to(ROOT / name)
        self.shell = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=folder,
            env=self.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self.line("codes=(); trap 'codes+=($?)' ERR; pip() { :; }")

    def environment(self) -> dict[str, str]:
        """As of a user whose programs are those of this Python."""
        own = {name: it for name, it in os.environ.items() if not name.startswith("MESHLOCK")}
        programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return {**own, "PATH": programs, **self.home("")}

    def home(self, machine: str) -> dict[str, str]:
        """Where a user's files are, at this machine or another."""
        home = self.folder / f"home{machine}"
        home.mkdir(exist_ok=True)
        return {
            "HOME": str(home),
            "XDG_STATE_HOME": str(home / "state"),
            "XDG_RUNTIME_DIR": str(home),
            "MESHLOCK_SOCKET": str(home / "meshlock.sock"),
        }

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """All that still runs ends, agents before their files are gone."""
        os.killpg(self.shell.pid, signal.SIGKILL)
        self.shell.wait()
        assert self.shell.stdin is not None
        self.shell.stdin.close()

    def line(self, text: str) -> None:
        assert self.shell.stdin is not None
        self.shell.stdin.write(f"{text}\n".encode())
        self.shell.stdin.flush()

    def run(self, block: Block) -> None:
        """Do what it says, and see that it comes out as it says."""
        if "run first" in block.marks:
            codes, said = self.step(block, f"{block.marks['run first']}\ndisown -a")
            if codes:
                raise Wrong(f"{block.where}: what is run first exits with {codes}:\n{said}")
        if "file" in block.marks:
            (self.folder / block.marks["file"]).write_text(self.here(block.text), encoding="utf-8")
        elif "patch" in block.marks:
            self.patch(self.folder / block.marks["patch"], block)
        elif block.runs:
            expected = [int(code) for code in re.findall(r"\d+", block.marks.get("exits", ""))]
            codes = self.python(block) if block.language == "python" else self.commands(block)
            if codes != expected:
                said = "".join(
                    path.read_text("utf-8") for path in sorted(self.records.glob("*.out"))
                )
                raise Wrong(
                    f"{block.where} exits with {codes} instead of {expected}:\n{said[-3000:]}"
                )

    def patch(self, path: Path, block: Block) -> None:
        """Lines with - stand in the file once, those with + take their place."""
        text = path.read_text(encoding="utf-8")
        for old, new in re.findall(r"((?:^-.*\n)+)((?:^\+.*\n)+)", block.text, re.MULTILINE):
            before, after = (re.sub("^.", "", lines, flags=re.MULTILINE) for lines in (old, new))
            if text.count(before) != 1:
                raise Wrong(
                    f"{block.where}: {before!r} is {text.count(before)} times in {path.name}"
                )
            text = text.replace(before, after)
        path.write_text(text, encoding="utf-8")

    def commands(self, block: Block) -> list[int]:
        text = block.text
        if "run with" in block.marks:
            text = COMMAND.sub(rf"\g<0> {block.marks['run with']}", text)
        if block.language != "console":
            return self.step(block, text, block.marks.get("run elsewhere"))[0]
        codes = []
        for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command = re.match(r"(?:.*\\\n)*.*\n", part)
            assert command is not None
            found, said = self.step(block, command[0], block.marks.get("run elsewhere"))
            codes += found
            shown(block, part[command.end() :], said)
        return codes

    def python(self, block: Block) -> list[int]:
        name = f"block_{block.line}.py"
        (self.folder / name).write_text(self.here(block.text), encoding="utf-8")
        return self.step(block, f"python {name}")[0]

    def step(self, block: Block, text: str, machine: str | None = None) -> tuple[list[int], str]:
        """Exit codes other than 0, and what was written. With a machine: in a terminal there."""
        self.steps += 1
        record = self.records / f"{self.steps:03}"
        script, said, done = (record.with_suffix(end) for end in (".sh", ".out", ".done"))
        script.write_text(self.here(text, machine or ""), encoding="utf-8")
        run = f"""eval "$(<{script})"$'\\n:';"""
        if machine is not None:
            there = " ".join(f"{name}={it}" for name, it in self.home(machine).items())
            run = f"(export {there}; {run}) & disown;"
        self.line(
            f"codes=(); {{ {run} }} </dev/null >{said} 2>&1\n"
            f'echo "${{codes[@]}}" >{done}.part; mv {done}.part {done}'
        )
        try:
            sooner_or_later(lambda: done.exists() or self.shell.poll() is not None)
        except AssertionError:
            raise Wrong(f"{block.where} does not end:\n{text}") from None
        if not done.exists():
            raise Wrong(f"{block.where} ends its shell:\n{said.read_text('utf-8')}")
        starts = len(re.findall(r"meshlock (?:agent|view)\b.*&\s*(?:#.*)?$", text, re.MULTILINE))
        starts += machine is not None
        if starts:
            self.started(block, starts, said)
        return [int(code) for code in done.read_text().split()], said.read_text("utf-8")

    def started(self, block: Block, count: int, said: Path) -> None:
        """Wait until what goes on in the background is there."""

        def there() -> bool:
            text = said.read_text("utf-8")
            if FAILED.search(text):
                raise Wrong(f"{block.where}:\n{text}")
            return len(STARTED.findall(text)) >= count

        sooner_or_later(there)

    def here(self, text: str, machine: str = "") -> str:
        """With addresses of this machine in the place of those on the page."""

        def address(found: re.Match[str]) -> str:
            other = found[2] if found[2] in self.machines else ""
            return f"127.0.0.1:{self.port(other if found[2] else machine, found[3])}"

        return ADDRESS.sub(address, text)

    def port(self, machine: str, name: str) -> int:
        if (machine, name) not in self.ports:
            self.ports[machine, name] = free_port()
        return self.ports[machine, name]


def run_page(page: Path, folder: Path) -> None:
    """In a terminal of its own, if what it uses is installed."""
    needed = {"bash", *re.findall(r"\bcurl\b", page.read_text(encoding="utf-8"))}
    if missing := sorted(name for name in needed if shutil.which(name) is None):
        pytest.skip(f"needs {' and '.join(missing)}")
    with Terminal(folder, page) as terminal:
        for block in terminal.page:
            terminal.run(block)


def shown(block: Block, page: str, said: str) -> None:
    """The page shows lines of what was said, in that order; dots stand for anything."""
    lines = iter(said.splitlines())
    for line in page.splitlines():
        wanted = re.compile(".*".join(map(re.escape, line.rstrip().split("..."))))
        if line.strip() and not any(wanted.fullmatch(one.rstrip()) for one in lines):
            raise Wrong(f"{block.where} shows {line!r}, but it says:\n{said[-3000:]}")
