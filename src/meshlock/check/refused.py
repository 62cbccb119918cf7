"""Messages that can have no effect any more: to keep them would only make states differ."""

from __future__ import annotations

from meshlock.algorithms.actor import NIL
from meshlock.algorithms.recovery.messages import (
    Accepted,
    AskLedger,
    Confirm,
    Copy,
    Hello,
    Higher,
    Promise,
    Propose,
    Refuse,
    Return,
    Returned,
    Sent,
    Suggest,
)
from meshlock.algorithms.recovery.records import ANY_BOOT
from meshlock.check import kinds
from meshlock.check.layers import NO_BOOT, Layers
from meshlock.check.mail import Carried
from meshlock.check.world import World


def refused(layers: Layers, world: World, messages: list[Carried]) -> list[int]:
    """Those of these messages that can have no effect any more."""
    found: list[int] = []
    places, left = world.places, world.rest.left
    later = 2 if left[kinds.LEFT_FORGETS] > 0 else 1 if left[kinds.LEFT_PROPOSALS] == 0 else 0
    for carried in messages:
        verdicts = carried.refused[later]
        key = (places[carried.receiver] << kinds.SHIFT) + places[carried.about]
        if key not in verdicts:
            verdicts[key] = is_refused(layers, world, carried)
        if verdicts[key]:
            found.append(carried.number)
    return found


def is_refused(layers: Layers, world: World, carried: Carried) -> bool:
    """Would its receiver refuse it for ever, or do nothing that matters? That depends on the places
    of the receiver and of whom it is about, and on whether epochs and lost disks may follow."""
    message = carried.message
    place = layers.places[message.receiver][world.places[message.receiver]]
    inner = carried.inner
    if place.boot == NO_BOOT:
        return True
    if inner is not None:  # for one life of the receiver, and for one epoch
        if layers.faults.stale:
            return False
        of_another = inner.boot not in (place.boot, ANY_BOOT)
        return not place.up or of_another or inner.epoch < place.promised
    if isinstance(message, (Refuse, Suggest)):
        return True  # of concern to the timing only
    if isinstance(message, Promise):
        token = message.report.token
        if place.seeking == message.epoch and token is not None:
            return not place.up or token.epoch != place.sought
        return not place.up or place.proposing != message.epoch
    if isinstance(message, Accepted):
        return not place.up or place.unaccepted != (message.epoch, message.hop)
    if isinstance(message, Returned):
        return not place.up or all(
            place.returning.get(fence, NIL) < left for fence, left in message.fences
        )
    if isinstance(message, Sent):
        sender = layers.places[message.sender][world.places[message.sender]]
        return not sender.up or sender.unaccepted != (message.epoch, message.hop)
    if isinstance(message, Confirm) and (not place.up or place.boot != message.boot):
        return True
    if isinstance(message, AskLedger):
        asker = layers.places[message.node][world.places[message.node]]
        return not asker.up or asker.boot != message.boot
    epoch = carried.epoch
    if epoch is None or isinstance(message, Hello):
        return False
    if isinstance(message, Copy):
        if epoch < place.promised or layers.faults.stale:
            return epoch < place.promised
        if not place.up or (message.ledger is not None and place.boot != message.boot):
            return True
        known = place.adopted == epoch and message.hop <= place.holder_hop
        return known and (place.takes_part or message.ledger is None)
    if world.rest.left[kinds.LEFT_FORGETS] > 0:
        return False  # who forgets may welcome what it had refused
    if isinstance(message, (Propose, Higher)):
        return world.rest.left[kinds.LEFT_PROPOSALS] == 0 and epoch <= place.promised
    if epoch >= place.promised:
        return False
    if isinstance(message, Return):  # all it can do is to let its owner know of a later epoch
        owner = layers.places[message.node][world.places[message.node]]
        return not owner.up or owner.adopted != epoch
    return True
