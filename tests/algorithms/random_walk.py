"""A random walk through what may happen next: requests, deliveries, leavings, link changes."""

from random import Random

import networkx

from meshlock.algorithms.registry import find
from meshlock.simulate.driven import DrivenRun
from meshlock.simulate.scenario import Scenario


def connected(size, links):
    graph = networkx.Graph(links)
    graph.add_nodes_from(range(size))
    return networkx.is_connected(graph)


def set_up(chance, most_permits):
    size = chance.randint(2, 6)
    links = {(chance.randrange(node), node) for node in range(1, size)}
    pairs = [(one, other) for other in range(size) for one in range(other)]
    links |= {pair for pair in pairs if chance.random() < 0.3}
    text = f"nodes {size}\npermits {chance.randint(1, most_permits)}\nlinks "
    return text + " ".join(f"{one}-{other}" for one, other in sorted(links))


def walk(algorithm, seed, requests=12, changes=0, most_permits=4, option=None, look=None):
    """Whatever may happen next happens with equal chance, until nothing can.

    ``look`` is shown the run after every step.
    """
    chance = Random(seed)
    script = set_up(chance, most_permits) + (f"\noption {option}" if option else "")
    run = DrivenRun(Scenario(f"walk {seed}", script), find(algorithm))
    nodes = range(run.scenario.size)
    steps = 0
    while steps < 20_000:
        steps += 1
        busy = {each.node for each in [*run.waiting.values(), *run.inside.values()]}
        actions = [("leave", request) for request in run.inside.values()]
        actions += [
            ("deliver", link)
            for link in sorted({(each.sender, each.receiver) for each in run.on_the_way})
        ]
        if requests:
            actions += [("request", node) for node in nodes if node not in busy]
        if changes:
            actions.append(("change", None))
        if not actions:
            break
        action, whom = chance.choice(actions)
        if action == "leave":
            run.release(whom)
        elif action == "deliver":
            run.deliver_at(run.place_of(*whom))
        elif action == "request":
            requests -= 1
            want = chance.randint(1, run.scenario.permits)
            run.ask(whom, want, chance.randint(1, 9))
        else:
            changes -= 1
            flip(run, chance)
        if look:
            look(run)
    run.monitor.ends(run.now, len(run.waiting))
    return run


def flip(run, chance):
    """A link forms, or an idle one fails that the network can spare."""
    size = run.scenario.size
    pairs = [(one, other) for other in range(size) for one in range(other)]
    one, other = chance.choice(pairs)
    if (one, other) not in run.links:
        run.link_up(one, other)
    elif run.first_on(one, other) is not None:
        return  # both ends would go on talking while the link drains
    elif connected(size, run.links - {(one, other)}):
        run.link_down(one, other)
