"""What may happen to nodes that recover from crashes: how often, and to whom."""

from __future__ import annotations

from meshlock.algorithms.recovery.records import Change
from meshlock.algorithms.recovery.state import Rules

ANY_NUMBER = -1


class Faults:
    """The bounds of a search. Nodes are named by their numbers; times are in ticks."""

    def __init__(
        self,
        size: int,
        members: tuple[int, ...],
        *,
        crashes: int = 0,
        crashing: list[int] | None = None,
        forgets: int = 0,
        proposals: int = 0,
        proposers: list[int] | None = None,
        changes: list[Change] | None = None,
        cuts: int = 0,
        ticks: int = ANY_NUMBER,
        slow_ticks: int = 0,
        doubles: int = 0,
        losses: int = 0,
        resends: int = 0,
        stay_dead: int = 0,
        slow_disks: int = 0,
        lease: int = 2,
        wait: int = 2,
        idle: bool = False,
        birth: bool = False,
        renewals: str = "meet",
        handshakes: str = "eager",
        wall_clock: bool = True,
        stale: bool = False,
        slots: bool = False,
    ) -> None:
        everybody = list(range(size))
        self.members = members  # nobody: node 0 makes the pool, and members choose themselves
        self.rules = None if len(members) > 0 else Rules(5, 2 * lease, 4 * lease)
        self.crashes = crashes
        self.crashing = crashing or everybody
        self.forgets = forgets  # so many of the restarts may be without disk
        self.proposals = proposals
        self.proposers = proposers or (everybody if changes else list(members) or everybody)
        self.changes = changes or []  # each may be proposed, once, with an epoch
        self.cuts = cuts
        self.ticks = ticks
        self.slow_ticks = slow_ticks  # ticks that one node's clock misses
        self.doubles = doubles
        self.losses = losses
        self.resends = resends
        self.stay_dead = stay_dead  # so many nodes stop for good
        self.slow_disks = slow_disks  # so often a disk hangs for a while
        self.lease = lease
        self.wait = wait
        self.idle = idle  # nobody asks until faults stop
        self.birth = birth  # begin at the birth of the pool, not in its first epoch
        self.travelling = renewals == "travel"  # or a renewal and its answer are one step
        self.eager = handshakes == "eager"  # HELLO and LINK arrive at once
        self.wall_clock = wall_clock  # where the disk is gone, is there a clock to number epochs?
        self.stale = stale  # keep messages that a sound node would refuse
        self.slots = slots  # grants say which permits they have

    def budgets(self) -> list[int]:
        """How often each of what is limited may happen, in the order of the ``LEFT_`` numbers."""
        return [
            self.proposals,
            self.crashes,
            self.forgets,
            self.doubles,
            self.losses,
            self.slow_ticks,
            self.resends,
            len(self.changes),
            self.cuts,
            self.stay_dead,
            self.slow_disks,
            self.ticks,
        ]


LEFT_PROPOSALS, LEFT_CRASHES, LEFT_FORGETS, LEFT_DOUBLES, LEFT_LOSSES = range(5)
LEFT_SLOW, LEFT_RESENDS, LEFT_CHANGES, LEFT_CUTS, LEFT_DEATHS = range(5, 10)
LEFT_HANGS, LEFT_TICKS, LEFT_REQUESTS = range(10, 13)
"""From the last on there is one per client: 1, it may ask; 0, it has asked; below 0, it has changed
its priority, see :meth:`~meshlock.check.setup.SetUp.change`."""
