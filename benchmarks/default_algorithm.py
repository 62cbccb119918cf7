"""Which algorithm a live pool should run: those for h of k permits, inside recovery, side by side.

    python benchmarks/default_algorithm.py [--write]

A time unit is a second: 5 ms per hop, leases of 3 s, five members or all nodes if there are fewer.
Hops are link crossings of everything, leases and receipts included; where the network moves, a
node's knowledge of routes is paid for too: each change of a link is told over every link once
(direct sends to nodes that are no neighbours; jiang needs routes only for leases and receipts).
With ``--write`` the tables go into docs/appendices/default-algorithm.md between its marks.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from statistics import median

PAGE = Path(__file__).parent.parent / "docs" / "appendices" / "default-algorithm.md"
SEEDS = (1,)
ALGORITHMS: list[tuple[str, list[str]]] = [
    ("jiang, silent", ["--algorithm", "jiang", "--option", "moves=silent"]),
    ("jiang, quiet", ["--algorithm", "jiang", "--option", "moves=quiet"]),
    ("direct", ["--algorithm", "direct"]),
]
NETWORKS: list[tuple[str, list[str]]] = [
    ("complete, 8 nodes", ["--topology", "complete", "--nodes", "8"]),
    ("grid, 9 nodes", ["--topology", "grid:3x3"]),
    ("line, 8 nodes", ["--topology", "line", "--nodes", "8"]),
]
USUAL = ["--delay", "0.005", "--lease", "3", "--members", "5", "--clock-skew", "0.01"]
BUSY = ["--workload", "saturated", "--hold", "0.001", "--requests", "600"]
IDLE = ["--workload", "poisson:0.1", "--hold", "0.001", "--requests", "300"]
MOVING = ["--mobility", "flips:1", "--topology", "links:24", "--nodes", "16"]
CRASHING = ["--crashes", "20,5", "--hold", "exp:0.1", "--workload", "poisson:0.5"]


def run(*parts: list[str]) -> list[dict[str, object]]:
    """One result per seed."""
    found = []
    for seed in SEEDS:
        command = [sys.executable, "-m", "meshlock", "simulate", "--json", "--seed", str(seed)]
        for part in parts:
            command += part
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)}: {done.stderr or done.stdout}")
        found.append(json.loads(done.stdout))
    return found


def middle(results: list[dict[str, object]], *keys: str) -> float:
    values = []
    for result in results:
        value: object = result
        for key in keys:
            assert isinstance(value, dict)
            value = value[key]
        if isinstance(value, int | float):
            values.append(float(value))
    return median(values) if values else float("nan")


def throughput(results: list[dict[str, object]]) -> float:
    since_birth = middle(results, "sim_time") - middle(results, "recovery", "birth")
    return middle(results, "entries") / since_birth


def rate(results: list[dict[str, object]], *per: str) -> float:
    return middle(results, "recovery", "epochs") / middle(results, *per)


def recovery(found: list[list[dict[str, object]]], *keys: str) -> list[float]:
    return [middle(results, "recovery", *keys) for results in found]


def still() -> list[str]:
    lines = [
        "| network | k | | " + " | ".join(name for name, _ in ALGORITHMS) + " |",
        "|---|---|---|" + "---|" * len(ALGORITHMS),
    ]
    for title, network in NETWORKS:
        for k in ("1", "3"):
            want = ["--permits", k, "--want", "1" if k == "1" else "1-3"]
            busy = [run(USUAL, network, want, BUSY, one) for _, one in ALGORITHMS]
            idle = [run(USUAL, network, want, IDLE, one) for _, one in ALGORITHMS]
            rows = [
                ("busy: hops per entry", [middle(b, "link_crossings_per_entry") for b in busy], 1),
                ("busy: entries per second", [throughput(b) for b in busy], 1),
                ("busy: hand-over, ms", [1e3 * middle(b, "sync_delay_mean") for b in busy], 1),
                ("idle: median wait, ms", [1e3 * middle(b, "waiting", "p50") for b in idle], 1),
            ]
            for what, values, digits in rows:
                lines.append(
                    f"| {title} | {k} | {what} | "
                    + " | ".join(f"{value:.{digits}f}" for value in values)
                    + " |"
                )
            print("\n".join(lines[-4:]), flush=True)
    return lines


def moving() -> list[str]:
    """16 nodes, 24 links; one of them fails and another forms about once a second."""
    lines = [
        "| | " + " | ".join(name for name, _ in ALGORITHMS) + " |",
        "|---|" + "---|" * len(ALGORITHMS),
    ]
    for k in ("1", "3"):
        want = ["--permits", k, "--want", "1" if k == "1" else "1-3"]
        load = ["--workload", "saturated", "--hold", "0.02", "--requests", "600"]
        found = [run(USUAL, MOVING, want, load, one) for _, one in ALGORITHMS]
        hops = [middle(b, "link_crossings_per_entry") for b in found]
        changes = [2.0 * 24 * middle(b, "sim_time") / middle(b, "entries") for b in found]
        rows = [
            ("hops per entry", hops),
            ("and for the link map", changes),
            ("entries per second", [throughput(b) for b in found]),
            ("epochs per minute", [60 * rate(b, "sim_time") for b in found]),
            ("wait, ms", [1e3 * middle(b, "waiting", "mean") for b in found]),
        ]
        for what, values in rows:
            lines.append(
                f"| k = {k}: {what} | " + " | ".join(f"{value:.1f}" for value in values) + " |"
            )
        print("\n".join(lines[-5:]), flush=True)
    return lines


def crashing() -> list[str]:
    lines = [
        "| | " + " | ".join(name for name, _ in ALGORITHMS) + " |",
        "|---|" + "---|" * len(ALGORITHMS),
    ]
    size = ["--topology", "complete", "--nodes", "8", "--permits", "3", "--want", "1-3"]
    load = ["--requests", "1000000", "--until", "300"]
    found = [run(USUAL, size, CRASHING, load, one) for _, one in ALGORITHMS]
    rows = [
        ("epochs per crash", [rate(b, "recovery", "crashes") for b in found]),
        ("time to a new token, median s", recovery(found, "time_to_recover", "median")),
        ("the same, worst", recovery(found, "time_to_recover", "worst")),
        ("share of the time served", recovery(found, "majority_served_share")),
        ("grants lost", recovery(found, "lost_grants")),
    ]
    for what, values in rows:
        lines.append(f"| {what} | " + " | ".join(f"{value:.3g}" for value in values) + " |")
    print("\n".join(lines), flush=True)
    return lines


def main() -> None:
    tables = {"still": still(), "moving": moving(), "crashing": crashing()}
    if "--write" in sys.argv:
        text = PAGE.read_text()
        for name, lines in tables.items():
            begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
            head, rest = text.split(begin)
            _, tail = rest.split(end)
            text = head + begin + "\n".join(lines) + "\n" + end + tail
        PAGE.write_text(text)


if __name__ == "__main__":
    main()
