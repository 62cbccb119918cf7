"""A lock on one Redis with a replica: SET NX PX.

**What it promises.** ``SET key value NX PX ttl`` succeeds if the key does not exist; the key goes
away with DEL, or after its time to live.

**Assumptions.** The primary sends what it does to the replica after it has answered. The primary
may stop once; then the replica is the primary, and clients ask it again. With ``expires=no`` no
time to live ends while a client works, so that a failover is the only fault.

**What was reported.** Redis' own page on distributed locks names it: the primary stops before the
replica has heard of the key, so the replica grants the lock a second time. With ``expires=yes`` a
client that is paused for longer than the time to live is the other way to two holders; the page by
Kleppmann, *How to do distributed locking*, has it.

| option | |
|---|---|
| ``replication=later`` | as printed |
| ``replication=first`` | the primary answers when the replica has the key (WAIT 1) |

Node 0 is the primary, node 1 the replica, the others are clients.
"""

from parts import Alarm, Server

from meshlock.algorithms.actor import NIL, Algorithm, Assumptions, Message, Serves
from meshlock.algorithms.site import OneClientSite

PRIMARY, REPLICA = 0, 1


class Set(Message):
    """SET key NX PX: try, until it succeeds."""


class Ok(Message):
    """SET succeeded."""


class Del(Message):
    """DEL key, of the client that set it."""


class Copy(Message):
    """The key has this holder now."""

    def __init__(self, receiver, holder):
        super().__init__(receiver)
        self.holder = holder


class Copied(Message):
    def __init__(self, receiver, holder):
        super().__init__(receiver)
        self.holder = holder


class Promoted(Message):
    """The replica is the primary now."""


class Redis(Server):
    def __init__(self, me, out, network, first, expires):
        super().__init__(me, out, network)
        self.first = first
        self.expires = expires
        self.serving = me == PRIMARY
        self.holder = NIL  # the value of the key
        self.tries = []  # clients that will try again

    def start(self, life=None):
        if self.me == REPLICA:
            self.send(Alarm(REPLICA, "failover", 0))

    def receive(self, message):
        if isinstance(message, Alarm):
            self.ring(message)
        elif isinstance(message, Promoted):
            self.serving = False
        elif isinstance(message, Copy):
            if not self.serving:
                self.holder = message.holder
            self.send(Copied(PRIMARY, message.holder))
        elif isinstance(message, Copied):
            if self.serving and self.first and message.holder != NIL:
                self.send(Ok(message.holder))
        elif self.serving:
            if isinstance(message, Set):
                self.tries.append(message.sender)
            elif message.sender == self.holder:
                self.set(NIL)
        if self.serving and self.holder == NIL and self.tries:
            self.set(self.tries.pop(0))

    def ring(self, alarm):
        if alarm.name == "failover":
            self.serving = True
            for node in (PRIMARY, *range(2, self.size)):
                self.send(Promoted(node))
        elif self.serving and alarm.number == self.holder:
            self.set(NIL)  # its time to live is over

    def set(self, holder):
        self.holder = holder
        if self.me == PRIMARY:
            self.send(Copy(REPLICA, holder))
        if holder != NIL and (self.me == REPLICA or not self.first):
            self.send(Ok(holder))
        if holder != NIL and self.expires:
            self.send(Alarm(self.me, "time to live", holder))


class Program(OneClientSite):
    def __init__(self, me, out, network):
        super().__init__(me, out, network)
        self.primary = PRIMARY
        self.inside = False

    def request(self, client, want, priority):
        self.client = client
        self.send(Set(self.primary))

    def release(self, client):
        self.client = NIL
        self.inside = False
        self.send(Del(self.primary))

    def receive(self, message):
        if isinstance(message, Promoted):
            self.primary = REPLICA
            if self.client != NIL and not self.inside:
                self.send(Set(REPLICA))
        elif self.client != NIL and not self.inside:
            self.inside = True
            self.enter(self.client)


def make(network, permits, options, out):
    first, expires = options["replication"] == "first", options["expires"] == "yes"
    servers = [Redis(me, out, network, first, expires) for me in (PRIMARY, REPLICA)]
    return servers + [Program(me, out, network) for me in range(2, network.size)]


ALGORITHMS = [
    Algorithm(
        "model-redis",
        "A model of SET NX PX on one Redis with a replica",
        "Redis' documentation of SET and of distributed locks",
        "mutex",
        make,
        (Alarm, Copied, Copy, Del, Ok, Promoted, Set),
        assumes=Assumptions(routed=True, fifo=True),
        serves=Serves(token=False, restless=True),
        options={"replication": ("later", "first"), "expires": ("no", "yes")},
    )
]
