"""What a mutant is: a patch of an algorithm, and a small set-up in which the mistake shows."""

from __future__ import annotations

from difflib import unified_diff
from functools import cached_property
from typing import Any

from meshlock.algorithms.interface import Algorithm
from meshlock.algorithms.mutants.patches import PACKAGE, Patched, applied, text_of
from meshlock.algorithms.registry import MODULES, find

FLAGS = {
    "proposers": "proposer",
    "member_changes": "member-change",
    "resizes": "resize",
    "wall_clock": "no-wall-clock",
}
"""Where the flag has another name than the word."""


class Case:
    """A set-up as small as shows the mistake, in the words of ``meshlock check``.

    ``requests`` are NODE:WANT@PRIORITY, in order per node, with spaces between them; with
    ``repeat`` nodes ask without end, and the clients of nodes in ``stay`` never leave. So
    many ``clients`` of one node may wait or be inside at once. ``raises`` are NODE:PRIORITY and
    ``release_parts`` NODE:PERMITS, which may happen at any time. ``changes`` are link changes in
    order, such as "down 0-2". ``faults`` are what may happen to nodes that recover, by the names
    of their flags, ``members`` among them; ``lead`` are the first steps, on the way in.
    """

    def __init__(
        self,
        nodes: int,
        topology: str,
        requests: str = "",
        *,
        permits: int = 1,
        changes: list[str] | None = None,
        failures: str = "drain",
        clients: int = 1,
        repeat: bool = False,
        stay: list[int] | None = None,
        options: dict[str, str] | None = None,
        raises: list[str] | None = None,
        release_parts: list[str] | None = None,
        lead: list[str] | None = None,
        **faults: Any,
    ) -> None:
        self.nodes = nodes
        self.topology = topology
        self.requests = requests.split()
        self.permits = permits
        self.changes = changes if changes is not None else []
        self.failures = failures
        self.clients = clients
        self.repeat = repeat
        self.stay = stay if stay is not None else []
        self.options = options if options is not None else {}
        self.raises = raises if raises is not None else []
        self.release_parts = release_parts if release_parts is not None else []
        self.lead = lead if lead is not None else []
        self.faults = faults

    def flags(self) -> str:
        """The flags of ``meshlock check`` that describe it, without what is at its default."""
        words = [f"--topology {self.topology} --nodes {self.nodes}"]
        if self.permits != 1:
            words.append(f"--permits {self.permits}")
        words += [f"--request {request}" for request in self.requests]
        words += [f'--change "{change}"' for change in self.changes]
        if self.failures != "drain":
            words.append(f"--failures {self.failures}")
        if self.clients != 1:
            words.append(f"--clients {self.clients}")
        words += [f"--stay {node}" for node in self.stay]
        words += [f"--raise {text}" for text in self.raises]
        words += [f"--release-part {text}" for text in self.release_parts]
        words += [f"--option {name}={value}" for name, value in self.options.items()]
        if self.repeat:
            words.append("--repeat")
        for name, value in self.faults.items():
            flag = f"--{FLAGS.get(name, name.replace('_', '-'))}"
            for one in value if isinstance(value, list) else [value]:
                text = f'"{one}"' if isinstance(one, str) and " " in one else one
                words.append(flag if isinstance(one, bool) else f"{flag} {text}")
        words += [f'--lead "{step}"' for step in self.lead]
        return " ".join(words)


class Mutant:
    """An algorithm with a mistake in it: the ``origin`` with a patch.

    In its ``case`` the checker finds that the property ``breaks`` is violated, in so many ``steps``
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
        case: Case,
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
    def algorithm(self) -> Algorithm:
        """The origin with the patch, which is run now."""
        patched = Patched(self.name, self.patch)
        (home,) = [module for module in MODULES if self.origin in module.ALGORITHMS]
        entries: list[Algorithm] = patched.module(home.__name__, "ALGORITHMS").ALGORITHMS
        (found,) = [entry for entry in entries if entry.name == self.origin.name]
        found.name = self.name
        found.title = f"{self.origin.title}; mistake: {self.mistake}"
        if self.in_recovery:
            found.layer = patched.module(f"{PACKAGE}.recovery.layer").Layer
        else:
            found.join = found.late = None
        return found

    def diff(self) -> str:
        """What the patch changes, for people."""
        lines: list[str] = []
        for module, text in applied(self.name, self.patch).items():
            file = f"{module.replace('.', '/')}.py"
            before, after = text_of(module).splitlines(True), text.splitlines(True)
            lines += unified_diff(before, after, file, f"{file} ({self.name})")
        return "".join(lines)

    def command(self) -> str:
        """The command that shows what the mistake breaks, its set-up in full."""
        flags = self.case.flags()
        if (self.unordered or not self.origin.needs_fifo) and not self.case.faults:
            flags += " --links unordered"
        if self.breaks == "ties":
            flags += " --property ties"
        return f"meshlock check --mutant {self.name} {flags}"
