"""A sequence diagram of some steps: as a picture (SVG) and as text (Mermaid)."""

from __future__ import annotations

from html import escape
from typing import Any

import msgspec

from meshlock.web.index import Index

MOST_STEPS = 400
ROW = 26
COLUMN = 110
TOP = 46


def steps(index: Index, first: int, last: int) -> list[list[dict[str, Any]]]:
    first = max(first, 1)
    last = min(last, first + MOST_STEPS - 1)
    return [[msgspec.json.decode(line) for line in lines] for lines in index.read(first, last)]


def named(index: Index, node: int) -> str:
    names = index.setup.get("names")
    if isinstance(names, list) and 0 <= node < len(names):
        return str(names[node])
    return str(node)


def argument(message: dict[str, Any]) -> str:
    """A message and what it carries, short."""
    carried = message.get("args")
    if not isinstance(carried, dict):
        carried = {}
    permits = message.get("permits")
    values = [f"{key} {carried[key]}" for key in ("t", "r", "want", "priority") if key in carried]
    if not values and permits:
        values = [f"{permits} permits"]
    return f"{message.get('message')} {' '.join(values)}".rstrip()


def note(event: dict[str, Any]) -> str:
    """What is said at the node's own line, if anything."""
    kind = event["event"]
    if kind == "request":
        return f"asks for {event.get('want', 1)}, priority {event.get('priority', 0)}"
    if kind == "enter":
        return f"enters with {event.get('want', 1)}"
    if kind == "leave":
        return "leaves"
    if kind == "withdraw":
        return "gives up"
    if kind == "lease-lost":
        return "lease over"
    if kind in ("link-up", "link-down"):
        return f"link to {event.get('peer')} {'forms' if kind == 'link-up' else 'fails'}"
    if kind == "timer":
        return str(event.get("does", kind))
    if kind in ("crash", "restart", "undelivered"):
        return str(kind)
    return ""


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
        taking_part: set[int] = set()
        before = index.moment(max(first, 1) - 1)
        for number, _, sending in before.sent():
            sent[number] = (-1, sending.node, sending.message)
        row = 0
        for lines in steps(index, first, last):
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
                    self.notes.append((row, node, words, kind))
                    taking_part.add(node)
                    if kind == "enter":
                        row += 1
            row += 1
        self.rows = row
        self.open = [(start, sender, words) for start, sender, words in sent.values() if start >= 0]
        self.nodes = sorted(node for node in taking_part if node >= 0)
        self.place = {node: i for i, node in enumerate(self.nodes)}

    # -- SVG ------------------------------------------------------------------------------

    def x(self, node: int) -> int:
        return 60 + self.place.get(node, 0) * COLUMN

    def y(self, row: int) -> int:
        return TOP + 14 + row * ROW if row >= 0 else TOP - 6

    def svg(self) -> str:
        width = 60 + max(len(self.nodes) - 1, 0) * COLUMN + 120
        height = TOP + self.rows * ROW + 24
        out = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" font-family="system-ui, sans-serif" '
            f'font-size="11"><rect width="100%" height="100%" fill="#fdfcfa"/>'
        ]
        for node in self.nodes:
            x, name = self.x(node), escape(named(self.index, node))
            out.append(
                f'<line x1="{x}" y1="{TOP - 14}" x2="{x}" y2="{height - 8}" stroke="#d6d2ca"/>'
                f'<rect x="{x - 20}" y="10" width="40" height="22" rx="11" fill="#22313f"/>'
                f'<text x="{x}" y="25" text-anchor="middle" fill="#fff" font-weight="600">'
                f"{name}</text>"
            )
        for start, sender, end, receiver, words, token in self.arrows:
            out.append(self.arrow(start, sender, end, receiver, words, token))
        for start, sender, end, words in self.lost:
            x, y = self.x(sender), self.y(start)
            out.append(
                f'<line x1="{x}" y1="{y}" x2="{x + 30}" y2="{self.y(end)}" stroke="#b3261e" '
                f'stroke-dasharray="3 3"/><text x="{x + 34}" y="{self.y(end)}" fill="#b3261e">'
                f"{escape(words)} lost</text>"
            )
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

    def arrow(
        self, start: int, sender: int, end: int, receiver: int, words: str, token: bool
    ) -> str:
        x1, y1, x2, y2 = self.x(sender), self.y(start), self.x(receiver), self.y(end)
        colour = "#a35a00" if token else "#5b6770"
        side = 1 if x1 < x2 else -1
        tip = f"{x2},{y2} {x2 - 8 * side},{y2 - 4} {x2 - 8 * side},{y2 + 4}"
        middle, above = (x1 + x2) / 2, (y1 + y2) / 2 - 3
        return (
            f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{colour}" '
            f'stroke-width="{2 if token else 1.2}"/><polygon points="{tip}" fill="{colour}"/>'
            f'<text x="{middle:g}" y="{above:g}" text-anchor="middle" fill="{colour}" '
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
        lines += [f"    {text}" for _, text in sorted(told, key=lambda entry: entry[0])]
        return "\n".join(lines) + "\n"


def plain(words: str) -> str:
    """Nothing that Mermaid takes for an instruction."""
    return "".join(letter if letter.isalnum() or letter in " .,_-" else " " for letter in words)
