"""Commands run in this process: what they print, and their exit code.

What a process adds (starting, signals, environment) is tested with processes, in
tests/cli/test_start.py and where a test says so.
"""

from __future__ import annotations

import sys
from contextlib import redirect_stderr, redirect_stdout
from io import BytesIO, TextIOWrapper
from subprocess import CompletedProcess
from unittest.mock import patch

from meshlock.cli.main import run


def written(stream: TextIOWrapper) -> str:
    stream.flush()
    raw = stream.buffer
    assert isinstance(raw, BytesIO)
    return raw.getvalue().decode()


def meshlock(*words: str) -> CompletedProcess[str]:
    """As ``python -m meshlock`` with these words; what no process would survive is raised."""
    out, err = (TextIOWrapper(BytesIO(), "utf-8", newline="\n") for _ in range(2))
    command = ["meshlock", *words]
    with patch.object(sys, "argv", command), redirect_stdout(out), redirect_stderr(err):
        try:
            run()
        except SystemExit as end:
            code = end.code
    if code is None:
        code = 0
    assert isinstance(code, int), code
    return CompletedProcess(command, code, written(out), written(err))
