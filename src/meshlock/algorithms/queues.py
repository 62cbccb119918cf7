"""Waiting queues that several algorithms share."""

from __future__ import annotations


class Fifo:
    """First in, first out, in constant time however many wait.

    A list with a moving head: ``list.pop(0)`` would cost as much as the queue is
    long, and ``collections.deque`` 600 bytes per node even when nobody waits.
    """

    __slots__ = ("items", "head")

    def __init__(self) -> None:
        self.items: list[int] = []
        self.head = 0

    def __len__(self) -> int:
        return len(self.items) - self.head

    def push(self, item: int) -> None:
        self.items.append(item)

    def pop(self) -> int:
        item = self.items[self.head]
        self.head += 1
        if self.head == len(self.items):
            self.items = []
            self.head = 0
        elif self.head >= 64 and self.head * 2 >= len(self.items):
            self.items = self.items[self.head :]
            self.head = 0
        return item

    def remove(self, item: int) -> bool:
        """Take out the first occurrence; False if there is none."""
        for place in range(self.head, len(self.items)):
            if self.items[place] == item:
                del self.items[place]
                return True
        return False

    def freeze(self) -> tuple[int, ...]:
        return tuple(self.items[self.head :])

    def thaw(self, items: tuple[int, ...]) -> None:
        self.items = list(items)
        self.head = 0


class Lift(Fifo):
    """Own request first, but never twice in a row while others wait.

    The bound keeps the queue fair: between two own requests that overtake, at least
    one of the others is served.
    """

    __slots__ = ("me", "own", "lifted")

    def __init__(self, me: int) -> None:
        super().__init__()
        self.me = me
        self.own = False
        self.lifted = False

    def __len__(self) -> int:
        return len(self.items) - self.head + (1 if self.own else 0)

    def push(self, item: int) -> None:
        if item == self.me:
            self.own = True
        else:
            self.items.append(item)

    def pop(self) -> int:
        others = len(self.items) > self.head
        if self.own and not (self.lifted and others):
            self.own = False
            self.lifted = others
            return self.me
        self.lifted = False
        return super().pop()

    def remove(self, item: int) -> bool:
        if item != self.me:
            return super().remove(item)
        was = self.own
        self.own = False
        return was

    def freeze(self) -> tuple[int, ...]:
        return (1 if self.own else 0, 1 if self.lifted else 0, *super().freeze())

    def thaw(self, items: tuple[int, ...]) -> None:
        super().thaw(items[2:])
        self.own = items[0] == 1
        self.lifted = items[1] == 1
