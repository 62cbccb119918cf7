"""The shortest way to a finding that leaving steps out can find."""

from __future__ import annotations

from collections.abc import Callable

from .judge import Violation
from .links import joined
from .setup import Setup
from .world import Doing, World

MOST_STEPS = 2_000


def replay(setup: Setup, steps: list[Doing], tell: Callable[[str], None] | None = None) -> str:
    """The rule that is broken when these steps are taken, as far as they are possible, and
    everything then ends in one fixed order; else nothing."""
    world = World(setup, tell)
    try:
        for name, *numbers in steps:
            world.do(str(name), *[int(number) for number in numbers])
        finish(world)
    except Violation as violation:
        if tell is not None:
            tell(str(violation))
        steps[:] = world.done
        return violation.rule
    return ""


def finish(world: World) -> None:
    links, size = world.links, world.setup.size
    while not links.connected():
        reached = joined(size, links.working)
        i = min(reached)
        world.do("form", i, min(set(range(size)) - reached))
    for _ in range(MOST_STEPS):
        steps = links.steps()
        if steps:
            world.do(*steps[0])
        elif world.judge.inside:
            world.do("leave", min(world.judge.inside))
        else:
            world.end()
            return
    raise Violation("rest", f"{MOST_STEPS} steps after the last change, and no end")


def shortest(setup: Setup, steps: list[Doing], rule: str) -> list[Doing]:
    """Leave out parts, halves first and single steps last, while the same rule breaks."""
    best = list(steps)
    part = len(best) // 2
    while part > 0:
        start, shorter = 0, False
        while start < len(best):
            rest = best[:start] + best[start + part :]
            if replay(setup, rest) == rule and len(rest) < len(best):
                best, shorter = rest, True
            else:
                start += part
        if not shorter:
            part //= 2
        part = min(part, len(best) // 2) or (1 if shorter and len(best) > 1 else part)
    return best
