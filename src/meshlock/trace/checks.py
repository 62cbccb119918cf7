"""What a line of a trace must have, whatever is judged by it."""

from __future__ import annotations

from typing import Any

from meshlock.trace.reader import Trace

Event = dict[str, Any]


def links(trace: Trace) -> list[tuple[int, int]] | None:
    """The links of the set-up, none if it says nothing of them; None: all nodes are linked."""
    said = trace.setup.get("links", [])
    return None if said == "complete" else [(one, other) for one, other in said]


def node_of(trace: Trace, event: Event, key: str) -> int:
    """Another node than that of the step."""
    node = trace.whole(event, key)
    if not 0 <= node < trace.nodes:
        raise trace.bad(f"names a node that does not exist: {node}")
    return node


def number(trace: Trace, event: Event, key: str) -> float:
    value = event.get(key)
    if not isinstance(value, int | float):
        raise trace.bad(f"('{event['event']}') needs a number as '{key}'")
    return float(value)


def same_message(sent: Event, event: Event, ages: bool) -> bool:
    """Is what arrives or comes back what was sent? Its seal gets older on the way; ``ages``: so
    does what it says itself."""
    if event.get("message") != sent.get("message"):
        return False
    if event.get("args") != sent.get("args") and not (ages and timeless(event) == timeless(sent)):
        return False
    return "seal" not in sent or without_age(sent["seal"]) == without_age(event.get("seal"))


def timeless(event: Event) -> Event:
    """Its fields without that which says how long it has been under way."""
    args = event.get("args")
    return {key: args[key] for key in args if key != "sent"} if isinstance(args, dict) else {}


def without_age(seal: Any) -> list[Any] | None:
    return seal[:-1] if isinstance(seal, list) else None
