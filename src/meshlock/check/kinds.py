"""All that can happen in a search, by number, and what traces, stories and leads call it."""

from __future__ import annotations

from typing import Final

# At a node, some only at one that recovers:
REQUEST, LEAVE, WITHDRAW, RENEW, PROPOSE, CHANGE, CLOSE, RESEND = range(8)
DELIVER, RESTART, FORGET, TICK, LINK_UP, LINK_DOWN, GIVE_BACK, PRIORITY = range(8, 16)
# To messages, nodes, clocks, disks and links, of which no node need know:
NEXT, DOUBLE, LOSE, CRASH, SLOW, MEET, CUT, HEAL, DIE, HANG, WRITE = range(16, 27)
# Where nodes do not recover:
UNDELIVERED, START, BREAKS, RETURNS, LATE = range(27, 32)

NAMES: Final = (
    *("request", "leave", "withdraw", "renew", "propose", "change", "close", "resend"),
    *("deliver", "restart", "forget", "tick", "link-up", "link-down", "give-back", "priority"),
    *("deliver", "double", "lose", "crash", "slow", "renew", "cut", "heal", "die", "hang"),
    *("write", "undelivered", "start", "break", "return", "deliver"),
)

OF_CLIENTS: Final = (REQUEST, LEAVE, WITHDRAW, PRIORITY, GIVE_BACK)

SHIFT: Final = 26
"""Where nodes recover, the label of a step is its kind shifted by this, plus its subject."""


def step_of(label: int) -> tuple[int, int]:
    """Kind and subject."""
    return label >> SHIFT, label & ((1 << SHIFT) - 1)


# What is left of the bounds of a search, by place in a row; from the last place on there is one per
# client: 1, it may ask; 0, it has asked; below 0, it has changed its priority: less its standing.
LEFT_PROPOSALS, LEFT_CRASHES, LEFT_FORGETS, LEFT_DOUBLES, LEFT_LOSSES = range(5)
LEFT_SLOW, LEFT_RESENDS, LEFT_CHANGES, LEFT_CUTS, LEFT_DEATHS = range(5, 10)
LEFT_HANGS, LEFT_TICKS, LEFT_REQUESTS = range(10, 13)

BUDGETS: Final = {
    PROPOSE: LEFT_PROPOSALS,
    CHANGE: LEFT_CHANGES,
    CRASH: LEFT_CRASHES,
    FORGET: LEFT_FORGETS,
    DOUBLE: LEFT_DOUBLES,
    LOSE: LEFT_LOSSES,
    SLOW: LEFT_SLOW,
    RESEND: LEFT_RESENDS,
    CUT: LEFT_CUTS,
    DIE: LEFT_DEATHS,
    HANG: LEFT_HANGS,
}
"""What each step spends of them."""
