"""One state for many that are alike: what symmetry and comparison have in common."""

from __future__ import annotations

from meshlock.algorithms.actor import Message
from meshlock.check.model import Act, Model
from meshlock.check.plain import Plain


class Quotient(Model):
    """The same system with one state for all that are alike."""

    def __init__(self, system: Plain) -> None:
        super().__init__()
        self.system = system
        self.labels = system.labels
        self.faults = system.faults

    def alike(self, state: int) -> int:
        """The state that stands for all that are like this one."""
        raise NotImplementedError

    def initial(self) -> int:
        return self.alike(self.system.initial())

    def expand(self, state: int) -> None:
        self.system.expand(state)
        self.successors.clear()
        for successor in self.system.successors:
            self.successors.append(self.alike(successor))

    def explain(self, state: int, label: int) -> list[Act]:
        return self.system.explain(state, label)

    def waiting(self, state: int) -> list[int]:
        return self.system.waiting(state)

    def owed(self, state: int) -> list[int]:
        return self.system.owed(state)

    def pays(self, state: int, label: int) -> int:
        return self.system.pays(state, label)

    def twin(self, message: Message, sender: int, receiver: int, values: object) -> int:
        """The number of a message of the same kind, between these and with these values."""
        assert isinstance(values, tuple)
        twin: Message = type(message)(receiver, *values)
        twin.sender = sender
        return self.system.handlers.message(twin)
