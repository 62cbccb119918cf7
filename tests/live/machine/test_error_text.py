"""Why there is no link, in words: real failures of real sockets."""

from __future__ import annotations

import asyncio
import logging

import pytest

import meshlock
from meshlock.live.links.dialler import split
from meshlock.live.machine.error_text import error_text
from ports import free_port
from waiting import run_in_real_time

SECRETS = ("sixteen letters!", "sixteen numbers?")


def reason_for(caplog: pytest.LogCaptureFixture, address: str, secret: str | None) -> str:
    """What a node says when it dials this address in vain."""

    async def dial() -> None:
        async with meshlock.Node("x", peers=[address], secret=secret):
            while not any("no link" in record.message for record in caplog.records):
                await asyncio.sleep(0.01)

    caplog.clear()
    with caplog.at_level(logging.WARNING, "meshlock"):
        run_in_real_time(dial)
    said = [record for record in caplog.records if "no link" in record.message]
    return str(said[0].details["reason"])  # type: ignore[attr-defined]


def test_nobody_and_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    closed = f"127.0.0.1:{free_port()}"
    assert reason_for(caplog, closed, None) == "connection refused: nothing listens there"
    assert reason_for(caplog, "nowhere.invalid:7400", None).startswith("no such host")


@pytest.mark.parametrize(
    ("theirs", "said"),
    [
        (SECRETS[1], "the peer has another secret or authority"),
        (None, "the peer does not use TLS: does it have a secret or certificates?"),
    ],
)
def test_another_secret_and_none(
    caplog: pytest.LogCaptureFixture, theirs: str | None, said: str
) -> None:
    pytest.importorskip("cryptography")
    with meshlock.BlockingNode("a", secret=theirs) as other:
        assert reason_for(caplog, other.address, SECRETS[0]) == said


def test_what_has_no_words_is_at_least_named() -> None:
    assert error_text(ConnectionResetError()) == "connection closed by peer"
    assert error_text(OSError(28, "whatever")) == "no space left on device"
    assert error_text(ValueError()) == "ValueError"


def test_an_address_that_cannot_be_listened_at() -> None:
    async def listen(place: str) -> None:
        async with meshlock.Node("a", listen=place):
            pass

    with pytest.raises(meshlock.Refused, match=r"Cannot listen at nowhere.invalid:1: no such"):
        asyncio.run(listen("nowhere.invalid:1"))
    with pytest.raises(meshlock.Refused, match="the port must be at most 65535"):
        asyncio.run(listen("127.0.0.1:99999"))
    assert split("[::1]:65535") == ("::1", 65535)
