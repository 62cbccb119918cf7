"""Open-RMF's mutex groups: a supervisor that remembers.

**What it promises.** A mutex group is locked for one robot at a time. Robots claim it again and
again; the supervisor gives it to the one that claimed first, and takes it back from a robot that
has been silent for ten seconds.

**Assumptions.** What the supervisor knows is in its memory. It may restart once
(``fault=restart``), or a robot may be cut off from it for ten seconds (``fault=silence``); robots
drive on.

**What was reported.** Robots that are in one mutex group at once, rmf_ros2 #375 and rmf #514; their
causes were not established. This model shows two ways to get there that follow from the design.

| option | |
|---|---|
| ``fault=restart`` | the claim that the new supervisor hears first wins, whoever is inside |
| ``fault=silence`` | the group is given away while the silent robot is inside |
| ``fault=restart`` and ``supervisor=asks`` | it hears every robot before it gives anything |
| ``fault=silence`` and ``supervisor=keeps`` | a silent robot keeps what it has |

Node 0 is the supervisor, the others are robots.
"""

from parts import SERVICE, Alarm, Server

from meshlock.algorithms.actor import NIL, Algorithm, Assumptions, Message, Serves
from meshlock.algorithms.site import OneClientSite


class Claim(Message):
    """The sender claims the group. ``inside``: it has it already."""

    def __init__(self, receiver, inside):
        super().__init__(receiver)
        self.inside = inside


class Locked(Message):
    """The group is locked for the receiver."""


class Free(Message):
    """The sender does not claim it any more."""


class Restarted(Message):
    """The next claim of the receiver goes to a new supervisor."""


class Supervisor(Server):
    def __init__(self, me, out, network, fault, how):
        super().__init__(me, out, network)
        self.fault = fault
        self.how = how
        self.holder = NIL
        self.claims = []  # robots, the first first
        self.unheard = []  # robots that have not spoken since the restart, if it matters

    def start(self, life=None):
        if self.fault == "restart":
            self.send(Alarm(self.me, "restart", 0))

    def receive(self, message):
        robot = message.sender
        if isinstance(message, Alarm):
            self.ring(message)
            return
        if robot in self.unheard:
            self.unheard.remove(robot)
        if isinstance(message, Free):
            if self.holder == robot:
                self.holder = NIL
        elif message.inside and self.how == "asks":
            self.holder = robot
        elif robot not in self.claims and robot != self.holder:
            self.claims.append(robot)
        self.lock()

    def ring(self, alarm):
        if alarm.name == "restart":
            self.holder = NIL
            self.claims = []
            robots = list(range(1, self.size))
            self.unheard = robots if self.how == "asks" else []
            for robot in robots:
                self.send(Restarted(robot))
        elif self.holder == alarm.number and self.how != "keeps":
            self.holder = NIL
        self.lock()

    def lock(self):
        if self.holder == NIL and self.claims and not self.unheard:
            self.holder = self.claims.pop(0)
            self.send(Locked(self.holder))
            if self.fault == "silence":
                self.send(Alarm(self.me, "silent for 10 s", self.holder))


class Robot(OneClientSite):
    def __init__(self, me, out, network):
        super().__init__(me, out, network)
        self.inside = False

    def request(self, client, want, priority):
        self.client = client
        self.send(Claim(SERVICE, False))

    def release(self, client):
        self.client = NIL
        self.inside = False
        self.send(Free(SERVICE))

    def receive(self, message):
        if isinstance(message, Locked):
            if self.client != NIL and not self.inside:
                self.inside = True
                self.enter(self.client)
        elif self.client != NIL:
            self.send(Claim(SERVICE, self.inside))
        else:
            self.send(Free(SERVICE))


def make(network, permits, options, out):
    robots = [Robot(me, out, network) for me in range(1, network.size)]
    return [Supervisor(0, out, network, options["fault"], options["supervisor"]), *robots]


ALGORITHMS = [
    Algorithm(
        "model-rmf",
        "A model of Open-RMF's mutex group supervisor",
        "Open-RMF's documentation of mutex groups; rmf_ros2 #310, #375, rmf #514",
        "mutex",
        make,
        (Alarm, Claim, Free, Locked, Restarted),
        assumes=Assumptions(routed=True, fifo=True),
        serves=Serves(token=False, restless=True),
        options={"fault": ("restart", "silence"), "supervisor": ("forgets", "asks", "keeps")},
    )
]
