"""Any behaviour of any node at any moment, on channels that keep no order: safe and live."""

from hypothesis import given, settings
from hypothesis import strategies as some

from runs import finished


# Hélary, Mostefaoui, Raynal, RR-1692, section 4.2: "As far as the general algorithm is not
# restricted to a particular assignment of the variables behavior (proxy or transit) to the nodes,
# any static or dynamic assignment can be considered, each yielding a particular algorithm."
@settings(max_examples=300, deadline=None)
@given(
    nodes=some.integers(1, 8),
    topology=some.sampled_from(["line", "ring", "star", "tree", "complete"]),
    behaviour=some.sampled_from(["random", "proxy", "transit", "raymond", "shortcut", "gateway"]),
    queue=some.sampled_from(["fifo", "lift"]),
    workload=some.sampled_from(["saturated", "poisson:0.5", "serial"]),
    hold=some.sampled_from(["0", "0.5", "exp:1"]),
    clients=some.integers(1, 3),
    seed=some.integers(0, 2**32),
)
def test_random_runs_are_safe_and_live(
    nodes, topology, behaviour, queue, workload, hold, clients, seed
):
    if topology == "ring" and nodes < 3:
        topology = "line"
    run = finished(
        algorithm="general-scheme",
        nodes=nodes,
        topology=topology,
        behaviour=behaviour,
        queue=queue,
        workload=workload,
        requests=40,
        clients=clients,
        links="unordered",
        delay="exp:1",
        hold=hold,
        seed=seed,
    )
    assert run.monitor.violated == {}
    assert run.measures.entries == 40
    assert sum(node.tokens() for node in run.nodes) == 1
