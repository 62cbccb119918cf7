"""A certificate that is foreign, expired or not valid yet is named as what it is."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import meshlock
from meshlock import Refused
from waiting import eventually, run_in_real_time

pytest.importorskip("cryptography")

from meshlock.live.links import certificates, identity, security
from meshlock.live.links.certificates import Authority

NOW = datetime.now(UTC)
DAY = timedelta(days=1)
EXPIRED = (NOW - 20 * DAY, NOW - 10 * DAY)
NOT_YET = (NOW + 10 * DAY, NOW + 20 * DAY)
SECRET = "only the nodes know this"


class At(datetime):
    """A clock that says something else."""

    said = NOW

    @classmethod
    def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
        return cls.said


@pytest.mark.parametrize("away", [-2 * DAY, -50 * 365 * DAY, 100 * 365 * DAY])
def test_what_is_made_from_a_secret_does_not_depend_on_the_clock(
    monkeypatch: pytest.MonkeyPatch, away: timedelta
) -> None:
    monkeypatch.setattr(certificates, "datetime", At)
    monkeypatch.setattr(At, "said", NOW + away)
    here = Authority.derived(SECRET)
    monkeypatch.setattr(At, "said", NOW)
    there = Authority.derived(SECRET)
    for one in (here, here.issue("a"), there, there.issue("b")):
        found = one.certificate
        assert found.not_valid_before_utc == datetime(1970, 1, 1, tzinfo=UTC)
        assert found.not_valid_after_utc.year == 9999


def test_nodes_with_a_secret_link_whatever_the_date(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """TLS goes by the clock of the machine, the certificates of one node by another."""
    monkeypatch.setattr(certificates, "datetime", At)
    monkeypatch.setattr(identity, "datetime", At)

    async def story() -> None:
        At.said = NOW + 3 * DAY
        async with meshlock.Node("a", secret=SECRET, state=None) as a:
            At.said = NOW - 400 * DAY
            async with (
                meshlock.Node("b", secret=SECRET, peers=[a.address], state=None) as b,
                b.pool("docks", permits=1).acquire(),
            ):
                assert "a" in b.status()["links"]

    run_in_real_time(story)


def folder_of(
    path: Path,
    name: str,
    authority: Authority,
    valid: tuple[datetime, datetime] | None = None,
) -> Path:
    path.mkdir(exist_ok=True)
    authority.valid = None
    authority.save(path / "ca")
    authority.valid = valid
    authority.issue(name).save(path / name)
    authority.valid = None
    return path


def loaded(folder: Path, name: str) -> security.Security:
    return security.by_certificate(
        folder / "ca.crt", folder / f"{name}.crt", folder / f"{name}.key"
    )


def test_a_certificate_that_is_not_valid_is_refused_at_the_start(tmp_path: Path) -> None:
    authority = Authority.new()
    for valid, why in (
        (EXPIRED, r"/x/a\.crt has expired on \d{4}-\d\d-\d\d: make a new one with 'meshlock cer"),
        (NOT_YET, r"/x/a\.crt is not valid yet: it is from .*, and the clock of this machine says"),
    ):
        folder = folder_of(tmp_path / "x", "a", authority, valid)
        with pytest.raises(Refused, match=why):
            loaded(folder, "a")
    folder = folder_of(tmp_path / "x", "a", authority)
    loaded(folder, "a")
    Authority.new().save(folder / "ca")
    with pytest.raises(Refused, match=r"a\.crt was not issued by the authority in .*ca\.crt: use"):
        loaded(folder, "a")


def reasons(caplog: pytest.LogCaptureFixture, event: str) -> list[str]:
    return [
        str(record.details["reason"])  # type: ignore[attr-defined]
        for record in caplog.records
        if record.message.startswith(event)
    ]


REASONS = {
    "expired": (
        EXPIRED,
        r"the certificate of bad expired on [\d-]+, and the clock of its peer says",
    ),
    "not yet": (NOT_YET, r"the certificate of bad is valid only from [\d-]+, and the clock of its"),
    "foreign": (None, "the peer has another secret or authority"),
}


@pytest.mark.parametrize("dials", ["good", "bad"])
@pytest.mark.parametrize("kind", REASONS)
def test_both_ends_name_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
    kind: str,
    dials: str,
) -> None:
    """As if the certificate of one had gone bad while it ran."""
    monkeypatch.setattr(identity, "refuse_by_date", lambda *_: None)
    authority = Authority.new()
    valid, seen = REASONS[kind]
    other = Authority.new() if kind == "foreign" else authority
    good = folder_of(tmp_path / "good", "good", authority)
    bad = folder_of(tmp_path / "bad", "bad", other, valid)
    folders = {"good": good, "bad": bad}
    waits = "bad" if dials == "good" else "good"

    async def story() -> None:
        async with meshlock.Node(waits, certificates=folders[waits], state=None) as one:
            peers = [one.address]
            async with meshlock.Node(dials, certificates=folders[dials], peers=peers, state=None):
                for event in ("no link", "refused"):
                    await eventually(lambda event=event: reasons(caplog, event))

    with caplog.at_level(logging.WARNING, "meshlock"):
        run_in_real_time(story)
    for event in ("no link", "refused"):
        assert all(re.search(seen, why) for why in reasons(caplog, event)), reasons(caplog, event)


AWAY: ContextVar[timedelta] = ContextVar("how wrong a node's clock is", default=timedelta())
"""A node's links are made in the context in which it was started."""


class Shown(datetime):
    """What the clock of the node shows that asks."""

    @classmethod
    def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
        return datetime.now(UTC) + AWAY.get()


@pytest.fixture
def wrong_clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(security, "time", lambda: time.time() + AWAY.get().total_seconds())
    monkeypatch.setattr(identity, "datetime", Shown)
    monkeypatch.setattr(certificates, "datetime", Shown)


def node(away: timedelta, name: str, **how: object) -> Callable[..., meshlock.Node]:
    def made(peers: list[str]) -> meshlock.Node:
        AWAY.set(away)
        return meshlock.Node(name, peers=peers, state=None, **how)  # type: ignore[arg-type]

    return made


TWO_DAYS_BEHIND = -2 * DAY


@pytest.mark.parametrize("dials", ["late", "sound"])
@pytest.mark.usefixtures("wrong_clocks")
def test_a_clock_two_days_behind_is_named_at_both_ends(
    caplog: pytest.LogCaptureFixture, tmp_path: Path, dials: str
) -> None:
    """The certificate of the sound node is of today: the late one cannot know that it is valid."""
    AWAY.set(-90 * DAY)
    authority = Authority.new()
    late = node(
        TWO_DAYS_BEHIND, "late", certificates=folder_of(tmp_path / "old", "late", authority)
    )
    AWAY.set(0 * DAY)
    sound = node(0 * DAY, "sound", certificates=folder_of(tmp_path / "new", "sound", authority))
    first, second = (sound, late) if dials == "late" else (late, sound)

    async def story() -> None:
        async with first([]) as one, second([one.address]):
            await eventually(lambda: reasons(caplog, "no link") and reasons(caplog, "refused"))

    with caplog.at_level(logging.WARNING, "meshlock"):
        run_in_real_time(story)
    behind = f"{datetime.now(UTC) + TWO_DAYS_BEHIND:%Y-%m-%d}"
    for reason in reasons(caplog, "no link") + reasons(caplog, "refused"):
        assert "the certificate of sound is valid only from" in reason
        assert f"the clock of its peer says {behind}" in reason


@pytest.mark.parametrize("dials", ["late", "sound"])
@pytest.mark.usefixtures("wrong_clocks")
def test_a_clock_two_days_behind_is_no_matter_to_a_secret(dials: str) -> None:
    late, sound = (
        node(away, name, secret=SECRET)
        for away, name in ((TWO_DAYS_BEHIND, "late"), (0 * DAY, "sound"))
    )
    first, second = (sound, late) if dials == "late" else (late, sound)

    async def story() -> None:
        async with (
            first([]) as one,
            second([one.address]) as other,
            other.pool("docks", permits=1).acquire(),
        ):
            assert one.name in other.status()["links"]

    run_in_real_time(story)


@pytest.mark.usefixtures("wrong_clocks")
def test_a_clock_two_days_behind_is_named_at_the_start(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "x", "late", Authority.new())
    AWAY.set(TWO_DAYS_BEHIND)
    with pytest.raises(
        Refused, match=r"is not valid yet: .* the clock of this machine says .* Set the"
    ):
        loaded(folder, "late")
