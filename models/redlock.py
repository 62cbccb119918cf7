"""Redlock: a majority of independent Redis servers.

**What it promises.** A client that sets the key on a majority of N servers within a part of the
time to live has the lock for the rest of that time, its *validity*.

**Assumptions.** Three servers that share nothing. With ``fault=pause`` a client may be paused for
longer than the time to live; with ``fault=crash`` one server may lose its memory in a restart, and
no time to live ends; with ``fault=none`` every client stops before its validity ends, by a clock
that runs no slower than the servers'.

**What was reported.** Kleppmann, *How to do distributed locking*, and the answer to it: the
algorithm is safe only where pauses, delays and clocks keep to their bounds, and it has no number
that a resource could check. Redis' page says that a server that restarts without its keys breaks
it, and must stay away for a time to live.

| option | |
|---|---|
| ``fault=pause`` | two clients work at once |
| ``fault=crash`` | so they do |
| ``fault=none`` | never, and that is all that a lock without a fence can say |

Nodes 0 to 2 are the servers, the others are clients. A client that gets no majority gives up.
"""

from parts import Alarm, Server

from meshlock.algorithms.actor import NIL, Algorithm, Assumptions, Lost, Message, Serves
from meshlock.algorithms.site import OneClientSite

SERVERS = (0, 1, 2)
MAJORITY = 2


class Set(Message):
    """SET key value NX PX."""


class Ok(Message):
    """It is set."""


class Del(Message):
    """Delete the key if the value is mine."""


class Over(Message):
    """The sender's validity has ended. This is the order of clocks, no message."""


class RedisServer(Server):
    def __init__(self, me, out, network, fault):
        super().__init__(me, out, network)
        self.fault = fault
        self.holder = NIL

    def start(self, life=None):
        if self.me == 0 and self.fault == "crash":
            self.send(Alarm(self.me, "restart without memory", NIL))

    def receive(self, message):
        if isinstance(message, Set):
            if self.holder == NIL:
                self.holder = message.sender
                self.send(Ok(message.sender))
                if self.fault == "pause":
                    self.send(Alarm(self.me, "time to live", message.sender))
        elif isinstance(message, Alarm):
            if message.number in (self.holder, NIL):
                self.holder = NIL
        elif self.holder == message.sender:
            self.holder = NIL


class Program(OneClientSite):
    def __init__(self, me, out, network, fault):
        super().__init__(me, out, network)
        self.fault = fault
        self.won = 0  # servers that have set our key
        self.inside = False

    def request(self, client, want, priority):
        self.client = client
        for server in SERVERS:
            self.send(Set(server))

    def release(self, client):
        self.end(Del)

    def receive(self, message):
        if isinstance(message, Alarm):
            if self.inside:
                self.out.append(Lost(self.client, 0))
                self.end(Over)
            return
        self.won += 1
        if self.won == MAJORITY and self.client != NIL:
            self.inside = True
            self.enter(self.client)
            if self.fault == "none":
                self.send(Alarm(self.me, "validity", 0))

    def end(self, kind):
        self.inside = False
        self.client = NIL
        for server in SERVERS:
            self.send(kind(server))


def make(network, permits, options, out):
    fault = options["fault"]
    servers = [RedisServer(me, out, network, fault) for me in SERVERS]
    return servers + [Program(me, out, network, fault) for me in range(3, network.size)]


ALGORITHMS = [
    Algorithm(
        "model-redlock",
        "A model of Redlock",
        "Redis' documentation of distributed locks; Kleppmann 2016",
        "mutex",
        make,
        (Alarm, Del, Ok, Over, Set),
        assumes=Assumptions(routed=True, fifo=True),
        serves=Serves(token=False, restless=True),
        options={"fault": ("pause", "crash", "none")},
    )
]
