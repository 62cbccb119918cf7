"""Links whose two ends learn of every change at the same time, as the papers assume.

A link that fails first settles what is on it:

- *drain* (the papers' assumption that a failure is seen coming): everything in flight on
  the link is delivered then, in the order in which it was sent, and so is what
  these deliveries send over the same link;
- *return*: what carries a token or permits comes back to its sender
  (:meth:`~meshlock.algorithms.actor.Actor.undelivered`), the rest is lost.

Then both ends learn of it.
"""

from __future__ import annotations

from meshlock.algorithms.actor import Message
from meshlock.simulate.link_changes import MobileSimulation
from meshlock.simulate.run_setup import RunSetup

ENDLESS = 100_000
"""Messages on one failing link at one time: more of them answer each other forever."""


class AtOnce(MobileSimulation):
    def __init__(self, setup: RunSetup, returning: bool) -> None:
        super().__init__(setup)
        self.returning = returning
        self.on_link: dict[int, list[Message]] = {}  # link: what is in flight, as it was sent

    # -- changes ----------------------------------------------------------------------

    def formed(self, one: int, other: int) -> None:
        self.monitor.changed(self.graph.components == 1)
        self.link_changes(one, other, True)
        self.link_changes(other, one, True)

    def failed(self, one: int, other: int) -> None:
        self.monitor.changed(self.graph.components == 1)
        self.forget_order(one, other)
        self.forget_order(other, one)
        self.link_changes(one, other, False)
        self.link_changes(other, one, False)

    def failing(self, one: int, other: int) -> None:
        """Settle what is on the link."""
        link = self.link(one, other)
        for _ in range(ENDLESS):
            waiting = self.on_link.get(link)
            if not waiting:
                break
            message = waiting[0]
            if not self.returning:
                self.deliver(message)
            elif message.tokens() or message.permits():
                self.return_to_sender(message)
            else:
                self.take_off(message)
                self.drop(message)
            message.serial = 0  # so that it is passed over when it is due
        else:
            self.monitor.report(
                "neighbours",
                self.now,
                f"nodes {one} and {other} answer each other for ever on their failing link",
            )
            for message in list(self.on_link.get(link, [])):
                self.take_off(message)
                self.drop(message)
                message.serial = 0

    def return_to_sender(self, message: Message) -> None:
        self.take_off(message)
        self.returned += 1
        super().return_to_sender(message)

    # -- messages -----------------------------------------------------------------------

    def take_off(self, message: Message) -> None:
        """The message is no longer on its link."""
        link = self.link(message.sender, message.receiver)
        waiting = self.on_link.get(link)
        if waiting is None:
            return
        if len(waiting) == 1:
            del self.on_link[link]
        else:
            waiting.remove(message)

    def deliver(self, message: Message) -> None:
        if message.serial == 0:
            return  # it was dealt with when its link failed
        if self.strays and message.serial in self.strays:
            self.strays.remove(message.serial)
            self.drop(message)
            return
        self.take_off(message)
        super().deliver(message)

    def carry(self, message: Message) -> None:
        if message.serial > 0:
            raise ValueError(f"node {message.sender} sent one {message.kind} object twice")
        if not self.graph.linked(message.sender, message.receiver):
            self.stray(message)
            return
        link = self.link(message.sender, message.receiver)
        waiting = self.on_link.get(link)
        if waiting is None:
            self.on_link[link] = [message]
        else:
            waiting.append(message)
        super().carry(message)
