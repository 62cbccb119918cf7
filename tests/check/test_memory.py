"""A check of millions of states must fit: what is kept of a state, and what may be forgotten."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from checks import ask

from meshlock.check.arguments import judged
from meshlock.check.setup import SetUp
from meshlock.check.verdict import Checking

MEASURE = r"""
import gc, re, sys
from pathlib import Path
sys.path.append("..")
from meshlock.check.arguments import judged
from meshlock.check.verdict import Checking
from checks import ask
def resident(which):
    return int(re.search(which + r":\s+(\d+) kB", Path("/proc/self/status").read_text())[1])
algorithm, topology, nodes, asks, most = sys.argv[1:]
requests = [str(n) for n in range(int(nodes)) for _ in range(int(asks))]
what = ask(algorithm, topology, int(nodes), requests=requests)
gc.disable()
before = resident("VmRSS")
checking = Checking(what, judged(["safety", "served"]), int(most))
while checking.run(50_000):
    pass
after = resident("VmHWM")
print((after - before) * 1024 // checking.explorer.count())
"""


def bytes_per_state(*words: str) -> int:
    command = [sys.executable, "-c", MEASURE, *words]
    here = Path(__file__).parent
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for the resident set")
def test_a_state_of_raymond_takes_less_than_135_bytes() -> None:
    """Of 100,000 states half a megabyte, which the system gives more or less, is 5 bytes each."""
    assert 20 < bytes_per_state("raymond", "line", "7", "1", "270000") < 135


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for the resident set")
def test_places_that_are_nearly_all_new_do_not_pile_up() -> None:
    """Lamport's clocks: a place for every three states. It was 520 bytes per state once."""
    assert 20 < bytes_per_state("lamport", "complete", "3", "2", "200000") < 330


def run(what: SetUp, reduction: str, kept: int, names: list[str]) -> Checking:
    checking = Checking(what, judged(names), 100_000, reduction)
    if kept:
        checking.model.places.kept = kept
    while checking.run(1_000):
        pass
    return checking


@pytest.mark.parametrize("reduction", ["none", "por", "symmetry"])
@pytest.mark.parametrize(
    "what",
    [
        ask("raymond", "line", 4),
        ask("lamport", "complete", 3, requests=["0", "1"]),
        ask("general-scheme", "complete", 3, links="unordered"),
        ask("jiang", "line", 3, requests=["0:1@1", "1:1@3", "2:1@2"]),
        ask("jiang", "line", 3, flips=1, failures="return"),
        ask("jiang-printed", "line", 3, requests=["0:1@1", "1:1@3", "2:1@2"]),
        ask("naimi-trehel", "complete", 3, repeat=True),
    ],
    ids=lambda what: what.algorithm.name,
)
def test_what_is_forgotten_is_found_again_as_it_was(what: SetUp, reduction: str) -> None:
    """With room for one place of each node, the same states come in the same order."""
    roomy, narrow = (run(what, reduction, kept, []).explorer for kept in (0, 1))
    assert narrow.states == roomy.states
    assert narrow.parents == roomy.parents
    assert narrow.labels == roomy.labels
    assert narrow.edges == roomy.edges
    assert narrow.violations.keys() == roomy.violations.keys()


def test_states_are_the_same_whether_numbered_or_only_collected() -> None:
    what = ask("raymond", "line", 4)
    collected = run(what, "none", 0, ["safety"]).explorer
    numbered = run(what, "none", 0, ["safety", "liveness"]).explorer
    assert not collected.numbers and not numbered.seen
    assert collected.states == numbered.states
    assert collected.parents == numbered.parents
    assert collected.labels == numbered.labels
    assert collected.transitions == numbered.transitions
