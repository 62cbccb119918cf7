"""Mutants in the old form, until all are patches."""

from __future__ import annotations

from collections.abc import Callable

from meshlock.algorithms.interface import Algorithm, Effect, Leased, Network, Node
from meshlock.algorithms.mutants.mutant import Case as Case
from meshlock.algorithms.mutants.mutant import Mutant as Patch

Make = Callable[[Network, int, dict[str, str], list[Effect]], list[Node]]


class Mutant(Patch):
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
        self.unordered = unordered
        self.patch = ""
        self.in_recovery = False
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
