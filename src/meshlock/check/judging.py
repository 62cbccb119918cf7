"""What must be true of nodes that crash, judged after every step.

*safety*        permits under valid leases are at most k; where k changes, at most the k of its
                epoch whenever somebody is let in, and the largest k at all times
*fences*        every grant's fence is above all fences granted before it
*one-token*     at most one token can be used, here or on its way
*slots*         no two grants under valid leases have a slot in common
*ledger*        every grant under a valid lease stands in the ledger of the token that can be used,
                with all permits that it has
*conservation*  free permits and ledger make k, below 0 is free only where k fell, the algorithm
                inside knows the same permits to be free, and k is what it was unless somebody
                asked for another
*order*         who enters next after a client left, with nothing of the algorithm under way, has
                the highest priority of all who waited then (judged where nothing crashes, is cut,
                lost or changes epoch)
*handlers*      every handler ends well
"""

from __future__ import annotations

from typing import Final

from meshlock.algorithms.actor import NIL
from meshlock.algorithms.amounts import fits, most_of_each
from meshlock.algorithms.recovery.messages import Inner
from meshlock.algorithms.recovery.records import Epoch, Fence, TokenState
from meshlock.check import kinds
from meshlock.check.layers import Layers, Place
from meshlock.check.mailboxes import Mailboxes
from meshlock.check.model import Fault
from meshlock.check.order import Order
from meshlock.check.places import NOTHING_DUE
from meshlock.check.world import DUE, SIZE, World
from meshlock.properties import sentences
from meshlock.properties.by_kind import excess
from meshlock.properties.leases import twice
from meshlock.properties.promises import promises

NAMES: Final = ("fences", "ledger", "slots")
"""Those that only nodes that recover promise."""


class Judge:
    def __init__(
        self, layers: Layers, mailboxes: Mailboxes, order: Order, judged: set[str]
    ) -> None:
        self.layers = layers
        self.rules = order
        self.mailboxes = mailboxes
        self.judged = judged
        setup, faults = layers.setup, layers.faults
        self.permits = most_of_each([setup.permits, *[one.permits for one in faults.changes]])
        promised = promises(setup.algorithm, setup.options)
        calm = faults.proposals + faults.crashes + faults.losses + faults.cuts == 0
        calm = calm and faults.stay_dead == 0
        self.ordered = promised.ordered and "order" in judged and calm and not faults.birth

    def all(self, before: World, world: World, label: int) -> list[Fault]:
        """What is wrong with this step, or with the state that it leads to."""
        wrong = self.step(before, world, label)
        return wrong if world.failure else wrong + self.state(world, label)

    def step(self, before: World, world: World, label: int) -> list[Fault]:
        """What is wrong with the step alone."""
        if world.failure:
            return [Fault("handlers", world.failure, label)]
        wrong: list[Fault] = []
        if world.fence_repeated and "fences" in self.judged:
            text = "a grant's fence is not above all earlier ones"
            wrong.append(Fault("fences", text, label))
        if world.size_forgotten and "conservation" in self.judged:
            text = (
                f"the pool had {world.rest.size} permits, and has another number without a proposal"
            )
            wrong.append(Fault("conservation", text, label))
        if world.limit > 0 and "safety" in self.judged:
            used = self.used(world)
            if not fits(used, world.limit):
                used, limit = excess(used, world.limit)
                text = f"a client enters, so {used} permits are in use, but there are {limit}"
                wrong.append(Fault("safety", text, label))
        if self.ordered:
            text = self.order(before, world, *kinds.step_of(label))
            if text:
                wrong.append(Fault("order", text, label))
        return wrong

    def state(self, world: World, label: int) -> list[Fault]:
        """What is wrong with the state that a step led to; the same for every such step."""
        wrong: list[Fault] = []
        unbalanced: list[Fault] = []
        valid: list[tuple[Fence, int]] = []
        slots: list[int] = []
        used = 0
        usable: dict[tuple[Epoch, int, int], TokenState] = {}
        for _, fence, permits, _, which in world.rest.orphans:
            valid.append((fence, permits))
            used += permits
            slots += which
        for i, number in enumerate(world.places):
            place = self.layers.places[i][number]
            if place.running:
                for fence, permits, time, which in place.running:
                    if time > 0:
                        used += permits
                        slots += which
                        valid.append((fence, permits))
            token = place.token
            if token is not None:
                if place.held is not None:
                    usable[token.epoch, token.hop, i] = token
                if place.disagrees:
                    text = (
                        f"the token at node {i} and the algorithm inside disagree on what is free"
                    )
                    unbalanced.append(Fault("conservation", text, label))
                if not place.balanced:
                    text = f"node {i} holds a token whose free and used permits are not k"
                    unbalanced.append(Fault("conservation", text, label))
        for carried in self.mailboxes.tokens[world.box]:
            receiver, inner = carried.receiver, carried.inner
            assert inner is not None and inner.state is not None
            place = self.layers.places[receiver][world.places[receiver]]
            if can_arrive(inner, inner.state, place):
                usable[inner.state.epoch, inner.state.hop, receiver] = inner.state
        if not fits(used, self.permits):
            used, limit = excess(used, self.permits)
            text = f"{used} of {limit} permits are under valid leases"
            wrong.append(Fault("safety", text, label))
        for slot in twice(slots) if slots else ():
            wrong.append(Fault("slots", sentences.shared_slot(slot), label))
        if len(usable) > 1:
            wrong.append(Fault("one-token", f"{len(usable)} tokens can be used", label))
        for token in usable.values() if valid else ():
            named = {entry.fence: entry.permits for entry in token.ledger}
            if any(not fits(permits, named.get(fence, 0)) for fence, permits in valid):
                text = "a grant under a valid lease is not in the ledger"
                wrong.append(Fault("ledger", text, label))
                break
        wrong += unbalanced
        return [fault for fault in wrong if fault.name in self.judged] if wrong else wrong

    def size_after(self, world: World) -> None:
        """With how many permits does the token's holder go on?"""
        for i, number in enumerate(world.places):
            place = self.layers.places[i][number]
            if place.held is not None and place.permits != world.rest.size:
                if any(change.permits == place.permits for change in self.layers.faults.changes):
                    world.rest = world.rest.but(SIZE, place.permits)
                else:
                    world.size_forgotten = True

    def used(self, world: World) -> int:
        """Permits under valid leases."""
        used = sum([orphan[2] for orphan in world.rest.orphans])
        for i, number in enumerate(world.places):
            running = self.layers.places[i][number].running
            used += sum([permits for _, permits, time, _ in running if time > 0])
        return used

    # -- order ---------------------------------------------------------------------------------

    def due_after(self, before: World, world: World, kind: int, subject: int) -> None:
        """Of what priority must the next be that enters? Nobody's who entered in this step."""
        falls = kind == kinds.PRIORITY and self.rules.falls(subject)
        if kind == kinds.WITHDRAW or falls:  # it may have been the one, and may be served as it was
            world.rest = world.rest.but(DUE, NOTHING_DUE)
        elif kind in (kinds.LEAVE, kinds.GIVE_BACK, kinds.PRIORITY) and self.quiet(before):
            waiting = [before.standing(one) for one in self.waiting(before)]
            world.rest = world.rest.but(DUE, self.rules.top(waiting))

    def order(self, before: World, world: World, kind: int, subject: int) -> str:
        """The first that enters must not be below what is due; then nothing is."""
        lent = self.lent(before, world) if world.rest.due > NOTHING_DUE else NIL
        if lent != NIL:
            place = self.layers.places[lent][world.places[lent]]
            waiting = [world.standing(client) for client in place.waiting]
            text = self.rules.judge_lent(lent, waiting, world.rest.due)
            world.rest = world.rest.but(DUE, self.rules.spent(world.rest.due, waiting))
            if text:
                return text
        shift = self.layers.standings.shifts[subject] if kind == kinds.PRIORITY else (0, 0)
        for i, client in self.entered(before, world):
            standing = before.standing(client)
            standing = shift[1] if standing == shift[0] else standing
            text = self.rules.judge_entry(i, standing, world.rest.due)
            world.rest = world.rest.but(DUE, self.rules.spent(world.rest.due, [standing]))
            if text:
                return text
        return ""

    def lent(self, before: World, world: World) -> int:
        """To whom permits were sent in this step, before anybody entered; NIL if nobody."""
        earlier = self.mailboxes.messages[before.box]
        fences = [one.inner.lent.fence for one in earlier if one.inner and one.inner.lent]
        made = [
            (one.inner.lent.fence, one.receiver)
            for one in self.mailboxes.messages[world.box]
            if one.inner and one.inner.lent and one.inner.lent.fence not in fences
        ]
        if len(made) == 0:
            return NIL
        first, receiver = min(made)
        own: list[Fence] = []
        for i, number in enumerate(world.places):
            if number != before.places[i]:
                had = [one[0] for one in self.layers.places[i][before.places[i]].running]
                running = self.layers.places[i][number].running
                own += [one[0] for one in running if one[0] not in had]
        return NIL if len(own) > 0 and min(own) < first else receiver

    def entered(self, before: World, world: World) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        for i, number in enumerate(world.places):
            if number != before.places[i]:
                earlier = self.layers.places[i][before.places[i]].inside
                for client in self.layers.places[i][number].inside:
                    if client not in earlier:
                        found.append((i, client))
        return found

    def quiet(self, world: World) -> bool:
        return all(not carried.ordered for carried in self.mailboxes.messages[world.box])

    def waiting(self, world: World) -> list[int]:
        return [
            client
            for i, number in enumerate(world.places)
            for client in self.layers.places[i][number].waiting
        ]

    def forget_changes(self, world: World) -> None:
        """Of who waits no more, no matter what its priority was."""
        waiting = self.waiting(world)
        for client in range(1, len(self.layers.setup.requests) + 1):
            if world.standing(client) != client and client not in waiting:
                world.changes(client, 0)


def can_arrive(inner: Inner, token: TokenState, place: Place) -> bool:
    """Could this token on its way be used on arrival?"""
    return (
        place.up
        and inner.left > inner.travelled
        and inner.boot == place.boot
        and inner.epoch >= place.promised
        and (token.epoch, token.hop) > place.hop_seen
    )
