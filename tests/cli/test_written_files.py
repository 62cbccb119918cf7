"""What commands write: whole or not at all, to whatever has the name that was given."""

import gzip
import json
import os
import resource
import subprocess
import sys

import pytest

from waiting import LIMIT

COMMAND = [sys.executable, "-m", "meshlock"]
DRAWING = """
import sys
from pathlib import Path
from meshlock.sweep import plots, study, sweep, workers
few = study.study({"nodes": [3, 4], "requests": 5}, "few")
found = sweep.make_all(few, workers.one_by_one, lambda *moved: None)
plots.draw(few, few.plots[0], found, Path(sys.argv[1]))
"""
SIMULATE = ("simulate", "--nodes", "3", "--requests", "5", "--seed", "2", "--trace")


def meshlock(*arguments, **more):
    given = [*COMMAND, *map(str, arguments)]
    return subprocess.run(given, capture_output=True, text=True, timeout=LIMIT, **more)


def refusal(*arguments, **more):
    run = meshlock(*arguments, **more)
    assert run.returncode == 2
    assert "Traceback" not in run.stderr and run.stderr.count("\n") == 1
    return run.stderr


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    path = tmp_path_factory.mktemp("traces") / "run.jsonl"
    meshlock(*SIMULATE, path, check=True)
    return path


def names(folder):
    return [path.name for path in folder.iterdir()]


def small_files():
    """No file may be longer than this, as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))


def test_a_pipe_is_written_to_and_stays_one(tmp_path, trace):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    end = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert meshlock("convert", trace, "--to", "csv", "-o", pipe).returncode == 0
    read = os.read(end, 1 << 16).decode()
    os.close(end)
    assert read.startswith("t,") and read.count(",enter,") == 5
    assert pipe.is_fifo() and names(tmp_path) == ["pipe"]


def test_a_link_stays_one_and_what_it_leads_to_is_replaced(tmp_path, trace):
    (tmp_path / "far").mkdir()
    target, link = tmp_path / "far" / "target.csv", tmp_path / "link.csv"
    target.write_text("before")
    link.symlink_to("far/target.csv")
    assert meshlock("convert", trace, "--to", "csv", "-o", link).returncode == 0
    assert link.is_symlink() and target.read_text().startswith("t,")
    assert names(target.parent) == ["target.csv"]


def test_a_full_disk_leaves_what_was_there(tmp_path, trace):
    kept = tmp_path / "kept.csv"
    kept.write_text("before")
    said = refusal("convert", trace, "--to", "csv", "-o", kept, preexec_fn=small_files)
    assert f"Cannot write {kept}: File too large." in said
    assert kept.read_text() == "before" and names(tmp_path) == ["kept.csv"]


def test_a_picture_is_whole_or_not_there(tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "study.svg"
    drawing = (sys.executable, "-c", DRAWING, picture)
    run = subprocess.run(drawing, capture_output=True, text=True, preexec_fn=small_files)
    assert f"Refused: Cannot draw to {picture}: File too large." in run.stderr
    assert names(tmp_path) == []


@pytest.mark.parametrize("command", [SIMULATE, ("scenario", "J1", "--trace")])
def test_a_name_in_gz_is_compressed_with_the_same_bytes_every_time(tmp_path, command):
    packed, again, plain = tmp_path / "a.jsonl.gz", tmp_path / "b.jsonl.gz", tmp_path / "a.jsonl"
    for path in (packed, again, plain):
        meshlock(*command, path, check=True)
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    assert packed.read_bytes() == again.read_bytes()
    assert meshlock("audit", packed).returncode == 0


@pytest.mark.parametrize("name", ["merged.jsonl", "merged.jsonl.gz", "run.jsonl"])
def test_one_trace_is_merged_too(tmp_path, trace, name):
    one, merged = tmp_path / "run.jsonl", tmp_path / name
    one.write_bytes(trace.read_bytes())
    run = meshlock("audit", one, "--merged", merged, "--json")
    assert run.returncode == 0 and json.loads(run.stdout)["entries"] == 5
    written = merged.read_bytes()
    assert (gzip.decompress(written) if merged.suffix == ".gz" else written) == trace.read_bytes()


def test_what_cannot_be_merged_leaves_what_was_there(tmp_path, trace):
    kept = tmp_path / "kept.jsonl"
    kept.write_text("before")
    assert "not written by a live node" in refusal("audit", trace, trace, "--merged", kept)
    assert kept.read_text() == "before"
    assert "Cannot write" in refusal("audit", trace, "--merged", tmp_path / "no" / "m.jsonl")
