"""Turn a trace into what other tools show: Mermaid, ShiViz, CSV, ITF."""

from __future__ import annotations

import csv
from collections.abc import Callable
from typing import Any, TextIO

import msgspec

from meshlock.algorithms.actor import NIL
from meshlock.trace.reader import CAUSES, UNSAID, Trace, TraceLine
from meshlock.trace.writer import AMOUNTS

MERMAID_ARROWS = 400
"""More arrows than this no Mermaid renderer takes gladly."""


def asked(line: TraceLine) -> str:
    """The priority of a request, and its deadline if it has one."""
    left = line.deadline
    return f"priority {line.priority}" + (f", deadline {left:g} s" if left else "")


def words(line: TraceLine, written: Callable[[int], str] = str) -> str:
    """An event in a few words; amounts of permits as they are ``written``."""
    kind = line.event
    if line.message is not None:
        whom = f" from {line.sender}" if line.to == UNSAID else f" to {line.to}"
        return f"{kind} {message(line)}{whom}"
    if kind == "request":
        return f"request {written(line.want)} with {asked(line)}"
    if kind == "give-back":
        return f"release {written(line.permits)} (client {line.client})"
    if kind == "priority":
        return f"change to {asked(line)} (client {line.client})"
    if kind in ("enter", "leave"):
        return f"{kind} (client {line.client})"
    return f"{kind} {line.peer}" if line.peer != UNSAID else kind


def message(line: TraceLine) -> str:
    """What is sent or arrives, its fields by name, as in the transcript of a scenario."""
    fields = [f"{name}={shown(value)}" for name, value in (line.args or {}).items()]
    return " ".join([line.message, *fields])


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
    arrows, of = 0, trace.written
    notes: dict[str, Callable[[TraceLine], str]] = {
        "request": lambda line: f"wants {of(line.want)} @ {line.priority}",
        "enter": lambda line: "enters" + ("" if line.want == UNSAID else f" with {of(line.want)}"),
        "leave": lambda line: "leaves",
        "give-back": lambda line: f"releases {of(line.permits)}",
        "priority": lambda line: f"priority {line.priority} now",
    }
    for line in trace.events():
        kind, node = line.event, line.node
        if arrows >= MERMAID_ARROWS:
            out.write(f"    note over n0: only the first {MERMAID_ARROWS} messages are shown\n")
            return f"only the first {MERMAID_ARROWS} messages are shown"
        if kind == "deliver":
            arrow = "->>" if line.message != "TOKEN" else "-)"
            out.write(f"    n{line.sender}{arrow}n{node}: {message(line)}\n")
            arrows += 1
        elif kind in notes:
            out.write(f"    note over n{node}: {notes[kind](line)}\n")
        elif kind in ("link-up", "link-down") and node < line.peer:
            change = "forms" if kind == "link-up" else "fails"
            out.write(f"    note over n{node},n{line.peer}: link {change}\n")
        elif kind == "end" and line.unserved:
            out.write(f"    note over n0: {line.unserved} wait for ever\n")
    return ""


SHIVIZ_PATTERN = r"^(?<host>\S*) (?<clock>{.*})\n(?<event>.*)$"


def shiviz(trace: Trace, out: TextIO) -> str:
    """A log with vector clocks, as ShiViz reads it with the pattern on the first line."""
    out.write(f"{SHIVIZ_PATTERN}\n\n")
    clocks: list[dict[str, int]] = [{} for _ in range(trace.nodes)]
    sent: dict[int, dict[str, int]] = {}
    for line in trace.events():
        kind, node = line.event, line.node
        if node == NIL or (kind not in CAUSES and kind not in ("send", "enter")):
            continue
        clock = clocks[node]
        if kind == "deliver":
            for host, count in sent.pop(line.id, {}).items():
                clock[host] = max(count, clock.get(host, 0))
        clock[f"n{node}"] = clock.get(f"n{node}", 0) + 1
        if kind == "send":
            sent[line.id] = dict(clock)
        out.write(f"n{node} {msgspec.json.encode(clock).decode()}\n{words(line, trace.written)}\n")
    return ""


COLUMNS = (
    *("t", "node", "event", "client", "want", "priority", "deadline", "id", "from", "to", "peer"),
    *("message", "args", "tokens", "permits", "free"),
)


def table(trace: Trace, out: TextIO) -> str:
    """One row per event; what has no column of its own is left out."""
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(COLUMNS)
    for text in trace.lines:
        line: dict[str, Any] = trace.decode(text, dict[str, Any])
        if "args" in line:
            line["args"] = msgspec.json.encode(line["args"]).decode()
        for key in AMOUNTS:
            if isinstance(line.get(key), dict):
                line[key] = ",".join([f"{kind}:{count}" for kind, count in line[key].items()])
        rows.writerow([line.get(column, "") for column in COLUMNS])
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
    for line in trace.events():
        if line.event in CAUSES:
            number += 1
            nodes[line.node].update(line.state)
            write(number, f"{line.node}: {words(line, trace.written)}", ",\n")
    out.write("\n]}\n")
    return ""


FORMATS: dict[str, Callable[[Trace, TextIO], str]] = {
    "mermaid": mermaid,
    "shiviz": shiviz,
    "csv": table,
    "itf": itf,
}
"""Each writes the trace to a text file and returns what the reader should know, if anything."""
