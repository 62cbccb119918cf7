"""Searches that tests begin, and that are closed after them."""

from functools import cache

import pytest
from checks import FEW_TRIED, FOR_EVER, SET_UPS, finish

from meshlock.check import shared
from meshlock.check.arguments import judged, setup
from meshlock.check.verdict import Checking


@pytest.fixture
def found():
    """Search to the end."""
    opened = []

    def search(words, most=30_000, at=None, workers=1, reduction="none"):
        verdict = Checking(setup(**words), judged([]), most, reduction, workers, at)
        finish(verdict, FEW_TRIED)
        opened.append(verdict.explorer)
        return verdict

    yield search
    for explorer in opened:
        explorer.close()


@cache
def search_in_memory(name):
    verdict = Checking(setup(**{**SET_UPS, **FOR_EVER}[name]), judged([]), 30_000)
    finish(verdict, FEW_TRIED)
    return verdict


@pytest.fixture
def in_memory():
    """The search of a set-up by one process in memory, made once; tests only read it."""
    return search_in_memory


@pytest.fixture
def soon(monkeypatch):
    """No search is too small to be shared."""
    monkeypatch.setattr(shared, "ALONE", 100)
