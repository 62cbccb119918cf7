"""What a proposer concludes from the reports of a majority; nothing here changes anything.

The members that count are those of the latest epoch that anybody knows. *top* is the highest
epoch that may live. A token is usable if it is of that epoch and somebody handed it over, or had
sent it to one that vouches never to take it. Kept are grants that were reported, by nodes of that
epoch; what else the old token's ledger names lapses, unless its own node says that it is over.
"""

from __future__ import annotations

from meshlock.algorithms.recovery.messages import (
    Config,
    Doubt,
    Entry,
    Epoch,
    Fence,
    Papers,
    Report,
)
from meshlock.algorithms.recovery.state import Proposal, State, majority


class Reading(State):
    def may_close(self) -> bool:
        proposal = self.proposal
        if proposal is None or proposal.closed:
            return False
        members = self.after(proposal)
        counted = [node for node in proposal.reports if node in members]
        return len(counted) >= majority(members)

    def latest(self, proposal: Proposal) -> Config:
        """Who knows the latest epoch knows the members that count."""
        return max([report[7] for report in proposal.reports.values()])

    def after(self, proposal: Proposal) -> tuple[int, ...]:
        """The members of the epoch proposed."""
        latest = self.latest(proposal)
        if proposal.change is None or latest[0] != proposal.reports[self.me][2]:
            return latest[1]
        added, node = proposal.change
        rest = [member for member in latest[1] if member != node]
        if added:
            rest = sorted([*rest, node])
        return tuple(rest) if len(rest) > 0 else latest[1]

    def top(self, reports: dict[int, Report]) -> Epoch:
        """The highest epoch answered or adopted: a lower one is over, or will be in a lease."""
        return max([max(report[1], report[7][0]) for report in reports.values()])

    def find_token(self, reports: dict[int, Report], top: Epoch) -> Papers | None:
        found: Papers | None = None
        for node in sorted(reports):
            papers, doubt = reports[node][5], reports[node][6]
            if papers is not None and self.is_current(papers[0], top):
                found = papers if found is None or papers[1] > found[1] else found
            if doubt is not None and self.is_current(doubt[0][0], top):
                receiver = reports.get(doubt[1])
                if receiver is not None and self.vouches(receiver, doubt):
                    found = doubt[0] if found is None or doubt[0][1] > found[1] else found
        return found

    def is_current(self, epoch: Epoch, top: Epoch) -> bool:
        """A token of a lower epoch than one that may live is worth nothing."""
        return epoch == top

    def vouches(self, receiver: Report, doubt: Doubt) -> bool:
        """Will that TOKEN never be received? Only the boot that it was sent to can say so."""
        papers, _, boot = doubt
        return receiver[0] == boot and receiver[4] < (papers[0], papers[1])

    def kept(self, reports: dict[int, Report], top: Epoch, usable: Papers | None) -> list[Entry]:
        """Grants that were reported, by nodes that belong to the latest epoch."""
        entries: list[Entry] = []
        for node in sorted(reports):
            if self.belongs(reports[node], top):
                entries += [(node, fence, h, False) for fence, h in reports[node][3]]
        if usable is not None:
            named = [entry[1] for entry in usable[3]]
            entries = [entry for entry in entries if entry[1] in named]
        entries.sort(key=fence_of)
        while sum([entry[2] for entry in entries]) > self.pool.permits:
            entries.pop(0)
        return entries

    def belongs(self, report: Report, top: Epoch) -> bool:
        return report[2] == top

    def lapse(
        self, reports: dict[int, Report], kept: list[Entry], usable: Papers | None
    ) -> tuple[Entry, ...]:
        """Of the old token's entries, those that may still be in use and are not kept."""
        if usable is None:
            return ()
        fences = [entry[1] for entry in kept]
        return tuple(
            [
                (entry[0], entry[1], entry[2], True)
                for entry in usable[3]
                if entry[1] not in fences and not self.is_free(entry, reports.get(entry[0]))
            ]
        )

    def is_free(self, entry: Entry, report: Report | None) -> bool:
        """Its node reported without it; but what was lapsing may run where nobody reports it."""
        if report is None or entry[3]:
            return False
        return entry[1] not in [fence for fence, _ in report[3]]


def fence_of(entry: Entry) -> Fence:
    return entry[1]
