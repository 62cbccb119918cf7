"""Changes of members without all else: who promises, reports, closes and confirms, in any order.

A node is two numbers: the highest epoch that it promised, and the one that it adopted. A token is
one bit: whether it was reported. Any node that adopted an epoch may be the one that reports its
token, held or under way, at any time once that epoch is confirmed. So this does more than
:mod:`meshlock.algorithms.recovery` can, and what holds here holds there. Which members a ledger
has, and whether its reports suffice, says the layer itself (``config_after``, ``may_close``).

Of all confirmed epochs must be true:

* The later one knows the earlier one, by its reports. Then the old token was reported to it, or it
  waits for one lease.
* When the later one closes, no majority of the earlier one's members renews its leases any more.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from meshlock.algorithms.recovery.layer import Layer
from meshlock.algorithms.recovery.records import (
    NO_EPOCH,
    Change,
    Config,
    Epoch,
    Report,
    TokenState,
    majority,
)
from meshlock.algorithms.recovery.terms import Terms
from meshlock.algorithms.registry import find

LEASE = 2


class Collected(NamedTuple):
    """The reports to an open proposal: of whom, the latest epoch in them, and whose tokens."""

    reporters: int
    latest: int
    tokens: int


class Written(NamedTuple):
    """A ledger. Sets of nodes, and of epochs, are the bits of a number."""

    members: int
    known: int  # the latest epoch among its reports
    reporters: int
    renewable: int  # epochs whose leases could be renewed when it closed
    confirmed: int


Ledgers = tuple[Collected | Written, ...]
State = tuple[tuple[int, ...], tuple[int, ...], int, Ledgers]
"""Of each node what it promised and adopted; whose tokens were reported; epochs from 1 on."""


def nodes_of(bits: int) -> tuple[int, ...]:
    return tuple([node for node in range(bits.bit_length()) if bits >> node & 1])


def bits_of(nodes: tuple[int, ...]) -> int:
    return sum(1 << node for node in nodes)


def is_quorum(bits: int, members: int) -> bool:
    return (bits & members).bit_count() >= majority(nodes_of(members))


def replaced(row: tuple[int, ...], place: int, value: int) -> tuple[int, ...]:
    return (*row[:place], value, *row[place + 1 :])


class MemberEpochs:
    """These ``nodes``, the first of which are ``members``, and this many ``epochs`` after the first
    one, which is confirmed. ``once``: a token is reported to one proposal only."""

    def __init__(
        self, nodes: int, members: int, epochs: int, make: type[Layer] = Layer, once: bool = True
    ) -> None:
        self.size = nodes
        self.once = once
        everybody = (1 << nodes) - 1
        self.outside = [int(node >= members) for node in range(nodes)]
        self.first = Written((1 << members) - 1, -1, everybody, 0, everybody)
        self.birth: State = ((0,) * nodes, (0,) * nodes, 0, (Collected(0, 0, 0),) * epochs)
        direct = find("direct")
        terms = Terms(tuple(range(nodes)), (), 1, LEASE, LEASE, direct, {}, lambda _: ())
        self.node = make(0, [], terms)
        self.changes: list[Change | None] = [None]
        for one in range(nodes):
            self.changes += [Change(add=one), Change(remove=one)]
        self.closings: dict[tuple[Collected, int], set[int]] = {}

    def explore(self) -> tuple[int, str]:
        """All states, and what is wrong in the first one that is."""
        seen = {self.birth}
        met: set[State] = set()  # with the numbers that nodes have
        rows = [self.birth]
        for state in rows:
            for following in self.steps(state):
                if following in met:
                    continue
                met.add(following)
                after = self.in_order(following)
                if after not in seen:
                    seen.add(after)
                    rows.append(after)
                    wrong = self.wrong(after)
                    if wrong:
                        return len(seen), wrong
        return len(seen), ""

    def ledger(self, ledgers: Ledgers, epoch: int) -> Written:
        found = self.first if epoch == 0 else ledgers[epoch - 1]
        assert isinstance(found, Written)
        return found

    # -- what can happen -----------------------------------------------------------------------

    def steps(self, state: State) -> Iterator[State]:
        for epoch, ledger in enumerate(state[3], start=1):
            if isinstance(ledger, Written):
                yield from self.adoptions(state, epoch, ledger)
            else:
                yield from self.promises(state, epoch, ledger)
                yield from self.closes(state, epoch, ledger)

    def promises(self, state: State, epoch: int, open_: Collected) -> Iterator[State]:
        promised, adopted, surrendered, ledgers = state
        for node in range(self.size):
            if promised[node] >= epoch:
                continue
            now, known = replaced(promised, node, epoch), adopted[node]
            reporters, latest = open_.reporters | 1 << node, max(open_.latest, known)
            report = Collected(reporters, latest, open_.tokens)
            yield now, adopted, surrendered, with_one(ledgers, epoch, report)
            former = self.ledger(ledgers, known)
            if self.once and surrendered >> known & 1:
                continue
            if is_quorum(former.confirmed, former.members):
                report = report._replace(tokens=open_.tokens | 1 << known)
                yield now, adopted, surrendered | 1 << known, with_one(ledgers, epoch, report)

    def closes(self, state: State, epoch: int, open_: Collected) -> Iterator[State]:
        promised, adopted, surrendered, ledgers = state
        if open_.reporters == 0:
            return
        before = self.ledger(ledgers, open_.latest).members
        for members in self.closings_of(open_, before):
            renewable = 0
            for earlier in range(epoch):
                if earlier == 0 or isinstance(ledgers[earlier - 1], Written):
                    loyal = [node for node in range(self.size) if promised[node] <= earlier]
                    if is_quorum(bits_of(tuple(loyal)), self.ledger(ledgers, earlier).members):
                        renewable |= 1 << earlier
            written = Written(members, open_.latest, open_.reporters, renewable, 0)
            yield promised, adopted, surrendered, with_one(ledgers, epoch, written)

    def closings_of(self, open_: Collected, before: int) -> set[int]:
        """The members that the layer would write, whatever change was proposed."""
        found = self.closings.get((open_, before))
        if found is None:
            found = {self.closed(open_, before, change) for change in self.changes} - {0}
            self.closings[open_, before] = found
        return found

    def closed(self, open_: Collected, before: int, change: Change | None) -> int:
        """0 if the reports do not suffice."""
        known = Epoch(open_.latest, 0, 1) if open_.latest > 0 else NO_EPOCH
        config = Config(known, nodes_of(before), 1, LEASE)
        self.node.member.propose(change)
        proposal = self.node.member.proposal
        assert proposal is not None
        self.node.member.proposal = None
        proposal.epoch = Epoch(open_.latest + 1, 0, 1)
        proposal.reports = {}
        token = TokenState(known, 0, 1, (), 0) if open_.tokens >> open_.latest & 1 else None
        for node in nodes_of(open_.reporters):
            seen = (NO_EPOCH, -1)
            report = Report(1, known, known, (), seen, token, None, config, False)
            proposal.reports[node] = report
            token = None
        return bits_of(proposal.config_after().members) if proposal.may_close() else 0

    def adoptions(self, state: State, epoch: int, ledger: Written) -> Iterator[State]:
        """A node that reported confirms; others may be told of it."""
        promised, adopted, surrendered, ledgers = state
        for node in range(self.size):
            if promised[node] <= epoch and adopted[node] < epoch:
                after = ledger
                if ledger.reporters >> node & 1:
                    after = ledger._replace(confirmed=ledger.confirmed | 1 << node)
                now, known = replaced(promised, node, epoch), replaced(adopted, node, epoch)
                yield now, known, surrendered, with_one(ledgers, epoch, after)

    # -- what must be true ---------------------------------------------------------------------

    def wrong(self, state: State) -> str:
        confirmed: list[tuple[int, Written]] = [(0, self.first)]
        for epoch, ledger in enumerate(state[3], start=1):
            if isinstance(ledger, Written) and is_quorum(ledger.confirmed, ledger.members):
                for earlier, _ in confirmed:
                    if ledger.known < earlier:
                        return f"epoch {epoch} does not know epoch {earlier}"
                    if ledger.renewable >> earlier & 1:
                        return f"epoch {earlier} can be renewed beside epoch {epoch}"
                confirmed.append((epoch, ledger))
        return ""

    # -- states that differ by the numbers of nodes ----------------------------------------------

    def in_order(self, state: State) -> State:
        """Nodes that were alike at first may change places."""
        promised, adopted, surrendered, ledgers = state

        columns = [marks(ledger, self.size) for ledger in ledgers]
        rows = list(zip(self.outside, promised, adopted, *columns, range(self.size), strict=True))
        order = tuple([row[-1] for row in sorted(rows)])
        if order == tuple(range(self.size)):
            return state
        return (
            tuple([promised[node] for node in order]),
            tuple([adopted[node] for node in order]),
            surrendered,
            tuple([renumbered(ledger, order) for ledger in ledgers]),
        )


def with_one(ledgers: Ledgers, epoch: int, ledger: Collected | Written) -> Ledgers:
    return (*ledgers[: epoch - 1], ledger, *ledgers[epoch:])


def sets_of(ledger: Collected | Written) -> tuple[int, ...]:
    if isinstance(ledger, Written):
        return ledger.members, ledger.reporters, ledger.confirmed
    return (ledger.reporters,)


@cache
def marks(ledger: Collected | Written, size: int) -> list[tuple[int, ...]]:
    """Of each node, in which sets of the ledger it is."""
    return [tuple([bits >> node & 1 for bits in sets_of(ledger)]) for node in range(size)]


@cache
def renumbered(ledger: Collected | Written, order: tuple[int, ...]) -> Collected | Written:
    sets = [
        sum((bits >> node & 1) << at for at, node in enumerate(order)) for bits in sets_of(ledger)
    ]
    if isinstance(ledger, Written):
        return ledger._replace(members=sets[0], reporters=sets[1], confirmed=sets[2])
    return ledger._replace(reporters=sets[0])
