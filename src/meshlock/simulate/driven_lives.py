"""Crashes, restarts and time of a run that somebody drives, where its nodes recover."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from meshlock.algorithms.actor import NIL
from meshlock.errors import Refused
from meshlock.world.lives import LayeredNodes

if TYPE_CHECKING:
    from meshlock.simulate.driven import DrivenRun

ENDLESS = 10_000
"""Messages without a client that enters or leaves: after these, they are taken to go on forever."""


class Impossible(Refused):
    """This cannot be done now; the text is one sentence."""


class Missing(Impossible):
    """For the client that it would be done to is not there."""


class DrivenLives:
    def __init__(self, run: DrivenRun) -> None:
        self.run = run
        self.links: dict[int, list[int]] = {}  # node that has crashed: its neighbours then
        self.chance = Random(f"{run.scenario.seed}:wake").random

    @property
    def nodes(self) -> LayeredNodes:
        if self.run.layered is None:
            raise Impossible(
                "Only nodes of a pool with members can crash, restart and have clocks: "
                "add 'members'."
            )
        return self.run.layered

    def crash(self, me: int) -> None:
        layered, run = self.nodes, self.run
        run.refuse_down(me)
        for message in reversed(run.on_the_way[:]):
            if layered.ordered(message) and me in (message.sender, message.receiver):
                run.lose(message)
        run.lines.append(f"  {run.called(me)}: crashes")
        for client in run.end_life(me):
            run.waiting.pop(client.number, None)
            run.inside.pop(client.number, None)
        peers = self.links[me] = sorted(run.graph.near[me])
        for peer in peers:
            run.unlink(me, peer)
        for peer in peers:
            run.text = f"sees the link to {run.called(me)} fail"
            run.link_changes(peer, me, False)

    def restart(self, me: int, *without: str) -> None:
        """Perhaps without its ``disk``, or without its ``links``."""
        layered, run = self.nodes, self.run
        disk = "disk" not in without
        if layered.up[me]:
            raise Impossible(f"Node {run.called(me)} is up.")
        run.text = "restarts" if disk else "restarts without its disk"
        run.begin_life(me, disk)
        if "links" not in without:
            for peer in self.links[me]:
                if layered.up[peer]:
                    run.link_up(min(me, peer), max(me, peer))

    def cannot_reach(self, me: int, *others: int) -> None:
        """The node learns that it cannot reach these."""
        layered = self.nodes
        self.run.refuse_down(me)
        layered.layers[me].cannot_reach(set(others))

    def rouse(self, me: int, chance: float | None = None) -> None:
        """The clock of this node says that something is due."""
        assert self.nodes
        self.run.refuse_down(me)
        self.run.text = "looks at its clock"
        self.run.wake(me, self.chance() if chance is None else chance)

    def set_time(self, time: float) -> None:
        """It is that time now, and leases of clients whose node is down have ended."""
        layered, run = self.nodes, self.run
        if time < run.now:
            raise Impossible(f"It is {run.now:g} already.")
        for end, number in sorted([(layered.ends[one], one) for one in layered.orphans]):
            if end <= time:
                run.now = max(run.now, end)
                run.end_lease(layered.orphans[number])
        run.now = time

    def wait(self, time: float) -> None:
        """Time passes: whatever is due happens, and what is on its way arrives at once."""
        layered, run = self.nodes, self.run
        end = run.now + time
        for _ in range(ENDLESS):
            self.notice_unreachable()
            if not run.deliver_all():
                break
            due, me = end, NIL
            for layer in layered.layers:
                at = layered.wake_at(layer.me)
                if layered.up[layer.me] and at < due:
                    due, me = at, layer.me
            self.set_time(max(run.now, due))
            if me == NIL:
                break
            self.rouse(me)

    def notice_unreachable(self) -> None:
        layered, run = self.nodes, self.run
        for layer in layered.layers:
            if layered.up[layer.me]:
                away = {
                    other
                    for other in range(run.scenario.size)
                    if not layered.up[other] or not run.joined(layer.me, other)
                }
                if away != layer.member.unreachable:
                    layer.cannot_reach(away)
                    self.rouse(layer.me)
