"""An algorithm on a network as a state machine: every order in which things can happen.

**What can happen.** A message is delivered (the first of its channel, or any where links
do not keep order); a client asks for the next request of its node; a client that is inside
leaves; a link changes. Where the set-up allows it, a client that waits gives up or changes its
priority, and a client that is inside releases a part of its permits. Where an algorithm lets the
outside choose something before a handler runs, every choice is a step of its own.

**How it is quick.** Everything that concerns one node is one *place* (:mod:`.places`), and a
handler runs once per distinct variables and event (:mod:`.handlers`), whatever the rest of the
system does. After that, a step is a few look-ups. A state is the row of the places' numbers (plus
one for the links, where they change), folded into one integer by :mod:`.packing`.

**Links that change** are the subject of :mod:`.changing_links`; here they stay as they are.

**Full links.** With a capacity, no state is looked at in which a link holds more messages
than that. What is found wrong is wrong in any case; what holds, holds of all runs that keep to
it. It makes the graph finite where a node that is not heard can be told things without end.

**Stuck.** Nobody is obliged to ask or to change a link. So a request is *never served*
as soon as no message can be delivered and no client can leave, even if somebody could
still ask.
"""

from __future__ import annotations

from typing import Any, Final, cast

from meshlock.algorithms.actor import Frozen
from meshlock.algorithms.amounts import fits
from meshlock.check import kinds
from meshlock.check.handlers import NOBODY, PlainHandlers
from meshlock.check.links import FrozenWire, Links, Pair
from meshlock.check.model import AT_REST, Act, Fault, Part
from meshlock.check.packing import Tree
from meshlock.check.places import NOTHING_DUE, Outcome, Place, Places
from meshlock.check.setup import SetUp
from meshlock.check.structure import Sound, structure
from meshlock.check.system import System, called
from meshlock.check.ties import ASKS, CHANGES, LINKS, OTHER, RELEASES, TIES, WITHDRAWS, ties
from meshlock.errors import Refused, setting
from meshlock.properties import sentences
from meshlock.properties.by_kind import overuse

NODE: Final = 16  # a label is the node's number shifted by this, plus the step's

TIES_OF: Final = {
    kinds.REQUEST: ASKS,
    kinds.LEAVE: RELEASES,
    kinds.GIVE_BACK: RELEASES,
    kinds.WITHDRAW: WITHDRAWS,
    kinds.PRIORITY: CHANGES,
    kinds.LINK_UP: LINKS,
    kinds.LINK_DOWN: LINKS,
}
"""What a step is to the order of requests."""


class Plain(System):
    def __init__(self, setup: SetUp, judged: set[str]) -> None:
        super().__init__(setup, judged)
        self.permits = setup.permits
        self.fifo = setup.fifo
        self.balanced = self.promises.balanced
        # Where nodes ask again for ever, waiting raises priorities without end, and there is
        # nothing to judge order by.
        endless = setup.repeat and self.promises.ageing > 0.0
        self.ordered = self.promises.ordered and "order" in judged and not endless
        seen = structure(setup.algorithm, judged)
        self.sound = None if seen is None else Sound(seen, self.size)
        self.start_links: frozenset[Pair] = frozenset(setup.network.links())
        self.routed = setup.algorithm.assumes.routed
        self.changing = bool(setup.changes) or setup.flips > 0

        self.ties = ties(setup, self.promises, self.standings, judged)
        self.handlers = PlainHandlers(setup, self.standings, self.balanced)
        self.places = Places(setup, self.handlers, self.sound, self.ordered, self.ties is not None)
        self.around: list[Place] = []  # those of the state that is being expanded
        self.links_numbers: dict[tuple[object, ...], int] = {}
        self.links: list[Links] = []

        self.first = -1
        self.told: list[Act] = []  # what happened on the lead
        self.wide = self.changing or self.ordered or self.ties is not None
        self.tree = Tree(self.size + (1 if self.wide else 0))
        self.everything = (1 << self.tree.leaves) - 1
        self.above = [ancestors(leaf) for leaf in range(2 * self.tree.leaves)]

    # -- the first state -------------------------------------------------------------

    def initial(self) -> int:
        if self.first < 0:
            self.first = self.find_first()
            for step in self.setup.lead:
                self.first = self.take_lead(self.first, step)
        return self.first

    def take_lead(self, state: int, step: str) -> int:
        """The state after the step of that name; of several alike, the first."""
        self.expand(state)
        wrong = {fault.label: fault.text for fault in self.faults}
        for label in wrong:
            if label != AT_REST and self.name(state, label) == step:
                raise Refused(f"{setting('lead')} '{step}' violates a property: {wrong[label]}.")
        names = [self.name(state, label) for label in self.labels]
        if step not in names:
            possible = ", ".join(names)
            raise Refused(
                f"{setting('lead')} '{step}' is not possible here: use one of {possible}."
            )
        place = names.index(step)
        after = self.successors[place]
        self.told += self.explain(state, self.labels[place])
        return after

    def name(self, state: int, label: int) -> str:
        """A step in a word or two: ``request 1``, ``deliver TOKEN 0>2``, ``link-down 0-1``."""
        return called(self.setup, self.explain(state, label)[0])

    def find_first(self) -> int:
        """The state in which the nodes are born; they are not asked again."""
        row: list[int] = []
        for i in range(self.size):
            local = self.handlers.local(i, self.handlers.nodes[i].freeze())
            row.append(self.places.number(i, local, 0, (), (), ()))
        if self.setup.algorithm.serves.restless:
            self.set_going(row)
        if self.wide:
            row.append(self.number_links(Links(self.start_links, 0, NOTHING_DUE)))
        return self.tree.pack(row)

    def set_going(self, row: list[int]) -> None:
        """The nodes of a restless algorithm start before anything else happens."""
        for i in range(self.size):
            place = self.places.look(i, row[i])
            run = self.handlers.run(i, place.local, kinds.START, 0, -1)
            row[i] = self.places.number(i, run.after, 0, (), (), place.inbox)
            for message in run.sends:
                j = self.handlers.messages[message].receiver
                row[j] = self.places.arrival(j, row[j], message)

    def opening(self) -> list[Act]:
        if not self.setup.algorithm.serves.restless:
            return self.told
        return [self.handlers.act(i, 0, kinds.START, 0, -1) for i in range(self.size)] + self.told

    # -- the same in all processes ---------------------------------------------------

    def parts(self, state: int) -> list[int]:
        return self.tree.unpack(state)[self.tree.leaves :]

    def part(self, state: int, slot: int) -> int:
        return self.tree.leaf(state, slot)

    def half(self, slot: int) -> int:
        return self.tree.half(slot)

    def joined(self, parts: list[int]) -> int:
        return self.tree.pack(parts)

    def met(self, slot: int) -> int:
        return len(self.links) if slot == self.size else len(self.places.pairs[slot])

    def meaning(self, slot: int, number: int) -> Part:
        if slot < self.size:
            return self.places.meaning(slot, number)
        links = self.links[number]
        wires = tuple([self.with_words(wire) for wire in links.wires])
        return links.links, links.changed, links.due, wires, links.memory

    def number_of(self, slot: int, part: Part) -> int:
        if slot < self.size:
            return self.places.number_of(slot, part)
        present, changed, due, wires, memory = cast("tuple[Any, ...]", part)
        frozen = tuple([self.with_numbers(wire) for wire in wires])
        return self.number_links(Links(present, changed, due, frozen, memory))

    def with_words(self, wire: FrozenWire) -> Frozen:
        return *wire[:4], tuple([self.handlers.words(line) for line in wire[4]])

    def with_numbers(self, wire: tuple[Any, ...]) -> FrozenWire:
        one, other, alive, sees, lines = wire
        return one, other, alive, sees, tuple([self.handlers.heard(line) for line in lines])

    # -- expanding a state ----------------------------------------------------------------

    def expand(self, state: int) -> None:
        self.successors.clear()
        self.labels.clear()
        self.faults.clear()
        tree = self.tree.unpack(state)
        eager, top = self.survey(tree)
        if self.sound is not None:
            self.judge_structure(tree, self.sound)
        for i in range(self.size):
            self.expand_node(tree, i, top)
        if self.changing:
            self.expand_links(tree)
        if not eager:
            self.judge_rest(tree)

    def judge_structure(self, tree: list[int], sound: Sound) -> None:
        """What is promised of every single state."""
        seen = tuple([place.shape for place in self.around])
        if seen not in sound.known:
            for name, text in sound.wrong(seen, self.start_links):
                self.faults.append(Fault(name, text, AT_REST))

    def judge_rest(self, tree: list[int]) -> None:
        """Nothing can happen by itself any more: nobody may be left waiting."""
        waiting = self.unserved(tree)
        if waiting and "served" in self.judged:
            self.faults.append(Fault("served", sentences.unserved(len(waiting)), AT_REST))

    def unserved(self, tree: list[int]) -> list[int]:
        """The clients that wait and must be served in the end."""
        leaves = self.tree.leaves
        waiting: list[int] = []
        inside: list[int] = []
        for i in range(self.size):
            place = self.places.look(i, tree[leaves + i])
            waiting += place.waiting
            inside += place.inside
        return self.standings.clients_of(self.order.owed(waiting, inside))

    def survey(self, tree: list[int]) -> tuple[bool, int]:
        """Can anything happen by itself? And what entry is due if a client leaves now?"""
        leaves = self.tree.leaves
        eager = False
        quiet = self.ordered
        top = NOTHING_DUE
        self.around.clear()
        for i in range(self.size):
            place = self.places.expanded(i, tree[leaves + i])
            self.around.append(place)
            if place.eager:
                eager = True
            if not place.quiet:
                quiet = False
            if place.top > top:
                top = place.top
        return eager, self.order.top_in(top, self.around) if quiet else NOTHING_DUE

    def expand_node(self, tree: list[int], i: int, top: int) -> None:
        label = i << NODE
        for outcome in self.around[i].steps:
            self.expand_step(tree, i, outcome, top, label)
            label += 1

    def expand_step(self, tree: list[int], i: int, outcome: Outcome, top: int, label: int) -> None:
        row = tree[:]
        if outcome.plain and not self.changing:
            dirty = self.apply(row, i, outcome)
        elif self.judge(row, i, outcome, top, label):
            dirty = self.apply(row, i, outcome)
            if self.wide:
                dirty |= self.above[self.tree.leaves + self.size]
        else:
            return
        if self.setup.capacity > 0 and self.overfull(row, outcome):
            return
        self.successors.append(self.tree.climb(row, dirty))
        self.labels.append(label)

    def overfull(self, row: list[int], outcome: Outcome) -> bool:
        leaves = self.tree.leaves
        return any(self.places.look(j, row[leaves + j]).full for j in outcome.receivers)

    def judge(self, row: list[int], i: int, outcome: Outcome, top: int, label: int) -> bool:
        """Look at a step that is not plain; False if the run ends here."""
        if self.changing and not self.may_send(row, i, outcome, label):
            return False
        cut = False
        for fault in outcome.faults:
            if fault.name in self.judged:
                self.faults.append(Fault(fault.name, fault.text, label))
            if fault.name not in ("one-token", "conservation"):
                cut = True
        entered = () if cut else outcome.enters
        if entered and self.overused(row, i, outcome, label):
            cut = True
        if self.ordered:
            before = self.links[row[self.tree.leaves + self.size]]
            due = self.judge_order(row, i, outcome, entered, before.due, top, label)
            if due != before.due and not cut:
                row[self.tree.leaves + self.size] = self.number_links(before.but(due))
        if self.ties is not None and not cut:
            self.judge_ties(row, i, outcome, label)
        return not cut

    def overused(self, row: list[int], i: int, outcome: Outcome, label: int) -> bool:
        """Do more permits come into use than there are?"""
        held = self.places.look(i, outcome.after).held
        for j in range(self.size):
            if j != i:
                held += self.places.look(j, row[self.tree.leaves + j]).held
        if fits(held, self.permits):
            return False
        if "safety" in self.judged:
            want = self.standings.wants[outcome.enters[-1]]
            text = overuse(i, want, held, self.permits)
            self.faults.append(Fault("safety", text, label))
        return True

    def judge_order(
        self,
        row: list[int],
        i: int,
        outcome: Outcome,
        entered: tuple[int, ...],
        due: int,
        top: int,
        label: int,
    ) -> int:
        """Returns what is due after this step."""
        if outcome.kind not in (kinds.LEAVE, kinds.GIVE_BACK, kinds.PRIORITY) or not self.whole(
            row
        ):
            top = NOTHING_DUE
        due = self.order.due_in(outcome, due, top, self.around)
        text = ""
        if top > NOTHING_DUE and len(outcome.grants) > 1:
            text = self.order.judge_grants(outcome, self.around)
        if outcome.lent != NOBODY and due > NOTHING_DUE:
            there = row[self.tree.leaves + outcome.lent]
            waiting = self.places.look(outcome.lent, there).waiting
            text = text or self.order.judge_lent(outcome.lent, waiting, due)
            due = self.order.spent(due, waiting)
        if entered:
            text = text or self.order.judge_entry(i, entered[0], due)
            due = self.order.spent(due, entered)
        if text:
            self.faults.append(Fault("order", text, label))
        if outcome.kind == kinds.PRIORITY and self.order.falls(outcome.subject):
            return NOTHING_DUE  # until all have heard of it, the request may be served as it was
        return due

    def judge_ties(self, row: list[int], i: int, outcome: Outcome, label: int) -> None:
        assert self.ties is not None
        before = self.links[row[self.tree.leaves + self.size]]
        kind = TIES_OF.get(outcome.kind, OTHER)
        own = kind not in (OTHER, LINKS)
        standing = self.standings.after(outcome.kind, outcome.subject) if own else 0
        quiet = all(place.quiet for place in self.around)
        sent = [self.handlers.messages[number] for number in outcome.sends]
        moves = any(one.tokens() > 0 and one.lends() == 0 for one in sent)
        step = (kind, standing, i, quiet, self.whole(row), outcome.grants, moves)
        memory, wrong = self.ties.after(before.memory, step)
        if wrong:
            self.faults.append(Fault(TIES, wrong, label))
        if memory is not before.memory:
            after = self.number_links(before.but(before.due, memory))
            row[self.tree.leaves + self.size] = after

    def apply(self, row: list[int], i: int, outcome: Outcome) -> int:
        """Change the places in ``row``; returns which pairs above them are now wrong."""
        row[self.tree.leaves + i] = outcome.after
        return self.above[self.tree.leaves + i] | self.send(row, outcome)

    def send(self, row: list[int], outcome: Outcome) -> int:
        leaves = self.tree.leaves
        dirty = 0
        receivers = outcome.receivers
        for k, message in enumerate(outcome.sends):
            j = receivers[k]
            row[leaves + j] = self.places.arrived(j, row[leaves + j], message)
            dirty |= self.above[leaves + j]
        return dirty

    # -- links: they stay ------------------------------------------------------------------

    def number_links(self, links: Links) -> int:
        key = links.key()
        known = self.links_numbers.get(key, -1)
        if known < 0:
            known = len(self.links)
            self.links_numbers[key] = known
            self.links.append(links)
        return known

    def expand_links(self, tree: list[int]) -> None:
        """What can happen to links."""

    def may_send(self, row: list[int], i: int, outcome: Outcome, label: int) -> bool:
        """Are there links for all that the step sends? If not, that is a fault."""
        return True

    def whole(self, row: list[int]) -> bool:
        """Can every node reach every other?"""
        return True

    # -- liveness: who waits, and what must happen in the end ---------------------------------

    def waiting(self, state: int) -> list[int]:
        return self.unserved(self.tree.unpack(state))

    def owed(self, state: int) -> list[int]:
        tree = self.tree.unpack(state)
        debts: list[int] = []
        for i in range(self.size):
            place = self.places.look(i, tree[self.tree.leaves + i])
            for source, line in place.inbox:
                if self.fifo:
                    debts.append(self.debt(source, i))
                else:
                    debts += [2 * message for message in dict.fromkeys(line)]
            leaving = tuple([one for one in place.inside if not self.standings.stays[one]])
            debts += [2 * client + 1 for client in self.standings.clients_of(leaving)]
        return debts

    def debt(self, sender: int, receiver: int) -> int:
        return 2 * (sender * self.size + receiver)

    def pays(self, state: int, label: int) -> int:
        i = label >> NODE
        if i >= self.size:
            return -1
        tree = self.tree.unpack(state)
        place = self.places.expanded(i, tree[self.tree.leaves + i])
        step = place.steps[label & ((1 << NODE) - 1)]
        if step.kind == kinds.DELIVER:
            return (
                self.debt(self.handlers.messages[step.subject].sender, i)
                if self.fifo
                else 2 * step.subject
            )
        return 2 * self.standings.clients[step.subject] + 1 if step.kind == kinds.LEAVE else -1

    # -- telling what happened ----------------------------------------------------------------

    def explain(self, state: int, label: int) -> list[Act]:
        leaves = self.tree.leaves
        row = self.tree.unpack(state)
        i = label >> NODE
        k = label & ((1 << NODE) - 1)
        if i < self.size:
            place = self.places.expanded(i, row[leaves + i])
            outcome = place.steps[k]
            return [
                self.handlers.act(i, place.local, outcome.kind, outcome.subject, outcome.choice)
            ]
        return self.describe_links(row, k, label)

    def describe_links(self, row: list[int], k: int, label: int) -> list[Act]:
        """What happens in step k of those that concern links."""
        return []


def ancestors(leaf: int) -> int:
    """The pairs above this leaf of the tree, as bits."""
    bits = 0
    x = leaf >> 1
    while x > 1:
        bits |= 1 << x
        x >>= 1
    return bits
