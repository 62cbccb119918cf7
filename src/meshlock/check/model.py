"""What the explorer needs of anything it explores.

A model is a pure state machine with numbered states. Algorithms on a network are one
kind (:mod:`.system`); whatever else has states and steps, with crashes, lost messages or
timers among them, can be explored by writing another.
"""

from __future__ import annotations

from collections.abc import Container

from meshlock.algorithms.actor import Effect, Frozen
from meshlock.algorithms.amounts import Kinds

Part = Frozen
"""What a state consists of, such as one of its nodes: means the same in all processes."""

AT_REST = -1
"""The label of a fault that lies in a state itself, not in a step from it."""


class Fault:
    """A property that a step (or a state, see AT_REST) violates."""

    def __init__(self, name: str, text: str, label: int) -> None:
        self.name = name
        self.text = text
        self.label = label


class Act:
    """One run of one handler, as it is told to people and written to traces."""

    def __init__(self, node: int, event: str) -> None:
        self.node = node
        self.event = event  # as in docs/reference/trace-format.md
        self.client = 0
        self.want = 0
        self.kinds: Kinds | None = None  # of the permits
        self.priority = 0.0  # in steps
        self.released = 0  # permits, by a client that keeps others
        self.peer = -1
        self.message: Effect | None = None
        self.choice = -1  # what the outside set before, where there was a choice
        self.effects: list[Effect] = []
        self.names: tuple[str, ...] = ()  # of the variables in before and after
        self.before: Frozen = ()
        self.after: Frozen = ()
        self.tokens = 0  # at the node afterwards
        self.free = 0  # likewise, permits in nobody's use
        self.failure = ""  # the handler did not end well: how
        self.late = False  # custody kept the message, and it arrives only now
        self.step = ""  # the name of the step that it is part of, where steps have names


class Model:
    """States are integers; ``expand`` says where one can go from each.

    A step has a *label*, by which :meth:`explain` can explain it later; only state and
    label are stored. Steps must come in the same order whenever a state is expanded.
    """

    def __init__(self) -> None:
        self.numbered = False  # does it ask for the numbers of states, see attach?
        self.successors: list[int] = []
        self.labels: list[int] = []
        self.faults: list[Fault] = []

    def initial(self) -> int:
        raise NotImplementedError

    def attach(self, numbers: dict[int, int], seen: Container[int]) -> None:
        """The states that the explorer has seen: for a model that is ``numbered`` their numbers
        in order of discovery are kept up to date, for others ``seen``, which has those at hand."""

    def expand(self, state: int) -> None:
        """Fill ``successors`` and ``labels`` with every step from here, ``faults`` with
        what is wrong. After a step with a fault the run may be cut: then it is not among
        the successors."""
        raise NotImplementedError

    def explain(self, state: int, label: int) -> list[Act]:
        """What happens in this step."""
        raise NotImplementedError

    # -- for liveness -------------------------------------------------------------------------

    def waiting(self, state: int) -> list[int]:
        """The clients that wait in this state."""
        return []

    def owed(self, state: int) -> list[int]:
        """Numbers for what must happen in the end if it stays possible from here on."""
        return []

    def pays(self, state: int, label: int) -> int:
        """Which of the debts of this state the step pays, -1 if none."""
        return -1
