"""A trace that cannot be written ends; the permits do not suffer from it."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import meshlock
from meshlock.trace.merge import merge
from waiting import LIMIT


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """What is written beyond fails, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def ended(caplog: pytest.LogCaptureFixture) -> list[str]:
    told = [record for record in caplog.records if "trace ended" in record.message]
    return [Path(record.details["file"]).name for record in told]  # type: ignore[attr-defined]


def test_a_full_disk_ends_the_trace_and_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def share() -> None:
        async with (
            meshlock.Node("a", trace=tmp_path) as a,
            meshlock.Node("b", trace=tmp_path, peers=[a.address]) as b,
        ):
            pools = [a.pool("docks", permits=1), b.pool("docks")]
            for _ in range(300):
                for pool in pools:
                    async with pool.acquire(timeout=LIMIT):
                        pass
            assert [pool._source.describe()["entries"] for pool in pools] == [300, 300]

    with files_of_at_most(100_000):
        asyncio.run(share())
    assert sorted(ended(caplog)) == ["docks.a.jsonl", "docks.b.jsonl"]  # once each
    assert "file too large" in caplog.text
    with (tmp_path / "merged").open("wb") as merged:  # what was written can still be read
        merge(tmp_path.glob("docks.*.jsonl"), merged, ended=False)


def test_a_trace_that_fails_only_at_the_end_is_told_too(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with files_of_at_most(100), meshlock.BlockingNode("a", trace=tmp_path, state=None) as node:
        node.pool("docks", permits=1).acquire().release()
    assert ended(caplog) == ["docks.a.jsonl"]


def test_a_folder_that_is_not_there_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with meshlock.BlockingNode("a", trace=tmp_path / "gone") as node:
        node.pool("docks", permits=1).acquire().release()
    assert "no such file or directory" in caplog.text
