"""The same system on links that change: what becomes of what is on them, and who learns of it.

**Drain.** The papers assume that what is on a failing link still arrives. Since a failure may
come at any moment, a link that fails after its last message was delivered is the same
run, so here a link may fail only while it is empty. Both ends learn of it in the same step.

**Return.** A link may fail at any time. Messages that carry a token or permits come back to
their sender, the others are lost. Both ends learn of it in the same step.

**Custody.** The links that live nodes have (:mod:`meshlock.live.links.session`). That a link
breaks, or is back, is one step, and that an end learns of it another, for each end by itself:

- A link that is broken goes on carrying messages to an end that has not noticed. When it
  notices, those on their way to it are lost, but for what carries a token or permits: that
  stays in *custody*.
- What custody keeps arrives late, in order and once, at an end that takes the link to be
  down, as soon as the sender knows too: by a detour, if there is one, or over the link itself
  when it is back. Only then does the receiving end come up again.
- An end that is up may send; what it sends waits until the other end is up too, and is lost,
  or kept by custody, if the link breaks before.
- A token or permits can be sent over a link that is down: custody keeps them at once.

Nobody is obliged to break a link or to bring it back. But what is due must happen in the
end: that an end notices, that it comes up, that what custody keeps arrives where it can.

**Served.** Where the network may part, a client must be served only if its node can
reach the token, and all permits that are not in use for ever: else it may rightly wait
for what is elsewhere, or stand behind somebody who does. A client of an algorithm without a
token must be able to reach everybody. The links are judged as they are now: that they may
change again is no excuse, for nobody is obliged to change them.
"""

from __future__ import annotations

from typing import Final

from meshlock.check import kinds
from meshlock.check.links import Links, Pair, Step, Wire, connected, pair, parts, thaw
from meshlock.check.model import AT_REST, Act, Fault
from meshlock.check.places import NOTHING_DUE, Outcome
from meshlock.check.plain import NODE, Plain
from meshlock.check.setup import SetUp
from meshlock.check.structure import Sound
from meshlock.check.words import copy
from meshlock.properties import sentences
from meshlock.world.channels import COMES_BACK, CUSTODY, KEPT, RETURN, fate, precious

NOWHERE: Final = -1  # the part of what custody keeps and cannot arrive


def plain(setup: SetUp, judged: set[str]) -> Plain:
    """The set-up as a state machine, on the links that it asks for."""
    if not setup.changes and setup.flips == 0:
        return Plain(setup, judged)
    if setup.failures == CUSTODY:
        return Custody(setup, judged)
    if setup.failures == RETURN:
        return Returning(setup, judged)
    return Draining(setup, judged)


class Changing(Plain):
    """What all kinds of changing links have in common."""

    def __init__(self, setup: SetUp, judged: set[str]) -> None:
        super().__init__(setup, judged)
        self.ends: dict[tuple[int, int, int, int], Outcome] = {}
        self.holdings: dict[tuple[int, int], tuple[int, int]] = {}

    # -- the links in a row -----------------------------------------------------------------

    def links_of(self, row: list[int]) -> Links:
        return self.links[row[self.tree.leaves + self.size]]

    def set_links(self, row: list[int], links: Links) -> None:
        row[self.tree.leaves + self.size] = self.number_links(links)

    def may_send(self, row: list[int], i: int, outcome: Outcome, label: int) -> bool:
        if self.routed:
            return True
        links = self.links_of(row).links
        for j in outcome.receivers:
            if pair(i, j) not in links:
                self.faults.append(Fault("neighbours", sentences.no_link(i, j), label))
                return False
        return True

    def whole(self, row: list[int]) -> bool:
        return connected(self.size, self.links_of(row).links)

    # -- steps ------------------------------------------------------------------------------

    def changes(self, links: Links) -> list[Step]:
        """Which links may form (LINK_UP) or fail (LINK_DOWN) now."""
        setup = self.setup
        if links.changed < len(setup.changes):
            change = setup.changes[links.changed]
            if change.up == ((change.one, change.other) in links.links):
                return []
            return [(kinds.LINK_UP if change.up else kinds.LINK_DOWN, change.one, change.other)]
        if links.changed >= len(setup.changes) + setup.flips:
            return []
        found: list[Step] = []
        for one in range(self.size):
            for other in range(one + 1, self.size):
                link = (one, other)
                if link not in links.links:
                    found.append((kinds.LINK_UP, one, other))
                elif setup.partitions or connected(self.size, links.links - {link}):
                    found.append((kinds.LINK_DOWN, one, other))
        return found

    def changed(self, links: Links, kind: int, link: Pair) -> Links:
        """The links after this change; what was due is due no more."""
        present = (
            links.links | {link} if kind in (kinds.LINK_UP, kinds.RETURNS) else links.links - {link}
        )
        due = NOTHING_DUE if kind in (kinds.LINK_UP, kinds.LINK_DOWN) else links.due
        return Links(present, links.changed + 1, due, links.wires, links.memory)

    def steps_of(self, links: Links) -> list[Step]:
        """What can happen to the links now, in the same order each time."""
        if links.steps is None:
            links.steps = self.find_link_steps(links)
        return links.steps

    def find_link_steps(self, links: Links) -> list[Step]:
        return self.changes(links)

    def expand_links(self, tree: list[int]) -> None:
        label = self.size << NODE
        for step in self.steps_of(self.links_of(tree)):
            row = tree[:]
            if self.play(row, step, label, None):
                self.successors.append(self.tree.climb(row, self.everything))
                self.labels.append(label)
            label += 1

    def play(self, row: list[int], step: Step, label: int, acts: list[Act] | None) -> bool:
        """Let this happen in ``row``; False if it cannot, or the run ends here."""
        raise NotImplementedError

    def both_learn(self, row: list[int], step: Step, label: int, acts: list[Act] | None) -> bool:
        kind, one, other = step
        self.set_links(row, self.changed(self.links_of(row), kind, (one, other)))
        if not self.learn(row, one, kind, other, label, acts):
            return False
        return self.learn(row, other, kind, one, label, acts)

    def learn(
        self, row: list[int], i: int, kind: int, subject: int, label: int, acts: list[Act] | None
    ) -> bool:
        """Something comes to node i that was not in its place; False if the run ends here."""
        number = row[self.tree.leaves + i]
        place = self.places.look(i, number)
        key = (i, number, kind, subject)
        outcome = self.ends.get(key)
        if outcome is None:
            run = self.handlers.run(i, place.local, kind, subject, -1)
            outcome = self.places.outcome(i, place, kind, subject, run, place.inbox)
            self.ends[key] = outcome
        if acts is not None:
            acts.append(self.handlers.act(i, place.local, kind, subject, -1))
            acts += [self.drop(message) for message in self.lost_at_once(row, outcome)]
        if not self.judge(row, i, outcome, NOTHING_DUE, label):
            return False
        self.apply(row, i, outcome)
        return True

    def lost_at_once(self, row: list[int], outcome: Outcome) -> list[int]:
        """Of the messages that a step sends, those that have no way to arrive."""
        return []

    def take_line(self, row: list[int], receiver: int, sender: int) -> tuple[int, ...]:
        """Take all that is on its way from one to the other off its link."""
        at = self.tree.leaves + receiver
        place = self.places.look(receiver, row[at])
        taken: tuple[int, ...] = ()
        inbox: list[tuple[int, tuple[int, ...]]] = []
        for source, line in place.inbox:
            if source == sender:
                taken = line
            else:
                inbox.append((source, line))
        if taken:
            row[at] = self.places.number(
                receiver, place.local, place.asked, place.inside, place.waiting, tuple(inbox)
            )
        return taken

    def precious(self, message: int) -> bool:
        """Does it carry a token or permits?"""
        return precious(self.handlers.messages[message])

    # -- what is judged of a state ------------------------------------------------------------

    def judge_structure(self, tree: list[int], sound: Sound) -> None:
        """The same, once everybody has heard of the links that changed."""
        links = self.links_of(tree)
        if not links.wires and all(place.quiet for place in self.around):
            seen = tuple([place.shape for place in self.around])
            for name, text in sound.wrong(seen, links.links):
                self.faults.append(Fault(name, text, AT_REST))

    def unserved(self, tree: list[int]) -> list[int]:
        links = self.links_of(tree)
        part = parts(self.size, links.links)
        if max(part) == 0:
            return super().unserved(tree)
        if not self.balanced:
            return []
        tokens: set[int] = set()  # the parts that have one
        permits: set[int] = set()
        for i in range(self.size):
            place = self.places.look(i, tree[self.tree.leaves + i])
            held, free = self.holding(i, place.local)
            for client in place.inside:
                if not self.standings.stays[client]:
                    free += self.standings.wants[client]
            for _, line in place.inbox:
                for message in line:
                    held += self.handlers.messages[message].tokens()
                    free += self.handlers.messages[message].permits()
            if held > 0:
                tokens.add(part[i])
            if free > 0:
                permits.add(part[i])
        for message in self.between(links):
            carried = self.handlers.messages[message]
            one, other = part[carried.sender], part[carried.receiver]
            at = one if one == other else NOWHERE
            if carried.tokens() > 0:
                tokens.add(at)
            if carried.permits() > 0:
                permits.add(at)
        found: list[int] = []
        for i in range(self.size):
            if part[i] in tokens and permits <= {part[i]}:
                found += self.standings.clients_of(
                    self.places.look(i, tree[self.tree.leaves + i]).waiting
                )
        return found

    def between(self, links: Links) -> list[int]:
        """Messages that are neither at a node nor on their way to one."""
        return []

    def holding(self, i: int, local: int) -> tuple[int, int]:
        """Tokens and free permits of a node with these variables."""
        known = self.holdings.get((i, local))
        if known is None:
            node = self.handlers.nodes[i]
            node.thaw(self.handlers.locals[i][local])
            known = (node.tokens(), node.free_permits())
            self.holdings[i, local] = known
        return known

    # -- telling what happened ------------------------------------------------------------------

    def describe_links(self, row: list[int], k: int, label: int) -> list[Act]:
        acts: list[Act] = []
        self.play(row, self.steps_of(self.links_of(row))[k], label, acts)
        self.faults.clear()
        return acts

    def drop(self, message: int) -> Act:
        act = Act(self.handlers.messages[message].receiver, "drop")
        act.message = copy(self.handlers.messages[message])
        return act


class Draining(Changing):
    """A link fails when nothing is on it."""

    def play(self, row: list[int], step: Step, label: int, acts: list[Act] | None) -> bool:
        kind, one, other = step
        if kind == kinds.LINK_DOWN:
            for receiver, sender in ((one, other), (other, one)):
                place = self.places.look(receiver, row[self.tree.leaves + receiver])
                if any(source == sender for source, _ in place.inbox):
                    return False
        return self.both_learn(row, step, label, acts)


class Returning(Changing):
    """A link fails at any time; a token or permits on it come back to their sender."""

    def play(self, row: list[int], step: Step, label: int, acts: list[Act] | None) -> bool:
        kind, one, other = step
        if kind == kinds.LINK_DOWN:
            for receiver, sender in ((one, other), (other, one)):
                while line := self.take_line(row, receiver, sender):
                    if not self.return_to_sender(row, line, label, acts):
                        return False
        return self.both_learn(row, step, label, acts)

    def return_to_sender(
        self, row: list[int], line: tuple[int, ...], label: int, acts: list[Act] | None
    ) -> bool:
        for message in line:
            if fate(RETURN, self.handlers.messages[message]) == COMES_BACK:
                sender = self.handlers.messages[message].sender
                if not self.learn(row, sender, kinds.UNDELIVERED, message, label, acts):
                    return False
            elif acts is not None:
                acts.append(self.drop(message))
        return True


class Custody(Changing):
    """Each end learns by itself; a token or permits that did not arrive arrive late."""

    # -- what can happen to a link ------------------------------------------------------------

    def find_link_steps(self, links: Links) -> list[Step]:
        found: list[Step] = []
        for kind, one, other in self.changes(links):
            found.append((kinds.RETURNS if kind == kinds.LINK_UP else kinds.BREAKS, one, other))
        part = parts(self.size, links.links)
        for frozen in links.wires:
            wire = thaw(frozen)
            for side in (0, 1):
                me, peer = wire.pair[side], wire.pair[1 - side]
                if wire.sees[side]:
                    if not wire.alive:
                        found.append((kinds.LINK_DOWN, me, peer))
                elif wire.alive != wire.sees[1 - side]:
                    continue  # the peer has not noticed yet
                elif wire.custody[side]:
                    if part[me] == part[peer]:
                        found.append((kinds.LATE, me, peer))
                elif wire.pair in links.links:
                    found.append((kinds.LINK_UP, me, peer))
        return found

    def due_steps(self, links: Links) -> list[Step]:
        """What must happen in the end if nothing else does: kind, an end, its peer."""
        return [
            step for step in self.steps_of(links) if step[0] not in (kinds.BREAKS, kinds.RETURNS)
        ]

    def survey(self, tree: list[int]) -> tuple[bool, int]:
        eager, top = super().survey(tree)
        return eager or len(self.due_steps(self.links_of(tree))) > 0, top

    def whole(self, row: list[int]) -> bool:
        """As far as the nodes know: a failure that nobody has noticed has changed nothing."""
        links = self.links_of(row)
        seen = set(links.links)
        for frozen in links.wires:
            wire = thaw(frozen)
            if not wire.agreed():
                return False
            if wire.sees[0]:
                seen.add(wire.pair)
            else:
                seen.discard(wire.pair)
        return connected(self.size, frozenset(seen))

    def play(self, row: list[int], step: Step, label: int, acts: list[Act] | None) -> bool:
        kind, me, peer = step
        links = self.links_of(row)
        if kind in (kinds.BREAKS, kinds.RETURNS):
            wire = links.wire((me, peer))
            if acts is not None:
                act = Act(me, "break" if kind == kinds.BREAKS else "return")
                act.peer = peer
                acts.append(act)
            if kind == kinds.BREAKS:
                self.break_off(wire, acts)
            self.set_links(row, self.changed(links, kind, wire.pair).put(wire))
            return True
        wire = links.wire(pair(me, peer))
        side = wire.side(me)
        if kind == kinds.LATE:
            message = wire.custody[side][0]
            wire.custody[side] = wire.custody[side][1:]
            self.set_links(row, links.put(wire))
            first = len(acts) if acts is not None else 0
            going_on = self.learn(row, me, kinds.DELIVER, message, label, acts)
            if acts is not None:
                acts[first].late = True
            return going_on
        if kind == kinds.LINK_DOWN:
            wire.sees[side] = False
            line = self.take_line(row, me, peer)
            wire.custody[side] = self.keep(line, acts) + wire.custody[side]
            self.set_links(row, links.but(NOTHING_DUE).put(wire))
        else:
            wire.sees[side] = wire.alive = True
            arriving, wire.ahead[side] = wire.ahead[side], ()
            later: tuple[int, ...] = ()
            if wire.sees[1 - side]:  # it sent this over the link that was down to it
                later, wire.custody[1 - side] = wire.custody[1 - side], ()
            self.set_links(row, links.but(NOTHING_DUE).put(wire))
            for message in arriving + later:
                j = self.handlers.messages[message].receiver
                at = self.tree.leaves + j
                row[at] = self.places.arrived(j, row[at], message)
        return self.learn(row, me, kind, peer, label, acts)

    def break_off(self, wire: Wire, acts: list[Act] | None) -> None:
        """The connection is gone; what waited for an end that was not up yet has no way."""
        wire.alive = False
        for side in (0, 1):
            wire.custody[side] += self.keep(wire.ahead[side], acts)
            wire.ahead[side] = ()

    def keep(self, line: tuple[int, ...], acts: list[Act] | None) -> tuple[int, ...]:
        """What goes into custody; the rest is lost."""
        messages = self.handlers.messages
        kept = tuple([one for one in line if fate(CUSTODY, messages[one]) == KEPT])
        if acts is not None:
            acts += [self.drop(message) for message in line if message not in kept]
        return kept

    # -- sending --------------------------------------------------------------------------------

    def may_send(self, row: list[int], i: int, outcome: Outcome, label: int) -> bool:
        links = self.links_of(row)
        for k, j in enumerate(outcome.receivers):
            wire = links.wire(pair(i, j))
            if not wire.sees[wire.side(i)] and not self.precious(outcome.sends[k]):
                self.faults.append(Fault("neighbours", sentences.no_link(i, j), label))
                return False
        return True

    def send(self, row: list[int], outcome: Outcome) -> int:
        if not outcome.sends:
            return 0
        dirty = self.above[self.tree.leaves + self.size]
        for message in outcome.sends:
            dirty |= self.dispatch(row, message)
        return dirty

    def dispatch(self, row: list[int], message: int) -> int:
        links = self.links_of(row)
        i, j = self.handlers.messages[message].sender, self.handlers.messages[message].receiver
        wire = links.wire(pair(i, j))
        to = wire.side(j)
        if wire.sees[1 - to]:
            if wire.sees[to]:
                at = self.tree.leaves + j
                row[at] = self.places.arrived(j, row[at], message)
                return self.above[at]
            if wire.alive:
                wire.ahead[to] += (message,)
                self.set_links(row, links.put(wire))
                return 0
        if self.precious(message):
            wire.custody[to] += (message,)
            self.set_links(row, links.put(wire))
        return 0

    def lost_at_once(self, row: list[int], outcome: Outcome) -> list[int]:
        """What is sent over a broken link to an end that has noticed."""
        links = self.links_of(row)
        lost: list[int] = []
        for message in outcome.sends:
            i, j = self.handlers.messages[message].sender, self.handlers.messages[message].receiver
            wire = links.wire(pair(i, j))
            noticed = not wire.alive and not wire.sees[wire.side(j)]
            if noticed and not self.precious(message):
                lost.append(message)
        return lost

    def between(self, links: Links) -> list[int]:
        return [message for frozen in links.wires for line in frozen[4] for message in line]

    # -- liveness, and telling what happened ----------------------------------------------------

    def owed(self, state: int) -> list[int]:
        links = self.links_of(self.tree.unpack(state))
        return super().owed(state) + [self.link_debt(step) for step in self.due_steps(links)]

    def pays(self, state: int, label: int) -> int:
        if label >> NODE < self.size:
            return super().pays(state, label)
        links = self.links_of(self.tree.unpack(state))
        step = self.steps_of(links)[label & ((1 << NODE) - 1)]
        return -1 if step[0] in (kinds.BREAKS, kinds.RETURNS) else self.link_debt(step)

    def link_debt(self, step: Step) -> int:
        """A number that no message's debt and no client's has."""
        kind, me, peer = step
        return self.debt(kind * self.size + me, peer)

    def explain(self, state: int, label: int) -> list[Act]:
        acts = super().explain(state, label)
        i = label >> NODE
        if i < self.size:
            row = self.tree.unpack(state)
            outcome = self.places.expanded(i, row[self.tree.leaves + i]).steps[
                label & ((1 << NODE) - 1)
            ]
            acts += [self.drop(message) for message in self.lost_at_once(row, outcome)]
        return acts
