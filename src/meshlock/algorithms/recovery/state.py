"""What a node of :mod:`.node` knows, and the whole of it as a value."""

from __future__ import annotations

from typing import cast

from meshlock.algorithms.interface import NIL, Effect, Frozen
from meshlock.algorithms.recovery.messages import (
    GRANTS,
    NEVER,
    NO_EPOCH,
    Asked,
    Change,
    Config,
    Doubt,
    Entry,
    Epoch,
    Fence,
    Papers,
    Report,
)
from meshlock.algorithms.recovery.order import Waiting


class Pool:
    """What all nodes of a pool must agree on, when it is born.

    ``nodes`` is everybody who should hear of an epoch; those that are no members may come and go.
    ``members`` are the first ones; who they are now, a node's ``config`` says.
    """

    def __init__(
        self,
        nodes: tuple[int, ...],
        members: tuple[int, ...],
        permits: int,
        lease: int,
        wait: int,
    ) -> None:
        self.nodes = nodes
        self.members = members
        self.permits = permits
        self.lease = lease
        self.wait = wait
        self.majority = majority(members)


def majority(members: tuple[int, ...]) -> int:
    return len(members) // 2 + 1


class Grant:
    def __init__(self, client: int, h: int, epoch: Epoch, until: int) -> None:
        self.client = client
        self.h = h
        self.epoch = epoch  # an older one than adopted: it runs out and is not renewed
        self.until = until


class HeldToken:
    def __init__(self, papers: Papers, until: int) -> None:
        self.epoch, self.hop, self.free, self.ledger, self.grants = papers
        self.until = until

    def papers(self) -> Papers:
        return (self.epoch, self.hop, self.free, self.ledger, self.grants)

    def give_back(self, fence: Fence, h: int) -> None:
        """By fence, so that twice is as good as once."""
        for entry in self.ledger:
            if entry[1] == fence:
                self.free += entry[2]
        self.ledger = tuple([entry for entry in self.ledger if entry[1] != fence])


class Proposal:
    def __init__(self, epoch: Epoch, change: Change | None) -> None:
        self.epoch = epoch
        self.change = change
        self.reports: dict[int, Report] = {}
        self.closed = False
        self.closed_at = NEVER
        self.usable: Papers | None = None
        self.kept: tuple[Entry, ...] = ()
        self.lapsing: tuple[Entry, ...] = ()
        self.confirmed = False
        self.until = NEVER


class State:
    """The variables, in the order in which they freeze."""

    def __init__(self, me: int, pool: Pool, out: list[Effect]) -> None:
        self.me = me
        self.pool = pool
        self.out = out
        self.boot = 0
        self.promised = NO_EPOCH
        self.config: Config = (NO_EPOCH, pool.members, pool.permits, pool.lease)
        self.answered = NO_EPOCH
        self.adopted = NO_EPOCH
        self.settled = False  # did we see a ledger that knows all that our former lives had?
        self.highest = NO_EPOCH
        self.silent_until = NEVER
        self.heard: dict[int, int] = {}
        self.grants: dict[Fence, Grant] = {}
        self.waiting: dict[int, Waiting] = {}
        self.served = 0  # grants made here, to rank our clients by
        self.asks = 0  # how often what we ask for changed
        self.token: HeldToken | None = None
        self.hop_seen: tuple[Epoch, int] = (NO_EPOCH, -1)
        self.doubt: Doubt | None = None
        self.doubt_queue: tuple[Asked, ...] = ()
        self.doubt_until = NEVER
        self.queue: list[Asked] = []
        self.guess = NIL
        self.guess_hop = GRANTS
        self.releasing: dict[Fence, int] = {}
        self.former: dict[Fence, int] = {}  # entries of a former life, to be released later
        self.proposal: Proposal | None = None
        self.lapsing: dict[Fence, int] = {}  # ours to release when their lease must be over
        self.lapsed_at = NEVER
        # No handler reads these, only Pace and whoever chooses where to send; not frozen.
        self.gone: set[int] = set()  # who cannot be reached, as the runner knows
        self.heard_of = NIL  # the holder or proposer that was heard of last, and when
        self.heard_at = NEVER
        self.pressed_until = NEVER  # somebody who may not propose sees a reason to
        self.crossed = False  # another proposal has the number of ours: neither may succeed

    @property
    def members(self) -> tuple[int, ...]:
        return self.config[1]

    @property
    def member(self) -> bool:
        return self.me in self.config[1]

    # -- the whole state as a value, with all times relative to now ----------------------------

    def freeze(self, now: int) -> Frozen:
        lease = self.pool.lease
        token = self.token
        waiting = self.waiting
        return (
            self.boot,
            self.promised,
            self.config[:2],
            self.answered,
            self.adopted,
            self.settled,
            self.highest if self.highest > self.promised else NO_EPOCH,
            max(0, self.silent_until - now),
            tuple(
                sorted(
                    [(who, sent - now) for who, sent in self.heard.items() if sent + lease > now]
                )
            ),
            tuple(
                sorted(
                    [
                        (fence, grant.client, grant.h, grant.epoch, max(0, grant.until - now))
                        for fence, grant in self.grants.items()
                    ]
                )
            ),
            # only how long ago matters
            tuple([(one, (*waiting[one][:2], waiting[one][2] - self.served)) for one in waiting]),
            self.asks,
            () if token is None else (token.papers(), max(0, token.until - now)),
            self.hop_seen,
            ()
            if self.doubt is None
            else (self.doubt, self.doubt_queue, max(0, self.doubt_until - now)),
            tuple(self.queue),
            (self.guess, self.guess_hop),
            tuple(sorted(self.releasing.items())),
            tuple(sorted(self.former.items())),
            () if self.proposal is None else self.freeze_proposal(self.proposal, now),
            tuple(sorted(self.lapsing.items())),
            max(0, self.lapsed_at - now) if len(self.lapsing) > 0 else 0,
        )

    def freeze_proposal(self, proposal: Proposal, now: int) -> Frozen:
        return (
            proposal.epoch,
            proposal.change,
            tuple(sorted(proposal.reports.items())),
            proposal.closed,
            max(-self.pool.wait, proposal.closed_at - now) if proposal.closed else 0,
            proposal.usable,
            proposal.kept,
            proposal.lapsing,
            proposal.confirmed,
            max(0, proposal.until - now),
        )

    def thaw(self, state: Frozen) -> None:
        """Become the node that :meth:`freeze` described, at time 0."""
        self.boot = cast(int, state[0])
        self.promised = cast(Epoch, state[1])
        epoch, members = cast(tuple[Epoch, tuple[int, ...]], state[2])
        self.config = (epoch, members, self.pool.permits, self.pool.lease)
        self.answered = cast(Epoch, state[3])
        self.adopted = cast(Epoch, state[4])
        self.settled = cast(bool, state[5])
        self.highest = cast(Epoch, state[6])
        self.silent_until = cast(int, state[7])
        self.heard = dict(cast(tuple[tuple[int, int], ...], state[8]))
        self.grants = {
            fence: Grant(client, h, epoch, until)
            for fence, client, h, epoch, until in cast(
                tuple[tuple[Fence, int, int, Epoch, int], ...], state[9]
            )
        }
        self.waiting = dict(cast(tuple[tuple[int, Waiting], ...], state[10]))
        self.served = 0
        self.asks = cast(int, state[11])
        held = cast(tuple[Papers, int] | tuple[()], state[12])
        self.token = HeldToken(held[0], held[1]) if held else None
        self.hop_seen = cast(tuple[Epoch, int], state[13])
        self.doubt = None
        self.doubt_queue = ()
        self.doubt_until = NEVER
        sent = cast(tuple[Doubt, tuple[Asked, ...], int] | tuple[()], state[14])
        if sent:
            self.doubt, self.doubt_queue, self.doubt_until = sent
        self.queue = list(cast(tuple[Asked, ...], state[15]))
        self.guess, self.guess_hop = cast(tuple[int, int], state[16])
        self.releasing = dict(cast(tuple[tuple[Fence, int], ...], state[17]))
        self.former = dict(cast(tuple[tuple[Fence, int], ...], state[18]))
        self.proposal = None
        written = cast(tuple[object, ...], state[19])
        if written:
            self.proposal = thawed_proposal(written)
        self.lapsing = dict(cast(tuple[tuple[Fence, int], ...], state[20]))
        self.lapsed_at = cast(int, state[21])
        self.gone = set()
        self.heard_of = NIL
        self.heard_at = NEVER
        self.pressed_until = NEVER
        self.crossed = False


def thawed_proposal(written: Frozen) -> Proposal:
    proposal = Proposal(cast(Epoch, written[0]), cast(Change | None, written[1]))
    proposal.reports = dict(cast(tuple[tuple[int, Report], ...], written[2]))
    proposal.closed = cast(bool, written[3])
    proposal.closed_at = cast(int, written[4])
    proposal.usable = cast(Papers | None, written[5])
    proposal.kept = cast(tuple[Entry, ...], written[6])
    proposal.lapsing = cast(tuple[Entry, ...], written[7])
    proposal.confirmed = cast(bool, written[8])
    proposal.until = cast(int, written[9])
    return proposal
