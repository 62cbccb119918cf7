"""dask's distributed.Semaphore: leases that the scheduler takes back.

**What it promises.** At most ``max_leases`` at a time. A worker refreshes its leases; one that is
not refreshed for ``lease-timeout``, 30 s by default, is taken back, so that a worker that is lost
does not block the others.

**Assumptions.** The scheduler is one node that does not fail. With ``lost=yes`` worker 1 may stop
for good. A worker may be too busy to refresh: a task holds the GIL, or its event loop.

**What was reported.** The authors say in distributed PR #3690 that one has either deadlocks, or
more leases than allowed, and that they chose the latter; #4057 met it. With ``lease-timeout=inf``,
which distributed PR #8770 added for locks, it is the other way round: #2362.

| option | |
|---|---|
| ``timeout=30s`` | a busy worker works on after its lease was given to another |
| ``timeout=inf`` | a lost worker's leases are never free again |
| ``worker=stops`` | a worker that could not refresh stops by its own clock: neither happens |

Node 0 is the scheduler, the others are workers.
"""

from parts import MESSAGES, Alarm, Client, Service

from meshlock.algorithms.actor import NIL, Algorithm, Assumptions, Serves


class Scheduler(Service):
    def __init__(self, me, out, network, stops_first, forever):
        super().__init__(me, out, network, stops_first)
        self.forever = forever

    def ring(self, name, grant):
        if not self.forever:
            super().ring(name, grant)


class Worker(Client):
    """One that is lost stops to work, which nobody is told."""

    def __init__(self, me, out, network, stops_first, lost):
        super().__init__(me, out, network, stops_first)
        self.lost = lost  # may be
        self.gone = False

    def start(self, life=None):
        if self.lost:
            self.send(Alarm(self.me, "lost", NIL))

    def receive(self, message):
        if isinstance(message, Alarm) and message.name == "lost":
            if self.grant and not self.stops_first:
                self.gone = True
                self.stop()
        elif not self.gone:
            super().receive(message)


def make(network, permits, options, out):
    stops, forever = options["worker"] == "stops", options["timeout"] == "inf"
    lost = options["lost"] == "yes"
    workers = [Worker(me, out, network, stops, lost and me == 1) for me in range(1, network.size)]
    return [Scheduler(0, out, network, stops, forever), *workers]


ALGORITHMS = [
    Algorithm(
        "model-dask",
        "A model of dask's Semaphore",
        "dask.distributed's documentation of Semaphore; distributed #3690, #4057, #8770",
        "mutex",
        make,
        MESSAGES,
        assumes=Assumptions(routed=True, fifo=True),
        serves=Serves(token=False, restless=True),
        options={"timeout": ("30s", "inf"), "worker": ("goes-on", "stops"), "lost": ("no", "yes")},
    )
]
