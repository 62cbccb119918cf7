"""Repairs of jiang can be undone, one by one or several at once, and the rest still stands."""

import subprocess
import sys
from itertools import combinations

import pytest
from random_walk import walk

from meshlock.algorithms.mutants.catalogue import REPAIRS
from meshlock.algorithms.registry import find
from meshlock.errors import Refused

PAIRS = ["+".join(pair) for pair in combinations(REPAIRS, 2)]


@pytest.mark.parametrize("rules", [*REPAIRS, *PAIRS, "+".join(REPAIRS)])
def test_whatever_is_undone_no_handler_fails_and_never_are_too_many_inside(rules):
    for seed in range(3):
        director = walk(f"jiang/without-{rules}", seed, changes=6)
        lost = {"conservation"} if "R6" in rules else set()
        assert set(director.monitor.violated) <= {"served", "order"} | lost


@pytest.mark.parametrize("rules", ["R3", "R7", "R3+R7"])
def test_what_another_repair_has_made_superfluous_changes_no_step(rules):
    for seed in range(20):
        whole = walk("jiang", seed, changes=6)
        assert walk(f"jiang/without-{rules}", seed, changes=6).lines == whole.lines


def test_a_name_says_each_repair_once_and_in_order():
    assert find("jiang/without-R10+R4+R4").name == "jiang/without-R4+R10"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("jiang/without-R12", "There is no repair 'R12' of jiang"),
        ("jiang/without-", "There is no repair '' of jiang"),
        ("jiang/j1-forgets-it", "did you mean 'jiang/j1-forgets-itself'?"),
        ("raymond/without-R4", "There is no mutant 'raymond/without-R4'"),
    ],
)
def test_names_that_mean_nothing_are_refused(name, sentence):
    with pytest.raises(Refused) as refused:
        find(name)
    assert sentence in str(refused.value)


def test_nobody_loads_the_mutants_who_names_none():
    code = "import sys, meshlock.algorithms.registry as r; r.find('jiang'); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "meshlock.algorithms.jiang" in loaded.stdout
    assert "meshlock.algorithms.mutants" not in loaded.stdout
