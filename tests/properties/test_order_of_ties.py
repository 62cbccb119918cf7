"""Order among equals, and of requests whose priority changes: what is judged, and where."""

import io
from random import Random

import msgspec
import pytest

from meshlock.algorithms import registry
from meshlock.algorithms.actor import Actor
from meshlock.algorithms.mutants.mutant import Mutant
from meshlock.properties.monitor import Monitor
from meshlock.properties.promises import ALL_KNOWN, FIRST_KNOWN, PromisedOrder, promises
from meshlock.simulate.player import play
from meshlock.trace.audit import Audit
from meshlock.trace.reader import Trace
from meshlock.trace.writer import TraceWriter
from runs import finished

FCFS = ["naimi-trehel-original", "neilsen-mizuno", "lamport", "ricart-agrawala"]


def watching(ties, permits=1, patience=0):
    ageing = 1 / patience if patience else 0.0
    return Monitor(permits, PromisedOrder(True, True, ageing, stamped=patience > 0, ties=ties))


def asks(monitor, node, priority=0):
    """When nothing is in flight."""
    monitor.quiet()
    rival = monitor.asks(node, priority)
    monitor.moved()
    return rival


def leaves(monitor, next_one):
    """The one inside, when nothing is in flight; then another enters."""
    monitor.leaves(1)
    monitor.quiet()
    monitor.enters(1.0, next_one.node, 1, next_one)
    monitor.moved()
    return list(monitor.violated)


def begun(monitor):
    """A monitor of a pool of which somebody holds the only permit."""
    monitor.enters(0.0, 0, 1, asks(monitor, 0))
    return monitor


# -- the monitor ----------------------------------------------------------------------------


@pytest.mark.parametrize("ties", [FIRST_KNOWN, ALL_KNOWN])
@pytest.mark.parametrize("patience", [0, 1, 100])
def test_of_two_equals_the_earlier_goes_first(ties, patience):
    for late in (False, True):
        monitor = begun(watching(ties, patience=patience))
        first, second = asks(monitor, 1), asks(monitor, 2)
        assert leaves(monitor, second if late else first) == (["order"] if late else [])


def test_one_that_was_not_known_when_another_asked_may_go_later():
    monitor = begun(watching(ALL_KNOWN))
    monitor.quiet()
    monitor.asks(1, 0)  # and the next one asks while this is in flight
    second = monitor.asks(2, 0)
    assert leaves(monitor, second) == []


@pytest.mark.parametrize(("ties", "violated"), [(FIRST_KNOWN, []), (ALL_KNOWN, ["order"])])
def test_one_that_another_may_hide_is_not_known(ties, violated):
    monitor = begun(watching(ties))
    first, _, third = asks(monitor, 1), asks(monitor, 2), asks(monitor, 3)
    assert leaves(monitor, first) == []
    assert leaves(monitor, third) == violated


@pytest.mark.parametrize(("ties", "violated"), [(FIRST_KNOWN, []), (ALL_KNOWN, ["order"])])
def test_when_the_token_has_moved_the_first_is_another_one(ties, violated):
    monitor = begun(watching(ties))
    asks(monitor, 1)
    second = asks(monitor, 2)
    monitor.forget_the_first()
    assert leaves(monitor, second) == violated


def test_one_that_has_waited_for_a_step_of_priority_may_hide_another():
    for patience, violated in ((1, []), (3, ["order"])):
        monitor = watching(FIRST_KNOWN, patience=patience)
        asks(monitor, 1, priority=1)
        monitor.enters(0.0, 0, 1, monitor.asks(0, 9))
        asks(monitor, 2, priority=2)
        assert leaves(monitor, asks(monitor, 3, priority=2)) == violated


def test_of_a_node_with_more_clients_than_lines_nothing_is_known():
    for permits, violated in ((1, []), (2, ["order"])):
        monitor = begun(watching(ALL_KNOWN, permits=permits))
        asks(monitor, 1)
        asks(monitor, 1)
        assert leaves(monitor, asks(monitor, 2)) == violated


def test_a_raised_request_goes_by_its_priority_of_the_moment():
    for enters, violated in ((0, ["order"]), (1, [])):
        monitor = begun(watching(ALL_KNOWN))
        waiting = [asks(monitor, 1, 5), asks(monitor, 2, 3)]
        monitor.changes(waiting[1], 9, True)
        monitor.moved()
        assert leaves(monitor, waiting[enters]) == violated


def test_a_lowered_request_may_still_go_by_the_higher_priority():
    monitor = begun(watching(ALL_KNOWN))
    low, high = asks(monitor, 1, 3), asks(monitor, 2, 5)
    monitor.changes(high, 1, True)
    monitor.moved()
    monitor.leaves(1)  # while that is in flight
    monitor.enters(1.0, 2, 1, high)
    assert monitor.violated == {}
    assert low.waits


@pytest.mark.parametrize("quiet", [True, False])
def test_a_raise_lets_only_the_raised_one_in(quiet):
    for other, violated in ((True, ["order"]), (False, [])):
        monitor = begun(watching(ALL_KNOWN, permits=3))
        raised, low = asks(monitor, 1, 5), asks(monitor, 2, 3)
        monitor.changes(raised, 9, quiet)
        monitor.enters(1.0, 2, 1, low if other else raised)
        assert list(monitor.violated) == violated


def test_a_request_that_changes_to_the_priority_of_others_is_not_before_them():
    monitor = begun(watching(ALL_KNOWN))
    first, second = asks(monitor, 1, 3), asks(monitor, 2, 5)
    monitor.changes(first, 5, True)
    monitor.moved()
    assert leaves(monitor, second) == []


@pytest.mark.parametrize("ties", [FIRST_KNOWN, ALL_KNOWN])
def test_it_keeps_no_more_than_waits(ties):
    """However long a run is, and whether or not anything is ever quiet."""
    for quiet in (True, False):
        monitor, chance, waiting = watching(ties, permits=9), Random(1), []
        for number in range(20_000):
            if quiet and number % 3 == 0:
                monitor.quiet()
            waiting.append(monitor.asks(chance.randrange(5), number))
            if len(waiting) > 20:
                one = waiting.pop(chance.randrange(20))
                monitor.enters(0.0, one.node, 1, one)
                monitor.leaves(1)
                monitor.moved()
        kept = [*monitor.fresh, *monitor.line, *monitor.ranking]
        kept += [one for line in monitor.known.values() for one in line]
        assert len(kept) < 1_000


# -- who promises it ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options", "ties"),
    [
        ("jiang", {}, FIRST_KNOWN),
        ("jiang", {"ageing": "none"}, FIRST_KNOWN),
        ("jiang", {"ageing": "printed"}, ""),
        ("jiang", {"backfill": "on"}, ""),
        ("direct", {}, ALL_KNOWN),
        ("direct/lets-the-small-pass", {}, ALL_KNOWN),
        ("raymond", {}, ""),
        ("centralized", {}, ""),
        *[(name, {}, ALL_KNOWN) for name in FCFS],
    ],
)
def test_first_come_first_served_is_promised_by_some(name, options, ties):
    entry = registry.find(name)
    settled = registry.with_defaults(entry, options)
    assert promises(entry, settled).ties == ties
    assert promises(entry, settled, leased=True).ties == ""


# -- runs -----------------------------------------------------------------------------------


def random_run(name, seed, **more):
    chance = Random(f"{name}:{seed}")
    entry = registry.find(name)
    permits = 1 if entry.problem == "mutex" else chance.choice([1, 2, 5])
    complete = entry.assumes.complete_graph
    given = {
        "algorithm": name,
        "nodes": chance.randint(2, 7),
        "topology": "complete" if complete else chance.choice(["line", "star", "ring", "tree"]),
        "permits": permits,
        "want": f"1-{permits}" if permits > 1 and chance.random() < 0.5 else "1",
        "priority": chance.choice(["5", "1-3", "1-9"]),
        "workload": chance.choice(["saturated", "poisson:0.05", "poisson:0.01", "poisson:0.2"]),
        "requests": 300,
        "clients": chance.choice([1, 1, 2, 3]),
        "delay": chance.choice(["1", "0.1", "exp:1"]),
        "hold": chance.choice(["1", "10", "exp:20"]),
        "seed": seed,
    }
    return {**given, **more}


@pytest.mark.parametrize("name", [*FCFS, "goscinski", "mueller"])
@pytest.mark.parametrize("seed", range(4))
def test_runs_without_a_tie_out_of_turn(name, seed):
    assert finished(**random_run(name, seed)).monitor.violated == {}


@pytest.mark.parametrize("name", ["jiang", "direct"])
@pytest.mark.parametrize(
    "options", [{}, {"ageing": "none"}, {"patience": "3"}, {"patience": "1"}], ids=str
)
@pytest.mark.parametrize("seed", range(6))
def test_ties_and_changes_in_runs_of_jiang_and_direct(name, options, seed):
    equal = random_run(name, seed, priority="5", **options)
    assert finished(**equal).monitor.violated == {}
    changing = random_run(name, seed, priority="1-3", **options, **{"raise": "0.5"})
    if changing["want"] != "1":
        changing["release-part"] = "0.5"
    assert finished(**changing).monitor.violated == {}


# -- mistakes -------------------------------------------------------------------------------


ASKS_ANEW_IN_DIRECT = '''@@ direct.py
         """The request waits on, and keeps its age. It may get a line, or lose it."""
+        if self.withdraw(client):
+            self.request(client, want, priority)
+            return True
'''
ASKS_ANEW_IN_JIANG = '''@@ jiang.py
         """One UPDATE per hop, at most: the request waits on, and keeps its age."""
+        if self.withdraw(client):
+            self.request(client, want, priority)
+            return True
'''
LAST_COME_FIRST = """@@ direct.py
-            turn = 1 + max([other[5] for other in queue], default=0)
+            turn = -len(queue) - 1
"""
FORGETFUL = """@@ jiang.py
             self.queue.replace(old, entry, same)
+        self.queue.take_out(entry)
+        entry.arrival = -self.queue.arrivals
+        self.queue.insert(entry)
"""

RAISING = {"raise": "0.5", "priority": "1-9", "want": "1-3", "nodes": 2, "clients": 3}
EQUAL = {"priority": "5", "ageing": "none", "nodes": 6}
MISTAKES = {
    "direct/asks-anew": (ASKS_ANEW_IN_DIRECT, RAISING),
    "jiang/asks-anew": (ASKS_ANEW_IN_JIANG, RAISING),
    "direct/last-come-first": (LAST_COME_FIRST, EQUAL),
    "jiang/forgetful": (FORGETFUL, EQUAL),
}


@pytest.fixture(params=MISTAKES)
def mistaken(request, monkeypatch):
    """The name of an algorithm with a mistake, and settings in which it shows."""
    patch, given = MISTAKES[request.param]
    entry = Mutant(request.param, "", patch, {})
    monkeypatch.setitem(registry.ALGORITHMS, request.param, entry.algorithm)
    return request.param, given


def test_the_simulator_finds_mistakes_and_the_audit_finds_the_same(mistaken, tmp_path):
    name, given = mistaken
    given = {"permits": 3, "workload": "poisson:0.02", "hold": "exp:20", **given}
    path = tmp_path / "run.jsonl"
    with path.open("wb") as file:
        writer = TraceWriter(file, False)
        run = finished(writer, algorithm=name, delay="0.1", requests=1000, **given)
    assert list(run.monitor.violated) == ["order"]
    assert Audit(Trace(path)).monitor.violated == run.monitor.violated


@pytest.mark.parametrize("name", ["O1", "O1b", "O2", "O3"])
@pytest.mark.parametrize("algorithm", ["jiang", "direct"])
def test_the_stories_of_order_go_well(name, algorithm):
    outcome = play(name, algorithm)
    assert outcome.good, outcome.transcript


@pytest.mark.parametrize("name", ["O1", "O1b", "O3"])
def test_they_go_wrong_where_a_change_is_a_withdrawal(name, mistaken):
    algorithm, _ = mistaken
    if algorithm.endswith("asks-anew"):
        assert not play(name, algorithm).good


def test_the_trace_says_which_ties_are_promised():
    for name, ties in (("jiang", "first"), ("raymond", "")):
        sink = io.BytesIO()
        finished(TraceWriter(sink, False), algorithm=name, nodes=2, requests=1)
        assert msgspec.json.decode(sink.getvalue().splitlines()[0])["ties"] == ties


def test_the_default_of_a_change_is_to_refuse_it_or_to_ask_anew():
    assert Actor(0, []).change_priority(1, 1, 2) is False
