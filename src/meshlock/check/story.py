"""A counterexample for people: a numbered story."""

from __future__ import annotations

from meshlock.algorithms.actor import NIL, Enter, Frozen, Lost, Message, Save
from meshlock.algorithms.amounts import Kinds
from meshlock.algorithms.recovery.messages import Inner
from meshlock.algorithms.recovery.records import Durable
from meshlock.check.explorer import Violation
from meshlock.check.model import Act
from meshlock.check.system import System

HAPPENS = {
    "crash": "crashes",
    "die": "stops for good",
    "hang": "has a disk that hangs",
    "write": "has a disk that goes on, and sends what rested on it",
    "restart": "restarts with its disk",
    "forget": "restarts without its disk",
    "slow": "has a clock that misses the next tick",
    "renew": "asks for its lease to be renewed",
    "propose": "proposes an epoch",
    "change": "proposes an epoch with other members or permits",
    "close": "writes the ledger of its epoch",
    "resend": "resends what nobody has acted upon",
}


def said(message: Message, kinds: Kinds | None) -> str:
    if isinstance(message, Inner):
        told = f"{said(message.message, kinds)} of epoch {spelt(message.epoch)}"
        state, left = message.state, message.left
        return told if state is None else f"{told} with {spelt(state)}, lease {left}"
    contents = [shown(value) for value in message.freeze()[1:]]
    if kinds is not None and kinds.several:
        contents = by_kind(message, contents, kinds)
    values = ", ".join(map(" ".join, zip(message.fields, contents, strict=True)))
    return f"{message.kind}({values})"


def by_kind(message: Message, told: list[str], kinds: Kinds) -> list[str]:
    """Amounts of permits as people write them, where the algorithm says which fields are some."""
    values, means = message.freeze()[1:], message.wire
    if len(means) != len(values):
        return told
    return [
        kinds.write(value) if meaning in ("share", "free") and isinstance(value, int) else one
        for one, value, meaning in zip(told, values, means, strict=True)
    ]


def written(act: Act) -> str:
    """What its client wants or keeps."""
    return str(act.want) if act.kinds is None else act.kinds.write(act.want)


def amount(act: Act, permits: int) -> str:
    if act.kinds is not None and act.kinds.several:
        return act.kinds.write(permits)
    return "1 permit" if permits == 1 else f"{permits} permits"


def told_cause(act: Act) -> str:
    """What happens to the node, in a few words."""
    node = f"node {act.node}"
    message = act.message
    if isinstance(message, Message):
        if act.event == "drop":
            return f"{said(message, act.kinds)} from {message.sender} to {act.node} is lost"
        if act.event == "undelivered":
            return (
                f"{node} gets {said(message, act.kinds)} returned, which was for {message.receiver}"
            )
        if act.late:
            return f"{said(message, act.kinds)} from {message.sender} arrives late at {act.node}"
        return f"{node} receives {said(message, act.kinds)} from {message.sender}"
    if act.event == "request":
        permits = amount(act, act.want)
        return f"{node} asks for {permits} with priority {act.priority:.12g} (client {act.client})"
    if act.event == "leave":
        return f"{node} leaves (client {act.client})"
    if act.event == "give-back":
        permits = amount(act, act.released)
        return f"{node} releases {permits} and keeps {written(act)} (client {act.client})"
    if act.event == "priority":
        return f"{node} changes its request to priority {act.priority:.12g} (client {act.client})"
    if act.event == "withdraw":
        return f"{node} withdraws its request (client {act.client})"
    if act.event in ("link-up", "link-down"):
        news = "is up" if act.event == "link-up" else "has failed"
        return f"{node} notices that its link to {act.peer} {news}"
    if act.event in ("break", "return"):
        news = "breaks" if act.event == "break" else "can be used again"
        return f"the link between {act.node} and {act.peer} {news}"
    if act.event == "tick":
        return "a tick passes" if act.node == NIL else f"{node} notices the tick"
    return f"{node} {HAPPENS[act.event]}" if act.event in HAPPENS else f"{node}: {act.event}"


def effects(act: Act) -> list[str]:
    told: list[str] = []
    for effect in act.effects:
        if isinstance(effect, Message):
            told.append(f"sends {said(effect, act.kinds)} to {effect.receiver}")
        elif isinstance(effect, Enter):
            told.append(f"ENTERS (client {effect.client})")
        elif isinstance(effect, Lost):
            told.append(f"LOSES its lease (client {effect.client})")
        elif isinstance(effect, Save):
            assert isinstance(effect.record, Durable)
            told.append(f"writes to disk that it promised {spelt(effect.record.promised)}")
    if act.failure:
        told.append(f"fails: {act.failure}")
    return told


def shown(value: object) -> str:
    return "nil" if value == NIL else spelt(value)


def spelt(value: object) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(spelt(part) for part in value) + "]"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def changes(names: tuple[str, ...], before: Frozen, after: Frozen) -> list[str]:
    """The variables that the step changed, and only those."""
    return [
        f"{name} {shown(old)} -> {shown(new)}"
        for name, old, new in zip(names, before, after, strict=True)
        if old != new
    ]


def acts(model: System, violation: Violation) -> list[list[Act]]:
    """What happens in every step of a violation."""
    return [
        model.explain(state, label)
        for state, label in zip(violation.states, violation.labels, strict=False)
    ]


def changed_by(act: Act) -> list[str]:
    """The variables that an act changed; that time has passed is no news."""
    return [] if act.event == "tick" or not act.names else changes(act.names, act.before, act.after)


def steps(model: System, violation: Violation) -> list[str]:
    """One text per step: what happened; what came of it; what changed."""
    told: list[str] = []
    for step in acts(model, violation):
        parts: list[str] = []
        for act in step:
            text = "; ".join([told_cause(act), *effects(act)])
            if act.choice >= 0:
                text += f"; choice {act.choice}"
            changed = changed_by(act)
            if changed:
                text += f" | {', '.join(changed)}"
            parts.append(text)
        told.append(" / ".join(parts))
    return told


def pages(model: System, violation: Violation) -> list[str]:
    """The same as lines for a terminal, numbered, with what changed underneath."""
    lines = told(acts(model, violation), violation)
    if violation.name == "served" and model.setup.faults is None:
        lines.append("     Nothing can arrive and nobody is inside, yet")
        lines += [f"     {waits}" for waits in left_waiting(model, violation)]
    return lines


def told(steps: list[list[Act]], violation: Violation) -> list[str]:
    lines: list[str] = []
    for number, step in enumerate(steps, start=1):
        if number - 1 == violation.loop:
            lines.append("  -- from here on it goes round for ever --")
        for place, act in enumerate(step):
            head = f"{number:>3}. " if place == 0 else "     "
            lines.append(head + told_cause(act))
            for effect in effects(act):
                lines.append(f"       {effect}")
            changed = changed_by(act)
            if changed:
                lines.append(f"       [{', '.join(changed)}]")
    return lines


def left_waiting(model: System, violation: Violation) -> list[str]:
    """Who waits at the end of a way and should not, in the order of asking."""
    waiting: dict[int, str] = {}
    for step in [model.opening(), *acts(model, violation)]:
        for act in step:
            if act.event in ("request", "priority"):
                waiting[act.client] = waits(act)
            for effect in act.effects:
                if isinstance(effect, Enter):
                    waiting.pop(effect.client, None)
    wronged = model.waiting(violation.states[-1])
    return [text for client, text in waiting.items() if client in wronged]


def waits(act: Act) -> str:
    asked = f"{written(act)} with priority {act.priority:.12g}"
    return f"node {act.node} waits for {asked} (client {act.client})"
