"""A real cluster: a scheduler and two workers as processes, one of them killed in the middle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from meshlock.errors import Refused
from meshlock.sweep import runs as runs_module
from meshlock.sweep import workers as workers_module
from meshlock.sweep.report import write_tables
from meshlock.sweep.runs import read_line
from meshlock.sweep.study import study
from meshlock.sweep.sweep import make_all
from meshlock.sweep.workers import on_cluster, one_by_one
from waiting import LIMIT, sooner_or_later

if find_spec("distributed") is None:  # it takes a second to import, in every process of pytest
    pytest.skip("needs distributed", allow_module_level=True)

TABLE = {
    "nodes": [8, 16],
    "algorithm": ["raymond", "jiang", "maekawa-bare"],
    "requests": 300,
    "repetitions": 4,
}


def dask(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "dask", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "DASK_DISTRIBUTED__ADMIN__TICK__LIMIT": "1h"},
    )


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """The address of the scheduler, and its two workers, whose names are their process ids."""
    folder = tmp_path_factory.mktemp("cluster")
    file = folder / "scheduler.json"
    here = ("--scheduler-file", str(file), "--no-dashboard")
    processes = [dask("scheduler", "--host", "127.0.0.1", "--port", "0", *here)]
    try:
        sooner_or_later(lambda: file.exists() and file.read_text().endswith("}"))
        address = json.loads(file.read_text())["address"]
        one = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1")
        scratch = ("--local-directory", str(folder))
        processes += [dask("worker", address, *one, *scratch) for _ in range(2)]
        from dask.distributed import Client

        with Client(address, timeout=LIMIT, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=LIMIT)
        yield address, processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    monkeypatch.setattr(workers_module, "PATIENCE", LIMIT)


def nobody(done: int, of: int) -> None:
    pass


def test_another_program_on_the_cluster_is_refused(cluster, monkeypatch):
    address, _ = cluster
    monkeypatch.setattr(runs_module, "code", lambda: "another version")
    with pytest.raises(Refused, match="another version of meshlock"):
        make_all(study({"nodes": [3, 4]}, "s"), by(address), nobody)


def by(address):
    return lambda runs, events: on_cluster(runs, events, address)


def test_the_same_tables_as_local_though_a_worker_is_killed(tmp_path: Path, cluster):
    address, (_, *workers) = cluster
    used = set()

    def make(runs, events):
        for text in on_cluster(runs, events, address):
            pid = int(read_line(text).where.rpartition(":")[2])
            if not used:
                os.kill(pid, signal.SIGKILL)
            used.add(pid)
            yield text

    made = study(TABLE, "s")
    for name, way in (("local", one_by_one), ("cluster", make)):
        (tmp_path / name).mkdir()
        write_tables(made, make_all(made, way, nobody), tmp_path / name)
    assert used == {worker.pid for worker in workers}
    for name in ("results.csv", "summary.csv"):
        assert (tmp_path / "cluster" / name).read_bytes() == (
            tmp_path / "local" / name
        ).read_bytes()


def test_a_scheduler_that_goes_is_a_sentence(cluster, monkeypatch):
    address, (scheduler, *_) = cluster
    from dask.distributed import default_client

    def make(runs, events):
        for text in on_cluster(runs, events, address):
            default_client()._timeout = 1.0  # it would wait for another scheduler as long
            scheduler.kill()
            yield text

    runs = {"nodes": 20, "requests": 3000, "repetitions": 30}
    with pytest.raises(Refused, match="Lost the connection to the scheduler"):
        make_all(study(runs, "s"), make, nobody)


def test_no_scheduler_is_a_sentence(monkeypatch):
    monkeypatch.setattr(workers_module, "PATIENCE", 0.1)
    with pytest.raises(Refused, match="No dask scheduler answers at"):
        list(on_cluster([{"nodes": 3}], 0, "tcp://127.0.0.1:1"))
