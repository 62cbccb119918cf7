"""A trace made quick to look into, however long it is.

A *step* is what one handler did: the line of its cause and the lines of its effects. The
index knows where each step begins in the file and, now and then, everything that was so at
that snapshot; any later snapshot follows from there in few steps. The page is given such a
snapshot and the steps after it (a *window*) and plays them itself, so nobody ever holds the
whole trace.

A trace that is still being written is indexed as its lines come.
"""

from __future__ import annotations

import gc
from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from copy import copy
from pathlib import Path
from tempfile import TemporaryFile
from threading import Lock
from typing import Any, BinaryIO

import msgspec

from meshlock.algorithms.amounts import Kinds
from meshlock.simulate.rerun import with_states
from meshlock.trace.audit import Audit
from meshlock.trace.reader import BadTrace, Trace

NOTHING = msgspec.Raw(b"{}")

Amount = int | dict[str, int]
"""Permits: a number, or one per kind."""


def total(amount: Amount) -> int:
    """Permits of all kinds; the page draws them alike, and its words tell the kinds."""
    return amount if isinstance(amount, int) else sum(amount.values())


class TraceEvent(msgspec.Struct, gc=False):
    """What the index must know of a line; the page reads the line itself."""

    t: float
    event: str
    node: int = -1
    message: str = ""
    id: int = -1
    peer: int = -1
    client: int = -1
    want: Amount = 1
    permits: Amount = 0
    priority: float = 0
    tokens: int = -1
    free: Amount = -1
    x: float = 0
    y: float = 0
    state: dict[str, msgspec.Raw] | None = None
    violated: dict[str, str] | None = None


class SentMessage(msgspec.Struct, gc=False):
    """A message on its way, as its line says."""

    node: int
    to: int
    message: str
    args: msgspec.Raw = NOTHING
    tokens: int = 0
    permits: Amount = 0

    def shown(self) -> dict[str, Any]:
        told = msgspec.structs.asdict(self)
        return {"from": told.pop("node"), **told, "permits": total(self.permits)}


class Snapshot(msgspec.Struct, gc=False):
    """Everything that is so between two steps; copies share what does not change."""

    tokens: dict[int, int] = {}  # nodes that have any
    free: dict[int, int] = {}
    clients: dict[int, tuple[int, int, float, int, int]] = {}
    # by number: node, want, priority, the step of asking and of entering (or -1)
    inside: int = 0  # permits in use
    served: int = 0  # clients that use them
    flying: dict[int, tuple[int, bytes]] = {}  # by number: step of sending, the line
    up: dict[tuple[int, int], None] = {}  # links that were not there at the start
    down: dict[tuple[int, int], None] = {}  # links of the start that have failed
    gone: dict[int, None] = {}  # nodes that have crashed
    variables: list[dict[str, msgspec.Raw]] = []  # where states were recorded

    def copy(self) -> Snapshot:
        return Snapshot(*map(copy, msgspec.structs.astuple(self)))

    def follow(self, event: TraceEvent, step: int, line: bytes) -> None:
        """What this line changes."""
        kind, node = event.event, event.node
        if event.tokens >= 0 and kind != "send":
            self.tokens[node] = event.tokens
        if event.free != -1:
            self.free[node] = total(event.free)
        if event.state is not None and self.variables:
            self.variables[node] = {**self.variables[node], **event.state}
        if kind == "send":
            self.flying[event.id] = (step, line)
        elif kind == "deliver" or kind == "undelivered" or kind == "drop":
            self.flying.pop(event.id, None)
        elif kind == "request":
            self.clients[event.client] = (node, total(event.want), event.priority, step, -1)
        elif kind == "enter":
            before = self.clients.get(event.client, (node, total(event.want), 0.0, step, -1))
            self.clients[event.client] = (*before[:4], step)
            self.inside += before[1]
            self.served += 1
        elif kind == "give-back" and event.client in self.clients:
            place, want, priority, asked, entered = self.clients[event.client]
            self.clients[event.client] = (
                place,
                want - total(event.permits),
                priority,
                asked,
                entered,
            )
            self.inside -= total(event.permits)
        elif kind == "priority" and event.client in self.clients:
            place, want, _, asked, entered = self.clients[event.client]
            self.clients[event.client] = (place, want, event.priority, asked, entered)
        elif kind == "leave" or kind == "withdraw" or kind == "lease-lost":
            client = self.clients.pop(event.client, None)
            if client is not None and client[4] >= 0:
                self.inside -= client[1]
                self.served -= 1
        elif kind == "link-up":
            pair = (node, event.peer) if node < event.peer else (event.peer, node)
            self.down.pop(pair, None)
            self.up[pair] = None
        elif kind == "link-down":
            pair = (node, event.peer) if node < event.peer else (event.peer, node)
            self.up.pop(pair, None)
            self.down[pair] = None
        elif kind == "crash":
            self.gone[node] = None
        elif kind == "restart":
            self.gone.pop(node, None)

    def sent(self) -> Iterator[tuple[int, int, SentMessage]]:
        """What is on its way: its number, the step in which it was sent, and what it is."""
        for number, (step, line) in self.flying.items():
            with suppress(msgspec.ValidationError):  # sent to nobody: there is nothing to draw
                yield number, step, msgspec.json.decode(line, type=SentMessage)

    def shown(self) -> dict[str, Any]:
        """For the page."""
        return {
            "tokens": [[node, count] for node, count in self.tokens.items() if count],
            "free": [[node, count] for node, count in self.free.items() if count],
            "clients": [[number, *client] for number, client in self.clients.items()],
            "flying": [
                {"id": number, "step": step, **sent.shown()} for number, step, sent in self.sent()
            ],
            "up": list(self.up),
            "down": list(self.down),
            "gone": list(self.gone),
            "variables": self.variables,
        }


WINDOW = 256
"""Steps that the page is given at once."""

JUDGED = 100_000
"""Events up to which the properties are judged on the way; longer traces are for `audit`."""

STATED = 8_000_000
"""Bytes up to which a trace without states is given some (see rerun.py)."""

TOO_LONG = "too long to be judged here: use 'meshlock audit'"

LONG_LINE = 200
"""Bytes; states make lines longer still."""

KINDS = 128
"""More kinds of events than this no trace has."""

MOST_MESSAGES = 100
"""Kinds, with those of messages that arrive; any further message is only a ``deliver``."""

CLIENTS = {"request", "enter", "leave", "give-back", "withdraw", "lease-lost"}

EFFECTS = {"send", "enter", "move", "lease", "recover"}


class Way:
    """Where one node was when."""

    def __init__(self) -> None:
        self.times = array("d")
        self.xs = array("d")
        self.ys = array("d")

    def between(self, start: float, end: float) -> list[list[float]]:
        """From its last turn before ``start`` to its first turn after ``end``."""
        first = max(bisect_right(self.times, start) - 1, 0)
        last = min(bisect_right(self.times, end), len(self.times) - 1)
        return [[self.times[i], self.xs[i], self.ys[i]] for i in range(first, last + 1)]


class Course:
    """A number that changes now and then: since which step it is what."""

    def __init__(self) -> None:
        self.steps = array("q", [0])
        self.values = array("q", [0])

    def note(self, step: int, value: int) -> None:
        if self.steps[-1] == step:
            self.values[-1] = value
        elif self.values[-1] != value:
            self.steps.append(step)
            self.values.append(value)

    def most(self, first: int, last: int) -> int:
        """The largest from step ``first`` to step ``last``."""
        start = bisect_right(self.steps, first) - 1
        return max(self.values[start : bisect_right(self.steps, last)])


class TraceJudge(Trace):
    """Stands for the trace while its events are judged one by one, as they come."""

    def __init__(self, setup: dict[str, Any]) -> None:
        self.path = Path("the trace")
        self.lines = iter(())
        self.number = 0
        self.setup = setup
        self.nodes = setup["nodes"]
        self.kinds = None
        if isinstance(setup["permits"], dict):
            self.kinds = Kinds(setup["permits"])
            self.setup = {**setup, "permits": self.kinds.permits}


class Index:
    def __init__(
        self, setup: dict[str, Any], file: BinaryIO, offset: int, judged: bool = True
    ) -> None:
        self.setup = setup
        self.file = file  # only ever read here
        self.lock = Lock()
        self.nodes: int = setup["nodes"]
        self.end = offset
        self.starts = array("q", [offset])  # of every step; step 0 is the set-up
        self.times = array("d", [0.0])
        self.marks = array("q", [-KINDS])  # node * KINDS + number of the kind of its cause
        self.kinds: list[str] = ["start"]
        self.codes: dict[str, int] = {"start": 0}
        self.enters = array("q")  # the steps in which somebody enters
        self.used = Course()  # permits in use
        self.waiting = Course()  # clients that wait
        self.arrivals: dict[int, int] = {}  # message: the step in which it arrived or was lost
        self.paths: defaultdict[int, Way] = defaultdict(Way)
        self.events = 0
        self.violated: list[dict[str, Any]] = []
        self.unjudged = "" if judged else TOO_LONG
        self.now = self.first_snapshot()
        # a snapshot costs as much as there are nodes
        self.apart = max(1024, self.nodes // 4)
        self.snapshots = [self.now.copy()]  # before step 1, 1 + apart, 1 + 2 apart, ...
        self.decode = msgspec.json.Decoder(TraceEvent).decode
        self.audit: Audit | None = None
        if judged:
            try:
                self.audit = Audit(TraceJudge(setup))
            except (TypeError, ValueError):
                self.unjudged = "cannot be judged: its set-up was not written by meshlock"

    def first_snapshot(self) -> Snapshot:
        setup, snapshot = self.setup, Snapshot()
        holder = setup.get("holder", -1)
        if isinstance(holder, int) and holder >= 0:
            if setup.get("balanced"):
                snapshot.tokens[holder] = 1
            snapshot.free[holder] = total(setup["permits"])
        states = setup.get("states")
        if isinstance(states, list) and len(states) == self.nodes:
            text = msgspec.json.encode(states)
            snapshot.variables = msgspec.json.decode(text, type=list[dict[str, msgspec.Raw]])
        return snapshot

    # -- as lines come ------------------------------------------------------------------

    def feed(self, line: bytes) -> None:
        """The next line of the trace."""
        try:
            event = self.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise BadTrace(
                f"Line {self.events + 2} is not an event (was the file cut short?)."
            ) from None
        kind, node = event.event, event.node
        if not -1 <= node < self.nodes:
            raise BadTrace(f"Line {self.events + 2} names a node that does not exist: {node}.")
        self.events += 1
        if kind == "send":  # the most frequent by far
            self.now.flying[event.id] = (len(self.starts) - 1, line)
        else:
            if kind not in EFFECTS:
                self.begin(kind, event)
            self.note(kind, event, line)
        self.end += len(line)
        if self.audit is not None:
            self.judge(self.audit, line)

    def begin(self, kind: str, event: TraceEvent) -> None:
        """A new step."""
        done = len(self.starts) - 1
        if done and done % self.apart == 0:
            self.snapshots.append(self.now.copy())
        if event.message and (kind == "deliver" or kind == "undelivered"):
            told = f"{kind} {event.message}"
            if told in self.codes or len(self.kinds) < MOST_MESSAGES:
                kind = told
        code = self.codes.get(kind)
        if code is None:
            if len(self.kinds) == KINDS:
                raise BadTrace(f"Line {self.events + 1} has an unknown kind of event: {kind}.")
            code = self.codes[kind] = len(self.kinds)
            self.kinds.append(kind)
        if event.t < self.times[done]:
            raise BadTrace(f"Line {self.events + 1} goes back in time, to {event.t:g}.")
        self.starts.append(self.end)
        self.times.append(event.t)
        self.marks.append(event.node * KINDS + code)

    def note(self, kind: str, event: TraceEvent, line: bytes) -> None:
        """Whatever is not sending."""
        step, now = len(self.starts) - 1, self.now
        now.follow(event, step, line)
        if kind == "deliver" or kind == "undelivered" or kind == "drop":
            self.arrivals[event.id] = step
        elif kind == "move":
            path = self.paths[event.node]
            path.times.append(event.t)
            path.xs.append(event.x)
            path.ys.append(event.y)
        elif kind in CLIENTS:
            if kind == "enter":
                self.enters.append(step)
            self.used.note(step, now.inside)
            self.waiting.note(step, len(now.clients) - now.served)
        elif kind == "end" and event.violated:
            self.report_all(event.violated, step - 1)  # that it is over is no step of a node

    def judge(self, audit: Audit, line: bytes) -> None:
        if self.events > JUDGED:
            self.unjudged = TOO_LONG
            self.audit = None
            return
        try:
            audit.event(audit.trace.event(line))
            audit.end()
        except (BadTrace, KeyError, TypeError, ValueError) as error:
            self.unjudged = f"cannot be judged: {error}"
            self.audit = None
        self.report_all(audit.monitor.violated)

    def report_all(self, violated: dict[str, str], step: int = -1) -> None:
        for name, sentence in violated.items():
            self.report(name, sentence, step)

    def report(self, name: str, sentence: str, step: int = -1) -> None:
        if all(found["property"] != name for found in self.violated):
            step = len(self.starts) - 1 if step < 0 else step
            self.violated.append({"property": name, "sentence": sentence, "step": step})

    def whole(self) -> None:
        """No more lines will come."""
        if self.audit is not None and self.setup.get("source") == "check":
            self.audit.end_step()
            self.report_all(self.audit.monitor.violated)

    # -- for the page ---------------------------------------------------------------------

    @property
    def steps(self) -> int:
        """The number of the last step."""
        return len(self.starts) - 1

    def read(self, first: int, last: int) -> list[list[bytes]]:
        """The lines of these steps, both included."""
        first, last = max(first, 0), min(last, self.steps)
        if first > last:
            return []
        start = self.starts[first]
        end = self.starts[last + 1] if last < self.steps else self.end
        with self.lock:
            self.file.seek(start)
            text = self.file.read(end - start)
        bounds = [self.starts[step] - start for step in range(first, last + 1)] + [end - start]
        return [text[bounds[i] : bounds[i + 1]].split(b"\n")[:-1] for i in range(last - first + 1)]

    def snapshot(self, step: int) -> Snapshot:
        """How things are after this step."""
        place = min(max(step - 1, 0) // self.apart, len(self.snapshots) - 1)
        snapshot: Snapshot = self.snapshots[place].copy()
        first = place * self.apart + 1
        for number, lines in enumerate(self.read(first, step), first):
            for line in lines:
                snapshot.follow(self.decode(line), number, line)
        return snapshot

    def window(self, number: int) -> bytes:
        """The snapshot before the window's first step, and its steps as they stand in the file."""
        first = number * WINDOW + 1
        before = self.snapshot(first - 1)
        last = min(first + WINDOW - 1, self.steps)
        steps = self.read(first, last)
        arrivals = {number: self.arrivals.get(number, 0) for number in before.flying}
        for step in range(first, last + 1):
            for line in steps[step - first]:
                if b'"send"' in line:
                    event = self.decode(line)
                    arrivals[event.id] = self.arrivals.get(event.id, 0)
        start = self.times[min(first - 1, self.steps)]
        ended = self.times[min(last + 1, self.steps)]
        head = msgspec.json.encode(
            {
                "first": first,
                "last": last,
                "snapshot": before.shown(),
                "arrivals": list(arrivals.items()),
                "paths": [[node, path.between(start, ended)] for node, path in self.paths.items()],
            }
        )
        body = b",".join(b"[" + b",".join(lines) + b"]" for lines in steps)
        return head[:-1] + b',"steps":[' + body + b"]}"

    def about(self) -> dict[str, Any]:
        setup = {key: value for key, value in self.setup.items() if key != "states"}
        return {
            "setup": setup,
            "steps": self.steps,
            "events": self.events,
            "window": WINDOW,
            "time": self.times[-1],
            "states": bool(self.now.variables),
            "violated": self.violated,
            "unjudged": self.unjudged,
            "bounds": self.bounds(),
            "kinds": self.kinds[1:],
        }

    def bounds(self) -> list[float] | None:
        """The corners of the place where nodes move, if they do."""
        xs = [x for path in self.paths.values() for x in path.xs]
        ys = [y for path in self.paths.values() for y in path.ys]
        return [min(xs), min(ys), max(xs), max(ys)] if xs else None

    def overview(self, parts: int) -> dict[str, Any]:
        """Permits in use and clients waiting, at most, in each of these parts of the run."""
        parts = max(1, min(parts, 2000, self.steps + 1))
        total = self.steps + 1
        cuts = [total * part // parts for part in range(parts + 1)]
        spans = [(cuts[part], max(cuts[part + 1], cuts[part] + 1)) for part in range(parts)]
        return {
            "steps": self.steps,
            "used": [self.used.most(start, end - 1) for start, end in spans],
            "waiting": [self.waiting.most(start, end - 1) for start, end in spans],
        }

    def find(self, after: int, back: bool, kind: str, node: int) -> int:
        """The next step, or the one before, of this kind and node; 0 where there is none."""
        every = self.enters if kind == "enter" else range(1, self.steps + 1)
        steps = every[bisect_right(every, after) :]
        if back:
            steps = every[: bisect_left(every, after)][::-1]
        code = self.codes.get(kind, -1)
        for step in steps:
            place, found = divmod(self.marks[step], KINDS)
            if (node < 0 or place == node) and (kind in ("", "enter") or found == code):
                return step
        return 0


def open_trace(path: Path) -> Index:
    """The index of a whole file."""
    gc.disable()  # it would go through all that has been kept, many times, for nothing
    try:
        return indexed(Trace(path), path)
    finally:
        gc.enable()


def indexed(trace: Trace, path: Path) -> Index:
    setup, stated = trace.setup, None
    size = path.stat().st_size * (10 if path.suffix == ".gz" else 1)
    if "states" not in setup and setup.get("source") in ("simulate", "check") and size < STATED:
        stated = with_states(setup, trace.lines)
        trace = Trace(path)
    if trace.kinds is not None and stated is None:  # as the file says it
        setup = {**setup, "permits": trace.kinds.outward(setup["permits"])}
    if stated is not None or path.suffix == ".gz":
        unpacked: BinaryIO = TemporaryFile()  # noqa: SIM115 - lives as long as the index
        unpacked.writelines(trace.lines if stated is None else stated[1:])
        unpacked.seek(0)
        if stated is not None:
            setup = msgspec.json.decode(stated[0])
        index, lines = Index(setup, unpacked, 0), unpacked
    else:
        lines = path.open("rb")
        first = len(lines.readline())
        judged = size < first + 2 * JUDGED * LONG_LINE
        index = Index(setup, path.open("rb"), first, judged)
    try:
        for line in lines:
            if line[-1] == 10:  # else its writer was stopped in the middle of it
                index.feed(line)
    except BadTrace as error:
        raise BadTrace(f"{path}: {error}") from None
    except OverflowError:
        number = index.events + 1
        raise BadTrace(f"{path}: line {number} has a number that is too large.") from None
    index.whole()
    return index
