"""Where the instructions of an entry go: a profile that does not depend on how busy the machine is.

    .venv-compiled/bin/python benchmarks/instructions.py --permits 1

Eight nodes with leases in one process pass the permits round as fast as they can, under valgrind's
callgrind, which counts every instruction of the process; what the kernel does is not counted. Of
the compiled wheel it prints the parts, of the interpreted package the sum. Under valgrind all is
fifty times as slow, and so is what nodes do at fixed times, heartbeats and leases.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from meshlock import Node

NODES = [f"n{number}" for number in range(8)]
SELDOM = 5.0
"""Seconds between two heartbeats: fifty times as many as by default."""
FIRST, LAST = "CPyDef_", re.compile(r"'\d+$")  # a function that calls itself has a number

PARTS: list[tuple[str, list[str], list[str]]] = [
    (
        "bytes are read and cut into frames",
        ["link___Connection___data_received"],
        ["adapter___Adapter___deliver"],
    ),
    ("a message is decoded, with the limits of its fields", ["shapes___Shape___message"], []),
    ("what peers may not say is refused", ["validation___Validation___admits"], []),
    (
        "recovery layer and algorithm",
        ["layer___Layer___receive", "layer___Layer___request", "layer___Layer___release"],
        [],
    ),
    ("a message is encoded", ["shapes___Shape___pack"], []),
    ("frames are kept, numbered and written", ["mesh___Mesh___send", "mesh___Mesh___flush"], []),
    (
        "effects are carried out, clients told, timers set",
        ["adapter___Adapter___deliver", "adapter___Adapter___ask"],
        [
            *("shapes___Shape___message", "validation___Validation___admits"),
            *("layer___Layer___receive", "layer___Layer___request", "layer___Layer___release"),
            *("shapes___Shape___pack", "mesh___Mesh___send"),
        ],
    ),
    ("the program asks, enters, releases", ["task_step_impl"], ["adapter___Adapter___ask"]),
    ("heartbeats and leases", ["uv__run_timers"], []),
]
"""What it is, the functions that do it, and those among what they call that are other parts."""


async def work(permits: int, entries: int) -> None:
    """The process that is watched; it says how many entries there were, and messages."""
    calm = {"heartbeat": SELDOM, "dead": 10 * SELDOM, "min_links": 0}
    nodes = [Node(name, state=None, secret=None, **calm) for name in NODES]
    for node in nodes:
        await node.start()
    for number, node in enumerate(nodes):
        for other in nodes[:number]:
            node.connect(other.address)
    pools = [node.pool("pens", permits, members=NODES[:5], lease=10 * SELDOM) for node in nodes]
    for pool in pools:
        async with pool.acquire():
            pass
    counted = goal = 0
    reached = asyncio.Event()

    async def client(number: int) -> None:
        nonlocal counted
        while True:
            async with pools[number].acquire():
                counted += 1
                if counted >= goal:
                    reached.set()

    async def more(count: int) -> None:
        nonlocal goal
        goal = counted + count
        reached.clear()
        await reached.wait()

    def messages() -> int:
        return sum(sum(pool._source.adapter.measures.sent.values()) for pool in pools)

    clients = [asyncio.create_task(client(number)) for number in range(len(nodes))]
    await more(entries // 5)
    switch("on")
    began, sent = counted, messages()
    await more(entries)
    switch("off")
    print(counted - began, messages() - sent, flush=True)
    for task in clients:
        task.cancel()
    await asyncio.gather(*clients, return_exceptions=True)
    for node in nodes:
        await node.close()


def switch(state: str) -> None:
    command = ["callgrind_control", "-i", state, str(os.getpid())]
    subprocess.run(command, check=True, capture_output=True)


def read(path: Path) -> tuple[int, Counter[str]]:
    """All instructions, and those of each function with what it calls."""
    names: dict[str, str] = {}
    inclusive: Counter[str] = Counter()
    total = 0
    current = called = ""
    is_call = False

    def name(text: str) -> str:
        number, _, given = text.partition(" ")
        if given:
            names[number] = LAST.sub("", given)
        return names[number]

    with path.open() as lines:
        for line in lines:
            if line.startswith("fn="):
                current = name(line[3:].strip())
            elif line.startswith("cfn="):
                called = name(line[4:].strip())
            elif line.startswith("calls="):
                is_call = True
            elif line[:1].isdigit() or line[:1] in "+-*":
                cost = int(line.split()[1])
                if is_call:
                    if called != current:
                        inclusive[called] += cost
                else:
                    total += cost
                is_call = False
    return total, inclusive


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--permits", type=int, default=1, help="of the pool; default 1")
    parser.add_argument("--entries", type=int, default=4000, help="to count; default 4000")
    parser.add_argument("--watched", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.watched:
        from meshlock.live.machine.loop import run

        run(work(given.permits, given.entries))
        return
    if shutil.which("valgrind") is None:
        sys.exit("valgrind is not installed: install the package of that name.")
    print("Under valgrind this takes a few minutes.", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "callgrind.out"
        command = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--quiet"]
        command += [f"--callgrind-out-file={found}", sys.executable, __file__, "--watched"]
        command += [f"--permits={given.permits}", f"--entries={given.entries}"]
        said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        entries, messages = map(int, said.split())
        total, inclusive = read(found)
    print(f"{entries:,} entries, {messages / entries:.2f} messages each, k = {given.permits}\n")
    print("| instructions per entry | |\n|---|---|")
    rest = total

    def of(functions: list[str]) -> int:
        return sum(inclusive[one] + inclusive[FIRST + one] for one in functions)

    for what, functions, others in PARTS:
        cost = of(functions) - of(others)
        if of(functions) > 0:
            rest -= cost
            print(f"| {what} | {cost / entries:,.0f} |")
    print(f"| event loop and all else | {rest / entries:,.0f} |")
    print(f"| **together** | **{total / entries:,.0f}** |")


if __name__ == "__main__":
    main()
