"""Draw a sequence diagram: the part of Mermaid's language that the docs and `convert` use."""

from __future__ import annotations

import re

from drawing import INK, LINE, TOKEN, line, lines, picture, rectangle, text, tip, width

MESSAGE = re.compile(r"(\w+)(-->>|->>|-\))(\w+): (.*)")
NOTE = re.compile(r"note over (\w+)(?:,(\w+))?: (.*)", re.IGNORECASE)
ROW = 26
LEAST = 90
"""Pixels from one lifeline to the next, at least."""


def draw(source: str) -> str:
    rows = [row.strip() for row in source.splitlines()[1:] if row.strip()]
    names: dict[str, str] = {}
    for row in rows:
        if found := re.fullmatch(r"participant (\w+) as (.*)", row):
            names[found[1]] = found[2]
    return Sequence(names).drawn([row for row in rows if not row.startswith("participant ")])


class Sequence:
    def __init__(self, names: dict[str, str]) -> None:
        self.names = names
        self.places = {name: place for place, name in enumerate(names)}

    def drawn(self, rows: list[str]) -> str:
        x = self.columns(rows)
        right = x[-1] + self.beyond(rows)
        parts: list[str] = []
        open_frames: list[tuple[float, str]] = []
        y = 46.0
        for row in rows:
            if found := MESSAGE.fullmatch(row):
                y += ROW + LINE * (len(lines(found[4])) - 1)
                parts.append(self.message(found, x, y))
            elif found := NOTE.fullmatch(row):
                high = LINE * len(lines(found[3])) + 5
                first, last = self.places[found[1]], self.places[found[2] or found[1]]
                middle, half = (x[first] + x[last]) / 2, width(found[3]) / 2 + 8
                half = max(half, (x[last] - x[first]) / 2 + 8 if last != first else 0)
                y += 8
                parts.append(rectangle(middle - half, y, 2 * half, high))
                parts.append(text(middle, y + high / 2, found[3]))
                y += high
            elif row.startswith(("loop ", "alt ")):
                y += 14
                open_frames.append((y, row))
                y += 16
            elif row.startswith("else "):
                y += 12
                parts.append(line([(12, y), (right - 12, y)], dash="5 4"))
                y += 14
                parts.append(text(right / 2, y, f"[{row}]", shielded=True))
                y += 4
            elif row == "end":
                y += 12
                top, said = open_frames.pop()
                parts.append(rectangle(12, top, right - 24, y - top, fill="none"))
                parts.append(text(right / 2, top + 12, f"[{said}]", shielded=True))
            else:
                raise ValueError(f"A sequence diagram has a line that is not drawn: {row}")
        bottom = y + 22
        lives = [line([(at, 34), (at, bottom)], dash="2 3") for at in x]
        return picture(right, bottom + 8, [*lives, *self.heads(x), *parts], self.title())

    def title(self) -> str:
        return "Sequence of messages among " + ", ".join(self.names.values())

    def heads(self, x: list[float]) -> list[str]:
        found = []
        for at, name in zip(x, self.names.values(), strict=True):
            half = width(name) / 2 + 12
            found += [rectangle(at - half, 8, 2 * half, 26), text(at, 21, name)]
        return found

    def message(self, found: re.Match[str], x: list[float], y: float) -> str:
        """Tokens are heavier than other messages, answers dashed."""
        start, end = x[self.places[found[1]]], x[self.places[found[3]]]
        token = found[2] == "-)"
        ink = TOKEN if token else INK
        dash = "5 4" if found[2] == "-->>" else ""
        shaft = line([(start, y), (end, y)], dash=dash, thick=token, ink=ink)
        words = text(
            (start + end) / 2,
            y - 10 - LINE * (len(lines(found[4])) - 1) / 2,
            found[4],
            shielded=True,
        )
        return shaft + tip((start, y), (end, y), ink=ink) + words

    def columns(self, rows: list[str]) -> list[float]:
        """Where the lifelines are: as near as the words between them allow."""
        names = list(self.names.values())
        x = [max(width(names[0]) / 2 + 12, self.before(rows)) + 12]
        for place in range(1, len(names)):
            at = x[place - 1] + max(LEAST, (width(names[place - 1]) + width(names[place])) / 2 + 40)
            for first, last, wide in self.spans(rows):
                if last == place:
                    at = max(at, x[first] + wide)
            x.append(at)
        return x

    def spans(self, rows: list[str]) -> list[tuple[int, int, float]]:
        """What needs how much room between which two lifelines."""
        found = []
        for row in rows:
            if message := MESSAGE.fullmatch(row):
                first, last = sorted((self.places[message[1]], self.places[message[3]]))
                found.append((first, last, width(message[4]) + 28))
            elif (note := NOTE.fullmatch(row)) and not note[2]:
                place = self.places[note[1]]
                half = width(note[3]) / 2 + 20
                found += [(place, place + 1, half), (place - 1, place, half)]
        return [span for span in found if span[0] >= 0]

    def before(self, rows: list[str]) -> float:
        return self.margin(rows, next(iter(self.names)))

    def beyond(self, rows: list[str]) -> float:
        name = list(self.names)[-1]
        return max(width(self.names[name]) / 2 + 12, self.margin(rows, name)) + 24

    def margin(self, rows: list[str], name: str) -> float:
        notes = [found for row in rows if (found := NOTE.fullmatch(row)) and found[1] == name]
        return max((width(found[3]) / 2 + 8 for found in notes if not found[2]), default=0)
