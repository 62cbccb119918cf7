"""The general scheme: its queues, and requests that wait at a node's door.

The report's worked example is the scenario scheme-figures-2-3.
"""

import io
import json

import pytest

from meshlock.algorithms.actor import NIL, Enter
from meshlock.algorithms.general_scheme import AlwaysTransit, Request, SchemeNode
from meshlock.algorithms.queues import Fifo, Lift
from meshlock.simulate.settings import run_settings, simulation
from meshlock.trace.writer import TraceWriter


# Hélary, Mostefaoui, Raynal, RR-1692, section 2.1: "Its service policy is implicit: the only
# assumption is fairness; hereby is meant that every waiting request will be processed in finite
# time"
@pytest.mark.parametrize("queue", [Fifo(), Lift(7)], ids=["fifo", "lift"])
def test_a_queue_gives_out_all_it_took_in_and_survives_freezing(queue):
    for item in [*range(200), 7]:
        if item != 7 or isinstance(queue, Lift):
            queue.push(item)
    taken = []
    while len(queue):
        taken.append(queue.pop())
        again = Lift(7) if isinstance(queue, Lift) else Fifo()
        again.thaw(queue.freeze())
        assert again.freeze() == queue.freeze()
        assert len(again) == len(queue)
    assert sorted(taken) == sorted(set(range(200)) - ({7} if type(queue) is Fifo else set()))


# Section 4.1: "putting systematically at the head of queue, the request corresponding to a local
# call"
def test_lift_serves_its_own_first():
    queue = Lift(0)
    for other in (5, 6):
        queue.push(other)
    queue.push(0)
    assert [queue.pop() for _ in range(3)] == [0, 5, 6]


# Hélary, Mostefaoui, Raynal, RR-1692, section 2.1: "No waiting request can be processed by i
# unless the boolean variable asked_i has the value false."
def test_a_request_is_kept_until_the_node_is_free():
    out = []
    node = SchemeNode(1, out, NIL, AlwaysTransit(), Fifo())
    node.request(1, 1, 0)
    assert [type(effect) for effect in out] == [Enter]
    out.clear()
    ask = Request(1, 2)
    ask.sender = 2
    node.receive(ask)
    assert out == []
    node.release(1)
    assert [(effect.kind, effect.receiver) for effect in out] == [("TOKEN", 2)]


@pytest.mark.parametrize("networks", ["2", "3"])
def test_gateways_make_a_tree_that_never_changes(networks):
    """A central lock in two levels: requests come to gateways only, and no father changes."""
    sink = io.BytesIO()
    words = {"algorithm": "gateway", "nodes": 9, "requests": 300, "networks": networks}
    run = simulation(run_settings(words | {"delay": "exp:1"}), TraceWriter(sink, True))
    run.start()
    while run.run(1000):
        pass
    run.finish()
    setup, *events = map(json.loads, sink.getvalue().splitlines())
    per = -(-9 // int(networks))
    asked = {event["to"] for event in events if event.get("message") == "REQUEST" and "to" in event}
    assert asked == {node for node in range(9) if node % per == 0}
    assert not [event for event in events if "father" in event.get("state", {})]
    assert len([event for event in events if event["event"] == "enter"]) == 300
    assert run.nodes[0].tokens() == 1
    gateways = [node - node % per for node in range(9)]
    first = [0 if node == gateways[node] else gateways[node] for node in range(9)]
    assert [state["father"] for state in setup["states"]] == [NIL, *first[1:]]
