"""Run the same settings twice, in processes with different hash seeds, and compare."""

from __future__ import annotations

import os
import subprocess
import sys
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory

from meshlock.simulate.run_settings import RunSettings, as_values
from meshlock.simulate.settings import run_settings

PROGRAM = """
import sys
from pathlib import Path
from meshlock.cli.determinism import write_trace
write_trace(Path(sys.argv[1]), dict(pair.split("=", 1) for pair in sys.argv[2:]))
"""


def write_trace(path: Path, given: dict[str, str]) -> None:
    from meshlock.cli.simulate import simulate_with_progress

    simulate_with_progress(run_settings(as_values(given)), path, True)


def first_divergence(settings: RunSettings) -> str | None:
    """A sentence that names the first event that differs, or None if none does."""
    values = {**settings.values(), **settings.options}
    if not values["nodes"]:
        del values["nodes"]
    pairs = [f"{name}={value}" for name, value in values.items()]
    with TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("first.jsonl", "second.jsonl")]
        for path, hash_seed in zip(paths, ("1", "2"), strict=True):
            command = [sys.executable, "-c", PROGRAM, str(path), *pairs]
            environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
            subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
        if sha256(paths[0].read_bytes()).digest() == sha256(paths[1].read_bytes()).digest():
            return None
        with paths[0].open() as first, paths[1].open() as second:
            for number, (one, other) in enumerate(zip_longest(first, second), start=1):
                if one != other:
                    return f"The runs diverge at line {number}:\n  {one}  {other}"
    return None
