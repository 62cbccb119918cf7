"""Partial-order reduction: where the order of steps cannot matter, one order is enough.

**Which steps are independent.** A step at node i changes the place of i (takes a message
off one of its channels, runs a handler) and appends messages to channels that only i
writes to. So steps at different nodes commute: neither disables the other, and both
orders lead to the same state. Steps at one node depend on each other, and a step
elsewhere can interfere with node i in one way only: by sending it something that opens a
new step at i. On a FIFO link that takes a message on an *empty* channel, for one behind
another changes nothing at the head; on an unordered link any message does it.

**1. Requests move to the front.** Once a client may ask, it may do so at any later time,
and its asking commutes with all that happens at other nodes. So in every run each request can
be moved forward until it stands right behind the step of its own node that came
before it, or at the start if there was none. It is enough, then, to let a node ask right
behind one of its own steps (as one bundle) or at the start; asking is no step of its own.

**2. Persistent sets.** At state s *all bundles of one node i* are enough if the rest of the
system, with i standing still, can never open a new step at i. That is not guessed but
worked out: the rest is explored by itself from s, and what it sends to i is thrown away.
Without i the rest falls into parts that do not hear each other (on a line: left and
right). Each part is a small system whose answers are remembered, so each of its states is
explored once in the whole check. Where a part is too large the answer is "perhaps", and i
is not used.

**3. Straight on.** Where one such step is all there is to do, the state in between is of no
interest: the step is taken at once, and again, and only the state where there is a choice, or
nothing more to do, is stored.

**Why nothing is missed.** Let w be a run from s that ends in a violation. If w has a step at
i, the first such step is possible at s already and commutes to the front. If it has none, any
step a of i can be put in front of w. Either way the reduced graph takes one step
and a violation is still ahead, provided that

- nothing is put off for ever: a leads to a state that is not expanded yet. The numbers of
  states then grow along such steps until a state comes that is expanded in full, and there
  w gets shorter. (In breadth-first order this is all that the cycle proviso asks.)
- a hides nothing. *Balances and failures* belong to one step at one node, which w contains
  whether rearranged or not. *Safety* of an algorithm with one token follows from its
  balances, where they are judged: if no step makes a permit, k are never exceeded. Else a
  must not be a leaving; an entry put in front only adds to the permits in use. *Served*:
  where nobody can be served any more, no node has a step left but asking; so i, which has
  one at s, must take a step before, and w contains it.

**Order** speaks of moments with nothing in flight and of who waits then, so requests must
not be moved. Where it is judged, bundles are single steps, i must have something to receive
(so that nothing in flight comes only after a step of i) and no client that may leave, and
while an entry is due a must not be an entry.

Link changes touch two nodes, and liveness looks at whole cycles: with link changes nothing
is left out, and cycles are looked for in the full graph. When something *is* found wrong, the
full graph is explored too, because the reduced one need not contain the shortest way there.
"""

from __future__ import annotations

from collections.abc import Container

from meshlock.algorithms.amounts import fits
from meshlock.check import kinds
from meshlock.check.handlers import Run
from meshlock.check.model import Act, Model
from meshlock.check.places import NOTHING_DUE, Outcome
from meshlock.check.plain import NODE, Plain

LARGEST_PART = 20_000
"""States of a part that are looked at before the answer is "perhaps"."""

LONGEST_CHAIN = 200
"""Steps taken at once before a state is stored all the same; it may be going round."""

MOST_ENDS = 100_000
"""States that are passed and remembered with where that leads."""


class Bundle:
    """A step and the requests right behind it, taken as one step."""

    def __init__(self, whole: Outcome, made_of: list[tuple[int, int]]) -> None:
        self.whole = whole
        self.made_of = made_of  # (place, position among its steps) of each


class Part:
    """Nodes that can hear each other while node ``still`` does nothing."""

    def __init__(self, still: int, nodes: list[int]) -> None:
        self.still = still
        self.nodes = nodes
        self.interferes: dict[tuple[int, ...], bool] = {}
        self.too_large = False


class Reduced(Model):
    """The same system with fewer steps and the same verdict."""

    def __init__(self, system: Plain) -> None:
        super().__init__()
        self.system = system
        self.numbered = True
        self.successors = system.successors
        self.labels = system.labels
        self.faults = system.faults
        self.numbers: dict[int, int] = {}
        self.ends: dict[int, int] = {}  # of chains: a state that is passed, where that leads
        self.bundling = not system.ordered
        # Safety follows from the balances only where those are judged.
        self.may_leave = system.balanced and "conservation" in system.judged
        self.known: list[list[list[Bundle] | None]] = [[] for _ in range(system.size)]
        self.sections = [self.without(i) for i in range(system.size)]

    def saves_time(self) -> bool:
        """Is it likely to? Whether others interfere with a node is found by exploring the parts
        into which they fall without it. If they never fall apart, that part is nearly the whole
        system, and takes as long as the states that are left out."""
        return any(len(parts) > 1 for parts in self.sections)

    def initial(self) -> int:
        return self.system.initial()

    def attach(self, numbers: dict[int, int], seen: Container[int]) -> None:
        self.numbers = numbers

    # -- bundles ----------------------------------------------------------------------------

    def bundles(self, i: int, number: int) -> list[Bundle]:
        """The steps of a place, each alone and with the requests that may follow."""
        known = self.known[i]
        while len(known) <= number:
            known.append(None)
        found = known[number]
        if found is None:
            found = []
            for k, step in enumerate(self.system.places.expanded(i, number).steps):
                if not self.bundling:
                    found.append(Bundle(step, [(number, k)]))
                elif step.kind != kinds.REQUEST:
                    self.bundle(i, Bundle(step, [(number, k)]), found)
            known[number] = found
        return found

    def bundle(self, i: int, start: Bundle, found: list[Bundle]) -> None:
        """This bundle, and whatever it becomes with more requests behind it."""
        found.append(start)
        first = start.whole
        if first.faults:
            return
        number = first.after
        for k, message in enumerate(first.sends):
            if first.receivers[k] == i:
                number = self.system.places.arrival(i, number, message)
        for k, step in enumerate(self.system.places.expanded(i, number).steps):
            if step.kind == kinds.REQUEST:
                whole = Outcome(first.kind, Run())
                whole.subject = first.subject
                whole.after = step.after
                whole.receivers = first.receivers + step.receivers
                whole.sends = first.sends + step.sends
                whole.enters = first.enters + step.enters
                whole.lent = first.lent if first.lent >= 0 or first.enters else step.lent
                whole.faults = step.faults
                whole.plain = first.plain and step.plain
                self.bundle(i, Bundle(whole, [*start.made_of, (number, k)]), found)

    def explain(self, state: int, label: int) -> list[Act]:
        system = self.system
        row = system.tree.unpack(state)
        i = label >> NODE
        k = label & ((1 << NODE) - 1)
        leaves = system.tree.leaves
        first: list[Bundle | None] = [None] * system.size
        if i < system.size:
            first[i] = self.bundles(i, row[leaves + i])[k]
        else:
            first = self.opening(row, k)
        acts: list[Act] = []
        for j, bundle in enumerate(first):
            if bundle is not None:
                acts += self.tell_bundle(j, bundle)
        self.take_together(row, first)
        for _ in range(LONGEST_CHAIN):
            j = self.only_step(row)
            if j < 0:
                break
            bundle = self.bundles(j, row[leaves + j])[0]
            acts += self.tell_bundle(j, bundle)
            system.apply(row, j, bundle.whole)
        return acts

    def tell_bundle(self, i: int, bundle: Bundle) -> list[Act]:
        acts: list[Act] = []
        for number, k in bundle.made_of:
            place = self.system.places.expanded(i, number)
            step = place.steps[k]
            acts.append(
                self.system.handlers.act(i, place.local, step.kind, step.subject, step.choice)
            )
        return acts

    # -- expanding ----------------------------------------------------------------------------

    def expand(self, state: int) -> None:
        system = self.system
        self.forget()
        tree = system.tree.unpack(state)
        eager, top = system.survey(tree)
        here = self.numbers[state]
        leaves = system.tree.leaves
        if here > 0 or not self.bundling:
            due = system.ordered and system.links[tree[leaves + system.size]].due > NOTHING_DUE
            for i in self.candidates(tree):
                if not self.interfered(tree, i):
                    self.expand_node(tree, i, top)
                    if self.goes_on(tree, i, here, due):
                        return
                    self.forget()
        for i in range(system.size):
            self.expand_node(tree, i, top)
        if here == 0 and self.bundling:
            self.expand_start(tree)
        if not eager:
            system.judge_rest(tree)

    def forget(self) -> None:
        self.successors.clear()
        self.labels.clear()
        self.faults.clear()

    def candidates(self, tree: list[int]) -> list[int]:
        """Nodes whose steps may be enough, those with the fewest first."""
        system = self.system
        leaves = system.tree.leaves
        found: list[tuple[int, int]] = []
        for i in range(system.size):
            place = system.places.look(i, tree[leaves + i])
            if not place.eager or (system.ordered and (place.quiet or len(place.inside) > 0)):
                continue
            found.append((len(self.bundles(i, tree[leaves + i])), i))
        found.sort()
        return [i for _, i in found]

    def expand_node(self, tree: list[int], i: int, top: int) -> None:
        label = i << NODE
        system = self.system
        for bundle in self.bundles(i, tree[system.tree.leaves + i]):
            row = tree[:]
            if bundle.whole.plain or system.judge(row, i, bundle.whole, top, label):
                dirty = system.apply(row, i, bundle.whole)
                if system.wide:
                    dirty |= system.above[system.tree.leaves + system.size]
                self.add(row, dirty, label)
            label += 1

    def add(self, row: list[int], dirty: int, label: int) -> None:
        """Go straight on from here as far as there is but one thing to do; store that."""
        system = self.system
        passed: list[int] = []
        state = system.tree.climb(row, dirty)
        for _ in range(LONGEST_CHAIN):
            end = self.ends.get(state, -1)
            if end >= 0:
                state = end
                break
            if self.numbers.get(state, 0) > 0:  # it was stored: here a chain has ended before
                break
            i = self.only_step(row)
            if i < 0:
                break
            passed.append(state)
            bundle = self.bundles(i, row[system.tree.leaves + i])[0]
            state = system.tree.climb(row, system.apply(row, i, bundle.whole))
        if len(self.ends) > MOST_ENDS:
            self.ends.clear()
        for before in passed:
            self.ends[before] = state
        self.successors.append(state)
        self.labels.append(label)

    def only_step(self, row: list[int]) -> int:
        """A node with one step that is enough by itself and nothing to report; or -1."""
        system = self.system
        leaves = system.tree.leaves
        for i in self.candidates(row):
            bundles = self.bundles(i, row[leaves + i])
            if len(bundles) > 1:
                break
            step = bundles[0].whole
            if step.kind == kinds.LEAVE and not self.may_leave:
                continue
            if step.enters and (system.ordered or self.too_many(row, i, step)):
                continue
            if step.lent >= 0 and system.ordered:
                continue
            if not step.faults and not self.interfered(row, i):
                return i
        return -1

    def too_many(self, row: list[int], i: int, step: Outcome) -> bool:
        """Would this step use more permits than there are?"""
        system = self.system
        leaves = system.tree.leaves
        held = system.places.look(i, step.after).held
        for j in range(system.size):
            if j != i:
                held += system.places.look(j, row[leaves + j]).held
        return not fits(held, system.permits)

    def goes_on(self, tree: list[int], i: int, here: int, due: bool) -> bool:
        """Does a step of i that hides nothing lead to a state that is not expanded yet?"""
        bundles = self.bundles(i, tree[self.system.tree.leaves + i])
        for k, state in enumerate(self.successors):
            step = bundles[self.labels[k] & ((1 << NODE) - 1)].whole
            if step.kind == kinds.LEAVE and not self.may_leave:
                continue
            if due and (step.enters or step.lent >= 0):
                continue
            number = self.numbers.get(state, -1)
            if number < 0 or number > here:
                return True
        return False

    # -- who asks at the start ------------------------------------------------------------------

    def openings(self, i: int, number: int) -> list[Bundle]:
        """What node i may ask for at the very start."""
        found: list[Bundle] = []
        for k, step in enumerate(self.system.places.expanded(i, number).steps):
            if step.kind == kinds.REQUEST:
                self.bundle(i, Bundle(step, [(number, k)]), found)
        return found

    def opening(self, tree: list[int], k: int) -> list[Bundle | None]:
        """Way number k of beginning: what each node asks for, if anything."""
        chosen: list[Bundle | None] = []
        for i in range(self.system.size):
            ways = self.openings(i, tree[self.system.tree.leaves + i])
            way = k % (len(ways) + 1)
            k //= len(ways) + 1
            chosen.append(ways[way - 1] if way > 0 else None)
        return chosen

    def expand_start(self, tree: list[int]) -> None:
        system = self.system
        count = 1
        for i in range(system.size):
            count *= len(self.openings(i, tree[system.tree.leaves + i])) + 1
        for k in range(1, count):
            row = tree[:]
            label = system.size << NODE | k
            together = self.opening(tree, k)
            good = True
            for i, bundle in enumerate(together):
                if bundle is not None and good:
                    good = system.judge(row, i, bundle.whole, NOTHING_DUE, label)
                    row[system.tree.leaves + i] = bundle.whole.after
            if good:
                self.add(row, self.take_together(row, together), label)

    def take_together(self, row: list[int], together: list[Bundle | None]) -> int:
        """One bundle each of several nodes, none having heard of the others yet."""
        system = self.system
        leaves = system.tree.leaves
        dirty = 0
        for i, bundle in enumerate(together):
            if bundle is not None:
                row[leaves + i] = bundle.whole.after
                dirty |= system.above[leaves + i]
        for bundle in together:
            if bundle is not None:
                dirty |= system.send(row, bundle.whole)
        return dirty

    # -- can the rest interfere with a node that stands still? ------------------------------------

    def without(self, still: int) -> list[Part]:
        """What the system falls into when this node stands still."""
        system = self.system
        others = [j for j in range(system.size) if j != still]
        if system.routed:
            return [Part(still, others)] if others else []
        parts: list[Part] = []
        left = set(others)
        while left:
            part = [min(left)]
            for j in part:
                left.discard(j)
                for peer in system.setup.network.neighbours(j):
                    if peer in left:
                        left.discard(peer)
                        part.append(peer)
            parts.append(Part(still, sorted(part)))
        return parts

    def interfered(self, tree: list[int], i: int) -> bool:
        system = self.system
        leaves = system.tree.leaves
        lines = system.places.look(i, tree[leaves + i]).inbox
        for part in self.sections[i]:
            if part.too_large:
                return True
            busy = 0  # channels to i that are not empty, as bits
            if system.fifo:
                for source, _ in lines:
                    if source in part.nodes:
                        busy |= 1 << source
            start = (busy, *[tree[leaves + j] for j in part.nodes])
            known = part.interferes.get(start)
            if known is None:
                known = self.explore_part(part, start)
            if known:
                return True
        return False

    def explore_part(self, part: Part, start: tuple[int, ...]) -> bool:
        """From this state of a part, can it ever send something new to the still node?

        If not, neither can any state that was seen on the way.
        """
        seen: set[tuple[int, ...]] = {start}
        todo = [start]
        while todo:
            here = todo.pop()
            if part.interferes.get(here, False) or self.step_part(part, here, seen, todo):
                part.interferes[start] = True
                return True
            if len(seen) > LARGEST_PART:
                part.too_large = True
                return True
        for state in seen:
            part.interferes[state] = False
        return False

    def step_part(
        self,
        part: Part,
        here: tuple[int, ...],
        seen: set[tuple[int, ...]],
        todo: list[tuple[int, ...]],
    ) -> bool:
        """Take every step of this state of a part; True if one reaches the still node."""
        system = self.system
        busy = here[0]
        for at, j in enumerate(part.nodes, start=1):
            for bundle in self.bundles(j, here[at]):
                outcome = bundle.whole
                row = list(here)
                row[at] = outcome.after
                for k, message in enumerate(outcome.sends):
                    receiver = outcome.receivers[k]
                    if receiver == part.still:
                        if not busy >> j & 1:
                            return True
                        continue
                    to = part.nodes.index(receiver) + 1
                    row[to] = system.places.arrived(receiver, row[to], message)
                state = tuple(row)
                if state not in seen and part.interferes.get(state) is not False:
                    seen.add(state)
                    todo.append(state)
        return False
