"""Layers that hear only what live nodes would let them: :mod:`meshlock.live.pools.validation` reads
every message first, and takes out of reports what it does not believe. Random worlds of such layers
are judged like all others.
"""

from __future__ import annotations

from collections import Counter
from copy import copy
from types import SimpleNamespace
from typing import Any

from layer_world import World

from meshlock.algorithms.actor import Effect, Message
from meshlock.algorithms.recovery.layer import Layer
from meshlock.algorithms.recovery.messages import Inner, Promise, content
from meshlock.algorithms.recovery.proposal import Proposal
from meshlock.algorithms.recovery.records import Report
from meshlock.algorithms.recovery.terms import Terms
from meshlock.live.pools.proofs import NONE_YET, Proofs
from meshlock.live.pools.validation import Validation

REFUSED: Counter[str] = Counter()
"""What was refused and noted, and why."""
DROPPED: Counter[str] = Counter()
"""What was of no use."""
REWRITTEN: Counter[str] = Counter()
"""What was changed in reports, by field."""


def labelled(client: int) -> str:
    """As live nodes say of a grant that is made now."""
    return f"{max(0, client)} 1 {NONE_YET} "


class ValidatedWorld(World):
    """Without twins, which cannot have the key of a life."""

    def twin(self, node: Layer) -> None:
        return None

    def done(self, i: int) -> None:
        node = self.nodes[i]
        assert isinstance(node, ValidatedLayer)
        for effect in self.out:
            if isinstance(effect, Inner) and len(effect.returned) > 0:
                effect.proofs = node.proofs.attach(effect.returned)
        super().done(i)


class Refusals:
    def note(self, who: str, what: str) -> None:
        REFUSED[what] += 1


class ValidatedLayer(Layer):
    def __init__(self, me: int, out: list[Effect], terms: Terms) -> None:
        super().__init__(me, out, terms)
        self.proofs = proofs = Proofs(self)
        self.notes.label = labelled
        self.notes.minted = proofs.minted
        self.notes.handed = proofs.handed
        mesh: Any = SimpleNamespace(
            refusals=Refusals(),
            stored=SimpleNamespace(add=lambda sender, size: True, remove=lambda sender, size: None),
            link_map=SimpleNamespace(records={}),
            time=lambda: 0.0,
        )
        names = {node: str(node) for node in terms.nodes}
        self.validation = Validation("docks", mesh, names, self, proofs)

    def receive(self, message: Message) -> None:
        message = copy(message)
        before = said(message, self.member.proposal)
        admitted = self.validation.admits(str(message.sender), message, 100)
        note_changes(before, said(message, self.member.proposal))
        if admitted:
            super().receive(message)
        else:
            DROPPED[content(message).kind] += 1


def said(message: Message, proposal: Proposal | None) -> dict[int, Report]:
    """The report that comes, and those that were there."""
    reports = dict(proposal.reports) if proposal is not None else {}
    if isinstance(message, Promise):
        reports[-1] = message.report
    return reports


def note_changes(before: dict[int, Report], after: dict[int, Report]) -> None:
    for who, report in before.items():
        for field, old, new in zip(Report._fields, report, after[who], strict=True):
            if old != new:
                REWRITTEN[field] += 1
