"""How much more often the node with the token enters if the token rests, and if it moves on.

    python benchmarks/fairness.py            # print the table of docs/appendices/measurements.md
    python benchmarks/fairness.py --write    # and put it there

Eight saturated nodes share three permits by direct on a complete graph; a message takes 0.6 to 1.4.
"""

from __future__ import annotations

import sys
from pathlib import Path

from meshlock.simulate.settings import run_settings, simulation

PAGE = Path(__file__).parents[1] / "docs" / "appendices" / "measurements.md"
BEGIN, END = "<!-- fairness: begin -->", "<!-- fairness: end -->"
HOLDS = (0.25, 0.5, 1, 2, 4, 8)
ENTRIES = 20_000
NEVER = "1000000"


class Measured:
    """From the moment when every node has entered once."""

    def __init__(self, hold: float, **more: str) -> None:
        settings: dict[str, str | int] = {
            "algorithm": "direct",
            "nodes": 8,
            "topology": "complete",
            "permits": 3,
            "workload": "saturated",
            "requests": ENTRIES,
            "delay": "uniform:0.6,1.4",
            "hold": str(hold),
            **more,
        }
        run = simulation(run_settings(settings), None)
        run.start()
        measures = run.measures
        while min(measures.entries_by_node) == 0:
            run.run(1)
        before, began = list(measures.entries_by_node), run.now
        while run.run(100_000):
            pass
        run.finish()
        assert not run.monitor.violated, run.monitor.violated
        entries = [
            all_of - some for all_of, some in zip(measures.entries_by_node, before, strict=True)
        ]
        self.share = min(entries) / max(entries)
        self.messages = sum(measures.messages.values()) / measures.entries
        self.rate = sum(entries) / (run.now - began)


def table() -> str:
    lines = [
        "| held for | entries, fewest / most: rests | moves on | with leases "
        "| messages: rests | moves on | entries: rests | moves on | with leases |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for hold in HOLDS:
        rests, moves = Measured(hold, rest=NEVER), Measured(hold)
        leases = Measured(hold, members="3", lease="1000")
        lines.append(
            f"| {hold:g} | {rests.share:.2f} | {moves.share:.2f} | {leases.share:.2f} "
            f"| {rests.messages:.2f} | {moves.messages:.2f} "
            f"| {rests.rate:.2f} | {moves.rate:.2f} | {leases.rate:.2f} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    text = table()
    print(text)
    if "--write" in sys.argv:
        page = PAGE.read_text(encoding="utf-8")
        before, _, rest = page.partition(BEGIN)
        after = rest.partition(END)[2]
        PAGE.write_text(f"{before}{BEGIN}\n{text}{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
