"""meshlock check: every interleaving of a small set-up."""

from __future__ import annotations

import sys
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import click

from meshlock.cli import completion
from meshlock.cli.flags import Option
from meshlock.cli.mutants import Mutant, Without, chosen

if TYPE_CHECKING:
    from meshlock.check.disk import Space
    from meshlock.check.explorer import Violation
    from meshlock.check.verdict import Verdict

BATCH = 5_000
"""States between two looks at the progress line and at Ctrl-C."""

CRASHES = "Nodes that crash and recover"

MOST_WORKERS = 256
DEFAULT_MEMORY = 1.0
"""GiB."""
PARTIAL = 3
"""Exit code where nothing was found wrong but not every state was seen."""


def check(
    algorithm: Annotated[
        str | None,
        Option(
            help="Check this algorithm: a name (see 'meshlock algorithms') or a file.py. "
            "Default: raymond.",
            complete=completion.algorithms,
        ),
    ] = None,
    mutant: Mutant = None,
    without: Without = None,
    nodes: Annotated[int | None, Option(help="Set the number of nodes.")] = None,
    topology: Annotated[
        str | None, Option(help="Link the nodes as in 'meshlock simulate'. Default: complete.")
    ] = None,
    permits: Annotated[int | None, Option(help="Set k, the number of permits. Default: 1.")] = None,
    request: Annotated[
        list[str] | None,
        Option(
            help="Make this request: NODE:WANT@PRIORITY. May be repeated. Default: one of "
            "each node."
        ),
    ] = None,
    change: Annotated[
        list[str] | None,
        Option(
            help="Change a link: 'down 0-2' or 'up 0-2'. May be repeated; changes happen "
            "in this order."
        ),
    ] = None,
    changes: Annotated[
        int, Option(help="Allow this many changes of any links that do not partition the network.")
    ] = 0,
    partitions: Annotated[
        bool, Option("--partitions", help="Let --changes partition the network.")
    ] = False,
    links: Annotated[
        str | None,
        Option(
            help="Choose whether links keep the order of messages: fifo or unordered. "
            "Default: fifo."
        ),
    ] = None,
    failures: Annotated[
        str | None,
        Option(
            help="Choose what becomes of messages on a failing link: drain (delivered "
            "first), return (to their sender) or custody (as between live nodes). "
            "Default: drain."
        ),
    ] = None,
    clients: Annotated[
        int | None,
        Option(help="Set how many requests of a node may be open at a time. Default: 1."),
    ] = None,
    stay: Annotated[
        list[int] | None, Option(help="Let clients of this node never release. May be repeated.")
    ] = None,
    withdrawals: Annotated[
        bool,
        Option("--withdrawals", help="Let waiting clients withdraw their requests, at any time."),
    ] = False,
    raise_: Annotated[
        list[str] | None,
        Option(
            "--raise",
            help="Let a waiting request of a node change to this priority, once, at any time: "
            "NODE:PRIORITY. May be repeated.",
        ),
    ] = None,
    release_part: Annotated[
        list[str] | None,
        Option(
            help="Let clients of a node release this many of their permits and keep the rest, "
            "at any time: NODE:PERMITS. May be repeated."
        ),
    ] = None,
    parts: Annotated[
        bool,
        Option(
            "--parts",
            help="Let all clients that hold several permits release one at a time: --release-part "
            "NODE:1 for each node.",
        ),
    ] = False,
    repeat: Annotated[
        bool, Option("--repeat", help="Let nodes repeat their requests without end.")
    ] = False,
    capacity: Annotated[
        int, Option(help="Skip states with more messages than this on one link. 0: no limit.")
    ] = 0,
    option: Annotated[
        list[str] | None,
        Option(help="Set an option of the algorithm as NAME=VALUE. May be repeated."),
    ] = None,
    members: Annotated[
        str | None,
        Option(
            help="Let nodes recover from crashes, with these members: all, a number, or "
            "auto (node 0 has made the pool).",
            group=CRASHES,
        ),
    ] = None,
    crashes: Annotated[
        int | None,
        Option(help="Allow this many crashes. Each crashed node may restart.", group=CRASHES),
    ] = None,
    crashing: Annotated[
        list[int] | None,
        Option(help="Let only this node crash. May be repeated.", group=CRASHES),
    ] = None,
    forgets: Annotated[
        int | None,
        Option(help="Allow this many restarts without the disk.", group=CRASHES),
    ] = None,
    stay_dead: Annotated[
        int | None,
        Option(help="Let this many nodes stop for good.", group=CRASHES),
    ] = None,
    slow_disks: Annotated[
        int | None,
        Option(
            help="Let disks hang this often. Until a disk goes on, promises are not on it, and "
            "messages that rest on them are not sent.",
            group=CRASHES,
        ),
    ] = None,
    proposals: Annotated[
        int | None,
        Option(help="Allow this many proposals of an epoch, at any time.", group=CRASHES),
    ] = None,
    proposer: Annotated[
        list[int] | None,
        Option(help="Let only this node propose. May be repeated.", group=CRASHES),
    ] = None,
    member_change: Annotated[
        list[str] | None,
        Option(
            help="Allow one proposal with this change of members: 'add N' or 'remove N'. "
            "May be repeated.",
            group=CRASHES,
        ),
    ] = None,
    resize: Annotated[
        list[int] | None,
        Option(
            help="Allow one proposal with this number of permits. May be repeated.",
            group=CRASHES,
        ),
    ] = None,
    rename: Annotated[
        list[str] | None,
        Option(
            help="Allow one proposal with permits of these names, such as 1,2 (at first "
            "0, 1, ...). May be repeated.",
            group=CRASHES,
        ),
    ] = None,
    cuts: Annotated[
        int | None,
        Option(
            help="Allow this many failures of links, which may return. In fixed networks "
            "a failure is a delay.",
            group=CRASHES,
        ),
    ] = None,
    ticks: Annotated[
        int | None,
        Option(help="Let at most this many ticks pass. Default: no limit.", group=CRASHES),
    ] = None,
    slow_ticks: Annotated[
        int | None,
        Option(help="Let one clock miss this many ticks.", group=CRASHES),
    ] = None,
    doubles: Annotated[
        int | None,
        Option(help="Let this many messages of recovery arrive twice.", group=CRASHES),
    ] = None,
    losses: Annotated[
        int | None,
        Option(
            help="Lose this many messages of recovery. (One that is late for ever is the "
            "same to the others.)",
            group=CRASHES,
        ),
    ] = None,
    resends: Annotated[
        int | None,
        Option(help="Let a node resend this often what nobody acted upon.", group=CRASHES),
    ] = None,
    lease: Annotated[
        int | None,
        Option(help="Set how many ticks a lease lasts. Default: 2.", group=CRASHES),
    ] = None,
    wait: Annotated[
        int | None,
        Option(
            help="Set after how many ticks a lease is surely over. Default: as --lease.",
            group=CRASHES,
        ),
    ] = None,
    renewals: Annotated[
        str | None,
        Option(
            help="Choose how leases are renewed: meet (question and answer in one step) "
            "or travel. Default: meet.",
            group=CRASHES,
        ),
    ] = None,
    handshakes: Annotated[
        str | None,
        Option(
            help="Choose when HELLO and LINK arrive: eager (at once) or any. Default: eager.",
            group=CRASHES,
        ),
    ] = None,
    birth: Annotated[
        bool,
        Option("--birth", help="Begin before the first epoch.", group=CRASHES),
    ] = False,
    idle: Annotated[
        bool,
        Option("--idle", help="Make no request before faults stop.", group=CRASHES),
    ] = False,
    no_wall_clock: Annotated[
        bool,
        Option(
            "--no-wall-clock",
            help="Let nodes that lost their disk have no wall clock to number epochs by.",
            group=CRASHES,
        ),
    ] = False,
    stale: Annotated[
        bool,
        Option(
            "--stale",
            help="Keep messages for past boots and epochs, to check nodes with mistakes.",
            group=CRASHES,
        ),
    ] = False,
    slots: Annotated[
        bool,
        Option("--slots", help="Give grants the names of their permits.", group=CRASHES),
    ] = False,
    lead: Annotated[
        list[str] | None,
        Option(
            help="Take this step before the search begins, such as 'request 1', 'deliver "
            "TOKEN 0>1' or 'crash 1'. May be repeated."
        ),
    ] = None,
    property_: Annotated[
        list[str] | None,
        Option(
            "--property",
            help="Judge only this property: safety, one-token, conservation, order, "
            "neighbours, served, liveness, downhill, scheme-1, scheme-2, scheme-3 or "
            "oriented, with --members also fences, ledger and slots. May be "
            "repeated. Default: all. ties (first come, first served among equals) takes more "
            "states, and is judged only if it is named.",
        ),
    ] = None,
    reduction: Annotated[
        str,
        Option(
            help="Choose a reduction: none, por (take steps that commute in one order only), or "
            "auto (por where it is likely to save time)."
        ),
    ] = "none",
    symmetry: Annotated[
        bool,
        Option("--symmetry", help="Keep one of the states that differ only in the names of nodes."),
    ] = False,
    workers: Annotated[int, Option(help="Search with this many processes, on as many cores.")] = 1,
    disk: Annotated[
        Path | None,
        Option(help="Keep states that outgrow memory in this folder.", metavar="DIR"),
    ] = None,
    memory: Annotated[
        float | None,
        Option(
            help="Use this many GiB of memory for states with --disk, all workers together; "
            "1 by default."
        ),
    ] = None,
    max_states: Annotated[int, Option(help="Stop after this many states.")] = 5_000_000,
    manifest: Annotated[
        bool,
        Option(
            "--manifest",
            help="Rerun all pinned set-ups of up to --max-states; other flags are ignored.",
        ),
    ] = False,
    json: Annotated[bool, Option("--json", help="Print one JSON object.")] = False,
    trace: Annotated[
        Path | None, Option(help="Write the (first) counterexample to this file.")
    ] = None,
) -> None:
    """Check an algorithm in every order in which things can happen.

    Example: meshlock check --algorithm raymond --topology line --nodes 4

    With --mutant or --without, and none of --nodes, --topology and --request, the set-up is a
    small one in which the mistake shows: meshlock check --without R4

    With --members the nodes recover from crashes, and whatever the bounds allow may happen to
    them: meshlock check --algorithm raymond --topology line --nodes 3 --members all --crashes 1
    """
    from meshlock.check.arguments import judged, refuse_unjudged, setup
    from meshlock.check.unspent import refuse_vacuous
    from meshlock.check.verdict import checking as begin
    from meshlock.cli.output import named_values
    from meshlock.errors import Refused

    if manifest:
        rerun(max_states, json)
    options = named_values("--option", option or [])
    if max_states < 1:
        raise Refused("--max-states must be at least 1.")
    name = chosen(algorithm, mutant, without) or "raymond"
    given: dict[str, Any] = {
        "nodes": nodes,
        "topology": topology,
        "permits": permits,
        "requests": request,
        "changes": change,
        "flips": changes or None,
        "links": links,
        "failures": failures,
        "partitions": partitions or None,
        "clients": clients,
        "repeat": repeat or None,
        "withdrawals": withdrawals or None,
        "raises": raise_,
        "release_parts": release_part,
        "parts": parts or None,
        "stay": stay,
        "capacity": capacity or None,
        "members": members,
        "crashes": crashes,
        "crashing": crashing,
        "forgets": forgets,
        "stay_dead": stay_dead,
        "slow_disks": slow_disks,
        "proposals": proposals,
        "proposers": proposer,
        "member_changes": member_change,
        "resizes": resize,
        "renames": rename,
        "cuts": cuts,
        "ticks": ticks,
        "slow_ticks": slow_ticks,
        "doubles": doubles,
        "losses": losses,
        "resends": resends,
        "lease": lease,
        "wait": wait,
        "renewals": renewals,
        "handshakes": handshakes,
        "birth": birth or None,
        "idle": idle or None,
        "wall_clock": False if no_wall_clock else None,
        "stale": stale or None,
        "slots": slots or None,
        "lead": lead,
    }
    small = (mutant or without) and nodes is None and topology is None and not request
    words: dict[str, Any] = {"algorithm": name}
    names = property_ or []
    if small:
        words, to_be_named = small_set_up(name)
        names = names or to_be_named
    words.update({word: value for word, value in given.items() if value is not None})
    words["options"] = {**words.get("options", {}), **options}
    what = setup(**words)
    if reduction not in ("none", "por", "auto"):
        raise Refused(f"--reduction is none, por or auto, not '{reduction}'.")
    if symmetry and reduction != "none":
        raise Refused(f"Choose one of --symmetry and --reduction {reduction}.")
    by = "symmetry" if symmetry else reduction
    refuse_unjudged(what, names, reduction)
    refuse_vacuous(what, names)
    if not 1 <= workers <= MOST_WORKERS:
        raise Refused(f"--workers is from 1 to {MOST_WORKERS}.")
    checking = begin(what, judged(names), max_states, by, workers, room(disk, memory, reduction))
    cpu, interrupted = explore(checking)
    cpu += checking.cpu()
    stopped = checking.explorer.stopped
    if stopped and not checking.violations():
        checking.explorer.close()
        raise Refused(f"{stopped} {checking.summary()}")
    if trace is not None and checking.violations():
        write(checking, checking.violations()[0], trace)
    if json:
        from meshlock.cli.output import print_json

        print_json(checking.figures(cpu))
    else:
        report(checking, cpu)
    checking.explorer.close()
    if checking.violations():
        raise click.exceptions.Exit(1)
    if interrupted:
        raise click.exceptions.Exit(130)
    raise click.exceptions.Exit(0 if checking.holds() else PARTIAL)


def room(disk: Path | None, memory: float | None, reduction: str) -> Space | None:
    """What states may take where they are kept on disk."""
    from meshlock.check.disk import space
    from meshlock.errors import Refused

    if disk is None:
        if memory is not None:
            raise Refused("--memory goes with --disk.")
        return None
    if not disk.is_dir():
        raise Refused(f"--disk: there is no folder {disk}.")
    if memory is not None and not 0 <= memory < inf:
        raise Refused("--memory is at least 0.")
    if reduction != "none":
        raise Refused(
            f"Choose one of --disk and --reduction {reduction}: a reduction of steps must have "
            "all states at hand."
        )
    try:
        return space(str(disk), DEFAULT_MEMORY if memory is None else memory)
    except OSError as error:
        raise Refused(f"--disk: cannot write to {disk}: {error.strerror}.") from None


def small_set_up(name: str) -> tuple[dict[str, Any], list[str]]:
    """A mutant's own, and the properties to be named."""
    from meshlock.algorithms.mutants.catalogue import mutant
    from meshlock.check.mutants import properties_of, words_of

    found = mutant(name)
    return words_of(found, found.algorithm), properties_of(found)


def explore(checking: Verdict) -> tuple[float, bool]:
    """To the end, to --max-states or to Ctrl-C; the CPU time, and whether it was the last."""
    from meshlock.simulate.whole_run import Stretch

    with Stretch() as stretch:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import Progress, SpinnerColumn, TextColumn

            columns = (SpinnerColumn(), TextColumn("{task.description}"))
            with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
                bar = progress.add_task("exploring", total=None)
                while checking.run(BATCH):
                    progress.update(bar, description=checking.progress())
        else:
            while checking.run(BATCH):
                pass
    return stretch.cpu, stretch.interrupted


def rerun(most: int, json: bool) -> NoReturn:
    """Compare every pinned set-up with what it gives today."""
    from meshlock.check.manifest import entries, found

    rows: list[dict[str, Any]] = []
    wrong = 0
    for entry in entries():
        if entry.states > most:
            continue
        checking = entry.checking(entry.states + 1)
        cpu, interrupted = explore(checking)
        if interrupted:
            raise click.exceptions.Exit(130)
        states, transitions, depth, violated = found(checking)
        same = (states, transitions, depth, violated) == entry.pinned
        wrong += not same
        row = {"setup": entry.title(), "states": states, "transitions": transitions}
        row |= {"depth": depth, "violated": violated, "cpu_s": round(cpu, 4), "as_pinned": same}
        rows.append(row)
        if not json:
            verdict = "as pinned" if same else f"CHANGED from {entry.pinned}"
            shown = f"{states:>9,} {transitions:>10,} {depth:>4}  {cpu:6.2f} s"
            click.echo(f"{shown}  {verdict}  {entry.title()} {violated or ''}")
    if json:
        from meshlock.cli.output import print_json

        print_json({"setups": rows, "as_pinned": wrong == 0})
    else:
        click.echo(f"{len(rows)} set-ups, {wrong} of them changed.")
    raise click.exceptions.Exit(1 if wrong else 0)


def write(checking: Verdict, violation: Violation, path: Path) -> None:
    from meshlock.check.counterexample import write_violation
    from meshlock.errors import Refused
    from meshlock.trace.files import trace_file

    try:
        with trace_file(path) as file:
            write_violation(checking.model, violation, file)
    except OSError as error:
        raise Refused(f"Cannot write the trace to {path}: {error.strerror}.") from None


def report(checking: Verdict, cpu: float) -> None:
    from meshlock.check.story import pages

    for found in checking.violations():
        click.echo(f"{found.name} VIOLATED after {len(found.labels)} steps: {found.text}")
        for line in pages(checking.model, found):
            click.echo(line)
        click.echo("")
    explorer = checking.explorer
    rate = explorer.count() / cpu if cpu > 0 else 0.0
    click.echo(
        f"{explorer.count():,} states, {explorer.transitions:,} transitions, depth "
        f"{explorer.depth}, {cpu:.2f} s of CPU ({rate:,.0f} states per second)"
    )
    if checking.remark:
        click.echo(checking.remark)
    click.echo(checking.summary())
