"""Singhal's heuristic algorithm keeps the laws of its literature."""

from __future__ import annotations

import pytest
from laboratory import figures, prepare, run

from meshlock.algorithms.actor import Effect, Enter, Message
from meshlock.algorithms.registry import find, refuse_impossible, with_defaults
from meshlock.errors import Refused
from meshlock.topology.graphs import Complete


# Singhal's Heuristic Algorithm, lecture notes, introduction: "each site maintains information
# about the state of other sites in the system & uses it to select a sites that are likely to have
# the token."
@pytest.mark.parametrize("nodes", [5, 10, 20])
def test_one_request_at_a_time_costs_half_of_all_and_waits_two_delays_or_none(nodes: int) -> None:
    light = run("singhal", nodes, "serial", 20_000)
    assert light.entries == 20_000
    assert light.violated == {}
    assert light.messages_per_entry == pytest.approx((nodes + 1) / 2 - 1 / nodes, rel=0.01)
    if nodes >= 10:
        assert light.messages_per_entry == pytest.approx((nodes + 1) / 2, rel=0.03)
    assert light.mean_wait == pytest.approx(2 * (1 - 1 / nodes), rel=0.03)


@pytest.mark.parametrize("nodes", [5, 10, 20])
def test_at_saturation_every_entry_costs_all_and_follows_after_one_delay(nodes: int) -> None:
    heavy = run("singhal", nodes, "saturated", 4000)
    assert heavy.violated == {}
    assert heavy.messages_per_entry == pytest.approx(nodes, rel=0.03)
    assert heavy.synchronisation_delay == 1.0


def test_fair_arbitration_gives_equal_shares() -> None:
    assert run("singhal", 10, "saturated", 20_000).shares == [2000] * 10


def test_lowest_id_arbitration_starves_all_but_two_sites() -> None:
    contest = prepare("singhal", 10, "saturated", 1_000_000, arbitration="lowest-id")
    contest.run(200_000)
    shares = figures(contest).shares
    assert shares[0] > 8000
    assert shares[1] > 8000
    assert shares[2:] == [0] * 8


@pytest.mark.parametrize("arbitration", ["fair", "lowest-id"])
def test_unordered_links_harm_neither_safety_nor_liveness(arbitration: str) -> None:
    for seed in range(200):
        mixed = run(
            "singhal",
            2 + seed % 7,
            ("saturated", "poisson:0.05", "poisson:0.5")[seed % 3],
            60,
            arbitration=arbitration,
            delay="uniform:0,5",
            hold="uniform:0,5",
            links="unordered",
            seed=seed,
        )
        assert mixed.entries == 60
        assert mixed.violated == {}


def story(out: list[Effect]) -> list[str]:
    """What the last handler did, in words; empties the list."""
    told = []
    for effect in out:
        if isinstance(effect, Message):
            what = " ".join(str(part) for part in effect.freeze())
            told.append(f"{effect.sender} to {effect.receiver}: {what}")
        elif isinstance(effect, Enter):
            told.append(f"client {effect.client} enters")
    out.clear()
    return told


# Singhal's Heuristic Algorithm, lecture notes, 1b: "If SV_j[i] != R then set SV_j[i] = R & send
# REQUEST(j, SN_j[j]) messages to S_i (else nothing)"
def test_three_sites_from_the_staircase_to_the_idle_token() -> None:
    """Site 0 has the token; 2 asks downwards, 1 asks back, and a late REQUEST is dropped."""
    out: list[Effect] = []
    singhal = find("singhal")
    zero, one, two = singhal.make(Complete(3), 1, with_defaults(singhal, {}), out)

    two.request(7, 1, 0)
    to_zero, to_one = list(out)
    assert story(out) == ["2 to 0: REQUEST 1", "2 to 1: REQUEST 1"]

    one.request(8, 1, 0)
    (one_asks,) = list(out)
    assert story(out) == ["1 to 0: REQUEST 1"]
    assert isinstance(to_one, Message)
    one.receive(to_one)
    (one_asks_back,) = list(out)
    assert story(out) == ["1 to 2: REQUEST 1"]

    assert isinstance(to_zero, Message)
    zero.receive(to_zero)
    (token,) = list(out)
    assert story(out) == ["0 to 2: TOKEN NNR (0, 0, 1)"]
    assert isinstance(token, Message)
    two.receive(token)
    assert story(out) == ["client 7 enters"]
    assert isinstance(one_asks_back, Message)
    two.receive(one_asks_back)
    assert story(out) == []

    two.release(7)
    (token,) = list(out)
    assert story(out) == ["2 to 1: TOKEN NRN (0, 1, 1)"]
    assert isinstance(token, Message)
    one.receive(token)
    assert story(out) == ["client 8 enters"]
    one.release(8)
    assert story(out) == []
    assert [node.free_permits() for node in (zero, one, two)] == [0, 1, 0]

    assert isinstance(one_asks, Message)
    zero.receive(one_asks)
    two.request(9, 1, 0)
    (again,) = list(out)
    assert story(out) == ["2 to 1: REQUEST 2"]
    one.receive(to_one)  # the same REQUEST once more: the token has seen it served
    assert story(out) == []
    assert isinstance(again, Message)
    one.receive(again)
    assert story(out) == ["1 to 2: TOKEN NNR (0, 1, 2)"]


# Singhal's Heuristic Algorithm, lecture notes, introduction: "it is necessary that a requesting
# site sends a request message to a site that either holds the token or is going to obtain the
# token in near future."
def test_a_request_that_the_token_has_overtaken_is_not_forgotten() -> None:
    """S5. 2's first REQUEST to 1 is late; without the repair 1 keeps the token and 2 waits."""
    out: list[Effect] = []
    singhal = find("singhal")
    zero, one, two = singhal.make(Complete(3), 1, with_defaults(singhal, {}), out)

    def sent() -> list[Message]:
        messages = [effect for effect in out if isinstance(effect, Message)]
        out.clear()
        return messages

    one.request(1, 1, 0)
    (one_asks_zero,) = sent()
    two.request(2, 1, 0)
    two_asks_zero, two_asks_one = sent()
    zero.receive(two_asks_zero)
    (token,) = sent()
    zero.request(3, 1, 0)
    (zero_asks_two,) = sent()
    two.receive(token)
    out.clear()
    two.receive(zero_asks_two)
    two.release(2)
    (token,) = sent()
    assert token.receiver == 0

    two.request(4, 1, 0)
    (two_asks_zero_again,) = sent()  # and not 1, which it has asked before
    zero.receive(token)
    out.clear()
    zero.release(3)
    zero.receive(one_asks_zero)
    (token,) = sent()
    one.receive(token)  # ... and with it the news that 2 has asked and was served
    (one_asks_two,) = sent()
    assert (one_asks_two.receiver, one_asks_two.kind) == (2, "REQUEST")
    one.release(1)
    one.receive(two_asks_one)
    zero.receive(two_asks_zero_again)
    assert sent() == []

    two.receive(one_asks_two)
    (two_asks_one_again,) = sent()
    one.receive(two_asks_one_again)
    assert [message.receiver for message in sent()] == [2]


# Singhal's Heuristic Algorithm, lecture notes, 2: "S_i executes the CS after it has received the
# token."
def test_the_holder_of_the_idle_token_enters_at_once() -> None:
    out: list[Effect] = []
    singhal = find("singhal")
    zero = singhal.make(Complete(3), 1, with_defaults(singhal, {}), out)[0]
    zero.request(1, 1, 0)
    assert story(out) == ["client 1 enters"]
    zero.release(1)
    assert story(out) == []
    assert (zero.tokens(), zero.free_permits()) == (1, 1)


def test_a_line_is_refused_because_sites_ask_each_other_directly() -> None:
    with pytest.raises(Refused, match="--topology complete"):
        refuse_impossible(
            find("singhal"), permits=1, want=1, complete=False, fifo=False, changing=False
        )
