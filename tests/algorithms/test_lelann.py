"""Le Lann's ring: one message per entry when all want in, idle rounds when nobody does."""

from __future__ import annotations

import pytest
from laboratory import run


@pytest.mark.parametrize("nodes", [2, 5, 12])
def test_at_saturation_one_message_per_entry(nodes: int) -> None:
    heavy = run("lelann", nodes, "saturated", 1200)
    assert (heavy.entries, heavy.violated) == (1200, {})
    assert heavy.messages_per_entry == pytest.approx(1, rel=0.01)
    assert heavy.synchronisation_delay == 1.0


@pytest.mark.parametrize("nodes", [5, 20])
def test_one_request_at_a_time_waits_for_half_a_round(nodes: int) -> None:
    """The next to ask stands 1 to N places ahead of the token, each as likely."""
    light = run("lelann", nodes, "serial", 10_000)
    assert light.violated == {}
    assert light.mean_wait == pytest.approx((nodes + 1) / 2, rel=0.02)
    assert light.messages_per_entry == pytest.approx((nodes + 1) / 2, rel=0.02)


def test_the_token_goes_round_while_nobody_wants_it() -> None:
    busy = run("lelann", 5, "poisson:0.1", 1000)
    idle = run("lelann", 5, "poisson:0.001", 1000)
    assert (idle.entries, idle.violated) == (1000, {})
    assert busy.messages_per_entry < 3
    assert idle.messages_per_entry == pytest.approx(200, rel=0.1)


def test_a_single_site_enters_at_once() -> None:
    alone = run("lelann", 1, "saturated", 10)
    assert (alone.entries, alone.messages, alone.mean_wait) == (10, {}, 0.0)


def test_on_any_network_the_token_is_routed_to_the_next_number() -> None:
    star = run("lelann", 6, "saturated", 600, topology="star")
    assert (star.entries, star.violated) == (600, {})
    assert star.synchronisation_delay == pytest.approx(10 / 6, rel=0.01)
