"""How much more often the node with the resting token enters, and whether moving on would help.

    python benchmarks/fairness.py            # print the table of docs/operate/guarantees.md
    python benchmarks/fairness.py --write    # and put it there

Eight saturated nodes share three permits by direct on a complete graph; a message takes 0.6 to 1.4.
*Moves on* is direct with a token that goes along with every 64th grant although permits are out.
"""

from __future__ import annotations

import sys
from pathlib import Path

from meshlock.algorithms import direct
from meshlock.algorithms.interface import Effect, Message, Network, Node
from meshlock.algorithms.registry import find
from meshlock.simulate.settings import Settings, simulation

PAGE = Path(__file__).parents[1] / "docs" / "operate" / "guarantees.md"
BEGIN, END = "<!-- fairness: begin -->", "<!-- fairness: end -->"
HOLDS = (0.25, 0.5, 1, 2, 4, 8)
REST = 64


class Moving(direct.DirectNode):
    """RELEASE follows the token; what overtakes it waits there."""

    rested = 0

    def grant(self) -> None:
        self.rested += 1
        if self.rested < REST:
            super().grant()
        else:
            self.rested = 0
            self.give(self.queue[0][0])

    def receive(self, message: Message) -> None:
        ahead = isinstance(message, direct.Release) and getattr(message, "hop", 0) > self.hop
        if isinstance(message, direct.Release) and ahead and not self.holder:
            self.free += message.count
        else:
            super().receive(message)

    def send(self, message: Message) -> None:
        if isinstance(message, direct.Release):
            message.hop = self.hop  # type: ignore[attr-defined]
        super().send(message)


def moving(
    network: Network, permits: int, options: dict[str, str], out: list[Effect]
) -> list[Node]:
    return [Moving(me, out, permits, direct.aged(options)) for me in range(network.size)]


def measured(hold: float) -> tuple[float, float, float]:
    """Fewest over most entries, messages per entry, mean wait."""
    run = simulation(
        Settings(
            {
                "algorithm": "direct",
                "nodes": 8,
                "topology": "complete",
                "permits": 3,
                "workload": "saturated",
                "requests": 20_000,
                "delay": "uniform:0.6,1.4",
                "hold": str(hold),
            }
        ),
        None,
    )
    run.start()
    while run.run(100_000):
        pass
    run.finish()
    assert not run.monitor.violated, run.monitor.violated
    measures = run.measures
    shares = measures.entries_by_node
    sent = sum(measures.messages.values())
    waited = sum(measures.waits) / measures.entries
    return min(shares) / max(shares), sent / measures.entries, waited


def table() -> str:
    algorithm = find("direct")
    made = algorithm.make
    lines = [
        "| held for | entries, fewest / most: rests | moves on | messages: rests | moves on |",
        "|---|---|---|---|---|",
    ]
    for hold in HOLDS:
        algorithm.make = made
        rests = measured(hold)
        algorithm.make = moving
        moves = measured(hold)
        lines.append(
            f"| {hold:g} | {rests[0]:.2f} | {moves[0]:.2f} | {rests[1]:.2f} | {moves[1]:.2f} |"
        )
    algorithm.make = made
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
