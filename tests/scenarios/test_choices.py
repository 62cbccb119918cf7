"""What the general scheme leaves open: said by a script, or drawn, and told either way."""

import io
import json
import re

import pytest

from meshlock.algorithms.registry import find
from meshlock.errors import Refused
from meshlock.simulate.player import Player
from meshlock.simulate.rerun import with_states
from meshlock.simulate.scenario import Scenario
from meshlock.simulate.schedule import read
from meshlock.simulate.settings import run_settings, simulation
from meshlock.trace.reader import Trace
from meshlock.trace.writer import TraceWriter

LINE = "nodes 4\nlinks 0-1 1-2 2-3\n"


def played(actions, algorithm="general-scheme", trace=None, options=None):
    return Player(Scenario("open", LINE + actions), find(algorithm), trace, options).play()


def test_all_proxy_is_one_draw_among_many():
    """Once nothing was drawn, and every node was a proxy whatever the option said."""
    seen = set()
    for seed in range(20):
        transcript = played(f"seed {seed}\nrequest 3\nfinish\nexpect served\n").transcript
        assert re.findall(r"\[(\w+), drawn\]", transcript)
        seen |= set(re.findall(r"\[(\w+), drawn\]", transcript))
    assert seen == {"proxy", "transit"}


def test_what_is_said_is_not_drawn():
    actions = "behaviour proxy\nbehaviour 1 2 transit\nrequest 3\nfinish\n"
    outcome = played(actions)
    assert "drawn" not in outcome.transcript
    assert re.findall(r"(\d): gets REQUEST origin=\d from \d \[(\w+)\]", outcome.transcript) == [
        ("2", "transit"),
        ("1", "transit"),
        ("0", "proxy"),
    ]


def test_a_node_may_change_its_mind_in_mid_run():
    actions = "behaviour proxy\nrequest 3\nsettle\nfinish\nexpect tree 3>2>1>0\nexpect token 0\n"
    actions += "behaviour transit\nrequest 3\nfinish\nexpect tree 0>3 1>3 2>3\nexpect token 3\n"
    assert played(actions).good
    assert "[proxy, drawn]" in played("behaviour transit\nbehaviour 3 drawn\nrequest 3").transcript


def test_a_behaviour_that_there_is_not_is_refused():
    with pytest.raises(Refused, match=r"line 3: .* behaves as proxy, transit or drawn, not 'lazy'"):
        played("behaviour 2 lazy")
    with pytest.raises(Refused, match="Nodes of raymond have no choice"):
        played("behaviour 2 proxy", "raymond")
    with pytest.raises(Refused, match="have no choice of behaviour"):
        played("behaviour 2 proxy", options={"behaviour": "shortcut"})


def saved(path, actions):
    sink = io.BytesIO()
    outcome = played(actions, trace=TraceWriter(sink, False))
    path.write_bytes(sink.getvalue())
    return outcome


def test_the_trace_tells_the_choices_so_that_it_can_be_played_again(tmp_path):
    actions = "tree 0>1>2>3\nseed 7\nrequest 0\nrequest 2\nfinish\nrequest 1\nfinish\n"
    outcome = saved(tmp_path / "drawn.jsonl", actions)
    schedule, entries = read(Trace(tmp_path / "drawn.jsonl"))
    assert entries == outcome.entries == schedule.play(strict=True).outcome().entries
    again = Player(Scenario("again", schedule.script("again")), find("general-scheme")).play()
    told = [line for line in outcome.transcript.splitlines() if not line.startswith(">")]
    retold = [line for line in again.transcript.splitlines() if not line.startswith(">")]
    assert [line.replace(", drawn", "") for line in told] == retold


def test_the_states_of_a_driven_trace_can_be_had_afterwards(tmp_path):
    saved(tmp_path / "drawn.jsonl", "tree 0>1>2>3\nseed 7\nrequest 0\nrequest 2\nfinish\n")
    setup, *lines = (tmp_path / "drawn.jsonl").read_bytes().splitlines()
    states = with_states(json.loads(setup), lines)
    assert states is not None
    assert json.loads(states[0])["states"][3]["token_here"]


def test_the_simulator_tells_its_draws_too(tmp_path):
    path = tmp_path / "simulated.jsonl"
    with path.open("wb") as file:
        settings = run_settings(
            {"algorithm": "general-scheme", "nodes": 5, "requests": 10, "seed": 3}
        )
        run = simulation(settings, TraceWriter(file, False))
        run.start()
        while run.run(1000):
            pass
        run.finish()
    schedule, entries = read(Trace(path))
    assert {action.choice for action in schedule.actions} == {0, 1}
    assert len(entries) == 10
    assert schedule.play(strict=True).outcome().entries == entries


@pytest.mark.parametrize(
    ("algorithm", "options", "said"),
    [
        ("gateway", {}, "gateway does not start from a given tree"),
        ("general-scheme", {"start": "binary"}, "makes a tree of its own"),
        ("jiang", {}, "jiang does not start from a given tree"),
        ("raymond", {}, "sends over links only: the tree's 0>2 needs the link 0-2"),
    ],
)
def test_a_tree_that_the_algorithm_cannot_start_from_is_refused(algorithm, options, said):
    with pytest.raises(Refused, match=said):
        played("tree 0>2>1 3>2\nrequest 0\n", algorithm, options=options)


@pytest.mark.parametrize("algorithm", ["centralized", "naimi-trehel", "raymond", "shortcut"])
def test_the_token_may_start_anywhere(algorithm):
    actions = "tree 0>1>2 3>2\nexpect token 2\nrequest 0\nrequest 3\nfinish\nexpect served\n"
    assert played(actions, algorithm).good
