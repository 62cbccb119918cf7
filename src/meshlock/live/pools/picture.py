"""Who holds what and who waits, in the whole mesh, put together from what nodes told.

Under leases what is held stands in the ledger that goes with the token, so it is that of one
moment, and never more than there is. Without, nodes speak for themselves and at different
moments; what cannot be true together is left out, the oldest first.
"""

from __future__ import annotations

from collections.abc import Mapping

from meshlock.live.pools.status import GrantView, Picture
from meshlock.live.pools.views import View, place, shown_place


def picture(views: Mapping[str, View]) -> Picture:
    """As plain values; the caller adds ``why``."""
    known = {name: view for name, view in views.items() if view.known}
    permits = max((view.permits for view in known.values()), default=0)
    token = min((name for name, view in known.items() if view.token_here), default=None)
    inside: list[GrantView] = []
    free: int | None = None
    held: int | None = None
    surplus = 0
    if any(view.members for view in known.values()):
        told = [(view.ledger.at, name) for name, view in known.items() if view.ledger is not None]
        if told:
            token = max(told)[1]
            ledger = known[token].ledger
            assert ledger is not None
            inside = [labelled(one, known.get(one["node"])) for one in ledger.entries]
            permits = ledger.free + ledger.out
            free, surplus = max(0, ledger.free), max(0, -ledger.free)
            held = permits - free
    else:
        own = [one for view in known.values() for one in view.holding]
        own.sort(key=lambda one: one["seconds"])
        held = 0
        for one in own:
            if held + one["want"] <= permits:
                inside.append(one)
                held += one["want"]
        if token is not None:
            free = min(known[token].free_here, permits - held)
    have = {(one["node"], one["client"]) for one in inside}
    waiting = [
        one
        for view in known.values()
        for one in view.waiting
        if (one["node"], one["client"]) not in have
    ]
    waiting.sort(key=lambda one: (shown_place(one), one["node"]))
    unlisted = sum(view.waits - len(view.waiting) for view in known.values())
    return {
        "permits": permits,
        "token": token,
        "free": free,
        "held": held,
        "surplus": surplus,
        "holding": inside,
        "waiting": waiting,
        "queued": len(waiting) + unlisted,
        "why": "",
    }


def refusing_disks(views: Mapping[str, View], here: str, found: Picture) -> str:
    """That a disk keeps everybody from being served: that of the node with the token, or any
    where nobody has a token that grants. Else nothing."""
    told = {name: view.disk for name, view in views.items() if view.disk}
    if found["held"] is not None and found["token"] not in told:
        return ""
    if here in told:
        return told[here]
    return "; ".join([f"{name} says: {why}" for name, why in sorted(told.items())])


def labelled(one: GrantView, view: View | None) -> GrantView:
    """Who has a grant that was made by another node its own node says, at first only to
    the node that asks."""
    if one["client"] == 0 and one["label"] == "" and view is not None:
        for own in view.holding:
            if own["fence"] == one["fence"]:
                return {**one, "client": own["client"], "label": own["label"]}
    return one


def ahead(found: Picture, priority: int, deadline: float | None, waited: float) -> str:
    """In words, how many of those who wait are before one who has waited so long."""
    mine, others = place(priority, deadline, waited), found["waiting"]
    number = len([one for one in others if shown_place(one) < mine])
    if number == 0:
        return ""
    least = "at least " if found["queued"] > len(others) else ""
    requests = "one request" if number == 1 else f"{number} requests"
    return f", {least}{requests} ahead of you"
