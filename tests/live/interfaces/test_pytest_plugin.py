"""The plugin of pytest: real suites in processes of their own, and a real agent."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from agents import Agent

import meshlock
from waiting import LIMIT, sooner_or_later

pytest_plugins = ["pytester"]

MODULE = "meshlock.live.interfaces.pytest_plugin"
INSTALLED = list(entry_points(group="pytest11", name="meshlock"))


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    folder = tmp_path_factory.mktemp("pytest")
    given = ["--state", "none", "--client-pools", "--pool", "boards=left,right"]
    agent = Agent(folder, "lab", *given, protected=False)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("MESHLOCK_SOCKET", agent.socket)
        yield agent
    agent.process.terminate()
    agent.process.wait()


@pytest.fixture
def suite(pytester: pytest.Pytester, agent: Agent) -> pytest.Pytester:
    if not INSTALLED:  # before this clone was installed again
        pytester.plugins = [MODULE]
    return pytester


def run(suite: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return suite.runpytest_subprocess("-p", "no:cacheprovider", *arguments, timeout=LIMIT)


def outcomes(result: pytest.RunResult) -> dict[str, int]:
    found: dict[str, int] = result.parseoutcomes()
    return found


def picture(pool: str) -> Any:
    with meshlock.connect() as client:
        return client.pool(pool).picture()


def test_a_test_has_its_permits_and_their_names(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import meshlock, pytest

        @pytest.mark.permits("apples", permits=1)
        @pytest.mark.permits("boards", 2, priority=3, timeout=600)
        def test_both(permits):
            assert list(permits) == ["apples", "boards"]
            assert sorted(permits["boards"].slots) == ["left", "right"]
            assert permits["boards"].fence and permits["boards"].priority == 3
            with meshlock.connect() as client:
                holding = client.pool("boards").picture()["holding"]
            assert "test_both" in holding[0]["label"]

        def test_none(permits):
            assert not permits
        """
    )
    result = run(suite, "--strict-markers")
    assert outcomes(result) == {"passed": 2}
    result.stdout.fnmatch_lines(["*= permits =*", "apples: * s of waiting in 1 *", "boards: *"])
    assert picture("boards")["free"] == 2


def test_a_module_holds_until_its_last_fixture_is_gone(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        test_first="""
        import meshlock, pytest
        pytestmark = pytest.mark.permits("boards", hold="module")

        @pytest.fixture(scope="module")
        def board(permits):
            slot = permits["boards"].slots
            yield slot
            assert permits["boards"].slots == slot and permits["boards"].held

        def test_one(board, permits):
            pytest.fence = permits["boards"].fence

        class TestMore:
            pytestmark = pytest.mark.permits("cables", permits=1, hold="class")

            def test_same(self, permits):
                assert permits["boards"].fence == pytest.fence
                pytest.cable = permits["cables"].fence

            def test_again(self, permits):
                assert permits["cables"].fence == pytest.cable

        def test_no_cable(permits):
            assert list(permits) == ["boards"]
        """,
        test_second="""
        def test_they_are_back(permits):
            assert not permits
        """,
    )
    assert outcomes(run(suite)) == {"passed": 5}


def test_what_could_deadlock_is_refused(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import pytest

        class TestClass:
            pytestmark = pytest.mark.permits("boards", hold="class")

            @pytest.mark.permits("apples", permits=1)
            def test_before(): ...

            @pytest.mark.permits("boards", 2)
            def test_more(self): ...

            @pytest.mark.permits("boards", 1)
            @pytest.mark.permits("cables", permits=1)
            def test_fine(self): ...

            def test_too(self): ...
        """,
        test_sibling="""
        import pytest

        @pytest.mark.permits("boards", hold="module")
        def test_holds(): ...

        @pytest.mark.permits("apples", permits=1)
        def test_does_not_know(): ...
        """,
    )
    result = run(suite)
    result.stdout.fnmatch_lines(["To wait for permits of apples while boards is held for longer *"])
    assert outcomes(result) == {"passed": 3, "errors": 3}


def test_what_is_wrong_is_said_in_a_sentence(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import pytest

        @pytest.mark.permits("unknown")
        def test_pool(): ...

        @pytest.mark.permits("boards", many=3)
        def test_marker(): ...

        @pytest.mark.permits("boards", hold="class")
        def test_scope(): ...

        @pytest.mark.permits("boards", 2, timeout=0.01)
        def test_late(): ...
        """
    )
    with meshlock.connect() as client, client.pool("boards").acquire(label="somebody else"):
        result = run(suite)
    assert outcomes(result) == {"errors": 4}
    for line in (
        "No pool 'unknown'*",
        "Marker 'permits': it got an unexpected keyword argument 'many'.",
        "Marker 'permits': this test is in no 'class' to hold.",
        "No permits of boards within 0.01 s: 1 free, 2 wanted. Held by: somebody else.",
    ):
        result.stdout.fnmatch_lines([line])


def test_without_an_agent_tests_fail_or_are_skipped(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite.makepyfile(
        """
        import pytest

        @pytest.mark.permits("boards")
        def test_it(): ...

        def test_other(): ...

        @pytest.mark.permits("boards")
        @pytest.mark.skip
        def test_skipped(): ...
        """
    )
    monkeypatch.setenv("MESHLOCK_SOCKET", str(suite.path / "none"))
    result = run(suite)
    assert outcomes(result) == {"errors": 1, "passed": 1, "skipped": 1}
    result.stdout.fnmatch_lines(["No agent answers at *"])
    assert outcomes(run(suite, "--permits-no-agent=skip")) == {"passed": 1, "skipped": 2}


def test_lost_permits_fail_their_test(suite: pytest.Pytester) -> None:
    """An agent that is restarted knows nothing of its clients before."""
    given = "'--name', 'own', '--state', 'none', '--client-pools', '--socket', place"
    suite.makepyfile(
        f"""
        import os, subprocess, pytest
        place = os.path.abspath("own")
        os.environ["MESHLOCK_SOCKET"] = place
        program = {[*PROGRAM, "agent"]!r} + [{given}]
        agent = subprocess.Popen(program, stderr=subprocess.PIPE, text=True)
        while '"ready"' not in agent.stderr.readline():
            pass

        @pytest.mark.permits("seats", permits=1)
        def test_it(permits):
            agent.kill()
            agent.wait()
            assert permits["seats"].wait_lost({LIMIT})
        """
    )
    result = run(suite)
    assert outcomes(result) == {"passed": 1, "errors": 1}
    result.stdout.fnmatch_lines(["Lost permits of seats during this test: *"])


PROGRAM = [sys.executable, "-c", "from meshlock.cli.main import run; run()"]


def test_workers_of_xdist_share_and_say_how_long_they_waited(suite: pytest.Pytester) -> None:
    """The first to come holds its permit until the other one waits."""
    suite.makepyfile(
        """
        import time, meshlock, pytest

        @pytest.mark.parametrize("number", [1, 2])
        @pytest.mark.permits("shared", permits=1)
        def test_it(number, permits):
            with open("log", "a") as log:
                log.write(f"{permits['shared'].fence}\\n")
            first = len(open("log").readlines()) == 1
            with meshlock.connect() as client:
                while first and not client.pool("shared").picture()["queued"]:
                    time.sleep(0.005)
            if first:
                time.sleep(0.05)
        """
    )
    result = run(suite, "-n", "2")
    assert outcomes(result) == {"passed": 2}
    result.stdout.fnmatch_lines(["shared: * s of waiting in 2 requests", "  * s for 1: *test_it*"])
    fences = (suite.path / "log").read_text().split()
    assert len(fences) == 2 and int(fences[0]) < int(fences[1])


@pytest.mark.parametrize("way", ["load", "worksteal", "loadfile"])
def test_a_module_s_seat_goes_from_worker_to_worker(suite: pytest.Pytester, way: str) -> None:
    """A worker that waits for it keeps no other worker from its last test."""
    text = """
        import pytest
        pytestmark = pytest.mark.permits("turns", permits=1, hold="module")

        @pytest.mark.parametrize("number", range(6))
        def test_it(number): ...
        """
    suite.makepyfile(test_one=text, test_two=text)
    assert outcomes(run(suite, "-n", "2", "--dist", way)) == {"passed": 12}


def test_permits_of_a_killed_worker_come_back(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import os, signal, pytest
        pytestmark = pytest.mark.permits("killed", permits=1)

        def test_killed():
            os.kill(os.getpid(), signal.SIGKILL)

        @pytest.mark.parametrize("number", range(4))
        def test_others(number): ...
        """
    )
    result = run(suite, "-n", "2")
    assert outcomes(result) == {"failed": 1, "passed": 4}
    sooner_or_later(lambda: picture("killed")["free"] == 1)


def test_it_is_announced_and_imports_nothing_of_meshlock() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())
    assert project["project"]["entry-points"] == {"pytest11": {"meshlock": MODULE}}
    text = f"import pytest, sys; import {MODULE}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    loaded = {name for name in done.stdout.split() if name.startswith("meshlock")}
    assert loaded == {"meshlock", "meshlock.live", "meshlock.live.interfaces", MODULE}
