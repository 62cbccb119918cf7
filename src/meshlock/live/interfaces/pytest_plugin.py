"""Tests that take permits before they start: ``@pytest.mark.permits("boards", 2)``.

pytest imports this file wherever meshlock is installed. So it imports nothing of meshlock before a
test has the marker.

Tests cannot deadlock: each process asks for one pool after the other, in the order of their names,
and is refused a pool that comes before one that it holds.
"""

from __future__ import annotations

import time
from collections import defaultdict
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from meshlock.live.pools.grants import BlockingGrant
LISTED = 5  # of the requests that waited for a pool, the longest
SHOWN = 0.05  # seconds; shorter waits are not listed
NO_AGENT = "--permits-no-agent"
PROPERTY = "permits"
COULD_DEADLOCK = (
    "To wait for permits of {one} while {later} is held for longer could deadlock: hold {one} as "
    "long, or give the pools names in the other order."
)
SCOPES: dict[str, Any] = {"test": pytest.Item, "class": pytest.Class, "module": pytest.Module}


class MarkedRequest(NamedTuple):
    """What one marker asks for."""

    pool: str
    want: int = 1
    priority: int = 0
    timeout: float | None = None
    permits: int | list[str] | tuple[str, ...] | None = None
    hold: str = "test"


class PermitsHeld:
    """By this process, for the test that runs and the module and class that it belongs to."""

    def __init__(self) -> None:
        self.grants: dict[str, BlockingGrant] = {}
        self.nodes: dict[str, object] = {}  # permits are held until all its tests have run

    def release(self, needed: set[object]) -> None:
        """All but those of these nodes."""
        for pool in [pool for pool, node in self.nodes.items() if node not in needed]:
            del self.nodes[pool]
            self.grants.pop(pool).release()

    def lost(self) -> list[str]:
        return [pool for pool, grant in self.grants.items() if grant.lost]


HELD = pytest.StashKey[PermitsHeld]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("permits", "permits of meshlock").addoption(
        NO_AGENT,
        choices=("error", "skip"),
        default="error",
        help="what becomes of tests with the marker 'permits' if no agent answers (default: error)",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "permits(pool, want=1, *, priority=0, timeout=None, permits=None, hold='test'): take this "
        "many permits of the pool before the test; hold them through the 'test', its 'class' or "
        "its 'module'. With 'permits' the pool is made if there is none.",
    )
    config.stash[HELD] = PermitsHeld()


@pytest.fixture(scope="session")
def permits(request: pytest.FixtureRequest) -> Mapping[str, BlockingGrant]:
    """The grants that are held now, by the names of their pools: with slots and fences."""
    return MappingProxyType(request.config.stash[HELD].grants)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """After all that may skip the test, and before its fixtures."""
    if not (requests := marked(item)):
        return
    from meshlock.errors import Refused
    from meshlock.live.interfaces.agent_protocol import NoAgent

    held = item.config.stash[HELD]
    if held.lost():
        held.release(set())
    try:
        for request in requests:
            if not enough(request, held):
                held.grants[request.pool] = acquired(request, item)
                held.nodes[request.pool] = item.getparent(SCOPES[request.hold])
    except (Refused, TimeoutError) as error:
        skips = isinstance(error, NoAgent) and item.config.getoption(NO_AGENT) == "skip"
        end = pytest.skip.Exception if skips else pytest.fail.Exception
        raise end(str(error), pytrace=False) from None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, None, None]:
    """After the fixtures, those of the module included where this was its last test."""
    held = item.config.stash[HELD]
    try:
        yield
        if lost := " and ".join(held.lost()):
            pytest.fail(f"Lost permits of {lost} during this test: others may have them.", False)
    finally:
        held.release(set() if nextitem is None else set(nextitem.listchain()))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Also if the session was stopped before its last test."""
    session.config.stash[HELD].release(set())


def marked(item: pytest.Item) -> list[MarkedRequest]:
    """What the markers of a test ask for, in the order of the pools' names, the longest hold
    first. Of two markers for one pool and hold, the one that is closer to the test counts."""
    found: dict[tuple[str, int], MarkedRequest] = {}
    holds = list(SCOPES)
    for mark in item.iter_markers("permits"):
        try:
            request = MarkedRequest(*mark.args, **mark.kwargs)
        except TypeError as error:
            why = str(error).replace("MarkedRequest.__new__()", "it")
            pytest.fail(f"Marker 'permits': {why}.", False)
        if request.hold not in SCOPES or item.getparent(SCOPES[request.hold]) is None:
            pytest.fail(f"Marker 'permits': this test is in no {request.hold!r} to hold.", False)
        found.setdefault((request.pool, -holds.index(request.hold)), request)
    requests = [found[key] for key in sorted(found)]
    for one, later in pairwise(requests):
        if holds.index(one.hold) < holds.index(later.hold):
            pytest.fail(COULD_DEADLOCK.format(one=one.pool, later=later.pool), False)
    return requests


def enough(request: MarkedRequest, held: PermitsHeld) -> bool:
    """Are the permits held already? Fails if it could deadlock to ask for them."""
    if request.pool in held.grants and held.grants[request.pool].want >= request.want:
        return True
    if request.pool <= (last := max(held.grants, default="")):
        pytest.fail(COULD_DEADLOCK.format(one=request.pool, later=last), False)
    return False


def acquired(request: MarkedRequest, item: pytest.Item) -> BlockingGrant:
    from meshlock.errors import NotInTime
    from meshlock.live.interfaces.locks import by_name
    from meshlock.live.machine import labels

    pool = by_name(request.pool, request.permits)
    began = time.monotonic()
    try:
        return pool.acquire(
            request.want,
            priority=request.priority,
            timeout=request.timeout,
            label=labels.fitting(f"{labels.user()} {item.nodeid}"),
        )
    except NotInTime as error:
        holders = ", ".join(str(one["label"]) for one in pool.picture()["holding"])
        raise NotInTime(f"{error} Held by: {holders or 'nobody any more'}.") from None
    finally:
        waited = {"pool": request.pool, "want": request.want, "seconds": time.monotonic() - began}
        item.user_properties.append((PROPERTY, waited))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Which test waited how long for what, also in the workers of pytest-xdist."""
    waits: defaultdict[str, list[tuple[float, int, str]]] = defaultdict(list)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", None) == "setup":
                for name, it in report.user_properties:
                    if name == PROPERTY:
                        waits[it["pool"]].append((it["seconds"], it["want"], report.nodeid))
    if waits:
        terminalreporter.section("permits")
    for pool, found in sorted(waits.items()):
        total = sum([one[0] for one in found])
        terminalreporter.line(f"{pool}: {total:.2f} s of waiting in {len(found)} requests")
        for seconds, want, test in sorted(found, reverse=True)[:LISTED]:
            if seconds >= SHOWN:
                terminalreporter.line(f"  {seconds:.2f} s for {want}: {test}")
