"""Shell completion, as the scripts of the shells ask for it and in the shells themselves."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from waiting import LIMIT

STARTER = """#!{python}
import sys
sys.argv[0] = "meshlock"
from meshlock.cli.main import run
run()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the command ``meshlock`` of this very source in it."""
    folder = tmp_path_factory.mktemp("path")
    command = folder / "meshlock"
    command.write_text(STARTER.format(python=sys.executable))
    command.chmod(0o755)
    return folder


def environment(folder: Path, **more: str) -> dict[str, str]:
    source = os.pathsep.join(path for path in sys.path if path)
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHONPATH": source, "HOME": str(folder), **more}


def script(folder: Path, shell: str) -> str:
    done = subprocess.run(
        ["meshlock"],
        env=environment(folder, _MESHLOCK_COMPLETE=f"{shell}_source"),
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def completed(folder: Path, line: str, **more: str) -> list[str]:
    """What bash would be told for this line, with the cursor at its end."""
    words = line.split(" ")
    asked = {
        "_MESHLOCK_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    done = subprocess.run(
        ["meshlock"],
        env=environment(folder, **asked, **more),
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return [line.removeprefix("plain,") for line in done.stdout.split()]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("meshlock sta", ["status"]),
        ("meshlock agent --http-t", ["--http-token-file"]),
        ("meshlock certs au", ["authority"]),
    ],
)
def test_commands_and_flags(folder: Path, line: str, found: list[str]) -> None:
    assert completed(folder, line) == found


def test_in_bash(folder: Path) -> None:
    typed = """
        function=$(complete -p meshlock | sed 's/.*-F *//; s/ .*//')
        COMP_WORDS=(meshlock certs a) COMP_CWORD=2
        $function meshlock a certs
        echo "${COMPREPLY[*]}"
    """
    assert run(folder, "bash", script(folder, "bash") + typed).split() == ["authority"]


def test_in_fish(folder: Path) -> None:
    typed = f"{script(folder, 'fish')}\ncomplete -C 'meshlock certs a'\n"
    found = [line.split("\t")[0] for line in run(folder, "fish", typed).splitlines()]
    assert found == ["authority"]


def test_in_zsh(folder: Path) -> None:
    """In a terminal: what TAB adds to the line is seen there."""
    program = shutil.which("zsh")
    if program is None:
        pytest.skip("zsh is not installed")
    start = "autoload -Uz compinit; compinit -u -D\nPS1='ready> '\n"
    (folder / ".zshrc").write_text(start + script(folder, "zsh"))
    ours, its = os.openpty()
    given = environment(folder, ZDOTDIR=str(folder), TERM="vt100")
    shell = subprocess.Popen(
        [program, "-i"], stdin=its, stdout=its, stderr=its, env=given, start_new_session=True
    )
    try:
        seen(ours, "ready> ")
        os.write(ours, b"meshlock certs auth\t")
        seen(ours, "authority")
    finally:
        shell.kill()
        shell.wait()
        os.close(ours)
        os.close(its)


def seen(terminal: int, text: str) -> None:
    shown = ""
    while text not in shown:
        assert select.select([terminal], [], [], LIMIT)[0], shown
        shown += os.read(terminal, 4096).decode(errors="replace")


def run(folder: Path, shell: str, typed: str) -> str:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    quiet = {"bash": ["--norc"], "fish": ["--no-config"]}[shell]
    done = subprocess.run(
        [program, *quiet],
        input=typed,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
