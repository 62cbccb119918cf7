"""meshlock audit: judge a trace of any origin."""

from __future__ import annotations

from pathlib import Path

from meshlock.cli.flags import JSON
from meshlock.cli.output import report
from meshlock.errors import Attempt
from meshlock.settings import REQUIRED, argument, option


def audit(
    traces: tuple[Path, ...] = argument(
        REQUIRED,
        "Judge this trace (.jsonl or .jsonl.gz), or all traces that the nodes of one pool wrote.",
        metavar="TRACE...",
    ),
    merged: Path | None = option(None, "Write the merged trace to this file."),
    properties: tuple[str, ...] = option(
        (),
        "Judge this function of your own, too: FILE.py:NAME. For variables of nodes the trace "
        "needs states (simulate --trace-states). May be repeated.",
        "--property",
    ),
    json: bool = JSON,
) -> None:
    """Judge a trace: safety, one token, conservation, order, everybody served.

    Example: meshlock audit run.jsonl
    """
    import tempfile

    from meshlock.trace.files import packing, replacing
    from meshlock.trace.merge import is_part, merge
    from meshlock.trace.reader import Trace

    alone = len(traces) == 1 and not is_part(traces[0])
    if alone and merged is None:
        judge(traces[0], json, properties)
        return
    with tempfile.TemporaryDirectory() as folder:
        whole = merged or Path(folder) / "merged.jsonl"
        with Attempt(f"write {whole}"), replacing(whole) as file, packing(file, whole) as sink:
            if alone:
                sink.writelines(Trace(traces[0]).read())
            else:
                merge(traces, sink, ended=False)
        judge(traces[0] if alone else whole, json, properties)


def judge(trace: Path, json: bool, properties: tuple[str, ...]) -> None:
    from meshlock.properties import leases, monitor
    from meshlock.properties.own import own_name, own_property
    from meshlock.trace.audit import Audit
    from meshlock.trace.reader import Trace
    from meshlock.trace.watched import Watched

    watched = Watched([own_property(name) for name in properties])
    verdict = Audit(Trace(trace))
    violated = verdict.monitor.violated
    if properties:
        for line in Trace(trace).read():
            watched.write(line)
        violated.update(watched.end())
    leased = verdict.leases is not None
    names = leases.NAMES if leased else monitor.NAMES
    names = (*names, *map(own_name, watched.judges))
    counted = verdict.trace.setup.get("source") != "live" if leased else verdict.balanced
    unjudged = [] if counted else ["one-token", "conservation"]
    unjudged += [] if leased or verdict.monitor.ordered else ["order"]
    unjudged += [] if verdict.ended else ["served"]
    record = {
        "trace": str(trace),
        "algorithm": verdict.trace.setup.get("algorithm"),
        "events": verdict.events,
        "requested": verdict.requested,
        "entries": verdict.entries,
        "holds": not violated,
        "violated": violated,
        "not_judged": unjudged,
    }

    def sentence(name: str) -> str:
        if name in violated:
            return f"VIOLATED {violated[name]}"
        if name in unjudged:
            return f"not judged ({'the trace has no end' if name == 'served' else 'not promised'})"
        return "holds"

    heading = f"{trace}: {verdict.events} events, {verdict.entries} entries"
    lines = [heading, *[f"  {name:<13} {sentence(name)}" for name in names]]
    report(json, record, lambda: "\n".join(lines), code=bool(violated))
