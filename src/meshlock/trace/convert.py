"""Turn a trace into what other tools show: Mermaid, ShiViz, CSV, ITF."""

from __future__ import annotations

import csv
from collections.abc import Callable
from typing import Any, TextIO

import msgspec

from meshlock.trace.audit import CAUSES
from meshlock.trace.reader import Trace

MERMAID_ARROWS = 400
"""More arrows than this no Mermaid renderer takes gladly."""


def asked(event: dict[str, Any]) -> str:
    """The priority of a request, and its deadline if it has one."""
    left = event.get("deadline")
    return f"priority {event.get('priority')}" + (f", deadline {left:g} s" if left else "")


def words(event: dict[str, Any]) -> str:
    """An event in a few words."""
    kind = event["event"]
    if "message" in event:
        whom = f" to {event['to']}" if "to" in event else f" from {event.get('from')}"
        return f"{kind} {message(event)}{whom}"
    if kind == "request":
        return f"request {event.get('want')} with {asked(event)}"
    if kind == "give-back":
        return f"release {event.get('permits')} (client {event.get('client')})"
    if kind == "priority":
        return f"change to {asked(event)} (client {event.get('client')})"
    if kind in ("enter", "leave"):
        return f"{kind} (client {event.get('client')})"
    if "peer" in event:
        return f"{kind} {event['peer']}"
    return str(kind)


def message(event: dict[str, Any]) -> str:
    """What is sent or arrives, its fields by name, as in the transcript of a scenario."""
    fields = [f"{name}={shown(value)}" for name, value in event.get("args", {}).items()]
    return " ".join([event["message"], *fields])


def shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "(" + ",".join([shown(part) for part in value]) + ")"
    return f"{value:g}" if isinstance(value, float) else str(value)


def mermaid(trace: Trace, out: TextIO) -> str:
    """A sequence diagram, arrows in the order of delivery."""
    out.write("sequenceDiagram\n")
    names = trace.setup.get("names", range(trace.nodes))
    for node in range(min(trace.nodes, 40)):
        out.write(f"    participant n{node} as {names[node]}\n")
    arrows = 0
    notes: dict[str, Callable[[dict[str, Any]], str]] = {
        "request": lambda event: f"wants {event['want']} @ {event['priority']}",
        "enter": lambda event: f"enters with {event['want']}",
        "leave": lambda event: "leaves",
        "give-back": lambda event: f"releases {event['permits']}",
        "priority": lambda event: f"priority {event['priority']} now",
    }
    for event in trace.events():
        kind, node = event["event"], event.get("node", 0)
        if arrows >= MERMAID_ARROWS:
            out.write(f"    note over n0: only the first {MERMAID_ARROWS} messages are shown\n")
            return f"only the first {MERMAID_ARROWS} messages are shown"
        if kind == "deliver":
            arrow = "->>" if event.get("message") != "TOKEN" else "-)"
            out.write(f"    n{event['from']}{arrow}n{node}: {message(event)}\n")
            arrows += 1
        elif kind in notes:
            out.write(f"    note over n{node}: {notes[kind](event)}\n")
        elif kind in ("link-up", "link-down") and node < event.get("peer", -1):
            line = "forms" if kind == "link-up" else "fails"
            out.write(f"    note over n{node},n{event['peer']}: link {line}\n")
        elif kind == "end" and event.get("unserved"):
            out.write(f"    note over n0: {event['unserved']} wait for ever\n")
    return ""


SHIVIZ_PATTERN = r"^(?<host>\S*) (?<clock>{.*})\n(?<event>.*)$"


def shiviz(trace: Trace, out: TextIO) -> str:
    """A log with vector clocks, as ShiViz reads it with the pattern on the first line."""
    out.write(f"{SHIVIZ_PATTERN}\n\n")
    clocks: list[dict[str, int]] = [{} for _ in range(trace.nodes)]
    sent: dict[int, dict[str, int]] = {}
    for event in trace.events():
        kind, node = event["event"], event.get("node")
        if node is None or kind not in CAUSES | {"send", "enter"}:
            continue
        clock = clocks[node]
        if kind == "deliver":
            for host, count in sent.pop(trace.whole(event, "id"), {}).items():
                clock[host] = max(count, clock.get(host, 0))
        clock[f"n{node}"] = clock.get(f"n{node}", 0) + 1
        if kind == "send":
            sent[trace.whole(event, "id")] = dict(clock)
        out.write(f"n{node} {msgspec.json.encode(clock).decode()}\n{words(event)}\n")
    return ""


COLUMNS = (
    "t",
    "node",
    "event",
    "client",
    "want",
    "priority",
    "deadline",
    "id",
    "from",
    "to",
    "peer",
    "message",
    "args",
    "tokens",
    "permits",
    "free",
)


def table(trace: Trace, out: TextIO) -> str:
    """One row per event; what has no column of its own is left out."""
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(COLUMNS)
    for event in trace.events():
        if "args" in event:
            event["args"] = msgspec.json.encode(event["args"]).decode()
        rows.writerow([event.get(column, "") for column in COLUMNS])
    return ""


def itf(trace: Trace, out: TextIO) -> str:
    """Apalache's JSON: the state of every node after every step, of a trace that has states."""
    nodes: list[dict[str, Any]] = [dict(state) for state in trace.setup["states"]]
    names = [f"node{i}" for i in range(trace.nodes)]
    variables = msgspec.json.encode(["step", *names]).decode()
    meta = msgspec.json.encode({"format": "ITF", "description": "meshlock"}).decode()
    out.write(f'{{"#meta": {meta}, "vars": {variables}, "states": [\n')

    def write(number: int, step: str, separator: str) -> None:
        state: dict[str, Any] = {"#meta": {"index": number}, "step": step}
        state.update(zip(names, nodes, strict=True))
        out.write(separator + msgspec.json.encode(state).decode())

    write(0, "start", "")
    number = 0
    for event in trace.events():
        if event["event"] in CAUSES:
            number += 1
            nodes[event["node"]].update(event.get("state", {}))
            write(number, f"{event['node']}: {words(event)}", ",\n")
    out.write("\n]}\n")
    return ""


FORMATS: dict[str, Callable[[Trace, TextIO], str]] = {
    "mermaid": mermaid,
    "shiviz": shiviz,
    "csv": table,
    "itf": itf,
}
"""Each writes the trace to a text file and returns what the reader should know, if anything."""
