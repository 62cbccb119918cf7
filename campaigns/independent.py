"""Random runs of the pure nodes, driven and judged by code that the simulator has no part in.

    python campaigns/independent.py --runs 100000
    python campaigns/independent.py --runs 2000 --mutant jiang/without-R10
    python campaigns/independent.py --only 4711              # tell its story, step by step
    python campaigns/independent.py --only 4711 --shortest   # ... as short as it can be
    python campaigns/independent.py --table --write          # which mutants are caught

Every run draws its set-up and its steps from its number, so a finding is named by its number and
the options of the command. Exit 1 if anything was found.
See docs/how-it-works/independent-judge.md.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from driver.campaign import Campaign, Outcome
from driver.setup import FAILURES, MOVES

from meshlock.algorithms.mutants.catalogue import MUTANTS
from meshlock.errors import Refused

PAGE = Path(__file__).parents[1] / "docs" / "appendices" / "independent-judge.md"
BEGIN, END = (
    "<!-- campaigns/independent.py: begin -->\n",
    "<!-- campaigns/independent.py: end -->\n",
)

ACTIONS = (
    *("ask", "leave", "release_part", "change_priority", "withdraw"),
    *("deliver", "late", "fail", "form", "down", "up"),
)
"""Steps that are counted, by their names in driver/world.py."""

RARE = (
    "direct/asks-again-for-what-was-granted",
    "jiang/asks-anew-when-it-changes",
    "jiang/gives-the-rank-to-another",
    "jiang/ages-only-what-it-asked-for",
    "jiang/without-R10",
    "jiang/without-R11",
)
"""These take tens of thousands of runs to be met more than once."""


def progress(done: int, runs: int, found: int) -> None:
    if done % 1000 == 0 or done == runs:
        end = "\n" if done == runs else ""
        print(f"\r{done:,} of {runs:,} runs, {found} found", end=end, file=sys.stderr, flush=True)


def run(campaign: Campaign, numbers: range, processes: int) -> list[Outcome]:
    """Print what was run, and what was found."""
    started = time.perf_counter()
    kinds: Counter[tuple[str, str]] = Counter()
    steps = entries = judged = ties = 0
    done_by: Counter[str] = Counter()
    findings = []
    for done, outcome in enumerate(campaign.runs(numbers, processes), 1):
        kinds[outcome.kind] += 1
        steps += outcome.steps
        entries += outcome.entries
        judged += outcome.judged
        ties += outcome.ties
        done_by += outcome.done
        if outcome.rule:
            findings.append(outcome)
        progress(done, len(numbers), len(findings))
    took = time.perf_counter() - started
    print(
        f"{campaign.algorithm}: {len(numbers):,} runs, {steps:,} steps, {entries:,} entries, the "
        f"order of {judged:,} and {ties:,} ties judged; {took:.0f} s"
    )
    print(", ".join([f"{name} {done_by[name]:,}" for name in ACTIONS if done_by[name]]))
    for (moves, failures), runs in sorted(kinds.items()):
        print(f"    {moves:10}{failures:10}{runs:>9,}")
    for outcome in findings[:20]:
        moves, failures = outcome.kind
        print(f"run {outcome.number} ({moves}, {failures}): {outcome.rule}: {outcome.text}")
    print(f"{len(findings)} of {len(numbers):,} runs broke a rule")
    return findings


def table(runs: int, processes: int) -> Iterator[str]:
    """Which mutants of jiang and direct are caught, in how many runs, and by which rule."""
    yield "| undone | runs | caught in | first | by |\n|---|---|---|---|---|\n"
    for name in MUTANTS:
        if name.partition("/")[0] not in ("jiang", "direct"):
            continue
        numbers = range(10 * runs if name in RARE else runs)
        found = []
        for done, outcome in enumerate(Campaign(name).runs(numbers, processes), 1):
            if outcome.rule:
                found.append(outcome)
            progress(done, len(numbers), len(found))
        rules = Counter([outcome.rule for outcome in found]).most_common()
        first = str(found[0].number) if found else ""
        by = ", ".join(f"{rule} {count:,}" for rule, count in rules)
        short = name.removeprefix("jiang/")
        yield f"| {short} | {len(numbers):,} | {len(found):,} | {first} | {by} |\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--runs", type=int, help="run this number (1000; 2000 for each of the table)"
    )
    parser.add_argument("--first", type=int, default=0, help="begin with this number")
    parser.add_argument("--only", type=int, help="tell the story of this run")
    parser.add_argument("--shortest", action="store_true", help="leave out what is not needed")
    parser.add_argument("--moves", choices=("all", *MOVES), default="all")
    parser.add_argument("--failures", choices=("all", *FAILURES), default="all")
    parser.add_argument("--algorithm", default="jiang", help="drive this algorithm")
    parser.add_argument("--mutant", help="drive this mutant: see meshlock mutants")
    parser.add_argument("--processes", type=int, default=1, help="use this number of processes")
    parser.add_argument(
        "--unchanging",
        action="store_true",
        help="release no parts, change no priority, and judge no ties",
    )
    parser.add_argument("--table", action="store_true", help="print which mutants are caught")
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    options = parser.parse_args()
    if options.table:
        made = ""
        for row in table(options.runs or 2000, options.processes):
            made += row
            print(row, end="", flush=True)
        if options.write:
            head, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
            PAGE.write_text(head + BEGIN + made + END + rest.partition(END)[2], encoding="utf-8")
        return 0
    campaign = Campaign(
        options.mutant or options.algorithm,
        MOVES if options.moves == "all" else (options.moves,),
        FAILURES if options.failures == "all" else (options.failures,),
        not options.unchanging,
    )
    if options.only is not None:
        return int(campaign.story(options.only, print, options.shortest))
    numbers = range(options.first, options.first + (options.runs or 1000))
    return 1 if run(campaign, numbers, options.processes) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Refused as refused:
        sys.exit(str(refused))
