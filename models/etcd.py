"""etcd's lock: a key in a queue, bound to a lease.

**What it promises.** Lock returns when no older key of that name exists. The lock is held until
Unlock, or until the caller's lease expires, which deletes its key.

**Assumptions.** The cluster is one node that does not fail. The lease of a caller that *waits* may
expire, because a keep-alive was late; with ``expires=all`` that of a holder, too, who is paused or
cut off and works on.

**What was reported.** etcd #11456, found by Jepsen, and #9921: the lease of a waiting caller
expires, its key is gone, and Lock returns all the same when its turn comes. Its key stands in
nobody's way, so the next caller gets the lock as well. No process was paused.

| option | |
|---|---|
| ``checks=no`` | as reported |
| ``checks=yes`` | Lock looks for the caller's key before it returns |
| ``expires=all`` | the lease of a holder may expire, and no check of the server helps |
| ``fence=yes`` | the resource refuses a write with an older revision: it takes no late one |

Node 0 is etcd, the last node is the resource, the others are clients.
"""

from parts import MESSAGES, Alarm, Ask, Client, Granted, Release, Resource, Server, late_write

from meshlock.algorithms.actor import Algorithm, Assumptions, Serves


class Etcd(Server):
    def __init__(self, me, out, network, checks, expires):
        super().__init__(me, out, network)
        self.checks = checks
        self.expires = expires
        self.revision = 0
        self.keys = []  # revisions of those that exist
        self.blocked = []  # (revision, client) of the calls of Lock that have not returned

    def receive(self, message):
        if isinstance(message, Ask):
            self.revision += 1
            self.keys.append(self.revision)
            self.blocked.append((self.revision, message.sender))
            self.send(Alarm(self.me, "lease over", self.revision))
        elif isinstance(message, Release):
            self.delete(message.grant)
        elif self.expires == "all" or message.number in dict(self.blocked):
            self.delete(message.number)
        self.answer()

    def delete(self, revision):
        if revision in self.keys:
            self.keys.remove(revision)

    def answer(self):
        for call in self.blocked[:]:
            revision, client = call
            if all(revision <= key for key in self.keys):
                self.blocked.remove(call)
                if revision in self.keys or not self.checks:
                    self.send(Granted(client, revision))


def make(network, permits, options, out):
    last = network.size - 1
    etcd = Etcd(0, out, network, options["checks"] == "yes", options["expires"])
    clients = [Client(me, out, network, False, last) for me in range(1, last)]
    return [etcd, *clients, Resource(last, out, network, options["fence"] == "yes")]


ALGORITHMS = [
    Algorithm(
        "model-etcd",
        "A model of etcd's lock",
        "etcd's documentation of concurrency and v3lock; etcd #11456, #9921",
        "mutex",
        make,
        MESSAGES,
        assumes=Assumptions(routed=True),
        serves=Serves(token=False),
        structure=(late_write,),
        options={"checks": ("no", "yes"), "expires": ("waiting", "all"), "fence": ("no", "yes")},
    )
]
