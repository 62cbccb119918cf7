"""Play a scenario: do what its lines say, and judge what they expect."""

from __future__ import annotations

from collections.abc import Callable

from meshlock.algorithms.actor import Algorithm
from meshlock.algorithms.recovery.messages import KINDS
from meshlock.algorithms.registry import find
from meshlock.errors import Refused
from meshlock.properties.sentences import broken_off
from meshlock.simulate.driven import DrivenRun
from meshlock.simulate.driven_lives import Impossible
from meshlock.simulate.outcome import ScenarioOutcome
from meshlock.simulate.scenario import Scenario, drawn, scenario
from meshlock.trace.writer import TraceWriter
from meshlock.world.effects import by_name

OF_CLIENTS = {"leave": 0, "withdraw": 0, "raise": 1, "release": 1}
"""What is done to a client, and how many numbers that takes."""


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

    def play(self) -> ScenarioOutcome:
        run = self.run
        try:
            self.perform()
        except Refused:
            raise
        except Exception as error:
            if "/" not in run.algorithm.name:  # only of a mutant may handlers fail
                raise
            run.monitor.report("handlers", run.now, broken_off(error))
        return run.end()

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
        script, run = self.scenario, self.run
        verb = words[0] if words[0] not in ("link", "let") else " ".join(words[:2])
        rest = words[len(verb.split()) :]
        if verb == "request" and rest:
            self.request(number, rest)
        elif len(rest) - OF_CLIENTS.get(verb, len(rest)) in (1, 2):
            self.of_client(number, verb, rest)
        elif verb == "notice" and len(rest) == 2 and rest[1] in ("up", "down"):
            run.notice(*script.link(number, rest[0], "->"), rest[1] == "up")
        elif verb == "behaviour" and rest:
            nodes = [script.node(number, word) for word in rest[:-1]]
            run.behave(nodes or list(range(script.size)), rest[-1])
        elif verb == "settle" and not rest:
            run.settle()
        elif verb == "finish" and not rest:
            run.finish()
        elif verb == "expect" and rest:
            self.expect(number, rest)
        elif verb in ("link up", "link down") and len(rest) == 1:
            one, other = script.link(number, rest[0])
            if verb == "link up":
                run.link_up(one, other)
            else:
                run.link_down(one, other)
        elif verb in ("deliver", "lose") and len(rest) in (1, 2):
            one, other = script.link(number, rest[0], "->")
            which = script.whole(number, rest[1]) if len(rest) == 2 else 1
            place = run.place_of(one, other, which)
            if verb == "deliver":
                run.deliver_at(place)
            else:
                run.lose(run.on_the_way[place])
        elif verb in ("overtake", "hold", "let go") and len(rest) == 1:
            link = script.link(number, rest[0], "->")
            if verb == "overtake":
                run.overtake(*link)
            elif verb == "hold":
                run.held.add(link)
            else:
                run.held.discard(link)
        elif rest and self.does_to_lives(number, verb, rest):
            pass
        else:
            raise script.wrong(number, f"cannot do '{' '.join(words)}'.")

    def of_client(self, number: int, verb: str, words: list[str]) -> None:
        """Of the first client there, or of the one whose number is said last."""
        script, run = self.scenario, self.run
        acts: dict[str, Callable[..., bool]] = {
            "leave": run.leave,
            "withdraw": run.give_up,
            "raise": run.rush,
            "release": run.give_some,
        }
        numbers = [script.signed(number, word) for word in words[2 if verb == "raise" else 1 :]]
        if verb == "raise":
            numbers.insert(0, script.priority(number, words[1], run.units))
        if not acts[verb](script.node(number, words[0]), *numbers):
            waits = verb in ("withdraw", "raise")
            missing = "nobody waits there" if waits else "nobody is inside there"
            self.judge(f"{verb} {words[0]}", False, missing)

    def does_to_lives(self, number: int, verb: str, rest: list[str]) -> bool:
        """What concerns only nodes under the recovery layer; False if it is no such thing."""
        script, lives = self.scenario, self.run.lives
        if verb == "crash" and len(rest) == 1:
            lives.crash(script.node(number, rest[0]))
        elif verb == "restart" and set(rest[1:]) <= {"without", "disk", "links"}:
            lives.restart(script.node(number, rest[0]), "disk" not in rest, "links" not in rest)
        elif verb == "wait" and len(rest) == 1:
            lives.wait(script.decimal(number, rest[0]))
        elif verb == "time" and len(rest) == 1:
            lives.set_time(script.decimal(number, rest[0]))
        elif verb == "wake" and len(rest) in (1, 3):
            chance = script.decimal(number, rest[2]) if len(rest) == 3 else None
            lives.rouse(script.node(number, rest[0]), chance)
        elif verb == "unreachable":
            nodes = [script.node(number, word) for word in rest]
            lives.nodes.layers[nodes[0]].cannot_reach(set(nodes[1:]))
        elif verb == "resize" and len(rest) == 2:
            lives.nodes.resize(script.node(number, rest[0]), script.whole(number, rest[1]))
        elif verb == "member" and len(rest) == 3 and rest[1] in ("add", "remove"):
            node, other = script.node(number, rest[0]), script.node(number, rest[2])
            lives.nodes.change_member(node, rest[1], other)
        else:
            return False
        return True

    def request(self, number: int, words: list[str]) -> None:
        node = self.scenario.node(number, words[0])
        want, priority = 1, 0
        within: float | None = None
        for key, value in zip(words[1::2], words[2::2], strict=False):
            if key == "want":
                want = self.scenario.whole(number, value)
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
        what, rest = words[0], words[1:]
        if what == "messages" and rest and len(rest) % 2 == 0:
            met, seen = self.sent(number, rest)
        elif what == "hops" and len(rest) == 1:
            hops = self.run.hops
            met, seen = hops == self.scenario.whole(number, rest[0]), f"crossed: {hops}"
        elif what == "epochs" and len(rest) == 1:
            epochs = self.run.lives.nodes.monitor.epochs
            met, seen = epochs == self.scenario.whole(number, rest[0]), f"epochs: {epochs}"
        elif what == "tree" and rest:
            met, seen = self.grown(number, rest)
        elif what in ("served", "entries", "before", "inside", "token"):
            nodes = [self.scenario.node(number, word) for word in rest]
            met, seen = self.clients(number, what, nodes)
        else:
            raise self.scenario.wrong(number, f"cannot expect '{' '.join(words)}'.")
        self.judge(" ".join(words), met, seen)

    def clients(self, number: int, what: str, nodes: list[int]) -> tuple[bool, str]:
        """Is it so of these nodes; and what is so?"""
        run, listed = self.run, self.scenario.listed
        entries = run.outcome.entries
        if what == "served" and not nodes:
            waiting = [request.node for request in run.waiting.values()]
            return not waiting, f"waiting for ever: {listed(waiting)}"
        if what == "entries":
            return entries == nodes, f"entered: {listed(entries)}"
        if what == "before" and len(nodes) == 2:
            one, other = nodes
            first = entries[: entries.index(other)] if other in entries else entries
            return one in first, f"entered: {listed(entries)}"
        if what == "inside":
            inside = sorted([request.node for request in run.inside.values()])
            return inside == sorted(nodes), f"inside: {listed(inside)}"
        if what == "token" and len(nodes) == 1:
            holders = holders_in(run)
            return holders == nodes, f"the token is at: {listed(holders)}"
        raise self.scenario.wrong(number, f"cannot expect '{what} {listed(nodes)}'.")

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
            self.run.outcome.unmet.append(f"{expected}: no, {seen}")


def holders_in(run: DrivenRun) -> list[int]:
    """Who has the token."""
    if run.layered is not None:
        for node in run.nodes:
            run.layered.set_clock(node.me, run.now)
    return [node.me for node in run.nodes if run.is_up(node.me) and node.tokens()]


def play(
    name: str,
    algorithm: str | None = None,
    trace: TraceWriter | None = None,
    options: dict[str, str] | None = None,
    seed: int | None = None,
) -> ScenarioOutcome:
    """A scenario by name or file, played by this algorithm or the one that it names."""
    script = scenario(name)
    if seed is not None:
        script.seed = seed
    return Player(script, find(algorithm or script.algorithm), trace, options).play()
