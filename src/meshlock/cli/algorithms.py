"""meshlock algorithms: what there is, what it solves, what it assumes."""

from __future__ import annotations

from meshlock.cli.output import columns, report
from meshlock.settings import option

OUTSIDE: tuple[str, ...] = option(
    (),
    "Load algorithms from this file.py, for traces or runs that name them. May be repeated.",
    "--algorithm",
)


def load_all(algorithms: tuple[str, ...]) -> None:
    from meshlock.algorithms.outside import load

    for text in algorithms:
        load(text)


def algorithms(
    json: bool = option(False, "Print one JSON list."),
) -> None:
    """List the algorithms.

    Example: meshlock algorithms
    """
    from meshlock.algorithms.outside import installed
    from meshlock.algorithms.registry import ALGORITHMS, find

    entries = [find(name) for name in [*ALGORITHMS, *installed()]]
    listed = [
        {
            "name": entry.name,
            "title": entry.title,
            "source": entry.source,
            **entry.facts(),
            "messages": entry.messages(),
            "options": {name: list(values) for name, values in entry.options.items()},
        }
        for entry in entries
    ]
    shares = {"mutex": "1 permit", "k": "1 of k", "h-of-k": "h of k"}
    rows = [("name", "shares", "links", "what it is")]
    for entry in entries:
        links = ["may change"] if entry.assumes.changing_links else []
        links += ["fifo"] if entry.assumes.fifo else []
        links += ["complete"] if entry.assumes.complete_graph else []
        what = shares[entry.problem] + (", by priority" if entry.serves.priorities else "")
        rows.append((entry.name, what, ", ".join(links) or "any", entry.title))
    report(json, listed, lambda: columns(rows))
