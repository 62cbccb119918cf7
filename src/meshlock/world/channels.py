"""What becomes of a message on a link that fails: said here for runs, searches and scripts alike.

- *drain*, the papers' assumption that a failure is seen coming: it arrives before the link fails,
  and so does what its receiver then sends over the same link.
- *return*: what carries a token or permits comes back to its sender
  (:meth:`~meshlock.algorithms.actor.Actor.undelivered`); the rest is lost.
- *custody*, as between live nodes: what carries a token or permits is kept, and arrives late; the
  rest is lost. Each end of the link learns by itself what becomes of it; otherwise both at once.
- *leases*, where nodes recover: it is lost. A search lets a token or permits arrive late, too.
"""

from __future__ import annotations

from typing import Final

from meshlock.algorithms.actor import Message

DRAIN: Final = "drain"
RETURN: Final = "return"
CUSTODY: Final = "custody"
LEASES: Final = "leases"
FAILURES: Final = (DRAIN, RETURN, CUSTODY)
"""Those that may be chosen."""

ARRIVES, COMES_BACK, KEPT, LOST = range(4)


def precious(message: Message) -> bool:
    """Does it carry what must not be lost?"""
    return message.tokens() > 0 or message.permits() > 0


def fate(failures: str, message: Message) -> int:
    """Of a message on a link that fails."""
    if failures == DRAIN:
        return ARRIVES
    if failures == LEASES or not precious(message):
        return LOST
    return KEPT if failures == CUSTODY else COMES_BACK
