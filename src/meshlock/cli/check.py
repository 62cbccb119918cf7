"""meshlock check: every interleaving of a small set-up."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from meshlock.check.settings import CheckSettings, FaultSettings, JudgedSettings
from meshlock.cli.flags import JSON
from meshlock.cli.mutants import MUTANT, WITHOUT, chosen
from meshlock.cli.output import progress, report
from meshlock.errors import Refused
from meshlock.settings import Settings, option

if TYPE_CHECKING:
    from meshlock.check.disk import Space
    from meshlock.check.verdict import Checking

BATCH = 5_000
"""States between two looks at the progress line and at Ctrl-C."""

MOST_WORKERS = 256
DEFAULT_MEMORY = 1.0
"""GiB."""
PARTIAL = 3
"""Exit code where nothing was found wrong but not every state was seen."""
INTERRUPTED = 130


class SearchSettings(Settings):
    """How states are searched; what is found does not depend on it."""

    reduction: str = option(
        "none",
        "Choose a reduction: none, por (take steps that commute in one order only), or auto (por "
        "where it is likely to save time).",
        shown=True,
    )
    symmetry: bool = option(False, "Keep one of the states that differ only in the names of nodes.")
    workers: int = option(1, "Search with this many processes, on as many cores.", shown=True)
    disk: Path | None = option(
        None, "Keep states that outgrow memory in this folder.", metavar="DIR"
    )
    memory: float | None = option(
        None,
        "Use this many GiB of memory for states with --disk, all workers together; 1 by default.",
    )
    max_states: int = option(5_000_000, "Stop after this many states.", shown=True)

    def refuse_wrong(self) -> None:
        if self.max_states < 1:
            raise Refused("--max-states must be at least 1.")
        if self.reduction not in ("none", "por", "auto"):
            raise Refused(f"--reduction is none, por or auto, not '{self.reduction}'.")
        if self.symmetry and self.reduction != "none":
            raise Refused(f"Choose one of --symmetry and --reduction {self.reduction}.")
        if not 1 <= self.workers <= MOST_WORKERS:
            raise Refused(f"--workers is from 1 to {MOST_WORKERS}.")

    def space(self) -> Space | None:
        """What states may take where they are kept on disk."""
        from meshlock.check.disk import space

        disk, memory = self.disk, self.memory
        if disk is None:
            if memory is not None:
                raise Refused("--memory goes with --disk.")
            return None
        if not disk.is_dir():
            raise Refused(f"--disk: there is no folder {disk}.")
        if memory is not None and not 0 <= memory < inf:
            raise Refused("--memory is at least 0.")
        if self.reduction != "none":
            raise Refused(
                f"Choose one of --disk and --reduction {self.reduction}: a reduction of steps must "
                "have all states at hand."
            )
        try:
            return space(str(disk), DEFAULT_MEMORY if memory is None else memory)
        except OSError as error:
            raise Refused(f"--disk: cannot write to {disk}: {error.strerror}.") from None


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
    from meshlock.check.arguments import judged, refuse_unjudged, setup, with_own
    from meshlock.check.unspent import refuse_vacuous
    from meshlock.check.verdict import Checking
    from meshlock.properties.own import own_names

    if manifest:
        rerun(search.max_states, json)
        return
    search.refuse_wrong()
    words: dict[str, Any] = {"algorithm": chosen(algorithm, mutant, without) or "raymond"}
    names = list(named.properties)
    if (mutant or without) and not {"nodes", "topology", "requests"} & given.given.keys():
        words, to_be_named = small_set_up(words["algorithm"])
        names = names or to_be_named
    options = {**words.get("options", {}), **given.options}
    words.update({**given.given, **faults.given, "options": options})
    what = setup(**words)
    names = with_own(what, names)
    refuse_unjudged(what, names, search.reduction)
    refuse_vacuous(what, names)
    by = "symmetry" if search.symmetry else search.reduction
    properties = judged(names, own_names(what.algorithm))
    checking = Checking(what, properties, search.max_states, by, search.workers, search.space())
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


def small_set_up(name: str) -> tuple[dict[str, Any], list[str]]:
    """A mutant's own, and the properties to be named."""
    from meshlock.algorithms.mutants.catalogue import mutant
    from meshlock.check.mutants import properties_of, words_of

    found = mutant(name)
    return words_of(found, found.algorithm), properties_of(found)


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
