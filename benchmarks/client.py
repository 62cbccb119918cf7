"""What a client of the agent costs: start-up, and acquire and release that nobody disturbs.

    python benchmarks/client.py

CPU times count most on a busy machine; wall times are medians, and what one in ten stays below.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

AGENT = [sys.executable, "-c", "from meshlock.cli.main import run; run()", "agent"]
CYCLES = 3000
POOLS = {
    "with leases": "pools.docks = {permits = 3}",
    "without": 'pools.docks = {permits = 3, founder = true, recovery = "none"}',
}
CLIENT = """
import sys, time
wall, cpu = time.perf_counter(), time.process_time()
import meshlock
agent = meshlock.connect(sys.argv[1])
print(1e3 * (time.perf_counter() - wall), 1e3 * (time.process_time() - cpu))
docks, took = agent.pool("docks"), []
docks.acquire(timeout=60).release()
cpu = time.process_time()
for _ in range(int(sys.argv[2])):
    began = time.perf_counter()
    with docks.acquire():
        pass
    took.append(1e6 * (time.perf_counter() - began))
took.sort()
print(took[len(took) // 2], took[len(took) // 10], 1e6 * (time.process_time() - cpu) / len(took))
"""


def used(process: int) -> float:
    """CPU time in microseconds."""
    return int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1e3


def measure(folder: str, kind: str) -> None:
    settings, place = Path(folder) / "agent.toml", f"{folder}/socket"
    settings.write_text(
        f'name = "a"\nstate = "{folder}/state"\nsocket = "{place}"\n{POOLS[kind]}\n'
    )
    agent = subprocess.Popen([*AGENT, str(settings), "--log-level", "error"])
    try:
        while not Path(place).is_socket():
            time.sleep(0.05)
        before = used(agent.pid)
        done = subprocess.run(
            [sys.executable, "-c", CLIENT, place, str(CYCLES)],
            capture_output=True,
            text=True,
            check=True,
        )
        theirs = (used(agent.pid) - before) / CYCLES
    finally:
        agent.terminate()
        agent.wait()
    start, cycle = ([float(it) for it in line.split()] for line in done.stdout.splitlines())
    print(f"{kind}: import and connect {start[0]:.0f} ms, CPU {start[1]:.0f} ms")
    print(
        f"  cycle {cycle[0]:.0f} us (p10 {cycle[1]:.0f}), CPU {cycle[2]:.0f} + agent {theirs:.0f}"
    )


if __name__ == "__main__":
    for kind in POOLS:
        with tempfile.TemporaryDirectory() as folder:
            measure(folder, kind)
