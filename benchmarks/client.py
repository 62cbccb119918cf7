"""What a client of the agent costs: start-up, and acquire and release that nobody disturbs.

    python benchmarks/client.py

Cycles are measured in short windows, of which the best counts: on a busy machine most of them are
disturbed. Start-up is the best of a few, with bytecode, as an installed package has it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

AGENT = [sys.executable, "-c", "from meshlock.cli.main import run; run()", "agent"]
STARTS = 10
POOLS = {
    "with leases": "pools.docks = {permits = 3}",
    "without": 'pools.docks = {permits = 3, founder = true, recovery = "none"}',
}
START = """
import sys, time
wall, cpu = time.perf_counter(), time.process_time()
import meshlock
meshlock.connect(sys.argv[1])
print(1e3 * (time.perf_counter() - wall), 1e3 * (time.process_time() - cpu))
"""
WINDOWS = """
import sys, time
from pathlib import Path
WINDOWS, CYCLES = 40, 100
agent_used = Path(f"/proc/{sys.argv[2]}/schedstat")
def used():
    return int(agent_used.read_text().split()[0]) / 1e9
class Best:
    def __init__(self):
        self.found = []
    def __enter__(self):
        self.before = time.perf_counter(), time.process_time(), used()
    def __exit__(self, *_):
        after = time.perf_counter(), time.process_time(), used()
        self.found.append([1e6 * (b - a) / CYCLES for a, b in zip(self.before, after)])
    def show(self):
        print(*[min(column) for column in zip(*self.found)])
best = Best()
"""
BLOCKING = """
import meshlock
docks = meshlock.connect(sys.argv[1]).pool("docks")
docks.acquire(timeout=60).release()
for _ in range(WINDOWS):
    with best:
        for _ in range(CYCLES):
            with docks.acquire():
                pass
best.show()
"""
AWAITED = """
import asyncio, meshlock
async def main():
    async with meshlock.aconnect(sys.argv[1]) as agent:
        docks = agent.pool("docks")
        (await docks.acquire(timeout=60)).release()
        for _ in range(WINDOWS):
            with best:
                for _ in range(CYCLES):
                    async with docks.acquire():
                        pass
    best.show()
asyncio.run(main())
"""


def figures(environment: dict[str, str], program: str, *given: str) -> list[float]:
    done = subprocess.run(
        [sys.executable, "-c", program, *given],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return [float(figure) for figure in done.stdout.split()]


def measure(folder: str, kind: str) -> None:
    settings, place = Path(folder) / "agent.toml", f"{folder}/socket"
    settings.write_text(
        f'name = "a"\nstate = "{folder}/state"\nsocket = "{place}"\n{POOLS[kind]}\n'
    )
    environment = os.environ | {"PYTHONPYCACHEPREFIX": f"{folder}/bytecode"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    agent = subprocess.Popen([*AGENT, str(settings), "--log-level", "error"], env=environment)
    try:
        while not Path(place).is_socket():
            time.sleep(0.05)
        starts = [figures(environment, START, place) for _ in range(STARTS)]
        wall, cpu = (min(column) for column in zip(*starts, strict=True))
        print(f"{kind}: import and connect {wall:.0f} ms, CPU {cpu:.0f} ms")
        for name, cycles in (("connect", BLOCKING), ("aconnect", AWAITED)):
            wall, ours, theirs = figures(environment, WINDOWS + cycles, place, str(agent.pid))
            print(f"  {name}: cycle {wall:.0f} us, CPU {ours:.0f} + agent {theirs:.0f}")
    finally:
        agent.terminate()
        agent.wait()


if __name__ == "__main__":
    for kind in POOLS:
        with tempfile.TemporaryDirectory() as folder:
            measure(folder, kind)
