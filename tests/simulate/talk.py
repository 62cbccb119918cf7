"""Nodes that say what they were told to say, and one run of them on changing links."""

from __future__ import annotations

from random import Random
from typing import ClassVar

from meshlock.algorithms.actor import Actor, Algorithm, Assumptions, Effect, Message, Network
from meshlock.properties.promises import PromisedOrder
from meshlock.simulate.custody import CustodySimulation
from meshlock.simulate.engine import RunSetup
from meshlock.simulate.link_changes import MobileSimulation
from meshlock.simulate.workload import Duration, Workload
from meshlock.topology.mobility.changes import LinkChange, NetworkChange, Planned
from meshlock.topology.mobility.live_graph import LiveGraph
from meshlock.trace.setup import TraceSetup
from meshlock.trace.writer import TraceWriter


class Word(Message):
    def __init__(self, receiver: int, text: str) -> None:
        super().__init__(receiver)
        self.text = text

    def permits(self) -> int:
        return 1 if self.text.isupper() else 0


class Talker(Actor):
    """Tells what happens to it, and says what it was told to say when that happens.

    Words in capitals carry a permit, and so does a talker's purse.
    """

    no_state: ClassVar = ("says", "heard")

    def __init__(self, me: int, out: list[Effect], says: dict[str, str], heard: list[str]) -> None:
        super().__init__(me, out)
        self.says = says
        self.heard = heard
        self.purse = 9 if me == 0 else 0

    def hear(self, text: str) -> None:
        self.heard.append(f"{self.me} {text}")
        for word in self.says.get(f"{self.me} {text}", "").split():
            text, receiver = word.split(">")
            self.purse -= text.isupper()
            self.send(Word(int(receiver), text))

    def request(self, client: int, want: int, priority: int) -> None:
        self.hear("asks")
        if "never" not in self.says:
            self.purse -= want
            self.enter(client)

    def release(self, client: int) -> None:
        self.purse += 1

    def receive(self, message: Message) -> None:
        assert isinstance(message, Word)
        self.purse += message.permits()
        self.hear(f"gets {message.text}")

    def undelivered(self, message: Message) -> None:
        assert isinstance(message, Word)
        self.purse += message.permits()
        self.hear(f"keeps {message.text}")

    def link_up(self, peer: int) -> None:
        self.hear(f"meets {peer}")

    def link_down(self, peer: int) -> None:
        self.hear(f"loses {peer}")

    def free_permits(self) -> int:
        return self.purse

    def tokens(self) -> int:
        return 1 if self.me == 0 else 0


class Play:
    """One client of node 0 is inside from 0 to 100; messages take 10."""

    def __init__(
        self,
        links: list[tuple[int, int]],
        changes: list[str],
        says: dict[str, str],
        *,
        failures: str = "drain",
        notices: tuple[float, ...] = (),
        dead: tuple[bool, ...] = (),
        trace: TraceWriter | None = None,
    ) -> None:
        self.heard: list[str] = []

        def make(
            network: Network, permits: int, options: dict[str, str], out: list[Effect]
        ) -> list[Actor]:
            return [Talker(me, out, says, self.heard) for me in range(network.size)]

        planned: list[NetworkChange] = []
        for line in changes:
            time, word, pair = line.split()
            one, other = pair.split("-")
            planned.append(LinkChange(float(time), word == "up", int(one), int(other)))
        graph = LiveGraph(3, links)
        algorithm = Algorithm(
            "talk", "Talk", "here", "k", make, (Word,), assumes=Assumptions(changing_links=True)
        )
        setup = RunSetup(
            algorithm,
            {},
            graph,
            9,
            Workload(1, 1, False, None, ((1, 1),), (0, 0), None, 1),
            constant(10.0),
            constant(100.0),
            changes=Planned(planned),
            trace=trace,
        )
        self.run: MobileSimulation
        if failures == "custody":
            self.run = CustodySimulation(setup, Listed(notices))
            deaths = [0.0 if dies else 0.9 for dies in dead]
            self.run.dies = lambda: deaths.pop(0)
        else:
            self.run = MobileSimulation(setup, failures)
        if trace is not None:
            promised = PromisedOrder(ordered=False, balanced=True, ageing=0.0)
            links = list(graph.links())
            about = TraceSetup(
                source="test",
                algorithm="talk",
                options={},
                promised=promised,
                permits=9,
                nodes=3,
                links=links,
            )
            trace.begin(about, self.run.nodes)
        self.run.start()
        while self.run.run(1000):
            pass
        self.run.finish()


def constant(time: float) -> Duration:
    return Duration("constant", time, time, Random(1))


class Listed(Duration):
    """These times, one after the other."""

    def __init__(self, times: tuple[float, ...]) -> None:
        super().__init__("constant", 0.0, 0.0, Random(1))
        self.times = list(times)

    def draw(self) -> float:
        return self.times.pop(0)
