"""What a node that collects reports makes of one that it cannot believe."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from meshlock.algorithms.recovery.layer import Layer
from meshlock.algorithms.recovery.messages import Promise
from meshlock.algorithms.recovery.proposal import is_over
from meshlock.algorithms.recovery.records import NO_EPOCH, Entry, Fence, Life, Report
from meshlock.algorithms.recovery.terms import Terms
from meshlock.algorithms.registry import find, with_defaults
from meshlock.live.pools.validation import Validation

LEASE = 60


def test_grants_that_a_report_may_not_keep_lapse_and_are_not_over() -> None:
    """After k was reduced, a node that is no member reports three permits, where there is one."""
    direct = find("direct")
    options = with_defaults(direct, {})
    terms = Terms((0, 4), (0,), 1, LEASE, LEASE + 6, direct, options, lambda node: ())
    node = Layer(0, [], terms)
    node.tell_time(0)
    node.start(Life(1, alone=True, founds=True))
    member = node.member
    entry = Entry(4, Fence(member.adopted, 1), 3, False, (), "")
    report = Report(
        *(7, member.adopted, NO_EPOCH, (entry,), (NO_EPOCH, 0), None, None, member.config),
        forgot=False,
    )
    member.propose(None)
    assert member.proposal is not None
    promise = Promise(0, member.proposal.epoch, report)
    mesh: Any = SimpleNamespace(refusals=None, stored=None, time=lambda: 0.0)
    proofs: Any = None
    validation = Validation("docks", mesh, {0: "a", 4: "b"}, node, proofs)
    assert validation.doubts_report(4, promise) == ""
    assert [one.lapsing for one in promise.report.grants] == [True]
    assert not is_over(entry, promise.report)
