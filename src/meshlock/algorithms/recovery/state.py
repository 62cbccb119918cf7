"""What a node of :mod:`.layer` knows, and the whole of it as a value."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, cast

from meshlock.algorithms.clients import ClientQueue
from meshlock.algorithms.interface import (
    NIL,
    Algorithm,
    Effect,
    Enter,
    Frozen,
    Leased,
    Message,
    Node,
)
from meshlock.algorithms.recovery.inside import Inside
from meshlock.algorithms.recovery.records import (
    GRANTS,
    MINTING,
    NEVER,
    NO_EPOCH,
    Change,
    Config,
    Entry,
    Epoch,
    Fence,
    FirstLedger,
    Part,
    Report,
    Returns,
    Seal,
    TokenState,
    Unaccepted,
    new_state,
    same,
)
from meshlock.algorithms.steps import units
from meshlock.algorithms.subclassing import mypyc_attr

Waiting = tuple[int, int, int, int]
"""A client that waits: want, priority, for how many grants it had waited when this epoch began,
its place in the order of arrival."""


class Rules(NamedTuple):
    """Of members that choose themselves (:mod:`.autopilot`): how many there may be, and how long a
    node must have been there to become one, or be unreachable to be replaced."""

    most: int
    promote_after: int
    replace_after: int


class Terms:
    """What all nodes of a pool agree on when it is made.

    ``nodes`` is everybody who should hear of an epoch; those that are no members may come and go.
    ``members`` are the first ones, and so many ``permits`` there are at first; what holds now, a
    node's ``config`` says. Nobody: the pool is made by one node (``found``), and the others hear
    who the members are. ``wait`` on any clock is not shorter than ``lease`` on any other. ``near``
    gives the neighbours of a node, as far as is known here. ``slots``: a grant says which of the
    permits it has, not only how many; ``names`` are what they are called at first, if anything.
    ``rules``: by which members choose themselves, if they do.
    """

    def __init__(
        self,
        nodes: tuple[int, ...],
        members: tuple[int, ...],
        permits: int,
        lease: int,
        wait: int,
        algorithm: Algorithm,
        options: dict[str, str],
        near: Callable[[int], Iterable[int]],
        slots: bool = False,
        rules: Rules | None = None,
        names: tuple[str, ...] = (),
    ) -> None:
        self.nodes = nodes
        self.members = members
        self.permits = permits
        self.lease = lease
        self.wait = wait
        self.algorithm = algorithm
        self.options = options
        self.units = units(options)  # of priority, in a step
        self.near = near
        self.slots = slots
        self.rules = rules
        self.names = names


class Grant:
    def __init__(
        self,
        client: int,
        permits: int,
        epoch: Epoch,
        until: int,
        slots: tuple[int, ...],
        label: str,
    ) -> None:
        self.client = client
        self.permits = permits
        self.epoch = epoch  # an older one than adopted: it runs out and is not renewed
        self.until = until
        self.slots = slots
        self.label = label


class HeldToken:
    def __init__(self, state: TokenState, until: int) -> None:
        self.epoch = state.epoch
        self.hop = state.hop
        self.free = state.free
        self.ledger = state.ledger
        self.grants = state.grants
        self.until = until

    def state(self) -> TokenState:
        return new_state(self.epoch, self.hop, self.free, self.ledger, self.grants)

    def strike(self, part: Part) -> tuple[int, int]:
        """Rule 9: what is not out any more is not struck out twice. Whose grant it was, NIL if it
        is not here, and how many of its permits are out."""
        ledger = self.ledger
        for place, entry in enumerate(ledger):
            if entry.fence == part.fence:
                rest = without(entry, part)
                left = rest.permits if rest is not None else 0
                self.free += entry.permits - left
                kept = (rest,) if rest is not None else ()
                self.ledger = ledger[:place] + kept + ledger[place + 1 :]
                return entry.node, left
        return NIL, 0

    def name(self, fence: Fence, node: int, label: str) -> bool:
        """What the owner of a grant says of it; False if it has none such."""
        for place, entry in enumerate(self.ledger):
            if entry.fence == fence and entry.node == node:
                named = entry._replace(label=label)
                self.ledger = (*self.ledger[:place], named, *self.ledger[place + 1 :])
                return True
        return False

    def left(self, fence: Fence) -> int:
        """How many permits of that grant are out."""
        for entry in self.ledger:
            if entry.fence == fence:
                return entry.permits
        return 0

    def first_slots(self, want: int, config: Config) -> tuple[int, ...]:
        """Of those that there are and that are not out. There are so many: of k at most as many
        are out as permits are."""
        out = {slot for entry in self.ledger for slot in entry.slots}
        there = config.slots if len(config.slots) > 0 else range(config.permits)
        return tuple([slot for slot in there if slot not in out][:want])


def without(entry: Entry, part: Part) -> Entry | None:
    """What is out of a grant when this part has come back; None: nothing."""
    out = entry.numbers if len(entry.numbers) > 0 else tuple(range(entry.permits))
    kept = [place for place, number in enumerate(out) if not part.has(number)]
    if len(kept) == 0:
        return None
    numbers = tuple([out[place] for place in kept])
    slots = tuple([entry.slots[place] for place in kept]) if len(entry.slots) > 0 else ()
    if numbers[-1] < len(kept):
        numbers = ()  # the first so many
    return entry._replace(permits=len(kept), slots=slots, numbers=numbers)


class Proposal:
    def __init__(self, epoch: Epoch, change: Change | None) -> None:
        self.epoch = epoch
        self.change = change
        self.reports: dict[int, Report] = {}
        self.closed = False
        self.closed_at = NEVER
        self.told_at = NEVER  # when its ledger was sent last
        self.top = NO_EPOCH  # the highest epoch that could live then
        self.usable: TokenState | None = None
        self.late = False  # it was reported after the ledger was written
        self.kept: tuple[Entry, ...] = ()
        self.lapsing: tuple[Entry, ...] = ()
        self.confirmed = False
        self.until = NEVER

    def freeze(self, now: int, wait: int) -> Frozen:
        return (
            self.epoch,
            self.change,
            tuple(sorted(self.reports.items())),
            self.closed,
            max(-wait, self.closed_at - now) if self.closed else 0,
            self.usable,
            self.kept,
            self.lapsing,
            self.confirmed,
            max(0, self.until - now),
            max(-wait, self.told_at - now) if self.closed else 0,
            (self.top, self.late) if self.closed and (self.usable is None or self.late) else (),
        )


def thawed_proposal(written: Frozen) -> Proposal:
    proposal = Proposal(cast(Epoch, written[0]), cast(Change | None, written[1]))
    proposal.reports = dict(cast(tuple[tuple[int, Report], ...], written[2]))
    proposal.closed = cast(bool, written[3])
    proposal.closed_at = cast(int, written[4])
    proposal.usable = cast(TokenState | None, written[5])
    proposal.kept = cast(tuple[Entry, ...], written[6])
    proposal.lapsing = cast(tuple[Entry, ...], written[7])
    proposal.confirmed = cast(bool, written[8])
    proposal.until = cast(int, written[9])
    proposal.told_at = cast(int, written[10])
    late = cast(tuple[Epoch, bool] | tuple[()], written[11])
    if late:
        proposal.top, proposal.late = late
    return proposal


VARIABLES = (
    "boot",
    "floor",
    "promised",
    "config",
    "answered",
    "adopted",
    "first",
    "highest",
    "quiet_until",
    "heard",
    "grants",
    "waiting",
    "token",
    "hop_seen",
    "unaccepted",
    "holder",
    "returning",
    "former",
    "proposal",
    "lapsed_at",
    "inner",
    "serving",
    "leaving",
    "stand_ins",
    "lapsing",
    "pending",
    "withheld",
    "receipts",
    "struck",
    "taken",
    "early",
    "near",
    "hellos",
    "linked",
    "lent",
)
"""In the order in which they freeze; ``floor`` with what the disk knew, and forgot."""


@mypyc_attr(allow_interpreted_subclasses=True)
class State(Leased):
    """The variables. Their values freeze with all times relative to now, so not as others do."""

    def __init__(self, me: int, out: list[Effect], terms: Terms) -> None:
        super().__init__(me, out)
        self.terms = terms
        # The algorithm inside: is it for fixed networks, whose messages are routed and never lost?
        # Then: may nodes come and go, or is it for those with whom an epoch began, by their places?
        self.fixed = not terms.algorithm.changing_links
        self.open = self.fixed and terms.algorithm.late is not None
        self.closed = self.fixed and not self.open
        # Does the token move on after so few grants that a checker sees it? Then acknowledgements
        # are state: else no handler reads them.
        usual = terms.algorithm.options.get("rest", ("",))[0]
        self.moves_early = terms.options.get("rest", usual) != usual
        self.floor = 0  # of epochs' counters: the wall clock, where there is no disk
        self.remembered = NO_EPOCH  # the epoch that the disk knew when this life began
        self.forgot = False  # who the members are, and perhaps that we were one
        self.promised = NO_EPOCH
        self.config = Config(NO_EPOCH, terms.members, terms.permits, terms.lease)
        self.answered = NO_EPOCH
        self.adopted = NO_EPOCH
        self.first: FirstLedger | None = None  # of the epoch adopted
        self.highest = NO_EPOCH
        self.quiet_until = NEVER
        self.heard: dict[int, int] = {}
        self.grants: dict[Fence, Grant] = {}
        self.waiting: dict[int, Waiting] = {}
        # of the same: whom an algorithm serves that takes one at a time
        self.line = ClientQueue(self.terms.units)
        self.arrivals = 0  # of clients here
        # A crowd that has not asked the node inside yet, and the one before, which knows their
        # ages. Not frozen: nobody is left over where fewer wait than ask at once.
        self.unasked = ClientQueue(self.terms.units)
        self.outgoing: Node | None = None
        self.outgoing_grants = 0
        self.token: HeldToken | None = None
        self.hop_seen: tuple[Epoch, int] = (NO_EPOCH, -1)
        self.unaccepted: Unaccepted | None = None
        self.unaccepted_message: Message | None = None
        self.unaccepted_until = NEVER
        self.holder = NIL
        self.holder_hop = GRANTS
        self.returning: dict[Fence, int] = {}  # and how many permits are kept
        self.former: dict[Fence, int] = {}  # entries of a former life, to be returned later
        self.proposal: Proposal | None = None
        self.lapsed_at = NEVER
        # the algorithm inside
        self.label: Callable[[int], str] = unlabelled  # what a client wants to be known by
        # what the ledger says when its token is new, and when it is handed on
        self.minted: Callable[[tuple[Entry, ...]], tuple[Entry, ...]] = unchanged
        self.handed: Callable[[tuple[Entry, ...]], tuple[Entry, ...]] = unchanged
        self.inside = Inside(me, terms.algorithm, terms.options)
        self.inner: Node | None = None
        self.chooses = False  # does it leave anything to choose?
        self.serving = NIL  # of an algorithm that takes one client at a time
        self.leaving: dict[int, int] = {}  # clients that gave up but will be let in: their wants
        self.stand_ins: dict[Fence, tuple[int, int]] = {}  # client and permits
        self.lapsing: set[Fence] = set()  # of those: what ends when its lease must be over
        self.pending: set[Part] = set()
        self.withheld: list[Effect] = []
        self.receipts: dict[int, int] = {}
        self.struck: dict[int, Returns] = {}  # whose, and what is left of it
        self.taken = [0]  # numbers of grants lent to us; none below the first ...
        self.last_taken = 0  # ... and the highest
        self.missed = False  # one of them
        self.arrived: tuple[Entry, int] | None = None  # in one step: until when
        self.early: list[Message] = []
        self.near: set[int] = set()
        self.hellos: dict[int, tuple[Epoch, int, bool]] = {}
        self.linked: set[int] = set()  # neighbours that the algorithm inside knows
        # No handler reads these, only Pace and whoever chooses where to send; not frozen.
        self.heard_of = NIL  # the holder or proposer that was heard of last, and when
        self.heard_at = NEVER
        self.suggested_until = NEVER  # somebody who may not propose sees a reason to
        self.offers: dict[int, int] = {}  # who would be a member, and when we heard that last
        self.willing = True  # to be a member ourselves
        self.voteless: dict[int, int] = {}  # who has forgotten, and when we heard that last
        self.crossed = False  # another proposal has the number of ours: neither may succeed
        # Grants that we made to clients of others, and do not know to have arrived, since when;
        # grants that were made to clients of ours: by whom, since when, and whether we said so.
        self.lent: dict[Fence, int] = {}
        self.borrowed: dict[Fence, tuple[int, int, bool]] = {}
        # What we said when we promised, to say it again: not frozen, for that is a doubled message.
        self.last_report: Report | None = None

    @property
    def variables(self) -> tuple[str, ...]:
        return VARIABLES

    @property
    def members(self) -> tuple[int, ...]:
        return self.config.members

    @property
    def member(self) -> bool:
        return self.me in self.config.members

    def active(self) -> bool:
        """May the algorithm inside be called? Not after a promise (rule 7)."""
        return self.inner is not None and same(self.adopted, self.promised)

    def paused(self) -> bool:
        """Was more out than there are permits when this epoch began?"""
        return self.first is not None and self.first.paused

    # -- the whole state as a value, with all times relative to now ----------------------------

    def freeze(self) -> Frozen:
        now, lease = self.now, self.terms.lease
        token, waiting, message = self.token, self.waiting, self.unaccepted_message
        return (
            self.boot,
            (self.floor, self.remembered, self.forgot),
            self.promised,
            self.config[:3] + self.config[4:],
            self.answered,
            self.adopted,
            self.first,
            self.highest if self.highest > self.promised else NO_EPOCH,
            max(0, self.quiet_until - now),
            tuple(
                sorted(
                    [(who, sent - now) for who, sent in self.heard.items() if sent + lease > now]
                )
            ),
            tuple(
                sorted(
                    [
                        (
                            *(fence, grant.client, grant.permits, grant.epoch),
                            *(max(0, grant.until - now), grant.slots, grant.label),
                        )
                        for fence, grant in self.grants.items()
                    ]
                )
            ),
            # only how long ago matters
            tuple([(one, (*waiting[one][:3], waiting[one][3] - self.arrivals)) for one in waiting]),
            () if token is None else (token.state(), max(0, token.until - now)),
            self.hop_seen,
            ()
            if self.unaccepted is None
            else (self.unaccepted, (), 0)
            if message is None  # it is not sent again
            else (self.unaccepted, message.freeze(), max(0, self.unaccepted_until - now)),
            (self.holder, self.holder_hop),
            tuple(sorted(self.returning.items())),
            tuple(sorted(self.former.items())),
            () if self.proposal is None else self.proposal.freeze(now, self.terms.wait),
            max(0, self.lapsed_at - now) if len(self.lapsing) > 0 else 0,
            () if self.inner is None else self.inner.freeze(),
            self.serving,
            tuple(sorted(self.leaving.items())),
            tuple(sorted(self.stand_ins.items())),
            tuple(sorted(self.lapsing)),
            tuple(sorted(self.pending)),
            tuple([frozen_effect(effect) for effect in self.withheld]),
            tuple(sorted(self.receipts.items())),
            tuple(sorted(self.struck.items())),
            (self.missed, *self.taken),
            tuple([frozen_effect(message) for message in self.early]),
            tuple(sorted(self.near)),
            tuple(sorted(self.hellos.items())),
            tuple(sorted(self.linked)),
            self.frozen_receipts() if self.moves_early else (),
        )

    def frozen_receipts(self) -> Frozen:
        """Grants that are not acknowledged here, and those that we shall acknowledge."""
        untold = [(fence, one[0]) for fence, one in self.borrowed.items() if not one[2]]
        return (tuple(sorted(self.lent)), tuple(sorted(untold)))

    def count_lent(self) -> None:
        raise NotImplementedError

    def thaw(self, state: Frozen) -> None:
        """Become the node that :meth:`freeze` described, at time 0."""
        self.now = 0
        inner, begun = self.inner, self.first
        self.boot = cast(int, state[0])
        self.floor, self.remembered, self.forgot = cast(tuple[int, Epoch, bool], state[1])
        self.promised = cast(Epoch, state[2])
        epoch, members, permits, slots, names = cast(
            tuple[Epoch, tuple[int, ...], int, tuple[int, ...], tuple[str, ...]], state[3]
        )
        self.config = Config(epoch, members, permits, self.terms.lease, slots, names)
        self.answered = cast(Epoch, state[4])
        self.adopted = cast(Epoch, state[5])
        self.first = cast(FirstLedger | None, state[6])
        self.highest = cast(Epoch, state[7])
        self.quiet_until = cast(int, state[8])
        self.heard = dict(cast(tuple[tuple[int, int], ...], state[9]))
        self.grants = {
            fence: Grant(client, want, epoch, until, which, label)
            for fence, client, want, epoch, until, which, label in cast(
                tuple[tuple[Fence, int, int, Epoch, int, tuple[int, ...], str], ...], state[10]
            )
        }
        self.waiting = dict(cast(tuple[tuple[int, Waiting], ...], state[11]))
        self.arrivals = 0
        self.unasked = ClientQueue(self.terms.units)
        self.outgoing = None
        self.line = ClientQueue(self.terms.units)
        for client, (_, priority, _, arrival) in self.waiting.items():
            self.line.put(client, priority, arrival)
        held = cast(tuple[TokenState, int] | tuple[()], state[12])
        self.token = HeldToken(held[0], held[1]) if held else None
        self.hop_seen = cast(tuple[Epoch, int], state[13])
        self.unaccepted = None
        self.unaccepted_message = None
        self.unaccepted_until = NEVER
        sent = cast(tuple[Unaccepted, Frozen, int] | tuple[()], state[14])
        if sent:
            self.unaccepted, frozen, self.unaccepted_until = sent
            if frozen:
                self.unaccepted_message = self.inside.message(self.unaccepted.receiver, frozen)
        self.holder, self.holder_hop = cast(tuple[int, int], state[15])
        self.returning = dict(cast(tuple[tuple[Fence, int], ...], state[16]))
        self.former = dict(cast(tuple[tuple[Fence, int], ...], state[17]))
        self.proposal = None
        written = cast(tuple[object, ...], state[18])
        if written:
            self.proposal = thawed_proposal(written)
        self.lapsed_at = cast(int, state[19])
        self.inner = None
        frozen = cast(Frozen, state[20])
        if frozen:
            assert self.first is not None
            if inner is None or begun != self.first:
                inner = self.inside.node(self.first, self.first.epoch.proposer, MINTING)
            self.inner = inner
            inner.thaw(frozen)
        self.serving = cast(int, state[21])
        self.leaving = dict(cast(tuple[tuple[int, int], ...], state[22]))
        self.stand_ins = dict(cast(tuple[tuple[Fence, tuple[int, int]], ...], state[23]))
        self.lapsing = set(cast(tuple[Fence, ...], state[24]))
        self.pending = set(cast(tuple[Part, ...], state[25]))
        self.withheld = [
            self.thawed_effect(written) for written in cast(tuple[Frozen, ...], state[26])
        ]
        self.receipts = dict(cast(tuple[tuple[int, int], ...], state[27]))
        self.struck = dict(cast(tuple[tuple[int, Returns], ...], state[28]))
        missed, *self.taken = cast(tuple[int, ...], state[29])
        self.last_taken = max(self.taken)
        self.missed = missed == 1
        self.early = [
            cast(Message, self.thawed_effect(written))
            for written in cast(tuple[Frozen, ...], state[30])
        ]
        self.near = set(cast(tuple[int, ...], state[31]))
        self.hellos = dict(cast(tuple[tuple[int, tuple[Epoch, int, bool]], ...], state[32]))
        self.linked = set(cast(tuple[int, ...], state[33]))
        lent, borrowed = cast(
            tuple[tuple[Fence, ...], tuple[tuple[Fence, int], ...]], state[34] or ((), ())
        )
        self.lent = dict.fromkeys(lent, 0)
        self.borrowed = {fence: (sender, 0, False) for fence, sender in borrowed}
        self.count_lent()
        self.unreachable = set()
        self.heard_of = NIL
        self.heard_at = NEVER
        self.suggested_until = NEVER
        self.offers = {}
        self.voteless = {}
        self.crossed = False
        self.last_report = None

    def thawed_effect(self, written: Frozen) -> Effect:
        if len(written) == 1:
            return Enter(cast(int, written[0]))
        sender, receiver, frozen, seal = cast(
            tuple[int, int, Frozen, tuple[object, ...] | None], written
        )
        message = self.inside.message(receiver, frozen)
        message.sender = sender
        message.seal = None if seal is None else thawed_seal(seal)
        return message


def unlabelled(client: int) -> str:
    return ""


def unchanged(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    return entries


def frozen_effect(effect: Effect) -> Frozen:
    if isinstance(effect, Enter):
        return (effect.client,)
    message = cast(Message, effect)
    seal = None if message.seal is None else message.seal.freeze()
    return (message.sender, message.receiver, message.freeze(), seal)


def thawed_seal(written: tuple[object, ...]) -> Seal:
    return Seal(
        cast(Epoch, written[0]),
        cast(int, written[1]),
        cast(TokenState | None, written[2]),
        cast(int, written[3]),
        cast(tuple[Part, ...], written[4]),
        cast(Entry | None, written[5]),
        cast(int, written[6]),
    )
