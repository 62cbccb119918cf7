"""Play a scenario: do what its lines say, and judge what they expect."""

from __future__ import annotations

from meshlock.algorithms.actor import Algorithm
from meshlock.algorithms.registry import find
from meshlock.errors import Refused
from meshlock.properties.sentences import broken_off
from meshlock.simulate.driven import DrivenRun, Impossible
from meshlock.simulate.outcome import ScenarioOutcome
from meshlock.simulate.scenario import Scenario, drawn, scenario
from meshlock.trace.writer import TraceWriter
from meshlock.world.effects import by_name


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
        elif verb == "leave" and len(rest) in (1, 2):
            which = script.whole(number, rest[1]) if len(rest) == 2 else 1
            if not run.leave(script.node(number, rest[0]), which):
                self.judge(f"leave {rest[0]}", False, "nobody is inside there")
        elif verb == "withdraw" and len(rest) in (1, 2):
            which = script.whole(number, rest[1]) if len(rest) == 2 else 1
            if not run.give_up(script.node(number, rest[0]), which):
                self.judge(f"withdraw {rest[0]}", False, "nobody waits there")
        elif verb == "raise" and len(rest) in (2, 3):
            which = script.whole(number, rest[2]) if len(rest) == 3 else 1
            priority = script.signed(number, rest[1])
            if not run.rush(script.node(number, rest[0]), priority, which):
                self.judge(f"raise {rest[0]}", False, "nobody waits there")
        elif verb == "release" and len(rest) in (2, 3):
            which = script.whole(number, rest[2]) if len(rest) == 3 else 1
            part = script.whole(number, rest[1])
            if not run.give_some(script.node(number, rest[0]), part, which):
                self.judge(f"release {rest[0]}", False, "nobody is inside there")
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
                run.lose(place)
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

    def does_to_lives(self, number: int, verb: str, rest: list[str]) -> bool:
        """What concerns only nodes under the recovery layer; False if it is no such thing."""
        script, run = self.scenario, self.run
        if verb == "crash" and len(rest) == 1:
            run.crash(script.node(number, rest[0]))
        elif verb == "restart" and set(rest[1:]) <= {"without", "disk", "links"}:
            run.restart(script.node(number, rest[0]), "disk" not in rest, "links" not in rest)
        elif verb == "wait" and len(rest) == 1:
            run.wait(script.decimal(number, rest[0]))
        elif verb == "time" and len(rest) == 1:
            run.set_time(script.decimal(number, rest[0]))
        elif verb == "wake" and len(rest) in (1, 3):
            chance = script.decimal(number, rest[2]) if len(rest) == 3 else run.chance()
            run.rouse(script.node(number, rest[0]), chance)
        elif verb == "unreachable":
            nodes = [script.node(number, word) for word in rest]
            run.lives().layers[nodes[0]].cannot_reach(set(nodes[1:]))
        elif verb == "resize" and len(rest) == 2:
            run.lives().resize(script.node(number, rest[0]), script.whole(number, rest[1]))
        elif verb == "member" and len(rest) == 3 and rest[1] in ("add", "remove"):
            node, other = script.node(number, rest[0]), script.node(number, rest[2])
            run.lives().change_member(node, rest[1], other)
        else:
            return False
        return True

    def request(self, number: int, words: list[str]) -> None:
        node = self.scenario.node(number, words[0])
        want, priority = 1, 0
        for key, value in zip(words[1::2], words[2::2], strict=False):
            if key == "want":
                want = self.scenario.whole(number, value)
            elif key == "priority":
                priority = self.scenario.signed(number, value)
            else:
                raise self.scenario.wrong(number, f"a request has want and priority, not '{key}'.")
        self.run.ask(node, want, priority)

    # -- expectations ---------------------------------------------------------------------------

    def expect(self, number: int, words: list[str]) -> None:
        what, rest = words[0], words[1:]
        if what == "messages" and rest and len(rest) % 2 == 0:
            met, seen = self.sent(number, rest)
        elif what == "hops" and len(rest) == 1:
            hops = self.run.hops
            met, seen = hops == self.scenario.whole(number, rest[0]), f"crossed: {hops}"
        elif what == "epochs" and len(rest) == 1:
            epochs = self.run.lives().monitor.epochs
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
            holders = run.holders()
            return holders == nodes, f"the token is at: {listed(holders)}"
        raise self.scenario.wrong(number, f"cannot expect '{what} {listed(nodes)}'.")

    def sent(self, number: int, words: list[str]) -> tuple[bool, str]:
        kinds = self.run.kinds()
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
