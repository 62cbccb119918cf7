"""Chaos with real agents that have a rule undone: who notices it, and when.

    python campaigns/real_chaos.py [NAME ...] [--seconds 120] [--seed 1] [--keep FOLDER]

Each sabotage (default: those of agents) is one run of ``meshlock chaos``, which ends with the first
finding. The agents are started by this file, which undoes the rule and then runs the agent: the
product has no place for that. ``sound`` undoes nothing. The lines are those of the table in
docs/appendices/sabotages.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "live"))

from sabotages import AGENTS, SABOTAGES, sabotaged

from meshlock.cli.main import run as run_command
from meshlock.live.chaos import processes
from meshlock.live.chaos.judge import RecordViolation, judge
from meshlock.live.chaos.plan import make, save
from meshlock.live.chaos.record import End, Quiet, now, read
from meshlock.live.chaos.run import Chaos
from meshlock.live.machine.loop import run, watch

AGENT = "agent-with"
SOUND = "sound"
BIRTH = "founds-alone"
"""Only where members choose themselves does anybody make a pool."""
LOOK = 10.0
"""Seconds between two looks at what was recorded so far."""

AT_THE_END = ("served", "returned")
"""What cannot be judged before."""


class Found(Exception):
    pass


def found(folder: Path, nodes: list[str], over: bool) -> list[RecordViolation]:
    record = read(folder / "record.jsonl")
    if over:
        return judge(record).violations
    quiet, end = Quiet(t=now()), End(t=now(), accepted=[], took_all=nodes)
    return [
        one for one in judge([*record, quiet, end]).violations if one.property not in AT_THE_END
    ]


def noticed(name: str, seconds: float, seed: int, keep: Path | None) -> list[RecordViolation]:
    """What a run of chaos says of agents with this mistake."""
    plan = make(seed, seconds=seconds, auto=name == BIRTH)
    with tempfile.TemporaryDirectory() as place:
        folder = (keep or Path(place)) / f"{name}-{seed}"
        folder.mkdir(parents=True)
        save(plan, folder / "plan.json")
        chaos = Chaos(plan, folder, Path(place))

        def look() -> None:
            if chaos.phase in ("chaos", "quiet") and found(folder, plan.nodes, False):
                raise Found

        program = [sys.executable, str(Path(__file__).resolve()), AGENT, name]
        with mock.patch.object(processes, "PROGRAM", program):
            try:
                run(watch(chaos.run(), look, LOOK))
            except Found:
                return found(folder, plan.nodes, False)
        return found(folder, plan.nodes, True)


def row(name: str, seconds: float, seed: int, keep: Path | None) -> bool:
    violations = noticed(name, seconds, seed, keep)
    what = SABOTAGES[name].what if name != SOUND else ""
    how = "**nobody** | "
    if violations:
        first = min(violations, key=lambda one: one.at)
        how = f"real chaos: *{first.property}* | {first.at:.0f} s, seed {seed}"
    print(f"| {name} | {what} | {how} |", flush=True)
    for one in violations[:3]:
        print(f"    {one.at:.3f} s  {one.property}: {one.sentence}", file=sys.stderr, flush=True)
    return bool(violations) != (name == SOUND)


def main() -> int:
    if sys.argv[1:2] == [AGENT]:
        name = sys.argv[2]
        sys.argv = ["meshlock", *sys.argv[3:]]
        exec(processes.IMPORTS)
        print('{"event": "prepared"}', file=sys.stderr, flush=True)
        sys.stdin.readline()
        with sabotaged(SABOTAGES[name]) if name != SOUND else nullcontext():
            run_command()
        return 0
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=[one.name for one in AGENTS])
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    rows = [row(name, given.seconds, given.seed, given.keep) for name in given.names]
    return 0 if all(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
