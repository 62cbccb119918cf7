"""Mutants as riddles: an algorithm is broken, and a schedule that shows it is to be found.

A riddle is a mutant's own small set-up as a scenario without actions. The player writes these;
the driven run judges them as it judges every run, and the checker says what the shortest schedule
is. Steps are runs of handlers, counted in the same way for both.
"""

from __future__ import annotations

from collections import Counter
from functools import cache, cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

from meshlock.algorithms.mutants.catalogue import MUTANTS, PREFIX
from meshlock.algorithms.mutants.mutant import Mutant
from meshlock.check.arguments import judged
from meshlock.check.mutants import setup_of
from meshlock.check.retold import write_trace
from meshlock.check.setup import SetUp
from meshlock.check.story import pages
from meshlock.check.verdict import Checking
from meshlock.errors import Refused
from meshlock.properties.monitor import NAMES
from meshlock.properties.sentences import broken_off
from meshlock.simulate.player import Player
from meshlock.simulate.scenario import Scenario
from meshlock.simulate.schedule import read
from meshlock.trace.reader import Trace

SIMPLE = {"nodes", "topology", "permits", "requests", "changes", "clients", "options"}
"""Settings that a scenario has, too."""

MOST = 500_000
"""States that the checker looks at; every riddle's are fewer."""


class Finding:
    """What came of a schedule: nothing is ``violated`` where it shows no mistake."""

    def __init__(self, violated: dict[str, str], steps: int, transcript: str) -> None:
        self.violated = violated
        self.transcript = transcript
        # every step takes one unit of time, and sentences begin with "at 3:"
        times = [int(sentence.split()[1].rstrip(":")) for sentence in violated.values()]
        self.steps = min(times, default=steps)  # until the first of them was violated


class Riddle:
    def __init__(self, number: int, mutant: Mutant) -> None:
        self.number = number
        self.mutant = mutant
        self.algorithm = mutant.origin.name
        # what may become of links, in this order
        self.changes = [f"link {change}" for change in mutant.case.get("changes", [])]

    @cached_property
    def setup(self) -> SetUp:
        return setup_of(self.mutant, self.mutant.algorithm)

    @property
    def requests(self) -> list[str]:
        """What clients may ask for, as actions, each once."""
        return [
            f"request {request.node} want {self.setup.kinds.write(request.want)} priority "
            f"{request.priority}"
            for request in self.setup.requests
        ]

    @property
    def options(self) -> dict[str, str]:
        given: dict[str, str] = self.mutant.case.get("options", {})
        return given

    def script(self) -> str:
        """The set-up as a scenario, with what may be done as comments."""
        links = self.setup.network.links()
        lines = [
            f"# Riddle {self.number}: this {self.algorithm} is broken. Find the schedule.",
            f"nodes {self.setup.network.size}",
            "links " + " ".join([f"{one}-{other}" for one, other in links]),
            f"permits {self.setup.kinds.write(self.setup.permits)}",
        ]
        lines += [f"option {name}={value}" for name, value in self.options.items()]
        lines += ["", "# Each of these may happen once, whenever you like:"]
        lines += [f"#   {request}" for request in self.requests]
        if self.changes:
            lines += ["# and of these some, in this order:"]
            lines += [f"#   {change}" for change in self.changes]
        moves = "deliver A->B, leave N" if self.ordered else "deliver A->B, overtake A->B, leave N"
        lines.append(f"# In between: {moves}; or settle, finish.")
        return "\n".join(lines) + "\n"

    @property
    def ordered(self) -> bool:
        return self.mutant.origin.assumes.fifo and not self.mutant.unordered

    def hidden(self, text: str) -> str:
        """The mutant's name would tell its mistake."""
        return text.replace(self.mutant.name, self.algorithm)

    # -- the referee -----------------------------------------------------------------------

    def judge(self, text: str) -> Finding:
        """Play the actions of a schedule, up to where something is violated."""
        given = Scenario("of yours", self.script())
        if not any(line.split()[:1] == ["nodes"] for line in text.splitlines()):
            text = self.script() + text
        scenario = Scenario("of yours", text)
        for part in ("size", "links", "permits", "tree", "failures", "options", "members", "first"):
            if getattr(scenario, part) != getattr(given, part):
                raise Refused("The set-up belongs to the riddle: leave it as it was given.")
        self.refuse_others(scenario)
        scenario.changing = bool(self.changes)
        try:
            return self.played(scenario)
        except Refused as error:
            raise Refused(self.hidden(str(error))) from None

    def refuse_others(self, scenario: Scenario) -> None:
        asked: Counter[str] = Counter()
        changed: list[str] = []
        for number, words in scenario.lines:
            if words[0] == "request" and len(words) > 1:
                given = dict(zip(words[2::2], words[3::2], strict=False))
                want, priority = given.get("want", "1"), given.get("priority", "0")
                asked[f"request {words[1]} want {want} priority {priority}"] += 1
            elif words[0] == "link":
                changed.append(" ".join(words))
            elif words[0] in ("lose", "withdraw", "notice"):
                raise scenario.wrong(number, f"'{words[0]}' is not a step of this riddle.")
        for request in asked - Counter(self.requests):
            raise Refused(f"'{request}' is not in this riddle, or not as many times.")
        if changed != self.changes[: len(changed)]:
            raise Refused(f"Links change only in this order: {', '.join(self.changes) or 'never'}.")

    def played(self, scenario: Scenario) -> Finding:
        player = Player(scenario, self.mutant.algorithm)
        run, monitor = player.run, player.run.monitor
        try:
            for number, words in scenario.lines:
                run.lines.append(f"> {' '.join(words)}")
                player.act(number, words)
                if monitor.violated:
                    break
        except Refused:
            raise
        except Exception as error:  # a handler of a broken algorithm
            monitor.report("handlers", run.now, broken_off(error))
        over = not run.on_the_way and not run.inside and monitor.connected
        if over and not monitor.violated:
            run.end()
        return Finding(dict(run.violated), run.steps, self.hidden(run.transcript))

    # -- the checker -------------------------------------------------------------------------

    @cached_property
    def solution(self) -> tuple[str, list[str]]:
        """A shortest schedule that the referee can judge, and its story."""
        check = Checking(self.setup, judged([]) & set(NAMES), MOST)
        while not check.explorer.violations and check.run(1):
            pass
        found = check.violations()[0]
        with TemporaryDirectory() as folder:
            path = Path(folder) / "way.jsonl"
            with path.open("wb") as file:
                write_trace(check.model, found, file)
            schedule, _ = read(Trace(path))
        actions = "\n".join(schedule.actions_with_choices()) + "\n"
        return actions, [self.hidden(line) for line in pages(check.model, found)]

    def shortest(self) -> int:
        return self.judge(self.solution[0]).steps

    # -- for people --------------------------------------------------------------------------

    def hint(self) -> str:
        return f"It breaks {self.mutant.breaks}."

    def mistake(self) -> str:
        """What is wrong with it."""
        return f"{self.mutant.name}: {self.mutant.mistake}."

    def verdict(self, finding: Finding) -> str:
        """Is it found, and could it be found sooner? That is the checker's to say."""
        if not finding.violated:
            return "Not found: nothing is violated so far."
        shortest = self.shortest()
        if finding.steps > shortest:
            return f"Found, in {finding.steps} steps; the shortest way has {shortest}."
        return f"Found, in {finding.steps} steps: no way is shorter."


def solvable(mutant: Mutant) -> bool:
    """Can a schedule of a few lines show what it breaks? (Repairs undone are jiang's own story.)"""
    simple = mutant.case.keys() <= SIMPLE and not mutant.large
    known = mutant.breaks in NAMES
    return simple and known and not mutant.origin.serves.restless and PREFIX not in mutant.name


@cache
def riddles() -> list[Riddle]:
    """From the easiest on: by the steps of the shortest way; of equal mistakes Raymond's,
    or the first."""
    mistakes: dict[str, Mutant] = {}
    for mutant in MUTANTS.values():
        known = mutant.mistake in mistakes and mutant.origin.name != "raymond"
        if solvable(mutant) and not known:
            mistakes[mutant.mistake] = mutant
    ranked = sorted(mistakes.values(), key=lambda mutant: (mutant.steps, mutant.name))
    return [Riddle(number, mutant) for number, mutant in enumerate(ranked, start=1)]


def riddle(number: int) -> Riddle:
    every = riddles()
    if not 1 <= number <= len(every):
        raise Refused(f"Riddles are numbered 1 to {len(every)}: meshlock riddle lists them.")
    return every[number - 1]
