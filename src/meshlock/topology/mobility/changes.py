"""What may change in a network, and the stream in which changes come."""

from __future__ import annotations

from meshlock.algorithms.subclassing import mypyc_attr


class NetworkChange:
    """Something about the network is different from this time on.

    A plain one says only that nothing was until now: the caller who asks for the next change is
    not to wait for ever for one that may never come.
    """

    def __init__(self, time: float) -> None:
        self.time = time


class LinkChange(NetworkChange):
    """The link between two nodes forms or fails."""

    def __init__(self, time: float, up: bool, one: int, other: int) -> None:
        super().__init__(time)
        self.up = up
        self.one = one if one < other else other
        self.other = other if one < other else one


class Move(NetworkChange):
    """The node is here now, and goes straight, at one speed, to its next move."""

    def __init__(self, time: float, node: int, x: float, y: float) -> None:
        super().__init__(time)
        self.node = node
        self.x = x
        self.y = y


@mypyc_attr(allow_interpreted_subclasses=True)
class Changes:
    """Changes in order of time, made one by one.

    Some depend on the links there are, so each must have been carried out on the live
    graph before the next is asked for.
    """

    def next(self) -> NetworkChange | None:
        """The next change; None when nothing will ever change again."""
        raise NotImplementedError

    def stop(self, time: float) -> None:
        """Let nothing happen after this time but what it takes to come to rest."""
        raise NotImplementedError

    def places(self, time: float) -> list[Move]:
        """Where everybody is; empty where nodes have no places."""
        return []


class Planned(Changes):
    """These changes, as given, in order of time."""

    def __init__(self, changes: list[NetworkChange]) -> None:
        self.coming = changes[::-1]

    def next(self) -> NetworkChange | None:
        return self.coming.pop() if self.coming else None

    def stop(self, time: float) -> None:
        self.coming = [change for change in self.coming if change.time <= time]
