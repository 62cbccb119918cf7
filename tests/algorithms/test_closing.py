"""Closing a proposal: which promises suffice, who the members are then, which token is usable."""

from __future__ import annotations

import pytest
from tables import Case, cases

from meshlock.algorithms.recovery.proposal import Proposal
from meshlock.algorithms.recovery.records import (
    NO_EPOCH,
    Change,
    Config,
    Epoch,
    Report,
    TokenState,
    Unaccepted,
)
from meshlock.algorithms.recovery.terms import Terms
from meshlock.algorithms.registry import find

LEASE = 300
TERMS = Terms((0, 1, 2, 3, 4), (0, 1, 2), 1, LEASE, LEASE + 6, find("direct"), {}, lambda node: ())


def epoch(number: str) -> Epoch:
    return Epoch(int(number), 0, 1)


def report(words: list[str]) -> Report:
    """What follows each word, to the next one."""
    flags = {word for word in ("token", "forgot", "quiet") if word in words}
    words = [word for word in words if word not in flags and word != "to"]
    said = dict(zip(words[::2], words[1::2], strict=True))
    known = epoch(said["knows"])
    members = tuple(int(node) for node in said["members"].split(","))
    state = TokenState(known, 0, 1, (), 0)
    seen, _, hop = said.get("has-seen", "").partition(".")
    return Report(
        boot=int(said.get("boot", "1")),
        top=epoch(said.get("answered", said["knows"])),
        adopted=known,
        grants=(),
        hop_seen=(epoch(seen), int(hop)) if seen else (NO_EPOCH, -1),
        token=state if "token" in flags else None,
        unaccepted=Unaccepted(state, int(said["sent"]), 1) if "sent" in said else None,
        config=Config(known, members, 1, LEASE),
        forgot="forgot" in flags,
        votes="quiet" not in flags,
    )


def decided(case: Case) -> str:
    change = None
    reports = {}
    for word, rest in case.given:
        first, *more = rest.split()
        if word == "change":
            change = Change(**{first: int(more[0])})
        else:
            reports[int(first)] = report(more)
    proposal = Proposal(epoch("9"), change, TERMS)
    proposal.reports = reports
    if not proposal.may_close():
        return "waits"
    ledger = proposal.close(0, 0)
    members = ",".join(map(str, ledger.config.members))
    token = "without a token" if proposal.usable is None else "with the token"
    return f"closes members {members} permits {ledger.config.permits} {token}"


@pytest.mark.parametrize("case", cases("closing"), ids=lambda case: case.name)
def test_a_proposal_is_closed_as_the_table_says(case: Case) -> None:
    assert decided(case) == case.expected
