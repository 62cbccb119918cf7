"""What a proposer concludes from the reports of a quorum; nothing here changes anything.

The members that count, and the permits, are those of the latest epoch that anybody knows. *top* is
the highest epoch that may live. A token is usable if it is of that epoch and somebody surrendered
it, or had sent it to one that vouches never to accept it. Kept are grants that were reported and
that its ledger names, or without it those of nodes of that epoch; what else the ledger names
lapses, unless its own node says that it is over.
"""

from __future__ import annotations

from meshlock.algorithms.interface import NIL
from meshlock.algorithms.recovery.records import (
    Change,
    Config,
    Entry,
    Epoch,
    Fence,
    Report,
    TokenState,
    Unaccepted,
    majority,
    renamed,
    resized,
)
from meshlock.algorithms.recovery.state import Proposal, State
from meshlock.algorithms.subclassing import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class Conclusions(State):
    def may_close(self) -> bool:
        proposal = self.proposal
        if proposal is None or proposal.closed:
            return False
        members = self.config_after(proposal).members
        counted = [
            node
            for node, report in proposal.reports.items()
            if node in members and self.knows_members(report)
        ]
        return len(counted) >= majority(members)

    def knows_members(self, report: Report) -> bool:
        """Rule 16."""
        return not report.forgot

    def latest(self, proposal: Proposal) -> Config:
        """Who knows the latest epoch knows the members that count."""
        return max([report.config for report in proposal.reports.values()])

    def config_after(self, proposal: Proposal) -> Config:
        """Of the epoch proposed."""
        latest, change = self.latest(proposal), proposal.change
        after = latest._replace(epoch=proposal.epoch, lease=self.terms.lease)
        if change is None or not self.may_change(proposal, change):
            return after
        if len(change.names) > 0:
            return renamed(after, change.names, self.terms.names)
        if change.permits > 0:
            return resized(after, change.permits)
        return after._replace(members=changed_members(after.members, change))

    def may_change(self, proposal: Proposal, change: Change) -> bool:
        """May this ledger have other members than the latest epoch?

        The members belong to an epoch: each node that adopts it writes them to disk. A proposer
        takes the members of the latest epoch that any report names, and makes its change. A
        majority of the result must promise and confirm. A change needs the token of the latest
        epoch among the reports. Why that is enough:

        1.  Majorities before and after one change intersect. If both epochs are confirmed, a node
            in both majorities confirmed the earlier one before it promised the later one. So the
            later one knows the earlier one, as if there were no change.
        2.  Majorities of two changes of the same members may miss each other, if the number of
            members is even. So only one of these changes may be made. The token of an epoch is
            reported to one proposal only, whether it is held or under way
            (:meth:`~.quorum.Quorum.surrender`). So it is among the reports of one ledger at most.
        3.  A token exists only if its epoch was confirmed. So a majority of the members before it
            knows that epoch. A proposer that goes by still older members meets one of them.
        4.  A change that was written and not confirmed does no harm: what counts is the epoch
            adopted last, not the last change.

        tests/algorithms/test_member_changes.py enumerates 1 and 2 for up to five members. It also
        explores all orders in which up to three epochs are promised, closed and confirmed, and
        shows what happens if a token is reported twice, or members change without it.

        The permits belong to an epoch as the members do, and change with the same right.
        """
        if change.add != NIL and not self.may_join(proposal.reports.get(change.add)):
            return False  # by this epoch it learns who they are: next time
        top = self.top(proposal.reports)
        if self.latest(proposal).epoch != top:
            return False
        return self.find_token(proposal.reports, top) is not None

    def may_join(self, report: Report | None) -> bool:
        """Rule 16: who becomes a member can vote at once, and after a restart. It has told that its
        disk knows the members; unless every file names the first ones, so that all know them."""
        return self.knows_members(report) if report is not None else len(self.terms.members) > 0

    def top(self, reports: dict[int, Report]) -> Epoch:
        """The highest epoch answered or adopted: a lower one is over, or will be in a lease."""
        return max([max(report.top, report.config.epoch) for report in reports.values()])

    def find_token(self, reports: dict[int, Report], top: Epoch) -> TokenState | None:
        """A token of a lower epoch than one that may live is worth nothing."""
        found: TokenState | None = None
        for node in sorted(reports):
            token, sent = reports[node].token, reports[node].unaccepted
            if token is not None and token.epoch == top:
                found = token if found is None or token.hop > found.hop else found
            if sent is not None and sent.state.epoch == top:
                receiver = reports.get(sent.receiver)
                if receiver is not None and self.vouches(receiver, sent):
                    found = sent.state if found is None or sent.state.hop > found.hop else found
        return found

    def vouches(self, receiver: Report, sent: Unaccepted) -> bool:
        """Will that token never be accepted? Only the boot that it was sent to can say so."""
        state = sent.state
        return receiver.boot == sent.boot and receiver.hop_seen < (state.epoch, state.hop)

    def kept(
        self, reports: dict[int, Report], top: Epoch, usable: TokenState | None
    ) -> list[Entry]:
        """Grants that were reported; rule 18: with the token all that it names, for who reports a
        grant holds it, and whoever could free it has surrendered the token. Without, those of
        nodes that belong to the latest epoch: what lapses there may be freed meanwhile."""
        entries: list[Entry] = []
        named = [entry.fence for entry in usable.ledger] if usable is not None else []
        for node in sorted(reports):
            for entry in reports[node].grants:
                belongs = reports[node].adopted == top
                if entry.fence in named or (usable is None and belongs and not entry.lapsing):
                    entries.append(entry._replace(lapsing=False))
        entries.sort(key=fence_of)
        return entries

    def lapse(
        self, reports: dict[int, Report], kept: list[Entry], usable: TokenState | None
    ) -> tuple[Entry, ...]:
        """Of the old token's entries, those that may still be in use and are not kept."""
        if usable is None:
            return ()
        fences = [entry.fence for entry in kept]
        return tuple(
            [
                entry._replace(lapsing=True, numbers=())
                for entry in usable.ledger
                if entry.fence not in fences and not self.is_free(entry, reports.get(entry.node))
            ]
        )

    def is_free(self, entry: Entry, report: Report | None) -> bool:
        """Its node reported without it, and so its lease is over (rule 18)."""
        return report is not None and entry.fence not in [grant.fence for grant in report.grants]


def changed_members(members: tuple[int, ...], change: Change) -> tuple[int, ...]:
    rest = [member for member in members if member not in (change.add, change.remove)]
    if change.add != NIL:
        rest = sorted([*rest, change.add])
    return tuple(rest) if len(rest) > 0 else members


def fence_of(entry: Entry) -> Fence:
    return entry.fence
