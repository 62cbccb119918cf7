"""An oracle for the order of grants: one list, with perfect knowledge.

Clients ask one central queue, which is where everything is decided. It knows each request as soon
as it is made. Requests are in the order of rank; of equal ones the earlier is first. A rank is the
priority times the patience, and one more for every grant since the queue has known the request;
with deadlines, priorities are in grants. The
first request gets its permits as soon as there are enough, and until then none behind it does. A
request that changes its priority keeps its age and its place among equals.

:class:`Quiet` drives the nodes of an algorithm beside it, by their handlers alone. It delivers all
messages before each action of a client, so that the node with the token knows what the oracle
knows, if nothing is hidden from it. Then the nodes must grant what the oracle grants, in its order.
"""

from collections import deque

from meshlock.algorithms.actor import Enter, Message
from meshlock.algorithms.registry import find, with_defaults
from meshlock.algorithms.steps import in_grants
from meshlock.topology.specification import network


class Asked:
    """A request that waits."""

    def __init__(self, want, priority, turn, known):
        self.want = want
        self.priority = priority
        self.turn = turn  # its place in the order of asking
        self.known = known  # after this number of grants


class CentralQueue:
    def __init__(self, permits, weight):
        self.free = permits
        self.weight = weight  # grants that a unit of priority is worth; 0: requests do not age
        self.grants = 0
        self.turns = 0
        self.waiting = {}  # by client
        self.inside = {}  # client: permits

    def rank(self, asked):
        if self.weight == 0:
            return asked.priority
        return asked.priority * self.weight - asked.known

    def request(self, client, want, priority):
        self.turns += 1
        self.waiting[client] = Asked(want, priority, self.turns, self.grants)
        return self.decide()

    def withdraw(self, client):
        del self.waiting[client]
        return self.decide()

    def change(self, client, priority):
        self.waiting[client].priority = priority
        return self.decide()

    def release(self, client, permits):
        self.free += permits
        self.inside[client] -= permits
        if self.inside[client] == 0:
            del self.inside[client]
        return self.decide()

    def decide(self):
        """The clients that are granted their permits now, in order."""
        granted = []
        while self.waiting:
            first = min(
                self.waiting,
                key=lambda one: (-self.rank(self.waiting[one]), self.waiting[one].turn),
            )
            asked = self.waiting[first]
            if asked.want > self.free:
                break
            del self.waiting[first]
            self.inside[first] = asked.want
            self.free -= asked.want
            self.grants += 1
            granted.append(first)
        return granted


class Quiet:
    """Nodes whose clients act only when nothing is in flight."""

    def __init__(self, algorithm, topology, size, permits, deadlines=False, **options):
        entry = find(algorithm)
        settled = with_defaults(entry, options)
        weight = 1 if deadlines else int(settled["patience"])
        if deadlines:
            settled = in_grants(settled)
        self.out = []
        self.nodes = entry.make(network(topology, size, 1), permits, settled, self.out)
        aged = settled.get("ageing", "none") != "none"
        self.oracle = CentralQueue(permits, weight if aged else 0)
        self.homes = {}  # client: its node
        self.told = []  # what clients did, for people

    def request(self, node, client, want, priority):
        self.homes[client] = node
        self.told.append(f"{client} asks node {node} for {want} with priority {priority}")
        self.nodes[node].request(client, want, priority)
        self.compare(self.oracle.request(client, want, priority))

    def withdraw(self, client):
        self.told.append(f"{client} gives up")
        assert self.nodes[self.homes[client]].withdraw(client)
        self.compare(self.oracle.withdraw(client))

    def change(self, client, priority):
        want = self.oracle.waiting[client].want
        self.told.append(f"{client} has priority {priority} now")
        assert self.nodes[self.homes[client]].change_priority(client, want, priority)
        self.compare(self.oracle.change(client, priority))

    def release(self, client, permits):
        node, held = self.nodes[self.homes[client]], self.oracle.inside[client]
        self.told.append(f"{client} releases {permits} of {held}")
        if permits == held:
            node.release(client)
        else:
            node.release_some(client, permits)
        self.compare(self.oracle.release(client, permits))

    def compare(self, expected):
        """Everything that was sent arrives: whom has it let in, by the numbers of the grants?"""
        lines, entered = {}, []
        while True:
            for effect in self.out:
                if isinstance(effect, Message):
                    lines.setdefault((effect.sender, effect.receiver), deque()).append(effect)
                elif isinstance(effect, Enter):
                    entered.append((effect.fence, effect.client))
            self.out.clear()
            ready = sorted(line for line, messages in lines.items() if messages)
            if not ready:
                break
            message = lines[ready[0]].popleft()
            self.nodes[message.receiver].receive(message)
        granted = [client for _, client in sorted(entered)]
        self.told.append(f"    enter: {granted}")
        assert granted == expected, "\n".join([*self.told, f"    expected: {expected}"])


def wander(quiet, chance, actions, clients, most, priorities, changes=True, withdrawals=True):
    """A random history: the clients of each node, each for up to ``most`` permits."""
    oracle = quiet.oracle
    number = 0
    for _ in range(actions):
        busy = [quiet.homes[client] for client in (*oracle.waiting, *oracle.inside)]
        idle = [node for node in range(len(quiet.nodes)) if busy.count(node) < clients]
        drawn = chance.random()
        if oracle.inside and (drawn < 0.35 or not idle):
            client = chance.choice(list(oracle.inside))
            held = oracle.inside[client]
            part = chance.randint(1, held) if chance.random() < 0.3 else held
            quiet.release(client, part)
        elif changes and oracle.waiting and drawn < 0.45:
            quiet.change(chance.choice(list(oracle.waiting)), chance.randint(*priorities))
        elif withdrawals and oracle.waiting and drawn < 0.5:
            quiet.withdraw(chance.choice(list(oracle.waiting)))
        elif idle:
            number += 1
            priority = chance.randint(*priorities)
            quiet.request(chance.choice(idle), number, chance.randint(1, most), priority)
