"""Curator's InterProcessSemaphoreV2: a znode per lease.

**What it promises.** At most k leases at a time; a lease that is closed, or whose session has
expired, is free again.

**Assumptions.** The ensemble is one node that does not fail, sessions live on, and no client is
paused. A connection may break once while a client waits for the answer to *create*: the request has
arrived, its answer is lost, and the client tries again.

**What was reported.** curator #835 and #982: after a reconnect, or an interrupt, in the middle of
*acquire* a znode stays that no client knows of. Its session lives, so it is never deleted. After k
of these nobody is let in any more; curator #855 is of this kind.

| option | |
|---|---|
| ``retry=creates`` | as reported: the retry creates another znode |
| ``retry=looks`` | the retry looks for the znode that it may have created (*protection*) |

Node 0 is ZooKeeper, the others are clients.
"""

from parts import SERVICE, Alarm, Server

from meshlock.algorithms.actor import NIL, Algorithm, Assumptions, Message, Serves
from meshlock.algorithms.site import OneClientSite


class Create(Message):
    """Creates a znode for this attempt. ``again``: perhaps it exists already."""

    def __init__(self, receiver, again):
        super().__init__(receiver)
        self.again = again


class Created(Message):
    def __init__(self, receiver, znode):
        super().__init__(receiver)
        self.znode = znode


class Delete(Message):
    def __init__(self, receiver, znode):
        super().__init__(receiver)
        self.znode = znode


class Turn(Message):
    """This znode is among the k oldest: its creator has a lease."""

    def __init__(self, receiver, znode):
        super().__init__(receiver)
        self.znode = znode


class ZooKeeper(Server):
    def __init__(self, me, out, network, permits, looks):
        super().__init__(me, out, network)
        self.permits = permits
        self.looks = looks
        self.last = 0
        self.znodes = []  # (number, creator), in their order
        self.told = []  # those of which their creator knows that they have a lease

    def receive(self, message):
        if isinstance(message, Create):
            mine = [znode for znode, creator in self.znodes if creator == message.sender]
            if message.again and self.looks and mine:
                self.send(Created(message.sender, mine[0]))
            else:
                self.last += 1
                self.znodes.append((self.last, message.sender))
                self.send(Created(message.sender, self.last))
        else:
            self.znodes = [one for one in self.znodes if one[0] != message.znode]
        for znode, creator in self.znodes[: self.permits]:
            if znode not in self.told:
                self.told.append(znode)
                self.send(Turn(creator, znode))


class Acquirer(OneClientSite):
    def __init__(self, me, out, network):
        super().__init__(me, out, network)
        self.znode = 0
        self.turns = []  # znodes that have a lease, as far as was heard
        self.asked = False  # create has been sent, and no answer has come
        self.broke = False  # the connection did, once

    def start(self, life=None):
        self.send(Alarm(self.me, "the connection breaks", 0))

    def request(self, client, want, priority):
        self.client = client
        self.asked = True
        self.send(Create(SERVICE, False))

    def release(self, client):
        self.client = NIL
        self.send(Delete(SERVICE, self.znode))
        self.znode = 0

    def receive(self, message):
        if isinstance(message, Alarm):
            if self.asked:
                self.broke = True  # the answer that comes next is lost
                self.send(Create(SERVICE, True))
        elif isinstance(message, Created):
            if self.broke:
                self.broke = False
            else:
                self.asked = False
                self.znode = message.znode
        else:
            self.turns.append(message.znode)
        if self.client != NIL and self.znode in self.turns:
            self.turns.remove(self.znode)
            self.enter(self.client)


def make(network, permits, options, out):
    clients = [Acquirer(me, out, network) for me in range(1, network.size)]
    return [ZooKeeper(0, out, network, permits, options["retry"] == "looks"), *clients]


ALGORITHMS = [
    Algorithm(
        "model-curator",
        "A model of Curator's InterProcessSemaphoreV2",
        "Curator's documentation of its shared semaphore; curator #835, #855, #982",
        "k",
        make,
        (Alarm, Create, Created, Delete, Turn),
        assumes=Assumptions(routed=True, fifo=True),
        serves=Serves(token=False, restless=True),
        options={"retry": ("creates", "looks")},
    )
]
