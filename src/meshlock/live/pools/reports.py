"""What reports of a proposal may say: those of nodes that are no members count for what they have,
and not for who the members are, or which epochs there were. A token that is claimed twice, or whose
ledger does not name what others hold, is not found: then it is waited for a lease.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from meshlock.algorithms.recovery.messages import Promise
from meshlock.algorithms.recovery.proposal import vouches
from meshlock.algorithms.recovery.records import NO_EPOCH, Report

if TYPE_CHECKING:
    from meshlock.live.pools.validation import Validation


def doubts_report(validation: Validation, sender: int, promise: Promise) -> str:
    """Of a proposal of ours. What cannot be told from the truth is taken out of it."""
    member, report = validation.member, promise.report
    proposal = member.proposal
    if proposal is None or proposal.closed or promise.epoch != proposal.epoch:
        return ""
    said = max(report.top, report.adopted, report.config.epoch)
    if validation.is_beyond(said):
        return "its epoch is too far ahead"
    if any(entry.node != sender for entry in report.grants):
        return "it reports permits that other nodes hold"
    if sender not in member.members:
        told = [one for who, one in proposal.reports.items() if who in member.members]
        if said > max([max(one.top, one.config.epoch) for one in told], default=NO_EPOCH):
            return "no member knows its epoch yet"
        config = member.config._replace(epoch=min(member.config.epoch, report.config.epoch))
        report = promise.report = report._replace(config=config)
    reports = {**proposal.reports, sender: report}
    for who in refuted(validation, reports):
        reports[who] = reports[who]._replace(token=None, unaccepted=None)
        validation.mesh.refusals.note(
            validation.pool.adapter.names.get(who, "?"), "an invalid token"
        )
    out = sum([entry.permits for one in reports.values() for entry in one.grants])
    for who, one in reports.items():
        if out > validation.most_out() and who not in member.members:
            reports[who] = one._replace(grants=())  # it lapses
    promise.report = reports.pop(sender)
    proposal.reports.update(reports)
    return ""


def refuted(validation: Validation, reports: dict[int, Report]) -> list[int]:
    """Who claims a token that others contradict."""
    claims = [(who, one.token) for who, one in reports.items() if one.token is not None]
    for who, one in reports.items():
        sent = one.unaccepted
        receiver = reports.get(sent.receiver) if sent is not None else None
        if sent is not None and receiver is not None and vouches(receiver, sent):
            claims.append((who, sent.state))
    found: list[int] = []
    for who, token in claims:
        rivals = [other for other, state in claims if state.epoch == token.epoch]
        held = [
            entry.fence
            for one in reports.values()
            if one.adopted == token.epoch
            for entry in one.grants
        ]
        named = {entry.fence for entry in token.ledger}
        if len(rivals) > 1 or validation.miscounts(token) or not named.issuperset(held):
            found.append(who)
    return found
