"""What a mutant is: a patch of an algorithm, and a small set-up in which the mistake shows."""

from __future__ import annotations

from difflib import unified_diff
from functools import cached_property
from typing import Any

from meshlock.algorithms.actor import Algorithm, Newcomers
from meshlock.algorithms.mutants.patches import PACKAGE, Patched, applied, text_of
from meshlock.algorithms.recovery.layer import LAYERS
from meshlock.algorithms.registry import MODULES, find


class Mutant:
    """An algorithm with a mistake in it: the ``origin`` with a patch.

    Its ``case`` is a set-up as small as shows the mistake, in the words of ``meshlock check``.
    There the checker finds that the property ``breaks`` is violated, in this number of ``steps``
    and no fewer; nothing is violated where that is empty. A ``large`` case takes it minutes. A step
    of the ``lead`` may be what the original ``prevents``. It is ``unordered`` if the mistake is to
    think that links need not keep the order. Mistakes of ``recovery/`` are in what is around the
    nodes of an ``algorithm``, direct if none is named.
    """

    def __init__(
        self,
        name: str,
        mistake: str,
        patch: str,
        case: dict[str, Any],
        *,
        algorithm: str = "",
        breaks: str = "",
        steps: int = 0,
        unordered: bool = False,
        large: bool = False,
        prevents: str = "",
    ) -> None:
        self.name = name
        self.family = name.partition("/")[0]
        self.in_recovery = self.family == "recovery"
        self.origin = find(algorithm or ("direct" if self.in_recovery else self.family))
        self.mistake = mistake
        self.patch = patch
        self.case = case
        self.breaks = breaks
        self.steps = steps
        self.unordered = unordered
        self.large = large
        self.prevents = prevents

    @cached_property
    def patched(self) -> Patched:
        return Patched(self.name, self.patch)

    @cached_property
    def algorithm(self) -> Algorithm:
        """The origin with the patch, which is run now."""
        (home,) = [module for module in MODULES if self.origin in module.ALGORITHMS]
        entries: list[Algorithm] = self.patched.module(home.__name__, "ALGORITHMS").ALGORITHMS
        (found,) = [entry for entry in entries if entry.name == self.origin.name]
        if self.in_recovery:
            LAYERS[self.name] = self.patched.module(f"{PACKAGE}.recovery.layer").Layer
        else:
            found = found._replace(newcomers=Newcomers())
        title = f"{self.origin.title}; mistake: {self.mistake}"
        return found._replace(name=self.name, title=title)

    @property
    def layer(self) -> type:
        """A mutant of recovery: what is around the nodes of its algorithm."""
        return LAYERS[self.algorithm.name]

    def diff(self) -> str:
        """What the patch changes, for people."""
        lines: list[str] = []
        for module, text in applied(self.name, self.patch).items():
            file = f"{module.replace('.', '/')}.py"
            before, after = text_of(module).splitlines(True), text.splitlines(True)
            lines += unified_diff(before, after, file, f"{file} ({self.name})")
        return "".join(lines)
