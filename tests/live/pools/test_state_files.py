"""State files that are damaged, and disks that refuse: said in a sentence, and never believed."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from unittest import mock

import msgspec
import pytest
import virtual
from virtual import Network

from meshlock import Node, NotInTime, Refused
from meshlock.live.interfaces.exposition import exposition
from meshlock.live.interfaces.http import unready
from meshlock.live.pools import promises
from meshlock.live.pools.change_requests import MAY_STILL
from meshlock.live.pools.promises import Promised, Promises, verified
from waiting import LIMIT, a_while, eventually

LEASE = 0.6


def written(folder: Path) -> bytes:
    async def story(_: Network) -> None:
        async with Node("a", state=folder) as node:
            await node.pool("docks", 3, lease=LEASE).acquire(timeout=LIMIT)

    virtual.run(story)
    return (folder / "docks.promised").read_bytes()


def test_no_flipped_bit_and_no_torn_file_is_believed(tmp_path: Path) -> None:
    data = written(tmp_path)
    verified(data)
    damaged = [data[:length] for length in range(len(data))]
    for place in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[place // 8] ^= 1 << place % 8
        damaged.append(bytes(flipped))
    for one in damaged:
        with pytest.raises(ValueError, match="it is damaged"):
            verified(one)


def test_a_damaged_file_is_refused_with_what_to_do(tmp_path: Path) -> None:
    data = written(tmp_path)
    path = tmp_path / "docks.promised"
    path.write_bytes(data[:-1])
    with pytest.raises(Refused) as refused:
        Promises(tmp_path).read("docks", Promised)
    assert str(refused.value) == (
        f"Cannot use {path}: it is damaged: its checksum is wrong. Remove the file: the node then "
        "starts like one that has lost its state, and has no vote until the other members give it "
        "one."
    )


def test_files_of_the_former_version_are_read(tmp_path: Path) -> None:
    body = written(tmp_path).partition(b"\n")[2]
    path = tmp_path / "docks.promised"
    path.write_bytes(body)
    found = Promises(tmp_path).read("docks", Promised)
    assert found is not None and msgspec.json.encode(found) == body


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EIO])
def test_a_disk_that_refuses_is_named_everywhere_and_what_timed_out_holds_nothing(
    tmp_path: Path, number: int
) -> None:
    async def story(_: Network) -> None:
        async with Node("a", state=tmp_path) as node:
            docks = node.pool("docks", 3, lease=LEASE)
            (await docks.acquire(timeout=LIMIT)).release()
            fails = mock.patch.object(promises.os, "fsync", side_effect=OSError(number, "no"))
            with fails:
                source = node._local.pools["docks"]
                source.adapter.before().propose()  # type: ignore[attr-defined]
                source.adapter.carry_out("timer", {})
                await eventually(lambda: bool(unready(node.status()["pools"]["docks"])))
                why = f"the disk refuses: cannot write {tmp_path / 'docks.promised'}: "
                why += os.strerror(number).lower()
                with pytest.raises(NotInTime) as late:
                    await docks.acquire(2, timeout=1.0)
                assert str(late.value) == f"No permits of docks within 1 s: {why}."
                with pytest.raises(NotInTime) as late:
                    await docks.acquire(timeout=0)
                assert str(late.value) == f"No permits of docks at once: {why}."
                with pytest.raises(TimeoutError) as never:
                    await docks.set_permits(4, timeout=1.0)
                said = f"The pool docks did not change within 1 s: {why}."
                assert str(never.value) == f"{said}{MAY_STILL}"
                said = node.status()["pools"]["docks"]
                assert unready(said) == said["why"] == why
                assert 'meshlock_disk_refuses{pool="docks"} 1.0' in exposition(node._local)
                assert not source.adapter.members.node.member.grants  # type: ignore[union-attr]
            await a_while(LEASE)
            async with docks.acquire(3, timeout=LIMIT):
                assert unready(node.status()["pools"]["docks"]) == ""

    virtual.run(story)
