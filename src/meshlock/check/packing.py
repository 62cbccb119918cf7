"""Many small numbers as one number, and back.

A global state is a row of small numbers, one per part of the system. Two neighbours in
the row are paired, each distinct pair gets a number of its own, and so on up a binary
tree; the pair at the top *is* the state. A row of any length thus becomes one integer
that fits a machine word, equal rows become equal integers, and a step that changes one
part looks up only the pairs on its way to the top.

The tree lies in a list, as a heap does: node x has the children 2x and 2x + 1, the
leaves are the nodes from ``leaves`` on, and node 1 is the state.
"""

from __future__ import annotations

from array import array
from typing import Final

SPREAD: Final = 663608941
"""A pair (a, b) is kept as a * SPREAD + b. The factor is near 2 ** 30 / golden ratio, so
that the low bits, by which a hash table chooses its place, differ for neighbouring a. Compiled,
factors below 2 ** 30 are multiplied as they are. Larger ones are made objects first, and Ctrl-C
while these are multiplied would abort the process."""


class Tree:
    def __init__(self, leaves: int) -> None:
        self.leaves = leaves
        self.numbers: list[dict[int, int]] = [{} for _ in range(leaves)]  # of pairs, per node
        self.pairs = [array("q") for _ in range(leaves)]  # and back

    def unpack(self, state: int) -> list[int]:
        """The whole tree of a state; its row stands from ``leaves`` on."""
        leaves = self.leaves
        tree = [0] * (2 * leaves)
        tree[1] = state
        pair = state
        for x in range(1, leaves):
            if x > 1:
                pair = self.pairs[x][tree[x]]
            tree[2 * x] = pair // SPREAD
            tree[2 * x + 1] = pair % SPREAD
        return tree

    def leaf(self, state: int, place: int) -> int:
        """One number of the row of a state."""
        x = self.leaves + place
        if x == 1:
            return state
        depth = x.bit_length() - 2
        number = state
        while depth >= 0:
            child = x >> depth
            if child > 3:
                number = self.pairs[child >> 1][number]
            number = number % SPREAD if child & 1 else number // SPREAD
            depth -= 1
        return number

    def half(self, place: int) -> int:
        """On which side of the top one number of the row is: 0 or 1."""
        x = self.leaves + place
        while x > 3:
            x >>= 1
        return x & 1

    def number(self, x: int, pair: int) -> int:
        """The number of this pair at node x, a new one if it was never seen."""
        numbers = self.numbers[x]
        known = numbers.get(pair, -1)
        if known < 0:
            known = len(numbers)
            numbers[pair] = known
            self.pairs[x].append(pair)
        return known

    def pack(self, row: list[int]) -> int:
        leaves = self.leaves
        if leaves == 1:
            return row[0]
        tree = [0] * leaves + row
        x = leaves - 1
        while x > 1:
            pair = tree[2 * x] * SPREAD + tree[2 * x + 1]
            known = self.numbers[x].get(pair, -1)
            tree[x] = known if known >= 0 else self.number(x, pair)
            x -= 1
        return tree[2] * SPREAD + tree[3]

    def climb(self, tree: list[int], dirty: int) -> int:
        """The state after the pairs whose bits are in ``dirty`` have changed."""
        leaves = self.leaves
        if leaves == 1:
            return tree[1]
        x = leaves - 1
        while x > 1:
            if dirty >> x & 1:
                tree[x] = self.number(x, tree[2 * x] * SPREAD + tree[2 * x + 1])
            x -= 1
        return tree[2] * SPREAD + tree[3]
