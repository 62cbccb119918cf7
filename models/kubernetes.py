"""Kubernetes' Lease and client-go's leader election.

**What it promises.** A record in the API server names the leader. Only a client that has seen its
latest version can change it. The leader renews it; a candidate that has seen no change for
LeaseDuration, by its own clock, takes it over. A leader that could not renew it for RenewDeadline,
which is shorter, stops.

**Assumptions.** The API server is one node that does not fail. The leader may be unable to renew at
any time: cut off, refused or paused.

**What was reported.** The package's own comment says that it does not guarantee that only one
client acts as a leader. In kubernetes #23731 a leader lost the lease and was never told to stop; a
process that is paused beyond LeaseDuration is in the same place.

| option | |
|---|---|
| ``leader=goes-on`` | it acts after it has lost the lease |
| ``leader=stops`` | it stops at RenewDeadline, before anybody's LeaseDuration is over |

Node 0 is the API server, the others are candidates.
"""

from parts import SERVICE, Alarm, Passed, Server

from meshlock.algorithms.actor import NIL, Algorithm, Assumptions, Lost, Message, Serves
from meshlock.algorithms.site import OneClientSite


class Get(Message):
    """Asks for the record."""


class Record(Message):
    """The record as it is: its version and who leads."""

    def __init__(self, receiver, version, leader):
        super().__init__(receiver)
        self.version = version
        self.leader = leader


class Update(Message):
    """Changes the record if it still has this version."""

    def __init__(self, receiver, version, leader):
        super().__init__(receiver)
        self.version = version
        self.leader = leader


class ApiServer(Server):
    def __init__(self, me, out, network):
        super().__init__(me, out, network)
        self.version = 0
        self.leader = NIL
        self.watching = []
        self.passed = 0  # the version of the leader that has stopped

    def receive(self, message):
        if isinstance(message, Update):
            if message.version == self.version:
                self.version += 1
                self.leader = message.leader
                for node in self.watching:
                    self.send(Record(node, self.version, self.leader))
        elif isinstance(message, Passed):
            self.passed = message.grant
            for node in self.watching:  # LeaseDuration may end from now on
                self.send(Passed(node, message.grant))
        else:
            self.watching.append(message.sender)
            self.send(Record(message.sender, self.version, self.leader))
            if self.passed > 0:
                self.send(Passed(message.sender, self.passed))


class Candidate(OneClientSite):
    def __init__(self, me, out, network, stops):
        super().__init__(me, out, network)
        self.stops = stops
        self.seen = -1  # the version of the record
        self.leading = False
        self.watching = False

    def request(self, client, want, priority):
        self.client = client
        if not self.watching:
            self.watching = True
            self.send(Get(SERVICE))

    def release(self, client):
        self.end()
        self.send(Update(SERVICE, self.seen, NIL))

    def end(self):
        self.client = NIL
        self.leading = False

    def receive(self, message):
        if isinstance(message, Record):
            self.observe(message)
        elif isinstance(message, Passed):
            if self.client != NIL and not self.leading and message.grant == self.seen:
                self.send(Alarm(self.me, "LeaseDuration", self.seen))
        elif message.number == self.seen and self.client != NIL:
            if message.name == "LeaseDuration":
                self.send(Update(SERVICE, self.seen, self.me))
            elif self.leading:
                self.out.append(Lost(self.client, 0))
                self.end()
                self.send(Passed(SERVICE, self.seen))

    def observe(self, record):
        if self.leading or self.client == NIL:
            return
        self.seen = record.version
        if record.leader == NIL:
            self.send(Update(SERVICE, self.seen, self.me))
        elif record.leader == self.me:
            self.leading = True
            self.enter(self.client)
            if self.stops:
                self.send(Alarm(self.me, "RenewDeadline", self.seen))
        elif not self.stops:
            self.send(Alarm(self.me, "LeaseDuration", self.seen))


def make(network, permits, options, out):
    stops = options["leader"] == "stops"
    candidates = [Candidate(me, out, network, stops) for me in range(1, network.size)]
    return [ApiServer(0, out, network), *candidates]


ALGORITHMS = [
    Algorithm(
        "model-kubernetes",
        "A model of client-go's leader election",
        "client-go's documentation of leaderelection; kubernetes #23731",
        "mutex",
        make,
        (Alarm, Get, Passed, Record, Update),
        assumes=Assumptions(routed=True, fifo=True),
        serves=Serves(token=False),
        options={"leader": ("goes-on", "stops")},
    )
]
