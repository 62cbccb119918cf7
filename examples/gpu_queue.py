"""A queue of jobs for the four GPUs of a machine: each is told which ones are its own.

    python examples/gpu_queue.py

The permits have names, those by which CUDA knows the devices, and no two jobs ever have one in
common. Urgent jobs go first. From a shell the same is

    meshlock exec --pool gpus --want 2 --slots-to CUDA_VISIBLE_DEVICES -- ./train.py
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import meshlock

AGENT = [sys.executable, "-c", "from meshlock.cli.main import run; run()", "agent"]
TRAIN = [sys.executable, "-c", "import time; time.sleep(0.2)"]


class Job(NamedTuple):
    name: str
    gpus: int
    priority: int = 0


JOBS = [
    Job("sweep-1", 1),
    Job("sweep-2", 1),
    Job("sweep-3", 1),
    Job("pretrain", 4),
    Job("finetune", 2),
    Job("demo-for-visitors", 1, priority=9),
]


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def work(gpus: meshlock.BlockingClientPool, job: Job) -> None:
    with gpus.acquire(job.gpus, priority=job.priority, label=job.name) as grant:
        devices = ",".join(grant.slots)
        say(f"{job.name} begins on {devices}")
        process = subprocess.Popen(TRAIN, env={**os.environ, "CUDA_VISIBLE_DEVICES": devices})
        while process.poll() is None:
            if grant.wait_lost(0.05):  # the agent is gone, or cut off from the others
                process.kill()
        say(f"{job.name} ends on {devices}")


def main(place: str) -> None:
    with meshlock.connect(place) as agent, ThreadPoolExecutor(len(JOBS)) as threads:
        gpus = agent.pool("gpus")
        for done in [threads.submit(work, gpus, job) for job in JOBS]:
            done.result()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        place = f"{folder}/agent.sock"
        given = ["--socket", place, "--pool", "gpus=0,1,2,3", "--state", f"{folder}/state"]
        process = subprocess.Popen([*AGENT, *given, "--log-level", "warning"])
        try:
            while not Path(place).is_socket() and process.poll() is None:
                time.sleep(0.05)
            main(place)
        finally:
            process.terminate()
            process.wait()
