"""What to check, as flags, the manifest and mutants say it: every setting is declared here."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from meshlock.errors import Refused, setting
from meshlock.settings import Settings, option

if TYPE_CHECKING:
    from meshlock.check.disk import Space

CRASHES = "Nodes that crash and recover"
ANY_NUMBER = -1
MOST_WORKERS = 256
DEFAULT_MEMORY = 1.0
"""GiB."""


class CheckSettings(Settings):
    topology: str = option("complete", "Link the nodes as in 'meshlock simulate'. Default: {}.")
    nodes: int | None = option(None, "Set the number of nodes.")
    permits: str = option(
        "1", "Set k, the number of permits: 4, or gpu:4,licence:5 of each kind. Default: {}."
    )
    requests: tuple[str, ...] = option(
        (),
        "Make this request: NODE:WANT@PRIORITY, where 0.99 is priority 0 with a deadline that has "
        "passed, and WANT of several kinds is gpu:1+licence:1. May be repeated. Default: one of "
        "each node.",
        "--request",
    )
    changes: tuple[str, ...] = option(
        (),
        "Change a link: 'down 0-2' or 'up 0-2'. May be repeated; changes happen in this order.",
        "--change",
    )
    flips: int = option(
        0,
        "Allow this many changes of any links that do not partition the network.",
        "--changes",
        shown=True,
    )
    partitions: bool = option(False, "Let --changes partition the network.")
    links: str = option(
        "fifo", "Choose whether links keep the order of messages: fifo or unordered. Default: {}."
    )
    failures: str = option(
        "drain",
        "Choose what becomes of messages on a failing link: drain (delivered first), return (to "
        "their sender) or custody (as between live nodes). Default: {}.",
    )
    clients: int = option(1, "Set how many requests of a node may be open at a time. Default: {}.")
    stay: tuple[int, ...] = option((), "Let clients of this node never release. May be repeated.")
    withdrawals: bool = option(False, "Let waiting clients withdraw their requests, at any time.")
    raises: tuple[str, ...] = option(
        (),
        "Let a waiting request of a node change to this priority, once, at any time: "
        "NODE:PRIORITY. May be repeated.",
        "--raise",
    )
    release_parts: tuple[str, ...] = option(
        (),
        "Let clients of a node release this many of their permits and keep the rest, at any time: "
        "NODE:PERMITS. May be repeated.",
        "--release-part",
    )
    parts: bool = option(
        False,
        "Let all clients that hold several permits release one at a time: --release-part NODE:1 "
        "for each node.",
    )
    repeat: bool = option(False, "Let nodes repeat their requests without end.")
    capacity: int = option(
        0, "Skip states with more messages than this on one link. 0: no limit.", shown=True
    )
    options: dict[str, str] = option(
        {}, "Set an option of the algorithm as NAME=VALUE. May be repeated.", "--option"
    )
    lead: tuple[str, ...] = option(
        (),
        "Take this step before the search begins, such as 'request 1', 'deliver TOKEN 0>1' or "
        "'crash 1'. May be repeated.",
    )
    members: str = option(
        "",
        "Let nodes recover from crashes, with these members: all, a number, or auto (node 0 has "
        "made the pool).",
        group=CRASHES,
    )


class FaultSettings(Settings, group=CRASHES):
    """What may happen to nodes that recover: the bounds of a search. Times are in ticks."""

    crashes: int = option(0, "Allow this many crashes. Each crashed node may restart.")
    crashing: tuple[int, ...] = option((), "Let only this node crash. May be repeated.")
    forgets: int = option(0, "Allow this many restarts without the disk.")
    stay_dead: int = option(0, "Let this many nodes stop for good.")
    slow_disks: int = option(
        0,
        "Let disks hang this often. Until a disk goes on, promises are not on it, and messages "
        "that rest on them are not sent.",
    )
    proposals: int = option(0, "Allow this many proposals of an epoch, at any time.")
    proposers: tuple[int, ...] = option(
        (), "Let only this node propose. May be repeated.", "--proposer"
    )
    member_changes: tuple[str, ...] = option(
        (),
        "Allow one proposal with this change of members: 'add N' or 'remove N'. May be repeated.",
        "--member-change",
    )
    resizes: tuple[str, ...] = option(
        (), "Allow one proposal with this number of permits. May be repeated.", "--resize"
    )
    renames: tuple[str, ...] = option(
        (),
        "Allow one proposal with permits of these names, such as 1,2 (at first 0, 1, ...). May be "
        "repeated.",
        "--rename",
    )
    cuts: int = option(
        0,
        "Allow this many failures of links, which may return. In fixed networks a failure is a "
        "delay.",
    )
    ticks: int = option(ANY_NUMBER, "Let at most this many ticks pass. Default: no limit.")
    slow_ticks: int = option(0, "Let one clock miss this many ticks.")
    doubles: int = option(0, "Let this many messages of recovery arrive twice.")
    losses: int = option(
        0,
        "Lose this many messages of recovery. (One that is late for ever is the same to the "
        "others.)",
    )
    resends: int = option(0, "Let a node resend this often what nobody acted upon.")
    lease: int = option(2, "Set how many ticks a lease lasts. Default: {}.")
    wait: int = option(0, "Set after how many ticks a lease is surely over. Default: as --lease.")
    renewals: str = option(
        "meet",
        "Choose how leases are renewed: meet (question and answer in one step) or travel. "
        "Default: {}.",
    )
    handshakes: str = option(
        "eager", "Choose when HELLO and LINK arrive: eager (at once) or any. Default: {}."
    )
    birth: bool = option(False, "Begin before the first epoch.")
    idle: bool = option(False, "Make no request before faults stop.")
    wall_clock: bool = option(
        True,
        "Let nodes that lost their disk have no wall clock to number epochs by.",
        "--no-wall-clock",
    )
    stale: bool = option(
        False, "Keep messages for past boots and epochs, to check nodes with mistakes."
    )
    slots: bool = option(False, "Give grants the names of their permits.")


class JudgedSettings(Settings):
    properties: tuple[str, ...] = option(
        (),
        "Judge only this property: safety, one-token, conservation, order, neighbours, served, "
        "liveness, downhill, reaches-token, scheme-1, scheme-2, scheme-3 or oriented, with "
        "--members also fences, ledger and slots. May be repeated. Default: all. ties (first come, "
        "first served among equals) takes more states, and is judged only if it is named; so is a "
        "function of your own: FILE.py:NAME.",
        "--property",
    )


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
            raise Refused(f"{setting('max-states')} must be at least 1.")
        if self.reduction not in ("none", "por", "auto"):
            raise Refused(f"{setting('reduction')} is none, por or auto, not '{self.reduction}'.")
        if self.symmetry and self.reduction != "none":
            raise Refused(
                f"Choose one of {setting('symmetry')} and {setting('reduction')} {self.reduction}."
            )
        if not 1 <= self.workers <= MOST_WORKERS:
            raise Refused(f"{setting('workers')} is from 1 to {MOST_WORKERS}.")

    def space(self) -> Space | None:
        """What states may take where they are kept on disk."""
        from meshlock.check.disk import space

        disk, memory = self.disk, self.memory
        if disk is None:
            if memory is not None:
                raise Refused(f"{setting('memory')} goes with {setting('disk')}.")
            return None
        if not disk.is_dir():
            raise Refused(f"{setting('disk')}: there is no folder {disk}.")
        if memory is not None and not 0 <= memory < inf:
            raise Refused(f"{setting('memory')} is at least 0.")
        if self.reduction != "none":
            raise Refused(
                f"Choose one of {setting('disk')} and {setting('reduction')} {self.reduction}: a "
                "reduction of steps must have all states at hand."
            )
        try:
            return space(str(disk), DEFAULT_MEMORY if memory is None else memory)
        except OSError as error:
            raise Refused(f"{setting('disk')}: cannot write to {disk}: {error.strerror}.") from None
