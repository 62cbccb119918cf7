"""Run the same settings twice, in processes with different hash seeds, and compare."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory

from meshlock.simulate.run_settings import RunSettings
from meshlock.sweep.runs import flags_of


def first_divergence(settings: RunSettings) -> str | None:
    """A sentence that names the first event that differs, or None if none does."""
    values = {**settings.values(), **settings.options}
    if not values["nodes"]:
        del values["nodes"]
    command = [sys.executable, "-m", "meshlock", "simulate", *flags_of(values)]
    with TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("first.jsonl", "second.jsonl")]
        for path, hash_seed in zip(paths, ("1", "2"), strict=True):
            subprocess.run(
                [*command, "--trace-states", "--trace", str(path)],
                env={**os.environ, "PYTHONHASHSEED": hash_seed},
                stdout=subprocess.DEVNULL,
                check=False,  # a run that violates a property has a trace, too
            )
        with paths[0].open() as first, paths[1].open() as second:
            for number, (one, other) in enumerate(zip_longest(first, second), start=1):
                if one != other:
                    return f"The runs diverge at line {number}:\n  {one}  {other}"
    return None
