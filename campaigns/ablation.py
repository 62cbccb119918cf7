"""What breaks when a repair of jiang is undone: the table of docs/appendices/repairs-undone.md.

    python campaigns/ablation.py            # print the table
    python campaigns/ablation.py --write    # put it into the page
    python campaigns/ablation.py --large    # also rerun what takes minutes, else as recorded

Every repair has a small set-up (``meshlock mutants --json``), which is explored breadth first,
so the numbers of steps are those of the shortest ways. What a repair costs or saves is
measured in one run of the simulator, with it and without.
"""

from __future__ import annotations

import sys
from pathlib import Path

from meshlock.algorithms.mutants.catalogue import REPAIRS
from meshlock.algorithms.mutants.mutant import Mutant
from meshlock.check.arguments import judged, records
from meshlock.check.mutants import setup_of
from meshlock.check.verdict import Checking
from meshlock.simulate.settings import run_settings, simulation

PAGE = Path(__file__).parents[1] / "docs" / "appendices" / "repairs-undone.md"
BEGIN, END = "<!-- campaigns/ablation.py: begin -->\n", "<!-- campaigns/ablation.py: end -->\n"

MOST = 60_000
"""States to look at; all of them where nothing is violated."""

MOST_LARGE = 4_000_000

RUN: dict[str, str | int] = {
    "nodes": 24,
    "topology": "links:40",
    "permits": 4,
    "want": "1-3",
    "priority": "1-9",
    "requests": 500,
    "delay": "exp:1",
}
CHANGES = "flips:0.5"


def broken(mutant: Mutant, large: bool) -> str:
    """Which properties the checker finds violated, each with the steps of the shortest way."""
    if mutant.large and not large:
        return f"{mutant.breaks} in {mutant.steps} (recorded)"
    most = MOST_LARGE if mutant.large else MOST
    checking = Checking(setup_of(mutant, mutant.algorithm), judged([]), most)
    while checking.run(10_000) and not (mutant.large and checking.violations()):
        pass
    found = [f"{way.name} in {len(way.labels)}" for way in checking.violations()]
    if not found and not checking.complete():
        raise SystemExit(
            f"{mutant.name}: nothing is violated in {most:,} states, but there are more."
        )
    return ", ".join(found) or "nothing"


def cost(algorithm: str, mobility: str) -> str:
    """Messages per entry, or what went wrong."""
    run = simulation(run_settings({**RUN, "algorithm": algorithm, "mobility": mobility}), None)
    run.start()
    while run.run(100_000):
        pass
    run.finish()
    wrong = sorted(run.monitor.violated)
    if wrong:
        return f"violates {', '.join(wrong)}"
    return f"{sum(run.measures.messages.values()) / run.measures.entries:.1f}"


def row(mutant: Mutant, large: bool) -> str:
    repair = mutant.name.removeprefix("jiang/without-")
    costs = [cost(mutant.name, mobility) for mobility in ("none", CHANGES)]
    cells = [repair, mutant.mistake, broken(mutant, large), *costs]
    command = f"meshlock check --without {repair} {records(mutant.case)[0].flags()}"
    return f"| {' | '.join(cells)} | `{command}` |\n"


def table(large: bool = False) -> str:
    usual = " | ".join([cost("jiang", mobility) for mobility in ("none", CHANGES)])
    lines = [
        "| repair | if undone | violated, in steps | messages, links stay | links change | set-up "
        "|\n",
        "|---|---|---|---|---|---|\n",
        f"| all in place | | nothing | {usual} | |\n",
    ]
    return "".join([*lines, *[row(mutant, large) for mutant in REPAIRS.values()]])


def written(page: str, made: str) -> str:
    """The page with this table in it."""
    before, rest = page.split(BEGIN)
    return before + BEGIN + made + END + rest.split(END)[1]


if __name__ == "__main__":
    made = table("--large" in sys.argv)
    if "--write" in sys.argv:
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), made), encoding="utf-8")
    else:
        print(made, end="")
