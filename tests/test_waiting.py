"""No test may depend on how busy the machine is: none waits for a short time of the clock."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from waiting import LIMIT

TESTS = Path(__file__).parent
PACE = 0.05
"""The most seconds between two looks, or two steps of work."""

SHORT = 60.0
"""The fewest seconds that a test waits for what must happen."""

WAITS = {"sleep": 1, "wait": 1, "timeout": 1, "result": 1, "join": 1, "wait_for": 2}
"""Calls of this number of arguments have a time as the last one."""

ELSEWHERE = {"virtual.py", "waiting.py"}


def literal(node: ast.expr | None) -> float | None:
    is_number = isinstance(node, ast.Constant) and type(node.value) in (int, float)
    return float(node.value) if is_number else None  # type: ignore[union-attr, arg-type]


def short_waits(tree: ast.AST, expected: bool = False) -> Iterator[tuple[int, str]]:
    """Lines that wait, and what is wrong with them. What is ``expected`` to time out may do so
    soon: it would in any case."""
    for node in ast.iter_child_nodes(tree):
        inside = expected
        if isinstance(node, ast.With | ast.AsyncWith):
            texts = [ast.unparse(item.context_expr) for item in node.items]
            late = ("raises(TimeoutError", "raises(NotInTime")
            inside = inside or any(one in text for text in texts for one in late)
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            name = node.func.id if isinstance(node.func, ast.Name) else name
            given = [literal(word.value) for word in node.keywords if word.arg == "timeout"]
            if name in WAITS and len(node.args) == WAITS[name]:
                given.append(literal(node.args[-1]))
            for seconds in given:
                if seconds is None or inside or seconds <= PACE:
                    continue
                if name == "sleep":
                    yield node.lineno, f"sleeps for {seconds:g} s: wait for an event"
                elif seconds < SHORT:
                    yield node.lineno, f"gives up after {seconds:g} s: use LIMIT"
        yield from short_waits(node, inside)


def test_tests_wait_for_events() -> None:
    found = [
        f"{path.relative_to(TESTS)}:{line} {what}"
        for path in sorted(TESTS.rglob("*.py"))
        if path.name not in ELSEWHERE
        for line, what in short_waits(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert found == []


def test_short_waits_are_found() -> None:
    text = """
async def story(pool, process):
    await asyncio.sleep(0.2)
    process.wait(5)
    subprocess.run(["true"], timeout=20)
    async with asyncio.timeout(3), pool.acquire(timeout=5):
        with pytest.raises(TimeoutError):
            await pool.acquire(timeout=0.1)
    await asyncio.sleep(0.01)
    process.wait(LIMIT)
    await a_while(0.3)
"""
    assert [line for line, _ in short_waits(ast.parse(text))] == [3, 4, 5, 6, 6]
    assert LIMIT >= SHORT
