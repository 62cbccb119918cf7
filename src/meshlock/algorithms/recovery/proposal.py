"""A proposal: the reports that it got, and what the proposer concludes from a quorum of them.

Rules 4, 16 and 18 to 20 as far as they concern the ledger. A proposal sends nothing and knows no
clock. It touches neither the member that made it nor the node inside.

The members that count, and the permits, are those of the latest epoch that any report knows. *top*
is the highest epoch that may live. A token is usable if it is of that epoch and its holder
surrendered it, or if its sender reported it and its receiver vouches never to accept it. Kept are
grants that were reported and that its ledger names, or without it those of nodes of that epoch.
What else the ledger names lapses, unless its own node says that it is over.
"""

from __future__ import annotations

from typing import Any

from meshlock.algorithms.actor import NIL, Frozen
from meshlock.algorithms.amounts import fits
from meshlock.algorithms.recovery.inside import tree
from meshlock.algorithms.recovery.records import (
    NEVER,
    NO_EPOCH,
    Change,
    Config,
    Entry,
    Epoch,
    Fence,
    FirstLedger,
    Participant,
    Report,
    TokenState,
    Unaccepted,
    majority,
    renamed,
    resized,
)
from meshlock.algorithms.recovery.terms import Terms
from meshlock.algorithms.subclassing import mypyc_attr
from meshlock.algorithms.variables import Variables, by_key, deadline, special


@mypyc_attr(allow_interpreted_subclasses=True)
class Proposal:
    def __init__(self, epoch: Epoch, change: Change | None, terms: Terms) -> None:
        self.terms = terms
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

    def freeze(self, now: int) -> Frozen:
        return PROPOSAL_VARIABLES.freeze(self, now)

    # -- a quorum ------------------------------------------------------------------------------

    def add(self, node: int, report: Report) -> None:
        """Rule 20: a report becomes a vote when it comes a second time; the two may arrive in any
        order. The first may have had a token."""
        known = self.reports.get(node)
        if known is not None and known.boot == report.boot and known.votes != report.votes:
            report = known._replace(votes=True)
        self.reports[node] = report

    def may_close(self) -> bool:
        if self.closed:
            return False
        members = self.config_after().members
        counted = [
            node
            for node, report in self.reports.items()
            if node in members and not report.forgot and report.votes
        ]  # rules 16 and 20
        return len(counted) >= majority(members)

    def counts(self, node: int, boot: int) -> bool:
        """A ledger is confirmed only by a node that promised, and has not forgotten it since; a
        report that was no vote is no promise that counts (rules 16 and 20)."""
        if self.confirmed:
            return True
        report = self.reports.get(node)
        if not self.closed or report is None or report.forgot or not report.votes:
            return False
        return report.boot == boot

    # -- members and permits -------------------------------------------------------------------

    def latest(self) -> Config:
        """The latest epoch that a report knows has the members that count."""
        return max([report.config for report in self.reports.values()])

    def config_after(self) -> Config:
        """Of the epoch proposed."""
        change = self.change
        after = self.latest()._replace(epoch=self.epoch, lease=self.terms.lease)
        if change is None or not self.may_change(change):
            return after
        if len(change.names) > 0:
            return renamed(after, change.names, self.terms.names)
        if change.permits > 0:
            return resized(after, change.permits)
        return after._replace(members=changed_members(after.members, change))

    def may_change(self, change: Change) -> bool:
        """May this ledger have other members than the latest epoch? Majorities of two changes of
        the same members may miss each other, so a change needs the token of the latest epoch among
        the reports, and a token is reported to one proposer only (``surrender`` in
        :mod:`.holding`). docs/how-it-works/recovery.md has the argument in full, under "A change of
        members"; tests/algorithms/test_member_changes.py enumerates it for up to five members.

        The permits belong to an epoch as the members do, and change with the same right.
        """
        if change.add != NIL and not self.may_join(self.reports.get(change.add)):
            return False  # by this epoch it learns who they are: next time
        top = highest_epoch(self.reports)
        if self.latest().epoch != top:
            return False
        return find_token(self.reports, top) is not None

    def may_join(self, report: Report | None) -> bool:
        """Rule 16: a new member can vote at once, and after a restart. It has reported that its
        disk knows the members; unless every file names the first ones, so that all know them."""
        if report is None or not report.votes:
            return len(self.terms.members) > 0
        return not report.forgot

    # -- the ledger ----------------------------------------------------------------------------

    def close(self, now: int, me: int) -> FirstLedger:
        """Write the ledger. Later promises are not looked at, but for rule 19."""
        reports = self.reports
        top = self.top = highest_epoch(reports)
        usable = self.usable = find_token(reports, top)
        self.kept = tuple(kept_grants(reports, top, usable))
        self.lapsing = lapsing_grants(reports, self.kept, usable)
        config = self.config_after()
        out = sum([entry.permits for entry in self.kept + self.lapsing])
        self.closed = True
        self.closed_at = self.told_at = now
        return FirstLedger(
            self.epoch,
            config,
            self.participants(me),
            self.kept,  # not what lapses: nobody may go on with that
            len(self.kept) + len(self.lapsing),
            usable.epoch if usable is not None else NO_EPOCH,
            usable.grants if usable is not None else 0,
            not fits(out, config.permits),  # rule 15
        )

    def participants(self, me: int) -> tuple[Participant, ...]:
        nodes = (me, *sorted([node for node in self.reports if node != me]))
        fathers = tree(self.terms.near, nodes) if self.terms.fixed else (NIL,) * len(nodes)
        return tuple(
            [
                Participant(node, self.reports[node].boot, father)
                for node, father in zip(nodes, fathers, strict=True)
            ]
        )

    def find_late(self, report: Report) -> bool:
        """Rule 19: is this the token that we could not find, before we made another?"""
        token = report.token
        if token is None or self.usable is not None or token.epoch != self.top:
            return False
        self.late = True
        self.usable = token
        self.lapsing = lapsing_grants(self.reports, self.kept, token)
        return True


def thawed_proposal(frozen: Frozen, terms: Terms) -> Proposal:
    proposal = Proposal(NO_EPOCH, None, terms)
    PROPOSAL_VARIABLES.thaw(proposal, frozen)
    return proposal


def freeze_closed_at(part: Proposal, now: int) -> int:
    """Longer ago than ``wait`` is as good as just so long."""
    return max(-part.terms.wait, part.closed_at - now) if part.closed else 0


def freeze_told_at(part: Proposal, now: int) -> int:
    return max(-part.terms.wait, part.told_at - now) if part.closed else 0


def freeze_search(proposal: Proposal, now: int) -> Frozen:
    """What still matters of the search for the token."""
    if proposal.closed and (proposal.usable is None or proposal.late):
        return (proposal.top, proposal.late)
    return ()


def thaw_search(proposal: Proposal, frozen: Any) -> None:
    proposal.top, proposal.late = frozen or (NO_EPOCH, False)


PROPOSAL_VARIABLES = Variables(
    "epoch",
    "change",
    by_key("reports"),
    "closed",
    special("closed_at", freeze_closed_at),
    "usable",
    "kept",
    "lapsing",
    "confirmed",
    deadline("until"),
    special("told_at", freeze_told_at),
    special("top", freeze_search, thaw_search),
)


def highest_epoch(reports: dict[int, Report]) -> Epoch:
    """The highest epoch answered or adopted: a lower one is over, or will be in a lease."""
    return max([max(report.top, report.config.epoch) for report in reports.values()])


def find_token(reports: dict[int, Report], top: Epoch) -> TokenState | None:
    """A token of a lower epoch than one that may live is worth nothing."""
    found: TokenState | None = None
    for node in sorted(reports):
        token, sent = reports[node].token, reports[node].unaccepted
        if token is not None and token.epoch == top:
            found = token if found is None or token.hop > found.hop else found
        if sent is not None and sent.state.epoch == top:
            receiver = reports.get(sent.receiver)
            if receiver is not None and vouches(receiver, sent):
                found = sent.state if found is None or sent.state.hop > found.hop else found
    return found


def vouches(receiver: Report, sent: Unaccepted) -> bool:
    """Will that token never be accepted? Only the boot that it was sent to can say so."""
    state = sent.state
    return receiver.boot == sent.boot and receiver.hop_seen < (state.epoch, state.hop)


def kept_grants(reports: dict[int, Report], top: Epoch, usable: TokenState | None) -> list[Entry]:
    """Grants that were reported; rule 18: with the token all that it names, for the node that
    reports a grant holds it, and the node that could free it has surrendered the token. Without,
    those of nodes that belong to the latest epoch: what lapses there may be freed meanwhile."""
    entries: list[Entry] = []
    named = [entry.fence for entry in usable.ledger] if usable is not None else []
    for node in sorted(reports):
        for entry in reports[node].grants:
            belongs = reports[node].adopted == top
            if entry.fence in named or (usable is None and belongs and not entry.lapsing):
                entries.append(entry._replace(lapsing=False))
    entries.sort(key=fence_of)
    return entries


def lapsing_grants(
    reports: dict[int, Report], kept: tuple[Entry, ...], usable: TokenState | None
) -> tuple[Entry, ...]:
    """Of the old token's entries, those that may still be in use and are not kept."""
    if usable is None:
        return ()
    fences = [entry.fence for entry in kept]
    return tuple(
        [
            entry._replace(lapsing=True, numbers=())
            for entry in usable.ledger
            if entry.fence not in fences and not is_over(entry, reports.get(entry.node))
        ]
    )


def is_over(entry: Entry, report: Report | None) -> bool:
    """Its node reported without it, and so its lease is over (rule 18); unless a former life of
    it may hold the grant (rule 20)."""
    if report is None or not report.votes:
        return False
    return entry.fence not in [grant.fence for grant in report.grants]


def changed_members(members: tuple[int, ...], change: Change) -> tuple[int, ...]:
    rest = [member for member in members if member not in (change.add, change.remove)]
    if change.add != NIL:
        rest = sorted([*rest, change.add])
    return tuple(rest) if len(rest) > 0 else members


def fence_of(entry: Entry) -> Fence:
    return entry.fence
