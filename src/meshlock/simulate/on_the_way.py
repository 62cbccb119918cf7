"""Messages that are on their way in a run that somebody drives, and clients by their place."""

from __future__ import annotations

from meshlock.algorithms.actor import NIL, Message
from meshlock.algorithms.recovery.messages import content
from meshlock.simulate.scenario import Scenario
from meshlock.world.clients import SimulatedClient


class OnTheWay(list[Message]):
    """In the order in which they were sent."""

    def find(self, way: tuple[int, int], which: int = 1) -> int:
        """The place of the first message from one node to another, or of the one of that number;
        -1 if there are fewer."""
        for place, message in enumerate(self):
            if (message.sender, message.receiver) == way:
                which -= 1
                if which == 0:
                    return place
        return -1


def at(clients: dict[int, SimulatedClient], node: int, which: int) -> SimulatedClient | None:
    """Of these clients, the one of that number at this node; None if there are fewer."""
    here = [client for client in clients.values() if client.node == node]
    return here[which - 1] if len(here) >= which else None


def described(message: Message, scenario: Scenario) -> str:
    """Its kind and its fields, with nodes as the script calls them."""
    message = content(message)
    words = [message.kind]
    names = message.reductions.names or ()
    for name, value in zip(message.fields, message.freeze()[1:], strict=True):
        if name in names and isinstance(value, int):
            words.append(f"{name}={scenario.called(value) if value != NIL else 'nil'}")
        else:
            words.append(f"{name}={shown(value)}")
    return " ".join(words)


def shown(value: object) -> str:
    if isinstance(value, tuple):
        return "(" + ",".join([shown(part) for part in value]) + ")"
    return f"{value:g}" if isinstance(value, float) else str(value)
