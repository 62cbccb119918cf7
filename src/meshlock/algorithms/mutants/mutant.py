"""What a mutant is: an algorithm, one mistake, and a small set-up in which it shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from meshlock.algorithms.interface import Algorithm, Effect, Leased, Network, Node

FLAGS = {
    "proposers": "proposer",
    "member_changes": "member-change",
    "resizes": "resize",
    "wall_clock": "no-wall-clock",
}
"""Where the flag has another name than the word."""

Make = Callable[[Network, int, dict[str, str], list[Effect]], list[Node]]


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
        requests: str,
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
    """An algorithm with a mistake in it.

    ``algorithm`` is the ``origin`` in everything but its name and its nodes; on links that
    are ``unordered`` because the mistake is to think that their order does not matter. In its
    ``case`` the checker finds that the property ``breaks`` is violated, in so many ``steps`` and
    no fewer; nothing is violated where that is empty. A ``large`` case takes it minutes. With a
    ``layer`` the mistake is in what makes nodes recover, not in the algorithm inside. A step of the
    ``lead`` may be what the original ``prevents``.
    """

    def __init__(
        self,
        origin: Algorithm,
        name: str,
        mistake: str,
        make: Make,
        case: Case,
        *,
        breaks: str,
        steps: int,
        unordered: bool = False,
        large: bool = False,
        layer: Callable[..., Leased] | None = None,
        prevents: str = "",
    ) -> None:
        self.name = f"{origin.name}/{name}" if layer is None else f"recovery/{name}"
        self.origin = origin
        self.mistake = mistake
        self.case = case
        self.breaks = breaks
        self.steps = steps
        self.large = large
        self.prevents = prevents
        self.algorithm = Algorithm(
            self.name,
            f"{origin.title}; mistake: {mistake}",
            origin.source,
            origin.problem,
            make,
            origin.kinds,
            priorities=origin.priorities,
            changing_links=origin.changing_links,
            needs_fifo=origin.needs_fifo and not unordered,
            needs_complete_graph=origin.needs_complete_graph,
            routed=origin.routed,
            token=origin.token,
            many_clients=origin.many_clients,
            restless=origin.restless,
            structure=origin.structure,
            options=origin.options,
            join=origin.join if layer is not None else None,
            late=origin.late if layer is not None else None,
            layer=layer,
        )

    def command(self) -> str:
        """The command that shows what the mistake breaks, its set-up in full."""
        flags = self.case.flags()
        if not self.algorithm.needs_fifo and not self.case.faults:
            flags += " --links unordered"
        return f"meshlock check --mutant {self.name} {flags}"
