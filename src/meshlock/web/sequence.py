"""A sequence diagram of some steps: as a picture (SVG) and as text (Mermaid)."""

from __future__ import annotations

from html import escape
from typing import Any

import msgspec

from meshlock.web.index import Index

MOST_STEPS = 400
ROW = 26
COLUMN = 110
LEFT = 96
"""Pixels: the numbers of the steps stand left of the first node."""
TOP = 46
LETTER = 6.3
"""Pixels that a letter takes, about."""


def steps(index: Index, first: int, last: int) -> list[list[dict[str, Any]]]:
    first = max(first, 1)
    last = min(last, first + MOST_STEPS - 1)
    return [[msgspec.json.decode(line) for line in lines] for lines in index.read(first, last)]


def named(index: Index, node: int) -> str:
    names = index.setup.get("names")
    if isinstance(names, list) and 0 <= node < len(names):
        return str(names[node])
    return str(node)


def number_text(value: Any) -> str:
    """A number without needless digits."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def counted(permits: Any) -> str:
    return "1 permit" if permits == 1 else f"{permits} permits"


def argument(message: dict[str, Any]) -> str:
    """A message and what it carries, short."""
    carried = message.get("args")
    if not isinstance(carried, dict):
        carried = {}
    permits = message.get("permits")
    values = [
        f"{key} {number_text(carried[key])}"
        for key in ("t", "r", "want", "priority")
        if key in carried
    ]
    if not values and permits:
        values = [counted(permits)]
    return f"{message.get('message')} {' '.join(values)}".rstrip()


def note(event: dict[str, Any]) -> str:
    """What is said at the node's own line, if anything."""
    kind, want = event["event"], event.get("want", 1)
    priority = f"priority {number_text(event.get('priority', 0))}"
    notes = {
        "request": f"asks for {want}, {priority}",
        "enter": f"enters with {want}",
        "leave": "leaves",
        "give-back": f"releases {event.get('permits')}",
        "priority": f"{priority} now",
        "withdraw": "gives up",
        "lease-lost": "lease over",
        "link-up": f"link to {event.get('peer')} forms",
        "link-down": f"link to {event.get('peer')} fails",
        "timer": str(event.get("does", kind)),
        **{name: name for name in ("crash", "restart", "undelivered")},
    }
    return notes.get(kind, "")


def end(event: dict[str, Any], key: str) -> int:
    """The node at the other end, as far as the line says."""
    node = event.get(key)
    return node if isinstance(node, int) else -1


class Diagram:
    """The nodes that take part, the arrows (from row to row) and the notes."""

    def __init__(self, index: Index, first: int, last: int) -> None:
        self.index = index
        sent: dict[int, tuple[int, int, str]] = {}  # message: row, sender, its words
        self.arrows: list[tuple[int, int, int, int, str, bool]] = []
        self.notes: list[tuple[int, int, str, str]] = []  # row, node, words, kind
        self.lost: list[tuple[int, int, int, str]] = []
        self.numbers: list[tuple[int, int]] = []  # row, step
        self.wrong: list[tuple[int, str]] = []  # row, what is violated there
        taking_part: set[int] = set()
        before = index.snapshot(max(first, 1) - 1)
        for number, _, sending in before.sent():
            sent[number] = (-1, sending.node, sending.message)
        row = 0
        for step, lines in enumerate(steps(index, first, last), max(first, 1)):
            self.numbers.append((row, step))
            for event in lines:
                kind, node = event["event"], event.get("node", -1)
                if kind == "send":
                    sent[event.get("id", -1)] = (row, node, argument(event))
                    taking_part |= {node, end(event, "to")}
                elif kind == "deliver":
                    start, sender, words = sent.pop(
                        event.get("id", -1), (-1, end(event, "from"), "")
                    )
                    token = event.get("message") == "TOKEN"
                    words = words or argument(event)
                    self.arrows.append((start, sender, row, node, words, token))
                    taking_part |= {node, sender}
                elif kind == "drop" and event.get("id") in sent:
                    start, sender, words = sent.pop(event["id"])
                    self.lost.append((start, sender, row, words))
                elif words := note(event):
                    row += kind == "enter"  # what is said of the cause stands in the row before
                    self.notes.append((row, node, words, kind))
                    taking_part.add(node)
            for found in index.violated:
                if found["step"] == step:
                    row += 1
                    self.wrong.append((row, f"{found['property']} is violated"))
            row += 1
        self.rows = row
        self.open = [(start, sender, words) for start, sender, words in sent.values() if start >= 0]
        self.nodes = sorted(node for node in taking_part if node >= 0)
        self.place = {node: i for i, node in enumerate(self.nodes)}
        self.absent = [node for node in range(index.nodes) if node not in taking_part]
        labels = [words for *_, words, _ in self.arrows] + [words for *_, words, _ in self.notes]
        self.column = max([COLUMN, *(round(len(words) * LETTER) + 30 for words in labels)])
        self.column = min(self.column, 3 * COLUMN)

    def missing(self) -> str:
        """Which nodes have no line, and why."""
        names = [named(self.index, node) for node in self.absent[:12]]
        more = f" and {len(self.absent) - 12} more" if len(self.absent) > 12 else ""
        one = len(self.absent) == 1
        who = f"{'Node' if one else 'Nodes'} {', '.join(names)}{more}"
        return f"{who} {'takes' if one else 'take'} no part in these steps." if names else ""

    # -- SVG ------------------------------------------------------------------------------

    def x(self, node: int) -> int:
        return LEFT + self.place.get(node, 0) * self.column

    def y(self, row: int) -> int:
        return TOP + 14 + row * ROW if row >= 0 else TOP - 6

    def svg(self) -> str:
        width = LEFT + max(len(self.nodes), 1) * self.column + 30
        height = TOP + self.rows * ROW + 44
        out = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" font-family="system-ui, sans-serif" '
            f'font-size="11"><rect width="100%" height="100%" fill="#fdfcfa"/>'
        ]
        for node in self.nodes:
            x, name = self.x(node), escape(named(self.index, node))
            half = max(20, round(len(named(self.index, node)) * LETTER / 2) + 10)
            out.append(
                f'<line x1="{x}" y1="{TOP - 14}" x2="{x}" y2="{height - 28}" stroke="#d6d2ca"/>'
                f'<rect x="{x - half}" y="10" width="{2 * half}" height="22" rx="11" '
                f'fill="#22313f"/>'
                f'<text x="{x}" y="25" text-anchor="middle" fill="#fff" font-weight="600">'
                f"{name}</text>"
            )
        for start, sender, end, receiver, _, token in self.arrows:
            out.append(self.arrow(start, sender, end, receiver, token))
        for _, sender, end, receiver, words, token in self.arrows:
            out.append(self.label(sender, end, receiver, words, token))
        for start, sender, end, words in self.lost:
            x, y = self.x(sender), self.y(start)
            out.append(
                f'<line x1="{x}" y1="{y}" x2="{x + 30}" y2="{self.y(end)}" stroke="#b3261e" '
                f'stroke-dasharray="3 3"/><text x="{x + 34}" y="{self.y(end)}" fill="#b3261e">'
                f"{escape(words)} lost</text>"
            )
        for row, step in self.numbers:
            out.append(f'<text x="12" y="{self.y(row) + 4}" fill="#5b6770">{step}</text>')
        for row, words in self.wrong:
            y = self.y(row)
            out.append(
                f'<rect x="0" y="{y - ROW / 2:g}" width="{width}" height="{ROW}" fill="#fbe4e1"/>'
                f'<text x="{LEFT + 8}" y="{y + 4}" fill="#b3261e" font-weight="600">'
                f"{escape(words)}</text>"
            )
        if words := self.missing():
            out.append(f'<text x="12" y="{height - 10}" fill="#5b6770">{escape(words)}</text>')
        colours = {"enter": "#1c7c54", "leave": "#5b6770", "request": "#2457b3"}
        for row, node, words, kind in self.notes:
            x, y = self.x(node), self.y(row)
            colour = colours.get(kind, "#b3261e" if "down" in kind else "#5b6770")
            out.append(
                f'<circle cx="{x}" cy="{y}" r="4" fill="{colour}"/>'
                f'<text x="{x + 8}" y="{y + 4}" fill="{colour}" stroke="#fdfcfa" '
                f'stroke-width="3" paint-order="stroke">{escape(words)}</text>'
            )
        out.append("</svg>\n")
        return "".join(out)

    def arrow(self, start: int, sender: int, end: int, receiver: int, token: bool) -> str:
        x1, y1, x2, y2 = self.x(sender), self.y(start), self.x(receiver), self.y(end)
        colour = "#a35a00" if token else "#5b6770"
        side = 1 if x1 < x2 else -1
        tip = f"{x2},{y2} {x2 - 8 * side},{y2 - 4} {x2 - 8 * side},{y2 + 4}"
        return (
            f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{colour}" '
            f'stroke-width="{2 if token else 1.2}"/><polygon points="{tip}" fill="{colour}"/>'
        )

    def label(self, sender: int, end: int, receiver: int, words: str, token: bool) -> str:
        """Under the tip, in the row that is its own: no two labels meet, and no arrow is above."""
        x, right = self.x(receiver), self.x(sender) < self.x(receiver)
        return (
            f'<text x="{x - 12 if right else x + 12}" y="{self.y(end) + 12}" '
            f'text-anchor="{"end" if right else "start"}" '
            f'fill="{"#a35a00" if token else "#5b6770"}" '
            f'stroke="#fdfcfa" stroke-width="3" paint-order="stroke">{escape(words)}</text>'
        )

    # -- Mermaid ----------------------------------------------------------------------------

    def mermaid(self) -> str:
        lines = ["sequenceDiagram"]
        for node in self.nodes:
            name = plain(named(self.index, node))
            lines.append(f"    participant n{node} as {name}")
        told = [
            (end, f"n{sender}{'-)' if token else '->>'}n{receiver}: {plain(words)}")
            for _, sender, end, receiver, words, token in self.arrows
        ]
        told += [(row, f"note over n{node}: {plain(words)}") for row, node, words, _ in self.notes]
        told += [(row, f"n{s}-xn{s}: {plain(words)} lost") for _, s, row, words in self.lost]
        if self.nodes:
            ends = f"n{self.nodes[0]},n{self.nodes[-1]}"
            told += [(row, f"note over {ends}: {plain(words)}") for row, words in self.wrong]
            if words := self.missing():
                told.append((self.rows, f"note over {ends}: {plain(words)}"))
        lines += [f"    {text}" for _, text in sorted(told, key=lambda entry: entry[0])]
        return "\n".join(lines) + "\n"


def plain(words: str) -> str:
    """Nothing that Mermaid takes for an instruction."""
    return "".join(letter if letter.isalnum() or letter in " .,_-" else " " for letter in words)
