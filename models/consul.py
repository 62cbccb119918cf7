"""``consul lock``: a session, a lock-delay, and a child process.

**What it promises.** ``consul lock`` runs a child while it holds a key by a session. When the
session is invalidated, for example because the node is cut off, the lock is free after the
*lock-delay*, 15 s by default, which gives the child time to stop.

**Assumptions.** The servers are one node that does not fail. A holder may be cut off at any time;
then the servers invalidate its session, and it notices.

**What was reported.** consul #9788: ``consul lock`` on the node that was cut off tries to reach its
agent for another 90 s before it sends SIGTERM, long after the lock-delay. Meanwhile the other node
has the lock, and both children run.

| option | |
|---|---|
| ``child=lives-on`` | as reported: the child is stopped some time later |
| ``child=stopped`` | the child is dead before the lock-delay is over |

Node 0 is Consul, the others are clients.
"""

from parts import MESSAGES, Alarm, Client, Service

from meshlock.algorithms.actor import NIL, Algorithm, Assumptions, Serves


class Consul(Service):
    """A lease that is over is a session that was invalidated."""

    def __init__(self, me, out, network, stops_first):
        super().__init__(me, out, network, stops_first)
        self.delayed = 0  # the grant whose lock-delay runs

    def ring(self, name, grant):
        if grant != self.grant or self.holder == NIL:
            return
        if name == "lease over":
            self.delayed = grant
            self.send(Alarm(self.me, "lock-delay over", grant))
        elif grant == self.delayed:
            self.holder = NIL


def make(network, permits, options, out):
    stopped = options["child"] == "stopped"
    clients = [Client(me, out, network, stopped) for me in range(1, network.size)]
    return [Consul(0, out, network, stopped), *clients]


ALGORITHMS = [
    Algorithm(
        "model-consul",
        "A model of consul lock",
        "Consul's documentation of sessions and of consul lock; consul #9788",
        "mutex",
        make,
        MESSAGES,
        assumes=Assumptions(routed=True),
        serves=Serves(token=False),
        options={"child": ("lives-on", "stopped")},
    )
]
