"""PySyncObj's ReplLockManager: a replicated table of locks, with times of its callers.

**What it promises.** *acquire* is replicated by Raft with the caller's name and time. The lock is
given if it is free, or if its time is older than ``autoUnlockTime``. Who has it prolongs it.

**Assumptions.** The replicated table is one node that does not fail. A call may wait for a leader
for longer than ``autoUnlockTime``; whether it was made before or after that time has passed is all
that is kept of its time.

**What was reported.** PySyncObj #108: two nodes start one after the other. The call of the first,
made while there was no leader, is applied with its old time; that of the second, made later, finds
it too old and gets the lock as well. Both calls return True.

| option | |
|---|---|
| ``time=call`` | as reported: the time is that of the call |
| ``time=applied`` | the time is that of the table, and the holder stops by its own clock |

Node 0 is the table, the others are clients.
"""

from parts import MESSAGES, SERVICE, Alarm, Client, Granted, Server, Service

from meshlock.algorithms.actor import NIL, Algorithm, Assumptions, Message, Serves


class Acquire(Message):
    """``late``: it was made after autoUnlockTime had passed."""

    def __init__(self, receiver, late):
        super().__init__(receiver)
        self.late = late


class Table(Server):
    def __init__(self, me, out, network):
        super().__init__(me, out, network)
        self.holder = NIL
        self.late = False  # the time of the holder's call
        self.waiting = []  # (client, late), to be tried again

    def receive(self, message):
        if isinstance(message, Acquire):
            self.waiting.append((message.sender, message.late))
        elif message.sender == self.holder:
            self.holder = NIL
        for call in self.waiting[:]:
            client, late = call
            if self.holder == NIL or (late and not self.late):
                self.waiting.remove(call)
                self.holder = client
                self.late = late
                self.send(Granted(client, 1))


class Caller(Client):
    def __init__(self, me, out, network):
        super().__init__(me, out, network, stops_first=False)
        self.late = False

    def start(self, life=None):
        self.send(Alarm(self.me, "autoUnlockTime has passed", NIL))

    def request(self, client, want, priority):
        self.client = client
        self.send(Acquire(SERVICE, self.late))

    def receive(self, message):
        if isinstance(message, Alarm):
            self.late = True
        else:
            super().receive(message)


def make(network, permits, options, out):
    nodes = range(1, network.size)
    if options["time"] == "call":
        return [Table(0, out, network), *[Caller(me, out, network) for me in nodes]]
    return [Service(0, out, network, True), *[Client(me, out, network, True) for me in nodes]]


ALGORITHMS = [
    Algorithm(
        "model-pysyncobj",
        "A model of PySyncObj's ReplLockManager",
        "PySyncObj's documentation of batteries; PySyncObj #108",
        "mutex",
        make,
        (Acquire, *MESSAGES),
        assumes=Assumptions(routed=True, fifo=True),
        serves=Serves(token=False, restless=True),
        options={"time": ("call", "applied")},
    )
]
