"""CALL: how the nodes of a part of the network without the token fall silent, and wake up again.

Where there is no token, every node would climb above the others forever. So a node that has climbed
a number of times in a row stops, and floods a CALL: *is the token here?* One call is enough for all
nodes that stop. A node with the token answers, and so does a node that gets it (R11). The answer
lets all nodes climb again. Without a token there is no answer, and no message is sent. A link that
forms carries the open calls across, so nothing is missed when the parts join.
"""

from __future__ import annotations

from meshlock.algorithms.variables import StatePart


class SearchForToken(StatePart):
    """What a node knows of calls. The node sends them."""

    def __init__(self) -> None:
        self.climbs = 0  # of this node, since a link of it changed or the token was found
        self.open: dict[int, int] = {}  # node: the number of its last call, not answered yet
        self.answered: dict[int, int] = {}  # node: the number of its last call that was answered

    def next_call(self, me: int) -> int:
        """The number of our own next call; 0 if any call is open already."""
        if len(self.open) > 0:
            return 0
        number = self.answered.get(me, 0) + 1
        self.open[me] = number
        return number

    def is_new(self, node: int, number: int) -> bool:
        """Remember this call; False if it was known."""
        if number <= self.open.get(node, 0):
            return False
        self.open[node] = number
        return True

    def answer(self, node: int, number: int) -> bool:
        """The token can be reached: climb again. False if that was known."""
        if number <= self.answered.get(node, 0):
            return False
        self.answered[node] = number
        if self.open.get(node, 0) <= number:
            self.open.pop(node, None)
        self.climbs = 0
        return True

    def answer_all(self) -> list[tuple[int, int]]:
        """The token is here: the calls that were open."""
        found = sorted(self.open.items())
        for node, number in found:
            self.answer(node, number)
        return found
