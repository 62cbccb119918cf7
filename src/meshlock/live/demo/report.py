"""What the demonstration found, from its trace alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from meshlock.live.demo.run import Demo
from meshlock.properties.monitor import NAMES
from meshlock.trace.audit import Audit
from meshlock.trace.reader import Trace


def figures(path: Path, demo: Demo) -> dict[str, Any]:
    verdict = Audit(Trace(path))
    asked: dict[int, tuple[int, float]] = {}  # client: priority, when
    waits: dict[int, list[float]] = {}
    messages: dict[str, int] = {}
    for event in Trace(path).events():
        if event["event"] == "request":
            asked[event["client"]] = (event["priority"], event["t"])
        elif event["event"] == "enter":
            priority, since = asked.pop(event["client"])
            waits.setdefault(priority, []).append(event["t"] - since)
        elif event["event"] == "send":
            messages[event["message"]] = messages.get(event["message"], 0) + 1
    violated = dict(verdict.monitor.violated)
    if demo.missing:
        violated["conservation"] = f"{demo.missing} message(s) with permits never arrived"
    judged = [name for name in NAMES if name != "neighbours" and name not in violated]
    return {
        "nodes": len(demo.processes),
        "permits": verdict.trace.setup["permits"],
        "entries": verdict.entries,
        "unserved": len(asked),
        "messages": messages,
        "messages_per_entry": sum(messages.values()) / max(1, verdict.entries),
        "waiting_by_priority": {str(p): spread(waits[p]) for p in sorted(waits, reverse=True)},
        "cuts": demo.cuts,
        "holds": not violated,
        "violated": violated,
        "checked": judged,
    }


def spread(values: list[float]) -> dict[str, float]:
    values = sorted(values)
    last = len(values) - 1
    return {
        "entries": len(values),
        "p50": values[last // 2],
        "p95": values[int(last * 0.95)],
        "max": values[last],
    }
