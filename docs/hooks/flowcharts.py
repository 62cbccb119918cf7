"""Draw a flowchart: the part of Mermaid's language that the docs use.

Boxes are placed in ranks: each below (or right of) those that lead to it, as near to them as there
is room. A group is placed within itself first, and is one box for what is around it. An arrow that
passes a rank has a place in it, so that it crosses no box.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise

from drawing import LINE, SIZE, line, lines, picture, rectangle, text, tip, width

NODE = re.compile(
    r"(?P<name>\w+)(?:"
    r'\[\("(?P<store>[^"]*)"\)\]|\(\((?P<circle>[^)]*)\)\)|\[\[(?P<double>[^]]*)\]\]'
    r'|\["(?P<quoted>[^"]*)"\]|\[(?P<plain>[^]]*)\])?'
)
ARROW = re.compile(
    r" *(?P<back><)?(?:--|-\.|==)"
    r'(?: (?:"(?P<quoted>[^"]+)"|(?P<words>[^">]+?)) (?=--|\.-|==))?'
    r"(?:-->|->|--|-|\.->|==>|=>|>)? *"
)
GROUP = re.compile(r"subgraph (\w+) ?\[\"?([^]\"]*)\"?\]")
RANKS_APART = 44
APART = 26
EDGE = 14
"""Pixels between the border of a group and what is in it."""

Point = tuple[float, float]


@dataclass
class Box:
    name: str
    words: str = ""
    shape: str = "plain"
    group: Box | None = None
    across: bool = False
    """Of a group: do its ranks follow each other from left to right?"""
    mirrored: bool = False
    """... from right to left?"""
    inside: list[Box] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)
    """Of a group: those between its boxes."""
    x: float = 0
    y: float = 0
    w: float = 0
    h: float = 0

    @property
    def middle(self) -> Point:
        return self.x + self.w / 2, self.y + self.h / 2

    def chain(self) -> list[Box]:
        """From the whole picture down to itself."""
        return [*(self.group.chain() if self.group else []), self]

    def move(self, dx: float, dy: float) -> None:
        self.x += dx
        self.y += dy
        for box in self.inside:
            box.move(dx, dy)
        for arrow in self.arrows:
            arrow.over = [(x + dx, y + dy) for x, y in arrow.over]

    def border(self, towards: Point, across: bool, shift: Point) -> Point:
        """Where an arrow leaves the box: a circle straight on, another in the middle of a side."""
        (x, y), (to_x, to_y) = self.middle, towards
        if self.shape == "circle":
            far = max(((to_x - x) ** 2 + (to_y - y) ** 2) ** 0.5, 0.01)
            return x + (to_x - x) / far * self.w / 2, y + (to_y - y) / far * self.h / 2
        if across:
            return x + (self.w / 2 if to_x > x else -self.w / 2), y + shift[1]
        return x + shift[0], y + (self.h / 2 if to_y > y else -self.h / 2)


@dataclass
class Arrow:
    start: Box
    end: Box
    words: str
    dash: str
    thick: bool
    heads: tuple[bool, bool]
    """At its start, and at its end."""
    over: list[Point] = field(default_factory=list)
    """What it passes on its way."""
    shift: Point = (0, 0)
    across: bool = False


class Chart:
    def __init__(self, source: str) -> None:
        first, *rows = [row.strip() for row in source.splitlines() if row.strip()]
        direction = first.split()[1]
        self.whole = Box("", across=direction in ("LR", "RL"), mirrored=direction == "RL")
        self.boxes: dict[str, Box] = {}
        self.arrows: list[Arrow] = []
        group = self.whole
        for row in rows:
            if found := GROUP.fullmatch(row):
                group = self.box(found[1], group)
                group.words, group.shape = found[2], "group"
                assert group.group is not None
                group.across, group.mirrored = group.group.across, group.group.mirrored
            elif row == "end":
                assert group.group is not None
                group = group.group
            elif row.startswith("direction "):
                group.across, group.mirrored = row.endswith("LR"), False
            else:
                self.chain(row, group)

    def box(self, name: str, group: Box) -> Box:
        if name not in self.boxes:
            self.boxes[name] = Box(name, name, group=group)
            group.inside.append(self.boxes[name])
        return self.boxes[name]

    def chain(self, row: str, group: Box) -> None:
        """One line: boxes, and arrows between them."""
        at, last, arrow = 0, None, None
        while at < len(row):
            found = NODE.match(row, at)
            if found is None:
                raise ValueError(f"A flowchart has a line that is not drawn: {row}")
            box = self.box(found["name"], group)
            for shape in ("store", "circle", "double", "quoted", "plain"):
                if found[shape] is not None:
                    box.words, box.shape = found[shape], shape
            if last is not None and arrow is not None:
                drawn = arrow[0]
                self.arrows.append(
                    Arrow(
                        last,
                        box,
                        arrow["quoted"] or arrow["words"] or "",
                        "5 4" if "-." in drawn else "",
                        "==" in drawn,
                        (arrow["back"] is not None, ">" in drawn.replace("<", "")),
                    )
                )
            at, last = found.end(), box
            arrow = ARROW.match(row, at)
            if arrow is None and row[at:].strip():
                raise ValueError(f"A flowchart has a line that is not drawn: {row}")
            at = arrow.end() if arrow else len(row)

    def drawn(self) -> str:
        self.place(self.whole)
        parts: list[str] = []
        self.show(self.whole, parts)
        shafts = [self.shaft(arrow) for arrow in self.arrows]
        parts += [shaft for shaft, _ in shafts] + [words for _, words in shafts]
        groups = [box for box in self.boxes.values() if box.shape == "group"]
        parts += [text(box.x + box.w / 2, box.y + 14, box.words, shielded=True) for box in groups]
        said = [" ".join(lines(box.words)) for box in self.boxes.values() if box.shape != "group"]
        return picture(self.whole.w, self.whole.h, parts, "Diagram: " + "; ".join(said))

    def show(self, box: Box, parts: list[str]) -> None:
        if box.shape == "group":
            parts.append(rectangle(box.x, box.y, box.w, box.h, fill="none", dashed=True))
        elif box.group is not None:
            rounded = {"circle": box.w / 2, "store": 14}.get(box.shape, 3)
            parts.append(rectangle(box.x, box.y, box.w, box.h, corner=rounded))
            if box.shape == "double":
                parts.append(rectangle(box.x + 4, box.y, box.w - 8, box.h, corner=0, fill="none"))
            parts.append(text(*box.middle, box.words))
        for inner in box.inside:
            self.show(inner, parts)

    def shaft(self, arrow: Arrow) -> tuple[str, str]:
        """The line with its heads, and its words apart: these are drawn over all lines."""
        via = [(x + arrow.shift[0], y + arrow.shift[1]) for x, y in arrow.over]
        first = arrow.over[0] if arrow.over else arrow.end.middle
        last = arrow.over[-1] if arrow.over else arrow.start.middle
        points = [
            arrow.start.border(first, arrow.across, arrow.shift),
            *via,
            arrow.end.border(last, arrow.across, arrow.shift),
        ]
        drawn = line(points, dash=arrow.dash, thick=arrow.thick)
        if arrow.heads[1]:
            drawn += tip(points[-2], points[-1])
        if arrow.heads[0]:
            drawn += tip(points[1], points[0])
        if not arrow.words:
            return drawn, ""
        (x0, y0), (x1, y1) = points[len(points) // 2 - 1 : len(points) // 2 + 1]
        return drawn, text((x0 + x1) / 2, (y0 + y1) / 2, arrow.words, shielded=True)

    def place(self, group: Box) -> None:
        """Give the boxes of a group their places, and the group its size."""
        for box in group.inside:
            if box.shape == "group":
                self.place(box)
            else:
                box.w = width(box.words) + 24
                box.h = LINE * len(lines(box.words)) + 16
                if box.shape == "circle":
                    box.w = box.h = max(box.w - 8, box.h)
        lifted = self.lifted(group)
        group.arrows = [arrow for arrow, _, _ in lifted]
        Ranks(group, lifted).place()
        spots = [(box.x, box.y, box.w, box.h) for box in group.inside]
        for arrow in group.arrows:
            w, h = (width(arrow.words), LINE * len(lines(arrow.words))) if arrow.words else (0, 0)
            spots += [(x - w / 2, y - h / 2, w, h) for x, y in arrow.over]
        head = LINE + 8 if group.shape == "group" else 0
        group.w = max(x + w for x, _, w, _ in spots) - min(x for x, *_ in spots) + 2 * EDGE
        group.h = (
            max(y + h for _, y, _, h in spots) - min(y for _, y, *_ in spots) + 2 * EDGE + head
        )
        least = width(group.words) + 2 * EDGE if group.words else 0
        left = EDGE + max(least - group.w, 0) / 2
        group.w = max(group.w, least)
        x, y = group.x, group.y
        group.move(left - min(x for x, *_ in spots), EDGE + head - min(y for _, y, *_ in spots))
        group.x, group.y = x, y

    def lifted(self, group: Box) -> list[tuple[Arrow, Box, Box]]:
        """The arrows between two boxes of a group, or between what is in these."""
        found = []
        for arrow in self.arrows:
            ends = [
                next((box for box in end.chain() if box.group is group), None)
                for end in (arrow.start, arrow.end)
            ]
            if ends[0] is not None and ends[1] is not None and ends[0] is not ends[1]:
                found.append((arrow, ends[0], ends[1]))
        return found


@dataclass(eq=False)
class Place:
    """Of a box, or of an arrow that passes a rank: along the ranks, and across them."""

    box: Box | None
    rank: int
    along: float
    across: float
    at: float = 0
    """Its middle, within its rank."""
    before: list[Place] = field(default_factory=list)
    behind: list[Place] = field(default_factory=list)


class Ranks:
    """The boxes of one group in ranks. Across is within a rank, along from rank to rank."""

    def __init__(self, group: Box, arrows: list[tuple[Arrow, Box, Box]]) -> None:
        self.group = group
        self.arrows = arrows
        self.forward: list[tuple[Arrow, Box, Box, bool]] = []
        """Each from a lower rank to a higher one, and whether it was turned round for that."""
        self.turn_round()
        ranks = self.ranked()
        self.places = {
            box.name: Place(box, ranks[box.name], *self.sizes(box.w, box.h)) for box in group.inside
        }
        self.rows: list[list[Place]] = [[] for _ in range(max(ranks.values()) + 1)]
        for box in group.inside:
            self.rows[ranks[box.name]].append(self.places[box.name])
        self.ways = [self.way(*item) for item in self.forward]

    def sizes(self, w: float, h: float) -> tuple[float, float]:
        return (w, h) if self.group.across else (h, w)

    def turn_round(self) -> None:
        """Arrows that close a circle are turned, so that ranks exist."""
        leads: dict[str, set[str]] = {box.name: set() for box in self.group.inside}

        def reaches(start: str, end: str) -> bool:
            return start == end or any(reaches(name, end) for name in leads[start])

        for arrow, start, end in self.arrows:
            turned = reaches(end.name, start.name)
            if turned:
                start, end = end, start
            leads[start.name].add(end.name)
            self.forward.append((arrow, start, end, turned))

    def ranked(self) -> dict[str, int]:
        ranks = {box.name: 0 for box in self.group.inside}
        for _ in ranks:
            for _, start, end, _ in self.forward:
                ranks[end.name] = max(ranks[end.name], ranks[start.name] + 1)
        return ranks

    def way(self, arrow: Arrow, start: Box, end: Box, turned: bool) -> list[Place]:
        """The places of an arrow, from its first box to its last."""
        first, last = self.places[start.name], self.places[end.name]
        room = (
            self.sizes(width(arrow.words), LINE * len(lines(arrow.words)))
            if arrow.words
            else (0, 0)
        )
        way = [first]
        for rank in range(first.rank + 1, last.rank):
            way.append(Place(None, rank, 0, room[1]))
            self.rows[rank].append(way[-1])
        way.append(last)
        for one, next_one in pairwise(way):
            one.behind.append(next_one)
            next_one.before.append(one)
        return way

    def place(self) -> None:
        for row in self.rows:
            self.pack(row, [0.0] * len(row))
        for turn in range(8):
            downwards = turn % 2 == 0
            for row in self.rows if downwards else reversed(self.rows):
                wishes = [self.wish(place, downwards) for place in row]
                if turn < 6:
                    order = sorted(range(len(row)), key=lambda i: wishes[i])
                    row[:] = [row[i] for i in order]
                    wishes = [wishes[i] for i in order]
                self.pack(row, wishes)
        self.settle()

    def wish(self, place: Place, downwards: bool) -> float:
        near = (place.before if downwards else place.behind) or place.before or place.behind
        return sum(other.at for other in near) / len(near) if near else place.at

    def pack(self, row: list[Place], wishes: list[float]) -> None:
        """Keep the order and the distances, and miss the wishes as little as possible."""
        ats: list[float] = []
        for place, wish in zip(row, wishes, strict=True):
            least = ats[-1] + (row[len(ats) - 1].across + place.across) / 2 + APART if ats else wish
            ats.append(max(wish, least))
        late = sum(at - wish for at, wish in zip(ats, wishes, strict=True)) / max(len(ats), 1)
        for place, at in zip(row, ats, strict=True):
            place.at = at - late

    def settle(self) -> None:
        """Turn ranks and places into points."""
        along = 0.0
        starts, ends = [], []
        for rank, row in enumerate(self.rows):
            starts.append(along)
            ends.append(along + max(place.along for place in row))
            along = ends[-1] + self.gap(rank)
        for row, start in zip(self.rows, starts, strict=True):
            for place in row:
                if place.box is not None:
                    x, y = self.point(start + place.along / 2, place.at)
                    place.box.move(x - place.box.middle[0], y - place.box.middle[1])
        beside: dict[tuple[str, str], int] = {}
        for (arrow, first, last, turned), way in zip(self.forward, self.ways, strict=True):
            points = [
                self.point(side[place.rank], place.at)
                for place in way[1:-1]
                for side in (starts, ends)
            ]
            arrow.over = points[::-1] if turned else points
            pair = (first.name, last.name)
            beside[pair] = beside.get(pair, -1) + 1
        self.shift(beside)

    def shift(self, beside: dict[tuple[str, str], int]) -> None:
        """Arrows between the same two boxes run beside each other."""
        done: dict[tuple[str, str], int] = {}
        for arrow, start, end, _ in self.forward:
            pair = (start.name, end.name)
            step = 26 if self.group.across else 70
            off = (done.get(pair, 0) - beside[pair] / 2) * step
            done[pair] = done.get(pair, 0) + 1
            arrow.shift = (0, off) if self.group.across else (off, 0)
            arrow.across = self.group.across

    def gap(self, rank: int) -> float:
        """Behind a rank: as much as the words on arrows need."""
        words = [
            self.sizes(width(arrow.words) + 8, LINE * len(lines(arrow.words)))[0]
            for (arrow, *_), way in zip(self.forward, self.ways, strict=True)
            if arrow.words and way[0].rank <= rank < way[-1].rank
        ]
        return RANKS_APART + max(words, default=SIZE) - SIZE

    def point(self, along: float, across: float) -> Point:
        if self.group.mirrored:
            along = -along
        return (along, across) if self.group.across else (across, along)


def draw(source: str) -> str:
    return Chart(source).drawn()
