"""The nodes of a system and what they say: every handler runs once per variables and event.

A node's variables are its *local* state. Locals and messages have numbers, and what a handler did
with them is remembered under these. Nothing here knows where a message is on its way.
"""

from __future__ import annotations

from typing import Final

from meshlock.algorithms.actor import Actor, ChoosingActor, Enter, Frozen, Lost, Message, choices_of
from meshlock.check import kinds
from meshlock.check.model import Act, Fault
from meshlock.check.setup import SetUp
from meshlock.check.standings import Standings
from meshlock.check.words import Word, copy, spoken, word
from meshlock.errors import Refused
from meshlock.properties import sentences
from meshlock.world.effects import NOTHING, Effects

NOBODY: Final = -1
UNCHANGED: Final = "its client's request cannot be changed any more"
UNWITHDRAWN: Final = "its client waits, but cannot withdraw its request"


class Run:
    """What one handler did in one state of a node: it never needs to run again."""

    __slots__ = (
        "after",
        "enters",
        "faults",
        "grants",
        "lent",
        "losses",
        "possible",
        "receivers",
        "sends",
    )

    def __init__(self) -> None:
        self.after = 0
        self.possible = True  # else the request could not be changed any more
        self.sends: tuple[int, ...] = ()  # message numbers
        self.receivers: tuple[int, ...] = ()  # beside them
        self.enters: tuple[int, ...] = ()  # clients
        self.losses: tuple[int, ...] = ()  # clients whose lease has ended
        self.lent = NOBODY  # to whom permits were sent, before anybody entered
        self.grants: tuple[int, ...] = ()  # in order: clients, or -1 - the node they were sent to
        self.faults: tuple[Fault, ...] = ()


class Handlers(Effects):
    """Runs handlers of nodes, and tells what they did."""

    def __init__(self, setup: SetUp, standings: Standings, balanced: bool) -> None:
        super().__init__([], balanced, False)
        self.setup = setup
        self.size = setup.network.size
        self.standings = standings
        self.wants, self.priorities = standings.wants, standings.priorities
        self.clients: list[list[int]] = [[] for _ in range(self.size)]  # of each node, in order
        for client, request in enumerate(setup.requests, start=1):
            self.clients[request.node].append(client)
        # of the run at hand
        self.sends: list[int] = []
        self.failure = ""

    def fresh(self, message: int) -> Message:
        """A message of its own, so that no handler can change what others will receive."""
        raise NotImplementedError

    def take(self, node: Actor, kind: int, subject: int) -> bool:
        """Run one handler; False if the node could not do what its client asks for."""
        clients = self.standings.clients
        if kind == kinds.DELIVER:
            node.receive(self.fresh(subject))
        elif kind == kinds.REQUEST:
            node.request(subject, self.wants[subject], self.priorities[subject])
        elif kind == kinds.LEAVE:
            node.release(clients[subject])
        elif kind == kinds.WITHDRAW:
            return node.withdraw(clients[subject])
        elif kind == kinds.PRIORITY:
            there = self.standings.shifts[subject][1]
            return node.change_priority(clients[there], self.wants[there], self.priorities[there])
        elif kind == kinds.GIVE_BACK:
            here = self.standings.shifts[subject][0]
            node.release_some(clients[here], self.standings.released(subject))
        elif kind == kinds.LINK_UP:
            node.link_up(subject)
        elif kind == kinds.LINK_DOWN:
            node.link_down(subject)
        elif kind == kinds.START:
            node.start()
        else:
            node.undelivered(self.fresh(subject))
        return True

    # -- telling what happened --------------------------------------------------------

    def cause(self, node: Actor, kind: int, subject: int) -> Act:
        """What happens to a node."""
        act = Act(node.me, kinds.NAMES[kind])
        act.names = node.variables
        act.kinds = self.setup.kinds
        if kind in (kinds.DELIVER, kinds.UNDELIVERED):
            act.message = self.fresh(subject)
        elif kind in kinds.OF_CLIENTS:
            standing = self.standings.after(kind, subject)
            act.client = self.standings.clients[standing]
            act.want = self.wants[standing]
            act.priority = self.setup.in_steps(self.priorities[standing])
            act.released = self.standings.released(subject) if kind == kinds.GIVE_BACK else 0
        elif kind in (kinds.LINK_UP, kinds.LINK_DOWN):
            act.peer = subject
        return act

    def came_of(self, act: Act, node: Actor) -> Act:
        """Its handler has run."""
        act.effects = self.out[:]
        self.out.clear()
        act.after = act.before if act.failure else node.freeze()
        act.tokens, act.free = node.tokens(), node.free_permits()
        return act


class PlainHandlers(Handlers):
    def __init__(self, setup: SetUp, standings: Standings, balanced: bool) -> None:
        super().__init__(setup, standings, balanced)
        self.fifo = setup.fifo
        self.changing = bool(setup.changes) or setup.flips > 0
        self.routed = setup.algorithm.assumes.routed
        self.nodes = setup.algorithm.make(setup.network, setup.permits, setup.options, self.out)
        self.local_numbers: list[dict[Frozen, int]] = [{} for _ in range(self.size)]
        self.locals: list[list[Frozen]] = [[] for _ in range(self.size)]
        self.message_numbers: dict[tuple[int, int, Frozen], int] = {}
        self.messages: list[Message] = []
        self.runs: dict[tuple[int, int, int, int, int], Run] = {}
        self.choices: list[list[int]] = [[] for _ in range(self.size)]  # by local; 0: unknown
        self.rows: dict[tuple[int, ...], tuple[int, ...]] = {}  # equal ones kept once
        # of the run at hand
        self.receivers: list[int] = []
        self.enters: list[int] = []
        self.grants: list[int] = []
        self.losses: list[int] = []
        self.lent = NOBODY
        self.faults: list[Fault] = []

    # -- numbers for things ---------------------------------------------------------

    def local(self, i: int, frozen: Frozen) -> int:
        numbers = self.local_numbers[i]
        known = numbers.get(frozen, -1)
        if known < 0:
            known = len(numbers)
            numbers[frozen] = known
            self.locals[i].append(frozen)
            self.choices[i].append(0)
        return known

    def message(self, message: Message) -> int:
        frozen = message.freeze()
        key = (message.sender, message.receiver, frozen)
        known = self.message_numbers.get(key, -1)
        if known < 0:
            known = len(self.messages)
            self.message_numbers[key] = known
            self.messages.append(copy(message))
        return known

    def node_at(self, i: int, local: int) -> Actor:
        """Node i with these variables, until it is asked for again."""
        node = self.nodes[i]
        node.thaw(self.locals[i][local])
        return node

    def choices_at(self, i: int, local: int) -> int:
        """How many settings the outside may choose among."""
        choices = self.choices[i][local]
        if choices == 0:
            choices = self.choices[i][local] = choices_of(self.node_at(i, local))
        return choices

    # -- running a handler ------------------------------------------------------------

    def run(self, i: int, local: int, kind: int, subject: int, choice: int) -> Run:
        key = (i, local, kind, subject, choice)
        known = self.runs.get(key)
        if known is None:
            known = self.run_now(i, local, kind, subject, choice)
            self.runs[key] = known
        return known

    def run_now(self, i: int, local: int, kind: int, subject: int, choice: int) -> Run:
        node = self.node_at(i, local)
        if choice >= 0 and isinstance(node, ChoosingActor):
            node.choose(choice)
        tokens, permits = node.tokens(), node.free_permits()
        if kind in (kinds.DELIVER, kinds.UNDELIVERED):
            tokens += self.messages[subject].tokens()
            permits += self.messages[subject].permits()
        elif kind == kinds.LEAVE:
            permits += self.wants[subject]
        elif kind == kinds.GIVE_BACK:
            permits += self.standings.released(subject)
        run = Run()
        failure = self.handle(node, kind, subject)
        run.possible = failure != UNCHANGED
        if not failure:
            self.sends, self.receivers, self.enters, self.grants = [], [], [], []
            self.losses = []
            self.lent, self.failure, self.faults = NOBODY, "", []
            self.done(node, kinds.NAMES[kind], NOTHING, tokens, permits)
            failure = self.failure
        self.out.clear()
        if failure:
            if run.possible:
                run.faults = (Fault("handlers", sentences.failed(i, failure), 0),)
            return run
        run.sends = self.once(self.sends)
        run.receivers = self.once(self.receivers)
        run.enters = self.once(self.enters)
        run.grants = self.once(self.grants)
        run.losses = self.once(self.losses)
        run.lent = self.lent
        run.after = self.local(i, node.freeze())
        run.faults = tuple(self.faults)
        return run

    # -- what its effects come to: numbers ----------------------------------------------

    def transmit(self, message: Message) -> None:
        if not self.failure and not self.reachable(message.sender, message.receiver):
            self.failure = sentences.no_link(message.sender, message.receiver)
        self.sends.append(self.message(message))
        self.receivers.append(message.receiver)

    def hands_over(self, message: Message) -> None:
        if message.lends() > 0:
            self.grants.append(-1 - message.receiver)
            if self.lent == NOBODY and not self.enters:
                self.lent = message.receiver

    def admits(self, node: Actor, enter: Enter) -> int:
        self.enters.append(enter.client)
        self.grants.append(enter.client)
        return self.wants[enter.client]

    def takes_away(self, node: Actor, lost: Lost) -> None:
        self.losses.append(lost.client)

    def unbalanced(self, node: Actor, tokens: int, permits: int) -> None:
        if tokens != 0:
            self.faults.append(Fault("one-token", sentences.tokens(node.me, tokens), 0))
        if permits != 0:
            self.faults.append(Fault("conservation", sentences.permits(node.me, permits), 0))

    def once(self, row: list[int]) -> tuple[int, ...]:
        """The row as a tuple, the same one for all that are equal."""
        key = tuple(row)
        return self.rows.setdefault(key, key)

    def reachable(self, i: int, receiver: int) -> bool:
        """May node i send to this one, as far as is known before links change?"""
        if self.changing or self.routed:
            return 0 <= receiver < self.size
        return 0 <= receiver < self.size and self.setup.network.linked(i, receiver)

    def handle(self, node: Actor, kind: int, subject: int) -> str:
        """Run one handler; the empty text, or what went wrong."""
        try:
            if self.take(node, kind, subject):
                return ""
        except Exception as error:
            if isinstance(error, Refused) and kind == kinds.REQUEST:
                raise  # the set-up is wrong, not the algorithm
            return sentences.raised(error)
        return UNCHANGED if kind == kinds.PRIORITY else UNWITHDRAWN

    def fresh(self, message: int) -> Message:
        return copy(self.messages[message])

    def act(self, i: int, local: int, kind: int, subject: int, choice: int) -> Act:
        node = self.node_at(i, local)
        if choice >= 0 and isinstance(node, ChoosingActor):
            node.choose(choice)
        act = self.cause(node, kind, subject)
        act.before = self.locals[i][local]
        act.choice = choice
        act.failure = self.handle(node, kind, subject)
        return self.came_of(act, node)

    # -- the same in all processes ------------------------------------------------------

    def words(self, line: tuple[int, ...]) -> tuple[Word, ...]:
        """Messages as all processes know them; in an order of their own where order is none."""
        found = [word(self.messages[number]) for number in line]
        return tuple(found if self.fifo else sorted(found, key=hash))

    def heard(self, words: tuple[Word, ...]) -> tuple[int, ...]:
        numbers = [self.message(spoken(each)) for each in words]
        return tuple(numbers if self.fifo else sorted(numbers))
