"""A node that has long been idle asks like any other, in pools with leases and without."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import virtual

from meshlock import Node


@pytest.mark.parametrize(
    ("algorithm", "recovery"), [("direct", None), ("jiang", None), (None, "none")]
)
def test_the_most_urgent_goes_first_however_many_grants_were_not_heard_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, algorithm: str | None, recovery: str | None
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    entered: list[int] = []

    async def enter(pool: object, priority: int) -> None:
        async with pool.acquire(priority=priority):  # type: ignore[attr-defined]
            entered.append(priority)

    async def story(_: virtual.Network) -> None:
        settings = {"algorithm": algorithm, "recovery": recovery}
        given = {name: value for name, value in settings.items() if value is not None}
        async with Node("a") as one, Node("b", peers=[one.address]) as other:
            here = one.pool("docks", permits=1, **given)
            there = other.pool("docks")
            async with there.acquire():
                pass
            for _ in range(600):
                async with here.acquire():
                    pass
            grant = await here.acquire()
            asking = [(there, 1), (here, 5), (there, 2), (here, 3)]
            clients = [asyncio.create_task(enter(*one)) for one in asking]
            for _ in range(20):  # of virtual time: everybody has heard everything
                await asyncio.sleep(0.05)
            grant.release()
            await asyncio.gather(*clients)

    virtual.run(story)
    assert entered == [5, 3, 2, 1]
