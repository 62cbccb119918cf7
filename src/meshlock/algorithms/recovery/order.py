"""Who is served next.

Every request has a priority, larger is more urgent, and a *since*: how many grants had been
made when it lined up. Requests are ranked by ``since - PATIENCE * priority``, the smallest first;
of two that rank alike the one that lined up first. So one step of priority is worth
PATIENCE grants, and nobody starves: what lines up later has a larger *since*, and after PATIENCE
grants for each step it ranks behind. The first in rank is never overtaken by one that wants less.

A node lines up once, with the best of its waiting clients; among those the order is the same,
counted in grants made at the node.
"""

from __future__ import annotations

from meshlock.algorithms.recovery.messages import Asked

PATIENCE = 100

Waiting = tuple[int, int, int]
"""A client that waits: how many permits, priority, how many grants its node had made before."""

Rank = tuple[int, int]


def rank(asked: Asked) -> Rank:
    _, _, _, priority, since, _ = asked
    return (since - PATIENCE * priority, since)


def best(waiting: dict[int, Waiting]) -> int:
    """The client whose turn is next, of those that wait; of equals, who came first."""
    found = -1
    lowest = (0, 0)
    for client, (_, priority, since) in waiting.items():
        mine = (since - PATIENCE * priority, since)
        if found < 0 or mine < lowest:
            found, lowest = client, mine
    return found
