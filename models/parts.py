"""What the models in this folder have in common: a service, its clients, a resource, and time.

**A model is not the product.** It has what its documentation says about locks, and nothing else. A
service that is a cluster is one node here that does not fail: the mistakes shown are in what is
promised to clients, not in consensus.

**Time** is a message to oneself, ALARM. The checker delivers it at any moment, early or late, so a
lease may end while its holder is paused, cut off or slow: no lock service can exclude that. Where
a model assumes that one clock rings before another, the second alarm is set only when the first has
rung; PASSED carries that order and nothing else. It is no message of the product.

**Faults** that happen at most once are alarms that are set when the nodes start.
"""

from meshlock.algorithms.actor import NIL, Lost, Message
from meshlock.algorithms.site import OneClientSite
from meshlock.errors import Refused

SERVICE = 0
"""The number of the node that serves the others."""


class Alarm(Message):
    """It is time for that."""

    def __init__(self, receiver, name, number):
        super().__init__(receiver)
        self.name = name
        self.number = number


class Ask(Message):
    """The sender wants the lock."""


class Granted(Message):
    """The receiver has the lock, by this grant."""

    def __init__(self, receiver, grant):
        super().__init__(receiver)
        self.grant = grant


class Release(Message):
    """The sender does not need this grant any more."""

    def __init__(self, receiver, grant):
        super().__init__(receiver)
        self.grant = grant


class Passed(Message):
    """The sender's time for this grant is over. This is the order of two clocks, no message."""

    def __init__(self, receiver, grant):
        super().__init__(receiver)
        self.grant = grant


class Write(Message):
    """The sender writes to the resource, and says its grant."""

    def __init__(self, receiver, grant):
        super().__init__(receiver)
        self.grant = grant


MESSAGES = (Alarm, Ask, Granted, Release, Passed, Write)


class Server(OneClientSite):
    """A node that has no clients of its own."""

    def request(self, client, want, priority):
        raise Refused(
            f"Node {self.me} serves the others and asks for nothing: say which nodes ask, as in "
            f"--request 1:1@0 --request 2:1@0."
        )


class Service(Server):
    """Grants one lock, in the order of asking. A grant ends when it is released, or when its lease
    is over. With ``stops_first`` that is not before the holder has stopped."""

    def __init__(self, me, out, network, stops_first):
        super().__init__(me, out, network)
        self.stops_first = stops_first
        self.holder = NIL
        self.grant = 0  # the number of the latest
        self.queue = []

    def receive(self, message):
        if isinstance(message, Ask):
            self.queue.append(message.sender)
        elif isinstance(message, Release):
            if message.grant == self.grant and message.sender == self.holder:
                self.holder = NIL
        elif isinstance(message, Passed):
            self.send(Alarm(self.me, "lease over", message.grant))
        elif isinstance(message, Alarm):
            self.ring(message.name, message.number)
        self.serve()

    def ring(self, name, grant):
        if name == "lease over" and grant == self.grant:
            self.holder = NIL

    def serve(self):
        if self.holder == NIL and self.queue:
            self.holder = self.queue.pop(0)
            self.grant += 1
            self.send(Granted(self.holder, self.grant))
            if not self.stops_first:
                self.send(Alarm(self.me, "lease over", self.grant))


class Client(OneClientSite):
    """Asks the service, and works while it believes that it has the lock. With ``stops_first`` it
    stops by its own clock, before the service ends the lease. ``resource``: the node to which it
    writes, or NIL."""

    def __init__(self, me, out, network, stops_first, resource=NIL):
        super().__init__(me, out, network)
        self.stops_first = stops_first
        self.resource = resource
        self.grant = 0  # by which it works; 0: it does not

    def request(self, client, want, priority):
        self.client = client
        self.send(Ask(SERVICE))

    def release(self, client):
        self.client = NIL
        self.send(Release(SERVICE, self.grant))
        self.grant = 0

    def receive(self, message):
        if isinstance(message, Granted):
            self.begin(message.grant)
        elif isinstance(message, Alarm) and message.number == self.grant:
            self.stop()

    def begin(self, grant):
        self.grant = grant
        self.enter(self.client)
        if self.resource != NIL:
            self.send(Write(self.resource, grant))
        if self.stops_first:
            self.send(Alarm(self.me, "stop", grant))

    def stop(self):
        self.out.append(Lost(self.client, 0))
        self.send(Passed(SERVICE, self.grant))
        self.client = NIL
        self.grant = 0


class Resource(Server):
    """Takes writes. With ``checks`` it refuses those of an older grant than one that it has seen;
    without, it takes them all, and ``late`` says that it took one that was too late."""

    def __init__(self, me, out, network, checks):
        super().__init__(me, out, network)
        self.checks = checks
        self.highest = 0
        self.late = False

    def receive(self, message):
        if message.grant >= self.highest:
            self.highest = message.grant
        elif not self.checks:
            self.late = True


def late_write(seen):
    """The resource takes no write of an older grant than one that it has seen."""
    late = [node.number for node in seen.nodes if getattr(node, "late", False)]
    return f"resource {late[0]} takes a write of an older grant after a newer one" if late else ""
