"""Laws as a study file writes them: ``2 * (nodes - 1)``, ``H(nodes - 1)``, ``3 * sqrt(nodes)``."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from math import ceil, floor, log2, sqrt

from meshlock.errors import Refused

OPERATIONS: dict[type[ast.AST], Callable[..., float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
}


def harmonic(count: float) -> float:
    """H(m) = 1 + 1/2 + ... + 1/m."""
    return sum(1.0 / i for i in range(1, int(count) + 1))


def ramanujan(count: float) -> float:
    """Q(n) = 1 + (n-1)/n + (n-1)(n-2)/n² + ..."""
    total, term, left = 0.0, 1.0, int(count)
    while left > 0 and term > 1e-17:
        total += term
        left -= 1
        term *= left / count
    return total


def tree_distance(nodes: float) -> float:
    """Mean distance of two nodes, drawn one by one from all, of a complete binary tree."""
    count = int(nodes)
    below = [1] * count
    for node in range(count - 1, 0, -1):
        below[(node - 1) // 2] += below[node]
    return sum(2.0 * size * (count - size) for size in below[1:]) / (count * count)


FUNCTIONS: dict[str, Callable[[float], float]] = {
    "H": harmonic,
    "Q": ramanujan,
    "tree_distance": tree_distance,
    "sqrt": sqrt,
    "log2": log2,
    "floor": floor,
    "ceil": ceil,
}


class Formula:
    """A sum or product of numbers, settings and functions; nothing else can be written."""

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            self.tree = ast.parse(text, mode="eval").body
        except SyntaxError:
            raise self.wrong() from None

    def value(self, settings: Mapping[str, str | int]) -> float:
        try:
            return float(self.of(self.tree, settings))
        except (ArithmeticError, ValueError, TypeError):
            raise Refused(f"The formula '{self.text}' has no value for {dict(settings)}.") from None

    def of(self, node: ast.expr, settings: Mapping[str, str | int]) -> float:
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            return node.value
        if isinstance(node, ast.Name) and node.id in settings:
            return float(settings[node.id])
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATIONS:
            parts = (self.of(node.left, settings), self.of(node.right, settings))
            return OPERATIONS[type(node.op)](*parts)
        if isinstance(node, ast.UnaryOp) and type(node.op) in OPERATIONS:
            return OPERATIONS[type(node.op)](self.of(node.operand, settings))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 1:
            function = FUNCTIONS.get(node.func.id)
            if function is not None and not node.keywords:
                return function(self.of(node.args[0], settings))
        raise self.wrong()

    def wrong(self) -> Refused:
        return Refused(
            f"The formula '{self.text}' may have numbers, settings of the point, + - * / **, and "
            f"{', '.join(FUNCTIONS)}."
        )
