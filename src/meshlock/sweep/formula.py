"""Laws as a study file writes them: ``2 * (nodes - 1)``, ``H(nodes - 1)``, ``3 * sqrt(nodes)``."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from math import ceil, floor, log2, sqrt

from meshlock.errors import Refused

PARTS = (
    *(ast.Expression, ast.Constant, ast.Name, ast.Load, ast.BinOp, ast.UnaryOp, ast.Call),
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.USub),
)


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
            tree = ast.parse(text, mode="eval")
        except SyntaxError:
            raise self.wrong() from None
        for part in ast.walk(tree):
            number = not isinstance(part, ast.Constant) or isinstance(part.value, int | float)
            if not isinstance(part, PARTS) or not number:
                raise self.wrong()
        self.code = compile(tree, text, "eval")

    def value(self, settings: Mapping[str, str | int]) -> float:
        names = set(self.code.co_names) - set(FUNCTIONS)
        if not names <= set(settings):
            raise self.wrong()
        try:
            numbers = {name: float(settings[name]) for name in names}
            return float(eval(self.code, {"__builtins__": {}, **FUNCTIONS}, numbers))
        except (ArithmeticError, ValueError, TypeError):
            raise Refused(f"The formula '{self.text}' has no value for {dict(settings)}.") from None

    def wrong(self) -> Refused:
        return Refused(
            f"The formula '{self.text}' may have numbers, settings of the point, + - * / **, and "
            f"{', '.join(FUNCTIONS)}."
        )
