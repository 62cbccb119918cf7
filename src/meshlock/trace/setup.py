"""The first line of a trace: what is run, on which network, and what the run promises."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from meshlock import __version__
from meshlock.algorithms.actor import NIL
from meshlock.algorithms.amounts import Kinds
from meshlock.properties.promises import PromisedOrder

FORMAT = 1


@dataclass(kw_only=True)
class TraceSetup:
    """Of simulator, checker, scenarios and live nodes alike: the keys of
    docs/reference/trace-format.md in the order of the line. What is None is left out."""

    version: str = __version__
    source: str
    scenario: str | None = None
    algorithm: str
    options: dict[str, str]
    seed: int | None = None
    promised: PromisedOrder
    settings: Mapping[str, str | int] | None = None
    fifo: bool | None = None
    tree: list[int] | None = None
    failures: str | None = None
    components: int | None = None
    pool: str | None = None
    name: str | None = None
    node: int | None = None
    nodes: int | None = None
    links: list[tuple[int, int]] | str | None = None
    permits: int
    kinds: Kinds | None = None  # of the permits, where there are several
    holder: int = NIL
    recovery: Mapping[str, Any] | None = None
    loop: int | None = None
    part: int | None = None

    def line(self) -> dict[str, Any]:
        line: dict[str, Any] = {"meshlock": "trace", "format": FORMAT}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, PromisedOrder):
                line.update(asdict(value))
            elif value is not None and not isinstance(value, Kinds):
                line[field.name] = value
        return line
