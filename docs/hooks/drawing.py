"""What sequence diagrams and flowcharts share: widths of text, shapes, arrows, and the colours.

Colours are the theme's, so that a diagram is readable by day and by night; elsewhere they are black
on white.
"""

from __future__ import annotations

import re
from html import escape

SIZE = 13
"""Pixels: the height of letters."""
LINE = 17
"""Pixels from one line of text to the next."""
NARROW = frozenset("fijlrt.,:;!|()[]'\"I ")
WIDE = frozenset("mwMW@=+<>")

INK = "var(--md-default-fg-color, #222)"
PAPER = "var(--md-default-bg-color, #fff)"
FILL = "var(--md-code-bg-color, #f3f3f3)"
TOKEN = "var(--md-accent-fg-color, #c33)"


def width(text: str) -> float:
    """Of the longest line, about, and rather too much: fonts differ."""
    return max(sum(map(letter, line)) for line in lines(text))


def letter(sign: str) -> float:
    if sign in NARROW:
        return 0.36 * SIZE
    if sign in WIDE:
        return 0.88 * SIZE
    return (0.72 if sign.isupper() or sign == "_" else 0.58) * SIZE


def lines(text: str) -> list[str]:
    return re.split(r"<br ?/?>", text)


def text(x: float, y: float, content: str, *, shielded: bool = False) -> str:
    """Centred at a point; shielded from the line that it stands on."""
    parts = lines(content)
    top = y - (len(parts) - 1) * LINE / 2 + SIZE * 0.35
    wide, high = width(content) * 0.94, LINE * len(parts)
    shield = (
        f'<rect x="{x - wide / 2:.0f}" y="{y - high / 2:.0f}" width="{wide:.0f}"'
        f' height="{high:.0f}" fill="{PAPER}" fill-opacity="0.9"/>'
    )
    return (shield if shielded else "") + "".join(
        f'<text x="{x:.0f}" y="{top + LINE * row:.0f}">{escape(part)}</text>'
        for row, part in enumerate(parts)
    )


def rectangle(
    x: float,
    y: float,
    w: float,
    h: float,
    *,
    corner: float = 3,
    fill: str = FILL,
    dashed: bool = False,
) -> str:
    dash = ' stroke-dasharray="5 4"' if dashed else ""
    return (
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{w:.0f}" height="{h:.0f}" rx="{corner:.0f}"'
        f' fill="{fill}" stroke="{INK}"{dash}/>'
    )


def line(
    points: list[tuple[float, float]], *, dash: str = "", thick: bool = False, ink: str = INK
) -> str:
    """A broken line."""
    path = " ".join(f"{x:.0f},{y:.0f}" for x, y in points)
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<polyline points="{path}" fill="none" stroke="{ink}"'
        f' stroke-width="{2.4 if thick else 1.2}"{dashes}/>'
    )


def tip(start: tuple[float, float], end: tuple[float, float], *, ink: str = INK) -> str:
    """The head of an arrow that comes from start."""
    (x0, y0), (x1, y1) = start, end
    far = max(((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5, 0.01)
    ux, uy = (x1 - x0) / far, (y1 - y0) / far
    back, side = 8, 3.5
    corners = [
        (x1, y1),
        (x1 - back * ux - side * uy, y1 - back * uy + side * ux),
        (x1 - back * ux + side * uy, y1 - back * uy - side * ux),
    ]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
    return f'<polygon points="{path}" fill="{ink}"/>'


def picture(w: float, h: float, parts: list[str], title: str) -> str:
    """One line: a blank one would end the block of HTML in Markdown."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w:.0f} {h:.0f}" role="img"'
        f' style="display:block;width:{w:.0f}px;min-width:{0.5 * w:.0f}px;max-width:100%;'
        f'height:auto" aria-label="{escape(title)}"'
        f' font-size="{SIZE}" font-family="sans-serif" text-anchor="middle" fill="{INK}">'
        + "".join(parts)
        + "</svg>"
    )
