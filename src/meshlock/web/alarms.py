"""What is wrong, in sentences, the worst first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

LONG = 30.0
"""Seconds that are too long to wait for permits."""

SILENT = 5.0
"""Rounds of questions after which a node that can be reached should have answered."""


def alarms(shown: dict[str, Any]) -> list[str]:
    """Of what the page shows: see :func:`.live.view`."""
    return [*of_pool(shown), *of_nodes(shown), *of_links(shown)]


def of_pool(shown: dict[str, Any]) -> Iterator[str]:
    views = {name: node["pool_view"] for name, node in shown["nodes"].items() if node["pool_view"]}
    conflicts = dict.fromkeys(view["conflict"] for view in views.values() if view["conflict"])
    yield from conflicts
    mine = views.get(shown["node"])
    if mine and not mine["known"]:
        yield f"{shown['pool']}: {mine['why']}."
    few = [name for name, view in views.items() if view["reachable"] < view["quorum"]]
    if few:
        yield (
            f"Quorum lost: {listed(few)} cannot reach {views[few[0]]['quorum']} of "
            f"the {views[few[0]]['members']} members, and no permits are granted there."
        )
    left = {name for name, node in shown["nodes"].items() if node["left"] or node["gone"]}
    unreachable = sorted({name for view in views.values() for name in view["unreachable"]} - left)
    if unreachable:
        yield f"{listed(unreachable)} unreachable in this pool."
    if shown["in_doubt"]:
        yield (
            f"Permits in doubt: {shown['in_doubt']} messages that carried them were "
            "sent to a node that restarted."
        )
    for name, view in views.items():
        slow = [one["seconds"] for one in view["waiting"] if one["seconds"] > LONG]
        if slow:
            yield f"{len(slow)} at {name} waiting for more than {LONG:.0f} s."


def of_nodes(shown: dict[str, Any]) -> Iterator[str]:
    missed = [
        name
        for name, node in shown["nodes"].items()
        if node["distance"] is None and not node["left"] and not node["gone"]
    ]
    if missed:
        longest = max(shown["nodes"][name]["unreachable_for"] or 0.0 for name in missed)
        since = f"for {longest:.0f} s" if len(missed) == 1 else f"for up to {longest:.0f} s"
        yield f"{listed(missed)} unreachable ({since})."
    only = [name for name, node in shown["nodes"].items() if node["only_way"]]
    for name in sorted(only):
        yield (
            f"{name} is a single point of failure: without it, other nodes cannot reach each other."
        )
    patience = SILENT * shown["every"]
    silent = [
        name
        for name, node in shown["nodes"].items()
        if node["distance"] is not None and (node["age"] or 0.0) > patience
    ]
    if silent:
        yield f"{listed(silent)} did not answer for {patience:.0f} s, but is reachable."


def of_links(shown: dict[str, Any]) -> Iterator[str]:
    for peer, link in shown["links"].items():
        if link["cut_for"] is not None:
            yield (f"The link to {peer} is cut on purpose for another {link['cut_for']:.0f} s.")
        elif not link["up"] and not link["gone"] and (link["unacknowledged"] or not link["left"]):
            owed = link["unacknowledged"]
            carried = "a message with permits for it waits"
            if owed > 1:
                carried = f"{owed} messages with permits for it wait"
            yield f"The link to {peer} is down{f'; {carried}' if owed else ''}."


def listed(names: list[str]) -> str:
    names = sorted(names)
    if len(names) > 4:
        return f"{', '.join(names[:3])} and {len(names) - 3} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
