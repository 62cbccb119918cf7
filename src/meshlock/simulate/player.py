"""Play a scenario: do what its lines say, and judge what they expect."""

from __future__ import annotations

from operator import attrgetter

from meshlock.algorithms.actor import Algorithm
from meshlock.algorithms.recovery.messages import KINDS
from meshlock.algorithms.registry import find
from meshlock.errors import Refused
from meshlock.properties.sentences import broken_off
from meshlock.simulate.driven import DrivenRun
from meshlock.simulate.scenario import Scenario, drawn, scenario
from meshlock.trace.writer import TraceWriter
from meshlock.world.clients import SimulatedClient
from meshlock.world.effects import by_name
from meshlock.world.scripted import Impossible, Missing

VERBS = {
    "notice": ("notice", "way up|down"),
    "settle": ("deliver_all", ""),
    "finish": ("finish", ""),
    "link up": ("link_up", "link"),
    "link down": ("link_down", "link"),
    "deliver": ("deliver_first", "way whole?"),
    "lose": ("lose_first", "way whole?"),
    "overtake": ("overtake", "way"),
    "hold": ("hold", "way"),
    "let go": ("let_go", "way"),
    "crash": ("crash", "node"),
    "restart": ("restart", "node without? disk|links? disk|links?"),
    "wait": ("wait", "decimal"),
    "time": ("set_time", "decimal"),
    "wake": ("rouse", "node chance? decimal?"),
    "unreachable": ("cannot_reach", "node node*"),
    "resize": ("recovering.resize", "node whole"),
    "member": ("recovering.change_member", "node add|remove node"),
    "leave": ("release", "inside nth?"),
    "release": ("release_part", "inside part nth?"),
    "withdraw": ("give_up", "waiting nth?"),
    "raise": ("set_priority", "waiting priority nth?"),
}
"""What each line calls in the run, and what its other words are: values that :class:`.Scenario`
reads, or one of the words that are named. ``?``: it may be missing; ``*``: there may be many.
``inside`` and ``waiting`` are the node of a client that is, or does; ``nth`` says which of them:
the second, for example."""


class Player:
    """Drives a run line by line."""

    def __init__(
        self,
        scenario: Scenario,
        algorithm: Algorithm,
        trace: TraceWriter | None = None,
        options: dict[str, str] | None = None,
    ) -> None:
        self.scenario = scenario
        self.run = DrivenRun(scenario, algorithm, trace, options)

    def play(self) -> DrivenRun:
        run = self.run
        try:
            self.perform()
        except Refused:
            raise
        except Exception as error:
            if "/" not in run.algorithm.name:  # only of a mutant may handlers fail
                raise
            run.monitor.report("handlers", run.now, broken_off(error))
        run.end()
        return run

    def perform(self) -> None:
        lines = self.run.lines
        for number, words in self.scenario.lines:
            if words[0] in ("paper", "note"):
                lines.append(f"  {words[0]}: {' '.join(words[1:])}")
            else:
                lines.append(f"> {' '.join(words)}")
                self.act(number, words)

    def act(self, number: int, words: list[str]) -> None:
        try:
            self.does(number, words)
        except Impossible as error:
            raise self.scenario.wrong(number, str(error)) from None

    def does(self, number: int, words: list[str]) -> None:
        """That a client is not there is an expectation that is not met."""
        try:
            self.attempt(number, words)
        except Missing as missing:
            self.judge(" ".join(words[:2]), False, str(missing))

    def attempt(self, number: int, words: list[str]) -> None:
        script, run = self.scenario, self.run
        verb = words[0] if words[0] not in ("link", "let") else " ".join(words[:2])
        rest = words[len(verb.split()) :]
        if verb == "request" and rest:
            self.request(number, rest)
        elif verb == "expect" and rest:
            self.expect(number, rest)
        elif verb == "behaviour" and rest:
            nodes = [script.node(number, word) for word in rest[:-1]]
            run.behave(nodes or list(range(script.size)), rest[-1])
        else:
            values = self.values(number, verb, rest)
            if values is None:
                raise script.wrong(number, f"cannot do '{' '.join(words)}'.")
            attrgetter(VERBS[verb][0])(run)(*values)

    def read(self, number: int, kind: str, word: str) -> object:
        if kind == "priority":
            return self.scenario.priority(number, word, self.run.units)
        return getattr(self.scenario, kind)(number, word)

    def values(self, number: int, verb: str, words: list[str]) -> list[object] | None:
        """What is handed to the method of this verb; None if its line does not look like that."""
        kinds = VERBS[verb][1].split() if verb in VERBS else []
        if kinds and kinds[-1].endswith("*"):
            kinds += kinds[-1:] * (len(words) - len(kinds))
        least = len([kind for kind in kinds if kind[-1] not in "?*"])
        if verb not in VERBS or not least <= len(words) <= len(kinds):
            return None
        values: list[object] = []
        for kind, word in zip([kind.rstrip("?*") for kind in kinds], words, strict=False):
            if kind in ("inside", "waiting", "nth"):
                continue
            if kind in ("way", "link"):
                values += self.scenario.link(number, word, "->" if kind == "way" else "-")
            elif kind in ("node", "whole", "decimal", "signed", "part", "priority"):
                values.append(self.read(number, kind, word))
            elif word not in kind.split("|"):
                return None
            elif "|" in kind:
                values.append(word == "up" if kind == "up|down" else word)
        if kinds and kinds[0] in ("inside", "waiting"):
            nth = self.scenario.signed(number, words[-1]) if len(words) == len(kinds) else 1
            values.insert(0, self.client(kinds[0], self.scenario.node(number, words[0]), nth))
        return values

    def client(self, place: str, node: int, nth: int) -> SimulatedClient:
        there = self.run.waiting if place == "waiting" else self.run.inside
        clients = [client for client in there.values() if client.node == node]
        if not 0 < nth <= len(clients):
            raise Missing(f"nobody {'waits' if place == 'waiting' else 'is inside'} there")
        return clients[nth - 1]

    def request(self, number: int, words: list[str]) -> None:
        node = self.scenario.node(number, words[0])
        want, priority = 1, 0
        within: float | None = None
        for key, value in zip(words[1::2], words[2::2], strict=False):
            if key == "want":
                want = self.scenario.amount(number, value)
            elif key == "priority":
                priority = self.scenario.priority(number, value, self.run.units)
            elif key == "deadline" and self.scenario.deadlines:
                within = self.scenario.decimal(number, value)
            elif key == "deadline":
                raise self.scenario.wrong(number, "say first that there are any: 'deadlines'.")
            else:
                raise self.scenario.wrong(number, f"a request has want and priority, not '{key}'.")
        self.run.ask(node, want, priority, within)

    # -- expectations ---------------------------------------------------------------------------

    def expect(self, number: int, words: list[str]) -> None:
        run, script = self.run, self.scenario
        entries, listed = run.entries, script.listed

        def nodes(names: list[str]) -> list[int]:
            return [script.node(number, name) for name in names]

        match words:
            case ["messages", _, *_] if len(words) % 2 == 1:
                met, seen = self.sent(number, words[1:])
            case ["hops", count]:
                met, seen = run.hops == script.whole(number, count), f"crossed: {run.hops}"
            case ["epochs", count]:
                epochs = run.recovering.monitor.epochs
                met, seen = epochs == script.whole(number, count), f"epochs: {epochs}"
            case ["tree", *chains] if chains:
                met, seen = self.grown(number, chains)
            case ["served"]:
                waiting = [client.node for client in run.waiting.values()]
                met, seen = not waiting, f"waiting for ever: {listed(waiting)}"
            case ["entries", *names]:
                met, seen = entries == nodes(names), f"entered: {listed(entries)}"
            case ["before", _, _]:
                one, other = nodes(words[1:])
                first = entries[: entries.index(other)] if other in entries else entries
                met, seen = one in first, f"entered: {listed(entries)}"
            case ["inside", *names]:
                inside = sorted([client.node for client in run.inside.values()])
                met, seen = inside == sorted(nodes(names)), f"inside: {listed(inside)}"
            case ["slots", name, *_]:
                (node,), given = nodes([name]), run.recovering.monitor.given
                here = [given[one.number].slots for one in run.inside.values() if one.node == node]
                slots = sorted([slot for held in here for slot in held])
                met = slots == sorted([script.whole(number, word) for word in words[2:]])
                seen = f"slots: {' '.join(map(str, slots))}"
            case ["token", name]:
                holders = run.holders()
                met, seen = holders == nodes([name]), f"the token is at: {listed(holders)}"
            case _:
                raise script.wrong(number, f"cannot expect '{' '.join(words)}'.")
        self.judge(" ".join(words), met, seen)

    def sent(self, number: int, words: list[str]) -> tuple[bool, str]:
        kinds = self.run.algorithm.messages()
        if self.run.layered is not None:
            kinds = [*kinds, *[kind.kind for kind in KINDS]]
        met, seen = True, []
        for kind, word in zip(words[::2], words[1::2], strict=True):
            if kind not in kinds:
                name = self.run.algorithm.name
                raise self.scenario.wrong(
                    number, f"{name} has no message {kind}; it has {', '.join(kinds)}."
                )
            count = by_name(self.run.sent).get(kind, 0)
            met = met and count == self.scenario.whole(number, word)
            seen.append(f"{kind} {count}")
        return met, f"sent: {' '.join(seen)}"

    def grown(self, number: int, chains: list[str]) -> tuple[bool, str]:
        if "father" not in self.run.nodes[0].variables:
            name = self.run.algorithm.name
            raise self.scenario.wrong(number, f"{name} has no tree of fathers.")
        fathers = self.run.fathers()
        expected = self.scenario.fathers(number, chains)
        return expected == fathers, f"the tree is: {drawn(fathers, self.scenario.first)}"

    def judge(self, expected: str, met: bool, seen: str) -> None:
        self.run.lines.append("  yes" if met else f"  NO, {seen}")
        if not met:
            self.run.unmet.append(f"{expected}: no, {seen}")


def play(
    name: str,
    algorithm: str | None = None,
    trace: TraceWriter | None = None,
    options: dict[str, str] | None = None,
    seed: int | None = None,
) -> DrivenRun:
    """A scenario by name or file, played by this algorithm or the one that it names."""
    script = scenario(name)
    if seed is not None:
        script.seed = seed
    return Player(script, find(algorithm or script.algorithm), trace, options).play()
