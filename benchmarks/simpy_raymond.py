"""Raymond's algorithm under SimPy, in the two styles its users write.

*process*: a process per node that reads a store, a process per message on its way.
*callback*: a timeout per message whose callback runs the handler. The nodes are
meshlock's own, so only the simulator differs; links are FIFO, as in ours.
"""

from __future__ import annotations

from random import Random
from time import process_time

import simpy

from meshlock.algorithms.actor import Enter, Message
from meshlock.algorithms.registry import find, with_defaults
from meshlock.topology.graphs import BinaryTree


def run(nodes: int, entries: int, style: str, seed: int) -> dict[str, float]:
    raymond = find("raymond")
    out: list = []
    places = raymond.make(BinaryTree(nodes), 1, with_defaults(raymond, {}), out)
    env = simpy.Environment()
    delay = Random(f"{seed}:delay").random
    think = Random(f"{seed}:think").random
    last: dict[tuple[int, int], float] = {}
    state = {"messages": 0, "entries": 0, "inside": 0, "client": 0}
    over = env.event()

    def handle(node: int, event: object) -> None:
        place = places[node]
        if isinstance(event, Message):
            place.receive(event)
        elif event == "ask":
            state["client"] += 1
            place.request(state["client"], 1, 0)
        else:
            state["inside"] -= 1
            place.release(event)
            later(5.0 + 10.0 * think(), node, "ask")
        for effect in out:
            if isinstance(effect, Message):
                state["messages"] += 1
                link = (node, effect.receiver)
                arrival = max(env.now + 0.5 + delay(), last.get(link, 0.0))
                last[link] = arrival
                later(arrival - env.now, effect.receiver, effect)
            elif isinstance(effect, Enter):
                state["entries"] += 1
                state["inside"] += 1
                if state["inside"] > 1:
                    raise AssertionError("two inside")
                if state["entries"] == entries:
                    over.succeed()
                later(0.1, node, effect.client)
        out.clear()

    if style == "process":
        boxes = [simpy.Store(env) for _ in range(nodes)]

        def flight(after: float, node: int, event: object):
            yield env.timeout(after)
            yield boxes[node].put(event)

        def later(after: float, node: int, event: object) -> None:
            env.process(flight(after, node, event))

        def server(node: int):
            while True:
                handle(node, (yield boxes[node].get()))

        for node in range(nodes):
            env.process(server(node))
    else:

        def later(after: float, node: int, event: object) -> None:
            env.timeout(after).callbacks.append(lambda _: handle(node, event))

    for node in range(nodes):
        later(5.0 + 10.0 * think(), node, "ask")
    started = process_time()
    env.run(until=over)
    cpu = process_time() - started
    return {"messages": state["messages"], "cpu_s": cpu}
