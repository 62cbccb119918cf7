"""Links whose two ends learn of every change at the same time, as the papers assume.

A link that fails first settles what is on it, as :mod:`meshlock.world.channels` says. Then both
ends learn of it.
"""

from __future__ import annotations

from meshlock.algorithms.actor import Message
from meshlock.simulate.link_changes import MobileSimulation
from meshlock.simulate.run_setup import RunSetup
from meshlock.world.channels import LEASES

ENDLESS = 100_000
"""Messages on one failing link at one time: more of them answer each other forever."""


class AtOnce(MobileSimulation):
    def __init__(self, setup: RunSetup, failures: str) -> None:
        super().__init__(setup)
        self.failures = failures

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
        if self.empty_link(one, other, self.failures, ENDLESS):
            return
        self.monitor.report(
            "neighbours",
            self.now,
            f"nodes {one} and {other} answer each other for ever on their failing link",
        )
        self.empty_link(one, other, LEASES, ENDLESS)  # the rest is lost

    # -- messages -----------------------------------------------------------------------

    def deliver(self, message: Message) -> None:
        if message.serial == 0:
            return  # it was dealt with when its link failed
        if self.strays and self.is_stray(message):
            return
        self.take_off(message)
        super().deliver(message)

    def transmit(self, message: Message) -> None:
        if message.serial > 0:
            raise ValueError(f"node {message.sender} sent one {message.kind} object twice")
        if not self.graph.linked(message.sender, message.receiver):
            self.stray(message)
            return
        self.put_on(message)
        super().transmit(message)
