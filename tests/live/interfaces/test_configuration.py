"""What may be in an agent's file."""

from pathlib import Path

import pytest

from meshlock import Node, Refused
from meshlock.live.interfaces.agent_settings import AgentSettings
from meshlock.live.interfaces.configuration import pool_flag, read


def test_the_page_the_names_and_the_clock(tmp_path: Path) -> None:
    file = tmp_path / "agent.toml"
    file.write_text(
        'name = "a"\nhttp-names = ["robot.lan"]\nallow-actions = true\nclock-rate = 2.0'
    )
    settings = read(file)
    assert (settings.http_names, settings.allow_actions) == (("robot.lan",), True)
    assert Node.configured(settings)._local.settings.clock_rate == 2.0
    assert (AgentSettings().allow_actions, AgentSettings().clock_rate) == (False, 1.0)


def test_a_word_that_is_none_is_named(tmp_path: Path) -> None:
    file = tmp_path / "agent.toml"
    file.write_text("alow-actions = true")
    with pytest.raises(Refused, match="alow-actions"):
        read(file)


@pytest.mark.parametrize("rate", [0.0, -1.0])
def test_a_clock_goes_forwards(rate: float) -> None:
    with pytest.raises(Refused, match="clock"):
        Node("a", clock_rate=rate)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("heartbeat = nan", "heartbeat"),
        ("dead = 1e300", "dead"),
        ("[pools.docks]\npermits = 1099511627776", "permits"),
        ("[pools.docks]\npermits = true", "permits"),
        ("[pools.docks]\npermits = 1\nlease = inf", "lease"),
    ],
)
def test_a_value_out_of_range_is_named(tmp_path: Path, text: str, where: str) -> None:
    path = tmp_path / "agent.toml"
    path.write_text(text)
    with pytest.raises(Refused, match=where):
        Node.configured(read(path))


def test_permits_have_names_by_flag_and_by_file(tmp_path: Path) -> None:
    name, pool = pool_flag("gpus=gpu0,gpu1", {"lease": 1.0})
    assert (name, pool.permits, pool.lease) == ("gpus", ["gpu0", "gpu1"], 1.0)
    file = tmp_path / "agent.toml"
    file.write_text('pools.gpus.permits = ["gpu0", "gpu1"]')
    assert read(file).pools["gpus"].permits == ["gpu0", "gpu1"]


@pytest.mark.parametrize("flag", ["docks=0", f"docks={2**64}", "docks=three", "=3", "x" * 10_000])
def test_a_flag_out_of_range_is_a_sentence(flag: str) -> None:
    with pytest.raises(Refused, match="pool") as refused:
        pool_flag(flag, {})
    assert len(str(refused.value)) < 200
