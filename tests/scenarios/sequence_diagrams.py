"""A scenario as a Mermaid sequence diagram: what matters to its point, and no heights."""

import io
import json

from meshlock.simulate.player import play
from meshlock.trace.writer import TraceWriter

SHOWN = {
    "TOKEN": ("free", "t"),
    "REQUEST": ("priority",),
    "UPDATE": ("priority",),
    "RELEASE": ("returned", "r"),
    "CALL": ("node",),
}
"""Of each kind of message the field that is shown, as the two editions call it."""


def diagram(name, algorithm):
    """Arrows in the order of delivery; LINK only tells heights and is left out."""
    sink = io.BytesIO()
    outcome = play(name, algorithm, TraceWriter(sink, False))
    lines = ["sequenceDiagram"]
    lines += [f"    participant n{node} as {node}" for node in range(outcome.scenario.size)]
    for event in map(json.loads, sink.getvalue().splitlines()[1:]):
        kind, node = event["event"], event.get("node")
        if kind == "request":
            lines.append(f"    note over n{node}: asks, priority {event['priority']}")
        elif kind == "enter":
            lines.append(f"    note over n{node}: enters")
        elif kind == "leave":
            lines.append(f"    note over n{node}: leaves")
        elif kind == "withdraw":
            lines.append(f"    note over n{node}: gives up")
        elif kind in ("link-up", "link-down") and node < event["peer"]:
            what = "forms" if kind == "link-up" else "fails"
            lines.append(f"    note over n{node},n{event['peer']}: link {what}")
        elif kind == "deliver" and event["message"] in SHOWN:
            args = event["args"]
            value = next(args[name] for name in SHOWN[event["message"]] if name in args)
            arrow = "-)" if event["message"] == "TOKEN" else "->>"
            lines.append(f"    n{event['from']}{arrow}n{node}: {event['message']} {value:g}")
    lines += [f"    note over n{node}: waits for ever" for node in outcome.unserved]
    return "\n".join(lines) + "\n"
