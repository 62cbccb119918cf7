"""The walk of a default acquire: which files a request, the token and the grant pass.

    make walk

A file is on the walk if one of its functions runs, with the rest still to come, at a moment of the
message: the algorithm sends it, it becomes bytes, it leaves, it arrives, it is read, the algorithm
receives it, the client gets its grant. Files whose functions only return something to these are
counted, too, so that nobody takes the walk for all there is to read.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
import virtual

from meshlock import Node
from meshlock.algorithms import actor
from meshlock.algorithms.direct import DirectNode
from meshlock.live.links import session
from meshlock.live.links.link import LinkConnection, Splitter
from meshlock.live.pools import adapter
from meshlock.live.pools.adapter import Shape
from meshlock.live.pools.grants import Grant
from waiting import eventually
from walks import Walk

PAGE = Path(__file__).parents[3] / "docs" / "how-it-works" / "architecture.md"
MOMENTS: list[Any] = [
    actor.Actor.send,
    Shape.pack,
    session.pack_carry,
    LinkConnection.flush,
    Splitter.feed,
    Shape.message,
    DirectNode.receive,
    Grant.__init__,
]
MOST = 10
MOST_ENTERED = 25
"""Files of which any function is called between the request and its grant: no more than that."""
TIMERS = "algorithms/recovery/timers.py"
"""A timer may fire meanwhile. It is no part of the walk."""


def walk() -> Walk:
    """Two nodes; the one that has no token acquires a permit of a pool as it is by default."""
    found = Walk(MOMENTS)

    async def story(_: virtual.Network) -> None:
        async with (
            Node("a", state=None, create=True) as a,
            Node("b", state=None, peers=[a.address]) as b,
        ):
            pool, docks = a.pool("docks", permits=3), b.pool("docks")
            (await pool.acquire(timeout=60)).release()
            await eventually(lambda: b.status()["pools"]["docks"].get("epoch"))
            for one in (docks, pool):  # the token is at a, and b knows it
                (await one.acquire(timeout=60)).release()
            await eventually(lambda: a.status()["pools"]["docks"]["token_here"])
            sys.setprofile(found.note)
            try:
                grant = await docks.acquire()
            finally:
                sys.setprofile(None)
            grant.release()

    virtual.run(story)
    return found


@pytest.mark.skipif(
    not str(adapter.__file__).endswith(".py"), reason="compiled calls leave no trace"
)
def test_the_walk_of_a_default_acquire_is_short_and_the_page_names_its_files() -> None:
    found = walk()
    assert found.seen == found.moments
    assert len(found.passed) <= MOST, list(found.passed)
    entered = set(found.entered) - {TIMERS}
    assert len(entered) <= MOST_ENTERED, sorted(entered)
    text = PAGE.read_text(encoding="utf-8")
    live = text[text.index("### Live") : text.index("The holder's node runs")]
    rows = re.findall(r"(?m)^\| \[[^]]*\]\(\.\./\.\./src/meshlock/([^)]*)\)", live)
    assert set(rows) == set(found.passed), found.passed


if __name__ == "__main__":
    walk().show()
