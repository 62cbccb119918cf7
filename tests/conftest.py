import gc
import itertools
import os
import signal
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import meshlock.cli.flags  # noqa: F401  # sentences name flags, whichever test comes first
from meshlock.algorithms import actor

gc.set_threshold(50_000, 20, 100)  # searches keep what they make: to look for cycles takes long

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "live")]  # what tests share

# How long it takes to draw an example is the machine's business.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

# Shells and nohup start what is in the background so, and all that tests start would inherit it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
for ignored in (signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(ignored) is signal.SIG_IGN:
        signal.signal(ignored, signal.SIG_DFL)

os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp()  # what is longer than a module is here, too


STATES = itertools.count()


def new_state_folder(factory):
    """pytest would look through all folders that there are for the next number."""
    return str(factory.mktemp(f"state{next(STATES)}", numbered=False))


@pytest.fixture(autouse=True, scope="module")
def state_folder_of_module(tmp_path_factory):
    """Agents that live as long as their module meet no state of those of another one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", new_state_folder(tmp_path_factory))
        yield


@pytest.fixture(autouse=True)
def state_folder(monkeypatch, tmp_path_factory):
    """Nodes remember what they promised; none of it belongs into the home folder, nor into the
    next test. Processes that a test starts inherit it."""
    monkeypatch.setenv("XDG_STATE_HOME", new_state_folder(tmp_path_factory))


LONGEST = (
    "chaos/test_chaos_run.py",
    "check/test_mutants.py",
    "docs/test_laboratory_blocks.py",
    "interfaces/test_stopped_agents.py",
    "algorithms/test_layer.py",
    "check/test_manifest.py",
    "users/test_first_ten_minutes.py",
    "web/test_fits.py",
    "web/test_live_page.py",
    "web/test_whiteboard.py",
    "docs/test_blocks.py",
    "cli/test_simulate_recovery.py",
    "births/test_birth_model.py",
    "interfaces/test_client.py",
    "interfaces/test_http.py",
    "check/test_disk.py",
    "check/test_reductions.py",
    "cli/test_mutant_commands.py",
    "simulate/test_recovery.py",
    "chaos/test_virtual.py",
    "machine/test_limits.py",
    "pools/test_readiness.py",
    "check/test_crashing.py",
    "check/test_liveness.py",
    "docs/test_page_links.py",
    "interfaces/test_agent.py",
    "links/test_liars.py",
    "algorithms/test_member_changes.py",
    "pools/test_leases.py",
    "pools/test_leaving.py",
    "pools/test_reset.py",
    "check/test_two_changes.py",
    "check/test_shared.py",
    "proofs/test_proofs.py",
)
"""These files begin first, by the time that they take with a third of a core, or wait: there are
more processes than cores, so that others work while one waits, and none is left alone with one of
them in the end."""


def pytest_collection_modifyitems(items):
    def rank(item):
        path = item.path.as_posix()
        return next((i for i, end in enumerate(LONGEST) if path.endswith(end)), len(LONGEST))

    items.sort(key=rank)


def pytest_collection_finish():
    gc.freeze()  # tests and modules stay


COMPILED = not str(actor.__file__).endswith(".py")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Tests that break an algorithm by a subclass of their own can do so only uncompiled."""
    try:
        return (yield)
    except TypeError as error:
        if "cannot inherit from compiled" in str(error):
            pytest.skip("makes a subclass of a compiled class")
        raise
    except AttributeError as error:
        if COMPILED and "is read-only" in str(error):
            pytest.skip("replaces a method of a compiled object")
        raise
