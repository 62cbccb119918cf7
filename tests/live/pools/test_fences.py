"""No fence of a pool comes again, even if the pool does."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import virtual
from virtual import Network

from meshlock import Node
from waiting import LIMIT

AN_INSTANT = 0.001


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("recovery", [None, "none"])
def test_a_pool_that_is_made_again_goes_on_with_higher_fences(
    tmp_path: Path, recovery: str | None, kept: bool
) -> None:
    async def story(_: Network) -> None:
        fences: list[int | None] = []
        for _ in range(4):
            await asyncio.sleep(AN_INSTANT)
            async with Node("a", state=tmp_path if kept else None) as node:
                pool = node.pool("docks", 1, recovery=recovery)
                for _ in range(3):
                    async with pool.acquire(timeout=LIMIT) as grant:
                        fences.append(grant.fence)
        assert fences == sorted(set(fences))

    virtual.run(story)
