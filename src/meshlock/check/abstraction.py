"""Heights compared, not absolute: so that an algorithm whose heights only fall can come round.

In Reverse Link and its kin a height is (h1, h2, id), and h2 falls with every hop of the token,
for ever. No state would ever come again, no cycle could be found, and asking again and
again would never be explored to the end. But nobody looks at a height but to compare it
with another, and on a network whose links stay, the only new heights are one below that of
the token's last holder, which is below all others. So two states are alike if their heights
stand in the same order, and of all such states one is kept: the one whose different (h1, h2)
are numbered 0, 1, 2 ... from the lowest. Every step from one of them has its like from
the other (the lowest minus one is again the lowest), so nothing is gained or lost by this.

Where links change, a raised height is computed from its neighbours' and may fall between
two others; then the distance matters, and heights are left as they are.

An algorithm says which of its variables and message fields hold heights
(``Node.heights``, ``Message.heights``). In a story told with this abstraction heights are
these numbers.
"""

from __future__ import annotations

from meshlock.algorithms.interface import Frozen, Message
from meshlock.check.model import Act, Model
from meshlock.check.system import System

Ranks = dict[tuple[int, int], int]


def applies(system: System) -> bool:
    """Are there heights, and do the links stay?"""
    return bool(system.nodes[0].heights) and not system.changing


class Compared(Model):
    """The same system with heights as ranks."""

    def __init__(self, system: System) -> None:
        super().__init__()
        self.system = system
        self.labels = system.labels
        self.faults = system.faults

    def initial(self) -> int:
        return self.ranked(self.system.initial())

    def expand(self, state: int) -> None:
        self.system.expand(state)
        self.successors.clear()
        for successor in self.system.successors:
            self.successors.append(self.ranked(successor))

    def tell(self, state: int, label: int) -> list[Act]:
        return self.system.tell(state, label)

    def waiting(self, state: int) -> list[int]:
        return self.system.waiting(state)

    def owed(self, state: int) -> list[int]:
        return self.system.owed(state)

    def pays(self, state: int, label: int) -> int:
        return self.system.pays(state, label)

    # -- ranks --------------------------------------------------------------------------------

    def ranked(self, state: int) -> int:
        system = self.system
        tree = system.tree
        row = tree.unpack(state)[tree.leaves :]
        found: set[tuple[int, int]] = set()
        for i in range(system.size):
            place = system.look(i, row[i])
            names = system.nodes[i].heights
            for name, value in zip(
                system.nodes[i].variables, system.locals[i][place.local], strict=True
            ):
                if name in names:
                    collect(value, found)
            for _, line in place.inbox:
                for number in line:
                    message = system.messages[number]
                    for name, value in zip(message.fields, message.freeze()[1:], strict=True):
                        if name in message.heights:
                            collect(value, found)
        ranks: Ranks = {}
        for height in sorted(found):
            ranks[height] = len(ranks)
        if all(height[1] == rank for height, rank in ranks.items()):
            return state
        for i in range(system.size):
            row[i] = self.place(i, row[i], ranks)
        return tree.pack(row)

    def place(self, i: int, number: int, ranks: Ranks) -> int:
        system = self.system
        place = system.look(i, number)
        inbox = tuple(
            [
                (source, tuple([self.message(message, ranks) for message in line]))
                for source, line in place.inbox
            ]
        )
        local = system.local(i, self.local(i, system.locals[i][place.local], ranks))
        return system.place(i, local, place.asked, place.inside, place.waiting, inbox)

    def local(self, i: int, frozen: Frozen, ranks: Ranks) -> Frozen:
        node = self.system.nodes[i]
        return tuple(
            [
                put(value, ranks) if name in node.heights else value
                for name, value in zip(node.variables, frozen, strict=True)
            ]
        )

    def message(self, number: int, ranks: Ranks) -> int:
        message = self.system.messages[number]
        values = [
            put(value, ranks) if name in message.heights else value
            for name, value in zip(message.fields, message.freeze()[1:], strict=True)
        ]
        twin: Message = type(message)(message.receiver, *values)
        twin.sender = message.sender
        return self.system.message(twin)


def is_height(value: object) -> bool:
    return (
        isinstance(value, tuple)
        and len(value) == 3
        and all(isinstance(part, int) for part in value)
    )


def collect(value: object, found: set[tuple[int, int]]) -> None:
    """All heights in a value, however deep."""
    if isinstance(value, tuple):
        if is_height(value):
            found.add((value[0], value[1]))
        else:
            for part in value:
                collect(part, found)


def put(value: object, ranks: Ranks) -> object:
    """The value with its heights as ranks."""
    if isinstance(value, tuple):
        if is_height(value):
            return (value[0], ranks[value[0], value[1]], value[2])
        return tuple([put(part, ranks) for part in value])
    return value
