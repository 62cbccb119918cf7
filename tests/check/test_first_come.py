"""The checker judges ties where it is asked to, as simulator and audit do."""

from __future__ import annotations

import io

import pytest
from checks import ask, counts, explore

from meshlock.algorithms.mutants.catalogue import MUTANTS
from meshlock.check.arguments import PROPERTIES, judged, refuse_unjudged
from meshlock.check.changing_links import plain
from meshlock.check.mutants import setup_of
from meshlock.check.retold import write_trace
from meshlock.check.setup import SetUp
from meshlock.check.shared import Shared
from meshlock.check.verdict import Checking
from meshlock.errors import Refused
from meshlock.properties.promises import promises
from meshlock.properties.remembered import NOTHING, Remembering
from meshlock.trace.audit import Audit
from meshlock.trace.reader import Trace

BROKEN = [mutant for mutant in MUTANTS.values() if mutant.breaks == "ties"]
ALIKE = ["0:1@1", "1:1@1", "2:1@1"]
WORDS: dict[str, dict[str, object]] = {
    "jiang": {"topology": "line", "requests": ALIKE, "flips": 1},
    "direct": {
        "topology": "complete",
        "permits": 2,
        "requests": ["0:2@1", "1:1@1", "2:1@2"],
        "raises": ["1:2"],
        "release_parts": ["0:1"],
        "withdrawals": True,
    },
}


def some(name: str) -> SetUp:
    words = dict(WORDS[name])
    return ask(name, str(words.pop("topology")), 3, **words)


def test_ties_are_judged_only_where_they_are_named() -> None:
    assert "ties" not in PROPERTIES
    assert "ties" not in judged([])
    assert judged(["ties"]) == {"ties", "handlers"}
    assert counts(explore(ask("direct", "complete", 3, requests=ALIKE)))[0] == 202
    assert counts(explore(ask("direct", "complete", 3, requests=ALIKE), "ties"))[0] == 599


@pytest.mark.parametrize("mutant", BROKEN, ids=[mutant.name for mutant in BROKEN])
def test_audit_finds_the_same_in_the_counterexample(mutant, tmp_path) -> None:
    """And nothing else would have found it."""
    assert explore(setup_of(mutant, mutant.algorithm)).holds()
    check = explore(setup_of(mutant, mutant.algorithm), "ties")
    file = io.BytesIO()
    write_trace(check.model, check.violations()[0], file)
    path = tmp_path / "trace.jsonl"
    path.write_bytes(file.getvalue())
    assert list(Audit(Trace(path)).monitor.violated) == ["order"]


@pytest.mark.parametrize("name", WORDS)
def test_several_processes_find_the_same(name: str) -> None:
    alone = explore(some(name), "ties")
    shared = Checking(some(name), judged(["ties"]), 100_000, workers=2)
    assert isinstance(shared.explorer, Shared)
    while shared.run(10_000):
        pass
    assert shared.holds() and alone.holds()
    assert counts(shared) == counts(alone)
    shared.explorer.close()


@pytest.mark.parametrize("name", WORDS)
def test_a_memory_is_the_same_when_it_is_taken_up_and_put_away(name: str) -> None:
    what = some(name)
    model = plain(what, judged(["ties"]))
    todo, seen = [model.initial()], {model.initial()}
    while todo and len(seen) < 3000:
        model.expand(todo.pop(0))
        new = [other for other in dict.fromkeys(model.successors) if other not in seen]
        seen.update(new)
        todo += new
    memories = {links.memory for links in model.links}
    assert len(memories) > 30 and NOTHING in memories
    for memory in memories:
        monitor = Remembering(what.permits, promises(what.algorithm, what.options), memory, True)
        assert monitor.memory() == memory


@pytest.mark.parametrize(
    ("algorithm", "more", "why"),
    [
        ("raymond", {}, "raymond does not promise first come, first served"),
        ("jiang", {"options": {"ageing": "printed"}}, "with these options"),
        ("direct", {"members": "all", "crashes": 1}, "direct with --members does not promise"),
        ("direct", {"repeat": True}, "leave out --repeat"),
    ],
)
def test_where_ties_cannot_be_judged_that_is_said(algorithm: str, more, why: str) -> None:
    with pytest.raises(Refused, match=why):
        refuse_unjudged(ask(algorithm, "line", 3, **more), ["ties"], "none")
    with pytest.raises(Refused, match="leave out --reduction por"):
        refuse_unjudged(ask("jiang", "line", 3), ["ties"], "por")


@pytest.mark.parametrize("reduction", ["por", "symmetry"])
def test_nothing_is_reduced_where_ties_are_judged(reduction: str) -> None:
    what = ask("naimi-trehel-original", "complete", 3, requests=ALIKE)
    check = Checking(what, judged(["ties"]), 10_000, reduction)
    while check.run(1000):
        pass
    assert "is not used" in check.remark or "No reduction" in check.remark
    assert check.explorer.count() == explore(what, "ties").explorer.count()
