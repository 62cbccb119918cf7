"""A random walk through what may happen next: requests, deliveries, leavings, link changes."""

from random import Random

import networkx

from meshlock.algorithms.registry import find
from meshlock.simulate.by_hand import Director, Scenario


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

    ``look`` is shown the director after every step.
    """
    chance = Random(seed)
    script = set_up(chance, most_permits) + (f"\noption {option}" if option else "")
    director = Director(Scenario(f"walk {seed}", script), find(algorithm))
    nodes = range(director.scenario.size)
    steps = 0
    while steps < 20_000:
        steps += 1
        busy = {each.node for each in [*director.waiting.values(), *director.inside.values()]}
        deeds = [("leave", request) for request in director.inside.values()]
        deeds += [
            ("deliver", link)
            for link in sorted({(each.sender, each.receiver) for each in director.on_the_way})
        ]
        if requests:
            deeds += [("request", node) for node in nodes if node not in busy]
        if changes:
            deeds.append(("change", None))
        if not deeds:
            break
        deed, whom = chance.choice(deeds)
        if deed == "leave":
            director.leaves(whom)
        elif deed == "deliver":
            director.deliver(director.first(whom))
        elif deed == "request":
            requests -= 1
            want = chance.randint(1, director.scenario.permits)
            words = f"{whom} want {want} priority {chance.randint(1, 9)}".split()
            director.request(0, words)
        else:
            changes -= 1
            flip(director, chance)
        if look:
            look(director)
    director.monitor.ends(director.now, len(director.waiting))
    return director


def flip(director, chance):
    """A link forms, or an idle one fails that the network can spare."""
    size = director.scenario.size
    pairs = [(one, other) for other in range(size) for one in range(other)]
    one, other = chance.choice(pairs)
    if (one, other) not in director.links:
        director.link_up(one, other)
    elif max(director.first((one, other)), director.first((other, one))) >= 0:
        return  # both ends would go on talking while the link drains
    elif connected(size, director.links - {(one, other)}):
        director.link_down(0, one, other)
