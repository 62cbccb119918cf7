"""When faults stop: is everybody served, and all is free in the end?

From a state of the search on nothing fails any more. Who is down restarts (or stays down, if a
quorum of the members is up: then the others know that it is unreachable), disks write, links are
whole, every client asks once more and leaves when it was in, messages arrive at once, and when to
do what is left to the layers themselves. Where a node is dead, it is tried without what it had sent
as well: others may have its last words, or have them in part.
"""

from __future__ import annotations

from typing import Final

from meshlock.algorithms.actor import WAKE, Message
from meshlock.algorithms.recovery.layer import Layer
from meshlock.algorithms.recovery.records import Durable, Life, majority
from meshlock.check.crashing_nodes import Crashing
from meshlock.check.explorer import Explorer
from meshlock.check.layers import NO_BOOT
from meshlock.check.links import Pair, parts
from meshlock.check.model import AT_REST, Fault
from meshlock.check.words import copy
from meshlock.check.world import World
from meshlock.properties.sentences import raised

LONGEST: Final = 60
"""Ticks within which all must be served."""
MOST_TRIED: Final = 1_000
"""States of a search that are tried."""
BATCH: Final = 50
SHORTEST: Final = 2
"""Ticks of a lease that can be renewed before it ends."""
WAKES: Final = 2
"""Per tick: what the others did in this one can still be acted upon."""
MOST_CARRIED: Final = 300
"""At a time. Where a part of the network is without a token, link reversal goes on for ever."""
NOT_SERVED: Final = -1


class Serving:
    """One try, from this state on, with the nodes that are ``up``; without what the dead had sent,
    if they are ``mute``."""

    def __init__(self, model: Crashing, world: World, up: list[bool], mute: bool = False) -> None:
        self.model = model
        self.setup = model.setup
        self.out = model.layers.out
        self.out.clear()
        self.now = 0
        self.nodes: list[Layer] = []
        self.up = up
        messages = model.mailboxes.messages[world.box][:]
        for _, writes in world.rest.hanging:
            for _, behind in writes:
                messages += [model.mail.carried[number] for number in behind]
        self.line = [copy(carried.message) for carried in messages]
        for i in range(model.size):
            self.nodes.append(model.layers.make(i))
            if mute and is_dead(model, world, i):
                self.line = [message for message in self.line if message.sender != i]
        down = {i for i in range(model.size) if not self.up[i]}
        for i, node in enumerate(self.nodes):
            place = model.at(world, i)
            if place.up:
                node.thaw(place.state)
            elif self.up[i]:
                kept = None if place.disk is None else Durable(*place.disk)
                node.start(Life(place.boot + 1, kept))
            node.cannot_reach(set(down))
        self.linked: set[Pair] = set()
        for number, pair in enumerate(model.links):
            before = all(model.at(world, end).up for end in pair) and number not in world.rest.cuts
            if self.up[pair[0]] and self.up[pair[1]]:
                self.linked.add(pair)
                if not before:
                    self.nodes[pair[0]].link_up(pair[1])
                    self.nodes[pair[1]].link_up(pair[0])
                    self.carry()

    def ticks(self, longest: int = LONGEST) -> int:
        """After how many everybody is served and all is free; or NOT_SERVED."""
        asking = list(range(1, len(self.setup.requests) + 1))
        for self.now in range(longest):
            for node in self.nodes:
                node.tell_time(self.now)
            self.carry()
            for client in list(asking):
                request = self.setup.requests[client - 1]
                node = self.nodes[request.node]
                if not self.up[request.node]:
                    asking.remove(client)
                elif client not in node.clients.waiting and not is_inside(node, client):
                    asking.remove(client)
                    node.request(client, request.want, request.priority)
                    self.carry()
            for _ in range(WAKES):
                self.wake()
            if len(asking) == 0 and self.all_is_well():
                return self.now
        return NOT_SERVED

    def wake(self) -> None:
        """Everybody does what is due; who is inside leaves."""
        for i, node in enumerate(self.nodes):
            if self.up[i]:
                node.timer(WAKE, (3 * i + self.now) % 7 / 7)
                self.carry()
                for client in [grant.client for grant in node.member.grants.values()]:
                    node.release(client)
                    self.carry()

    def carry(self) -> None:
        """Deliver everything, and what follows from it, as far as time allows."""
        for _ in range(MOST_CARRIED):
            self.line += [effect for effect in self.out if isinstance(effect, Message)]
            self.out.clear()
            if len(self.line) == 0:
                return
            message = self.line.pop(0)
            if self.up[message.receiver]:
                self.nodes[message.receiver].receive(message)

    def has_quorum(self) -> bool:
        """Still, or did a change of members that was under way leave too few of them up?"""
        latest = max([node.member.config for i, node in enumerate(self.nodes) if self.up[i]])
        up = [member for member in latest.members if self.up[member]]
        return len(up) >= majority(latest.members)

    def all_is_well(self) -> bool:
        living = [node for i, node in enumerate(self.nodes) if self.up[i]]
        if any(len(node.clients.waiting) > 0 or len(node.member.grants) > 0 for node in living):
            return False
        return any(
            node.member.usable()
            and node.member.holding.token is not None
            and node.member.holding.token.free == node.member.config.permits
            for node in living
        )


class Sample:
    """Some states of a search, evenly spread over it, all of which are tried."""

    def __init__(self, model: Crashing, explorer: Explorer) -> None:
        self.model = model
        self.explorer = explorer
        self.stride = max(1, explorer.count() // MOST_TRIED)
        self.tried = 0
        self.worst = 0

    def run(self) -> bool:
        """Go on for a while; False when all are tried, or one failed."""
        for _ in range(BATCH):
            number = self.tried * self.stride
            if number >= self.explorer.count():
                return False
            text, ticks = "", 0
            try:
                ticks = ticks_to_serve(self.model, self.model.world(self.explorer.state(number)))
            except Exception as error:  # a mutant may do anything
                text = f"when faults stop here, a handler fails: {raised(error)}"
            else:
                self.tried += 1
                self.worst = max(self.worst, ticks)
            if ticks == NOT_SERVED:
                text = f"when faults stop here, not all requests are served within {LONGEST} ticks"
            self.model.layers.out.clear()  # what was not carried must not go with the next step
            if text:
                self.explorer.found(number, Fault("served", text, AT_REST))
                return False
        return True


def is_inside(node: Layer, client: int) -> bool:
    return any(grant.client == client for grant in node.member.grants.values())


def ticks_to_serve(model: Crashing, world: World) -> int:
    """The longest of all ways to go on; or NOT_SERVED if one fails."""
    up = [model.at(world, i).up for i in range(model.size)]
    living = [not is_dead(model, world, i) for i in range(model.size)]
    ways = [(living, False)]
    if not all(living):
        ways.append((living, True))
    if up != living:
        ways.append((up, False))
    found = [0]
    for who, mute in ways:
        if all(who) or can_do_without(model, world, who):
            serving = Serving(model, world, who, mute)
            ticks = serving.ticks()
            if ticks != NOT_SERVED or serving.has_quorum():
                found.append(ticks)
    return NOT_SERVED if NOT_SERVED in found else max(found)


def is_dead(model: Crashing, world: World, i: int) -> bool:
    return model.at(world, i).boot == NO_BOOT


def can_do_without(model: Crashing, world: World, living: list[bool]) -> bool:
    """Are those nodes a quorum, as each of them knows, and can they all reach each other?"""
    up = [i for i in range(model.size) if living[i]]
    for i in up:
        place = model.at(world, i)
        members = place.members if place.up else model.bounds.members
        if not place.up and place.disk is not None:
            members = place.disk[1].members
        if len([member for member in members if member in up]) < majority(members):
            return False
    links = [pair for pair in model.setup.network.links() if pair[0] in up and pair[1] in up]
    part = parts(model.size, frozenset(links))
    return len({part[i] for i in up}) == 1
