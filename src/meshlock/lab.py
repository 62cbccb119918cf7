"""The laboratory for notebooks and programs: simulate, check and sweep as functions.

They take the words of the command line, with ``_`` for ``-``, and return results with attributes
and rows::

    from meshlock import lab

    runs = [lab.simulate("raymond", topology="tree", nodes=n) for n in (7, 15, 31)]
    table = pandas.DataFrame([run.row() for run in runs])
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import msgspec

from meshlock.algorithms.actor import Algorithm
from meshlock.algorithms.mutants.choice import chosen
from meshlock.algorithms.outside import load, of_object
from meshlock.algorithms.registry import ALGORITHMS
from meshlock.check.preparing import prepared
from meshlock.check.retold import write_trace
from meshlock.check.settings import CheckSettings, FaultSettings, SearchSettings
from meshlock.check.story import pages
from meshlock.errors import Refused
from meshlock.properties.sentences import counted
from meshlock.settings import Settings, types_of
from meshlock.simulate.report import figures
from meshlock.simulate.run_settings import RunSettings, Values
from meshlock.simulate.settings import read_scenario, run_settings, simulation
from meshlock.simulate.whole_run import Stretch, whole_run
from meshlock.sweep.measures import flat
from meshlock.sweep.report import write_tables
from meshlock.sweep.study import read_study, study
from meshlock.sweep.sweep import Summary, make_all
from meshlock.sweep.workers import on_this_machine
from meshlock.trace.files import trace_file
from meshlock.trace.watched import traced, watched_by

BATCH = 5_000
"""States between two looks at Ctrl-C."""

Named = str | Path | Algorithm
"""An algorithm: its name, a file that has it, or itself."""


class SimulationResult(SimpleNamespace):
    """A run. It has the figures of ``meshlock simulate --json``, the settings that were ``given``,
    and ``sentences``: what was violated, in words."""

    given: Values
    sentences: dict[str, str]
    entries: int
    messages_per_entry: float
    waiting: dict[str, float]
    violated: list[str]
    unserved: int

    def row(self) -> dict[str, Any]:
        """Settings and figures by the names that studies have, such as ``waiting.p95``."""
        return {**self.given, **flat({**vars(self), "given": None})}

    def __repr__(self) -> str:
        told = [f"{name}: {sentence}" for name, sentence in self.sentences.items()]
        return "\n".join(
            [
                f"{self.algorithm}: {counted(self.nodes, 'node')}, seed {self.seed}",
                f"{self.entries:,} entries, {self.unserved} unserved, waiting "
                f"{self.waiting['mean']:.4g}, {self.messages_per_entry:.4g} messages per entry",
                *(told or ["no property violated"]),
            ]
        )


class CheckResult(SimpleNamespace):
    """A check. It has the figures of ``meshlock check --json``, the settings that were ``given``,
    and a ``summary``."""

    given: dict[str, Any]
    summary: str
    holds: bool
    complete: bool
    states: int
    violations: list[WayThere]

    def row(self) -> dict[str, Any]:
        violated = [one.property for one in self.violations]
        return flat({**self.given, **vars(self), "given": None, "violations": violated})

    def __repr__(self) -> str:
        return "\n".join([*(one.heading for one in self.violations), self.summary])


class WayThere(SimpleNamespace):
    """A violated ``property``, ``what`` is wrong, and the ``steps`` of a shortest way there."""

    steps: list[str]

    def trace(self, path: str | Path) -> None:
        """Write it to a file, for ``meshlock replay``, ``convert`` and ``audit``."""
        with trace_file(Path(path)) as file:
            write_trace(self.model, self.violation, file)

    @property
    def heading(self) -> str:
        return f"{self.property} VIOLATED after {counted(self.length, 'step')}: {self.what}"

    def __repr__(self) -> str:
        return "\n".join([self.heading, *pages(self.model, self.violation)])


def simulate(
    algorithm: Named | None = None,
    *,
    scenario: str | Path | None = None,
    trace: str | Path | None = None,
    trace_states: bool = False,
    **words: Any,
) -> SimulationResult:
    """Run an algorithm in virtual time, as ``meshlock simulate`` does.

    Words are its flags, and options of the algorithm. A ``property`` of your own is a function, or
    written FILE.py:NAME.
    """
    given = {} if scenario is None else read_scenario(Path(scenario))
    if algorithm is None and "algorithm" in given:
        algorithm = str(given["algorithm"])
    name, _ = algorithm_of(algorithm, words)
    watched = watched_by(listed(words.pop("property", ())))
    fields, options = read_words(words, RunSettings)
    given |= RunSettings(**fields).given_keys() | options
    if name is not None:
        given["algorithm"] = name
    settings = run_settings(given)
    with traced(None if trace is None else Path(trace), trace_states, watched) as writer:
        run = simulation(settings, writer)
        done = whole_run(run, lambda: None)
    if done.interrupted:
        raise KeyboardInterrupt  # it ends the caller's loop, too
    if watched is not None:
        run.monitor.violated.update(watched.end())
    found = figures(run, settings.seed, done.cpu)
    return SimulationResult(given=given, sentences=run.monitor.violated, **found)


def check(algorithm: Named | None = None, **words: Any) -> CheckResult:
    """Check an algorithm in every order in which things can happen, as ``meshlock check`` does.

    Flags that may be repeated take a list: ``request=["0:1@1", "2:1@2"]``. A ``property`` of your
    own is a function, or written FILE.py:NAME.
    """
    name, has_mistake = algorithm_of(algorithm, words)
    own = listed(words.pop("property", ()))
    given, options = read_words(words, CheckSettings, FaultSettings, SearchSettings)
    given["options"] = {**given.get("options", {}), **options}
    found = {field: given.pop(field) for field in SearchSettings.declared if field in given}
    checking = prepared(name, given, own, SearchSettings(**found), has_mistake)
    with Stretch() as done:
        while checking.run(BATCH):
            pass
    try:
        if done.interrupted:
            raise KeyboardInterrupt
        if checking.explorer.stopped and not checking.explorer.violations:
            raise Refused(f"{checking.explorer.stopped} {checking.summary()}")
        found = checking.figures(done.cpu + checking.cpu())
        ways = zip(found.pop("violations"), checking.violations(), strict=True)
        violations = [WayThere(**way, model=checking.model, violation=one) for way, one in ways]
        summary = f"{checking.remark} {checking.summary()}".strip()
        return CheckResult(given=given, summary=summary, violations=violations, **found)
    finally:
        checking.explorer.close()


def sweep(
    table: Mapping[str, Any] | str | Path,
    *,
    workers: int | None = None,
    out: str | Path | None = None,
) -> list[Summary]:
    """Run a study, a file or the same as a dictionary, as ``meshlock sweep`` does.

    With ``out`` every run is kept in that folder, and the same call goes on from there.
    """
    objects: list[str] = []
    if isinstance(table, Mapping):
        read = study(plain(table, objects), "study")
    else:
        read = read_study(Path(table))
    if objects and (workers not in (None, 1) or out is not None):
        raise Refused(
            f"{objects[0]} is an Algorithm in this process only: leave out workers and out, or "
            f"name a file that has it."
        )
    make, folder = on_this_machine(1 if objects else workers), None if out is None else Path(out)
    kept = None if folder is None else folder / "runs.jsonl"
    found = make_all(read, make, lambda done, of: None, kept)
    if folder is not None:
        write_tables(read, found, folder)
    return found


# -- words ------------------------------------------------------------------------------------


def listed(value: Any) -> list[Any]:
    """Several, or one alone."""
    return list(value) if isinstance(value, list | tuple | range) else [value]


def algorithm_of(given: Named | None, words: dict[str, Any]) -> tuple[str | None, bool]:
    """Its name, and whether it is to have a mistake. A file is read again: it may have changed."""
    mutant, without = words.pop("mutant", None), tuple(listed(words.pop("without", ())))
    if given is not None:
        given = of_object(given) if isinstance(given, Algorithm) else load(str(given), again=True)
    return chosen(given, mutant, without), bool(mutant or without)


def read_words(
    words: Mapping[str, Any], *records: type[Settings]
) -> tuple[dict[str, Any], dict[str, str]]:
    """The fields of these records that the words give, and options of algorithms. A word is a
    flag, or else a field: ``request`` is called ``requests``, too."""
    kinds = {name: kind for record in records for name, kind in types_of(record).items()}
    declared = [one for record in records for one in record.declared.values()]
    known = {one.field: one.field for one in declared}
    known |= {one.key.replace("-", "_"): one.field for one in declared}
    turned = {f"no_{one.field}" for one in declared}
    options = {key.replace("-", "_"): key for one in ALGORITHMS.values() for key in one.options}
    fields: dict[str, Any] = {}
    of_algorithm: dict[str, str] = {}
    for word, value in words.items():
        field = known.get(word) or known.get(word.removesuffix("_"))
        if field in fields:
            raise Refused(f"'{word}' is given twice, by another name too: give it once.")
        if field is not None:
            fitted = fitting(word, kinds[field], value)
            fields[field] = not fitted if word in turned else fitted
        elif word in options:
            of_algorithm[options[word]] = str(value)
        else:
            close = get_close_matches(word, [*known, *options], n=1)
            hint = f"did you mean '{close[0]}'?" if close else "use a flag of the command."
            raise Refused(f"There is no setting '{word}': {hint}")
    return fields, of_algorithm


def fitting(word: str, kind: Any, value: Any) -> Any:
    """A value of this kind; a number is a text, too, where texts are taken."""
    parts = get_args(kind)

    def scalar(one: Any) -> Any:
        one = one.item() if hasattr(one, "item") else one  # of numpy
        is_number = isinstance(one, int | float) and not isinstance(one, bool)
        return str(one) if is_number and str in (kind, *parts) else one

    value = [scalar(one) for one in listed(value)] if Ellipsis in parts else scalar(value)
    try:
        return msgspec.convert(value, kind, dec_hook=lambda kind, text: kind(text))
    except msgspec.ValidationError as error:
        raise Refused(f"{word} does not take {value!r}: {error}.") from None


def plain(value: Any, objects: list[str]) -> Any:
    """As a study's file has it; ``objects`` gets the names of algorithms that no file has."""
    if isinstance(value, Algorithm):
        objects.append(of_object(value))
        return value.name
    if isinstance(value, Mapping):
        return {name: plain(one, objects) for name, one in value.items()}
    if isinstance(value, list | tuple | range):
        return [plain(one, objects) for one in value]
    return value.tolist() if hasattr(value, "tolist") else value  # of numpy
