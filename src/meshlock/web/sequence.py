"""A sequence diagram of some steps, as a picture (SVG)."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

import msgspec

from meshlock.properties.sentences import counted
from meshlock.web.index import Index, total

MOST_STEPS = 400
ROW = 26
COLUMN = 110
LEFT = 96
"""Pixels: the numbers of the steps stand left of the first node."""
TOP = 46
LETTER = 6.3
"""Pixels that a letter takes, about."""


INK, GREY, RED, AMBER, PAPER = "#22313f", "#5b6770", "#b3261e", "#a35a00", "#fdfcfa"
COLOURS = {"enter": "#1c7c54", "request": "#2457b3", "link-down": RED}
"""Of notes, by the kind of their event; others are grey."""
HALO = {"stroke": PAPER, "stroke-width": 3, "paint-order": "stroke"}


def named(index: Index, node: int) -> str:
    names = index.setup.get("names")
    if isinstance(names, list) and 0 <= node < len(names):
        return str(names[node])
    return str(node)


def number_text(value: Any) -> str:
    """A number without needless digits."""
    if isinstance(value, dict):  # permits of several kinds
        return " and ".join(f"{count} {kind}" for kind, count in value.items())
    return f"{value:g}" if isinstance(value, float) else str(value)


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
        values = [counted(total(permits), "permit")]
    return f"{message.get('message')} {' '.join(values)}".rstrip()


def note(event: dict[str, Any]) -> str:
    """What is said at the node's own line, if anything."""
    kind, want = event["event"], number_text(event.get("want", 1))
    priority = f"priority {number_text(event.get('priority', 0))}"
    notes = {
        "request": f"asks for {want}, {priority}",
        "enter": f"enters with {want}",
        "leave": "leaves",
        "give-back": f"releases {number_text(event.get('permits'))}",
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


@dataclass
class SentArrow:
    """A message: from the row where it was sent, or -1, to the row where it arrived or was lost."""

    start: int
    sender: int
    words: str
    end: int = -1
    receiver: int = -1  # nobody, if it was lost
    token: bool = False


class Diagram:
    """The nodes that take part, the arrows (from row to row) and the notes."""

    def __init__(self, index: Index, first: int, last: int) -> None:
        self.index = index
        first = max(first, 1)
        self.sent = {
            number: SentArrow(-1, sending.node, sending.message)
            for number, _, sending in index.snapshot(first - 1).sent()
        }
        self.arrows: list[SentArrow] = []
        self.lost: list[SentArrow] = []
        self.notes: list[tuple[int, int, str, str]] = []  # row, node, words, kind
        self.numbers: list[tuple[int, int]] = []  # row, step
        self.wrong: list[tuple[int, str]] = []  # row, what is violated there
        self.taking_part: set[int] = set()
        self.rows = 0
        steps = index.read(first, min(last, first + MOST_STEPS - 1))
        for step, lines in enumerate(steps, first):
            self.numbers.append((self.rows, step))
            for line in lines:
                self.add(msgspec.json.decode(line))
            for found in index.violated:
                if found["step"] == step:
                    self.rows += 1
                    self.wrong.append((self.rows, f"{found['property']} is violated"))
            self.rows += 1
        self.nodes = sorted(node for node in self.taking_part if node >= 0)
        self.place = {node: i for i, node in enumerate(self.nodes)}
        labels = [one.words for one in self.arrows] + [words for _, _, words, _ in self.notes]
        self.column = max([COLUMN, *(round(len(words) * LETTER) + 30 for words in labels)])
        self.column = min(self.column, 3 * COLUMN)

    def add(self, event: dict[str, Any]) -> None:
        kind, node, number = event["event"], event.get("node", -1), event.get("id", -1)
        if kind == "send":
            self.sent[number] = SentArrow(self.rows, node, argument(event))
            self.taking_part |= {node, end(event, "to")}
        elif kind == "deliver":
            arrow = self.sent.pop(number, None) or SentArrow(-1, end(event, "from"), "")
            arrow.words = arrow.words or argument(event)
            arrow.end, arrow.receiver = self.rows, node
            arrow.token = event.get("message") == "TOKEN"
            self.arrows.append(arrow)
            self.taking_part |= {node, arrow.sender}
        elif kind == "drop" and number in self.sent:
            self.lost.append(self.sent.pop(number))
            self.lost[-1].end = self.rows
        elif words := note(event):
            self.rows += kind == "enter"  # what is said of the cause stands in the row before
            self.notes.append((self.rows, node, words, kind))
            self.taking_part.add(node)

    def missing(self) -> str:
        """Which nodes have no line, and why."""
        absent = [node for node in range(self.index.nodes) if node not in self.taking_part]
        names = [named(self.index, node) for node in absent[:12]]
        more = f" and {len(absent) - 12} more" if len(absent) > 12 else ""
        one = len(absent) == 1
        who = f"{'Node' if one else 'Nodes'} {', '.join(names)}{more}"
        return f"{who} {'takes' if one else 'take'} no part in these steps." if names else ""

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
            f'font-size="11">',
            shape("rect", width="100%", height="100%", fill=PAPER),
        ]
        for node in self.nodes:
            x, name = self.x(node), named(self.index, node)
            half = max(20, round(len(name) * LETTER / 2) + 10)
            out += [
                shape("line", x1=x, y1=TOP - 14, x2=x, y2=height - 28, stroke="#d6d2ca"),
                shape("rect", x=x - half, y=10, width=2 * half, height=22, rx=11, fill=INK),
                text(x, 25, name, "#fff", **{"text-anchor": "middle", "font-weight": 600}),
            ]
        out += [part for arrow in self.arrows for part in self.arrow(arrow)]
        out += [self.label(arrow) for arrow in self.arrows]
        for one in self.lost:
            x, y = self.x(one.sender), self.y(one.end)
            dashes = {"stroke": RED, "stroke-dasharray": "3 3"}
            out.append(shape("line", x1=x, y1=self.y(one.start), x2=x + 30, y2=y, **dashes))
            out.append(text(x + 34, y, f"{one.words} lost", RED))
        out += [text(12, self.y(row) + 4, str(step), GREY) for row, step in self.numbers]
        for row, words in self.wrong:
            y = self.y(row)
            out.append(shape("rect", x=0, y=y - ROW // 2, width=width, height=ROW, fill="#fbe4e1"))
            out.append(text(LEFT + 8, y + 4, words, RED, **{"font-weight": 600}))
        if words := self.missing():
            out.append(text(12, height - 10, words, GREY))
        for row, node, words, kind in self.notes:
            x, y, colour = self.x(node), self.y(row), COLOURS.get(kind, GREY)
            out.append(shape("circle", cx=x, cy=y, r=4, fill=colour))
            out.append(text(x + 8, y + 4, words, colour, **HALO))
        return "".join([*out, "</svg>\n"])

    def arrow(self, one: SentArrow) -> list[str]:
        x1, y1 = self.x(one.sender), self.y(one.start)
        x2, y2 = self.x(one.receiver), self.y(one.end)
        colour, side = AMBER if one.token else GREY, 1 if x1 < x2 else -1
        tip = f"{x2},{y2} {x2 - 8 * side},{y2 - 4} {x2 - 8 * side},{y2 + 4}"
        look = {"stroke": colour, "stroke-width": 2 if one.token else 1.2}
        line = shape("line", x1=x1, y1=y1, x2=x2, y2=y2, **look)
        return [line, shape("polygon", points=tip, fill=colour)]

    def label(self, one: SentArrow) -> str:
        """Under the tip, in the row that is its own: no two labels meet, and no arrow is above."""
        x, right = self.x(one.receiver), self.x(one.sender) < self.x(one.receiver)
        look = {"text-anchor": "end" if right else "start", **HALO}
        colour = AMBER if one.token else GREY
        return text(x - 12 if right else x + 12, self.y(one.end) + 12, one.words, colour, **look)


def shape(kind: str, /, **attributes: Any) -> str:
    written = "".join(f' {name}="{value}"' for name, value in attributes.items())
    return f"<{kind}{written}/>"


def text(x: float, y: float, words: str, colour: str, **attributes: Any) -> str:
    opened = shape("text", x=x, y=y, fill=colour, **attributes).removesuffix("/>")
    return f"{opened}>{escape(words)}</text>"
