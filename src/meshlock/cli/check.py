"""meshlock check: every interleaving of a small set-up."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from meshlock.check.settings import CheckSettings, FaultSettings, JudgedSettings, SearchSettings
from meshlock.cli.flags import JSON
from meshlock.cli.mutants import MUTANT, WITHOUT
from meshlock.cli.output import progress, report
from meshlock.errors import Refused
from meshlock.settings import option

if TYPE_CHECKING:
    from meshlock.check.verdict import Checking

BATCH = 5_000
"""States between two looks at the progress line and at Ctrl-C."""

PARTIAL = 3
"""Exit code where nothing was found wrong but not every state was seen."""
INTERRUPTED = 130


def check(
    *,
    algorithm: str | None = option(
        None,
        "Check this algorithm: a name (see 'meshlock algorithms') or a file.py. Default: raymond.",
    ),
    mutant: str | None = MUTANT,
    without: tuple[str, ...] = WITHOUT,
    given: CheckSettings,
    faults: FaultSettings,
    named: JudgedSettings,
    search: SearchSettings,
    manifest: bool = option(
        False, "Rerun all pinned set-ups of up to --max-states; other flags are ignored."
    ),
    json: bool = JSON,
    trace: Path | None = option(None, "Write the (first) counterexample to this file."),
) -> None:
    """Check an algorithm in every order in which things can happen.

    Example: meshlock check --algorithm raymond --topology line --nodes 4

    With --mutant or --without, and none of --nodes, --topology and --request, the set-up is a
    small one in which the mistake shows: meshlock check --without R4

    With --members the nodes recover from crashes, and whatever the bounds allow may happen to
    them: meshlock check --algorithm raymond --topology line --nodes 3 --members all --crashes 1
    """
    from meshlock.algorithms.mutants.choice import chosen
    from meshlock.check.preparing import prepared

    if manifest:
        rerun(search.max_states, json)
        return
    name = chosen(algorithm, mutant, without)
    words = {**given.given, **faults.given}
    checking = prepared(name, words, named.properties, search, bool(mutant or without))
    cpu, interrupted = explore(checking)
    cpu += checking.cpu()
    violations, stopped = checking.violations(), checking.explorer.stopped
    if stopped and not violations:
        checking.explorer.close()
        raise Refused(f"{stopped} {checking.summary()}")
    if trace is not None and violations:
        from meshlock.check.retold import write_trace
        from meshlock.trace.files import trace_file

        with trace_file(trace) as file:
            write_trace(checking.model, violations[0], file)
    report(json, checking.figures(cpu) if json else None, lambda: story(checking, cpu))
    checking.explorer.close()
    if violations or interrupted:
        raise click.exceptions.Exit(1 if violations else INTERRUPTED)
    raise click.exceptions.Exit(0 if checking.holds() else PARTIAL)


def explore(checking: Checking) -> tuple[float, bool]:
    """To the end, to --max-states or to Ctrl-C; the CPU time, and whether it was the last."""
    from meshlock.simulate.whole_run import Stretch

    with Stretch() as stretch, progress("exploring") as move:
        while checking.run(BATCH):
            move(checking.explorer.expanded, None, checking.progress())
    return stretch.cpu, stretch.interrupted


def rerun(most: int, json: bool) -> None:
    """Compare every pinned set-up with what it gives today."""
    from meshlock.check.manifest import entries, found

    rows: list[dict[str, Any]] = []
    for entry in entries():
        if entry.states > most:
            continue
        checking = entry.checking(entry.states + 1)
        cpu, interrupted = explore(checking)
        if interrupted:
            raise click.exceptions.Exit(INTERRUPTED)
        states, transitions, depth, violated = found(checking)
        same = (states, transitions, depth, violated) == entry.pinned
        row = {"setup": entry.title(), "states": states, "transitions": transitions}
        row |= {"depth": depth, "violated": violated, "cpu_s": round(cpu, 4), "as_pinned": same}
        rows.append(row)
        if not json:
            verdict = "as pinned" if same else f"CHANGED from {entry.pinned}"
            shown = f"{states:>9,} {transitions:>10,} {depth:>4}  {cpu:6.2f} s"
            click.echo(f"{shown}  {verdict}  {entry.title()} {violated or ''}")
    wrong = sum(not row["as_pinned"] for row in rows)
    record = {"setups": rows, "as_pinned": wrong == 0}
    report(json, record, lambda: f"{len(rows)} set-ups, {wrong} of them changed.", code=wrong > 0)


def story(checking: Checking, cpu: float) -> str:
    from meshlock.check.story import pages

    lines: list[str] = []
    for found in checking.violations():
        lines.append(f"{found.name} VIOLATED after {len(found.labels)} steps: {found.text}")
        lines += [*pages(checking.model, found), ""]
    explorer = checking.explorer
    rate = explorer.count() / cpu if cpu > 0 else 0.0
    counts = (
        f"{explorer.count():,} states, {explorer.transitions:,} transitions, depth "
        f"{explorer.depth}, {cpu:.2f} s of CPU ({rate:,.0f} states per second)"
    )
    remarks = [checking.remark] if checking.remark else []
    return "\n".join([*lines, counts, *remarks, checking.summary()])
