"""ZooKeeper's lock recipe: a sequential, ephemeral znode.

**What it promises.** A client creates a znode that lives as long as its session, and has the lock
when no znode has a lower number. If the client stops, its session expires, and the lock passes on.

**Assumptions.** The ensemble is one node that does not fail. A client may be paused or cut off at
any time, and then its session may expire.

**What was reported.** That the lock passes on does not mean that the former holder has stopped. It
learns of the end of its session when it reaches a server again; until then it is only
*disconnected*. Curator's documentation says that a client must take SUSPENDED for the loss of its
locks. Of those that do, a paused one still writes late.

| option | |
|---|---|
| ``disconnected=go-on`` | the holder works until it hears that its session has expired |
| ``disconnected=stop`` | the holder stops by its own clock, before its session expires |
| ``fence=yes`` | the resource refuses a write with an older number (the znode's zxid) |

Node 0 is ZooKeeper, the last node is the resource, the others are clients.
"""

from parts import MESSAGES, Client, Resource, Service, late_write

from meshlock.algorithms.actor import Algorithm, Assumptions, Serves


def make(network, permits, options, out):
    last = network.size - 1
    stops = options["disconnected"] == "stop"
    clients = [Client(me, out, network, stops, last) for me in range(1, last)]
    resource = Resource(last, out, network, options["fence"] == "yes")
    return [Service(0, out, network, stops), *clients, resource]


ALGORITHMS = [
    Algorithm(
        "model-zookeeper",
        "A model of ZooKeeper's lock recipe",
        "ZooKeeper's documentation of recipes; Curator's of connection states",
        "mutex",
        make,
        MESSAGES,
        assumes=Assumptions(routed=True),
        serves=Serves(token=False),
        structure=(late_write,),
        options={"disconnected": ("go-on", "stop"), "fence": ("no", "yes")},
    )
]
