"""A scenario: a schedule written as a short text, for people to read and for nodes to play.

docs/reference/scenario-format.md says what its lines mean. Since it names no message, every
algorithm that can serve the set-up can play it.
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

from meshlock.algorithms.actor import NIL, Algorithm
from meshlock.algorithms.amounts import Kinds, most_of_each, parse_kinds
from meshlock.errors import Attempt, Refused
from meshlock.topology.graphs import Graph, Rooted
from meshlock.world.channels import DRAIN, FAILURES
from meshlock.world.lives import MILLION, Clocks, LayerSetup, made_by_node_0

FOLDER = Path(__file__).parent / "scenarios"

AUTO = -1
"""In the place of a number of members."""

VALUES = {
    "nodes": ("size", "whole"),
    "permits": ("kinds", "permits_of"),
    "founder": ("founder", "node"),
    "algorithm": ("algorithm", "word"),
    "seed": ("seed", "whole"),
    "lease": ("lease", "decimal"),
}
"""Lines of the set-up with one value: the attribute of a scenario, and how the value is read."""


class Scenario:
    """A script that has been read: its set-up, and its other lines with their numbers."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.title = ""
        self.size = 0
        self.first = 0  # the number of the first node in the script; it is 0 everywhere else
        self.links: list[tuple[int, int]] = []
        self.kinds = parse_kinds("1")
        self.tree: list[int] = []  # the father of each node; empty: not said
        self.failures = DRAIN
        self.founder = NIL  # of a pool to which nodes come without links
        self.algorithm = "jiang"
        self.options: dict[str, str] = {}
        self.deadlines = False
        self.seed = 1
        self.members = 0  # 0: plain nodes
        self.lease = 100.0
        self.clocks: list[int] = []  # skew, then the rate of each node
        self.unordered: set[str] = set()
        self.lines: list[tuple[int, list[str]]] = []
        linked = False
        for number, line in enumerate(text.splitlines(), 1):
            if line.startswith("#") and not self.title:
                self.title = line.strip("# ").removeprefix(f"{name} ")
            words = line.partition("#")[0].split()
            linked = linked or words[:1] == ["links"]
            if words and not self.reads_set_up(number, words):
                self.lines.append((number, words))
        if self.size < 1:
            raise Refused(f"Scenario {name} has no line 'nodes COUNT'.")
        if not linked:
            self.links = [(a, b) for a in range(self.size) for b in range(a + 1, self.size)]
        self.changing = any(words[0] in ("link", "notice") for _, words in self.lines)
        self.permits = self.kinds.permits
        wants = [] if self.kinds.several else [1]
        for number, words in self.lines:
            if words[0] == "request" and "want" in words[:-1]:
                wants.append(self.amount(number, words[words.index("want") + 1]))
        self.most = most_of_each(wants)

    def reads_set_up(self, number: int, words: list[str]) -> bool:
        match words:
            case ["nodes" | "permits" | "founder" | "algorithm" | "seed" | "lease" as name, word]:
                field, kind = VALUES[name]
                setattr(self, field, getattr(self, kind)(number, word))
            case ["numbered", "from", word]:
                self.first = self.whole(number, word)
            case ["links", *links]:
                self.links += [self.link(number, word) for word in links]
            case ["tree", _, *_]:
                self.tree = self.fathers(number, words[1:])
            case ["failures", word]:
                if word not in FAILURES:
                    text = f"failures are drain, return or custody, not '{word}'."
                    raise self.wrong(number, text)
                self.failures = word
            case ["option", word] if "=" in word:
                option, _, value = word.partition("=")
                self.options[option] = value
            case ["deadlines"]:
                self.deadlines = True
            case ["members", word]:
                named = {"all": self.size, "auto": AUTO}.get(word)
                self.members = self.whole(number, word) if named is None else named
                if self.members != AUTO and not 1 <= self.members <= self.size:
                    most = f"1 to {self.size} of the nodes"
                    raise self.wrong(number, f"members are 'auto', 'all' or {most}.")
            case ["clocks", *clocks] if len(clocks) == self.size + 1:
                self.clocks = [self.whole(number, word) for word in clocks]
            case ["unordered", *names]:
                self.unordered.update(names)
            case _:
                return False
        return True

    def network(self) -> Graph:
        if self.tree:
            return Rooted(self.size, self.links, self.tree)
        return Graph(self.size, self.links)

    @property
    def layer(self) -> LayerSetup | None:
        """Of nodes under the recovery layer."""
        if self.members == 0:
            return None
        skew, *rates = self.clocks or [0, *[MILLION] * self.size]
        clocks = Clocks(self.lease, skew, rates)
        if self.members == AUTO:
            return made_by_node_0(clocks)
        return LayerSetup(tuple(range(self.members)), clocks)

    # -- words ---------------------------------------------------------------------------

    def wrong(self, number: int, text: str) -> Refused:
        return Refused(f"Scenario {self.name}, line {number}: {text}")

    def permits_of(self, number: int, word: str) -> Kinds:
        try:
            return parse_kinds(word)
        except Refused as refusal:
            raise self.wrong(number, str(refusal)) from None

    def amount(self, number: int, word: str) -> int:
        """Of permits: a number, or one per kind."""
        if not self.kinds.several:
            return self.whole(number, word)
        try:
            return self.kinds.parse(word)
        except Refused as refusal:
            raise self.wrong(number, str(refusal)) from None

    def part(self, number: int, word: str) -> int:
        """Of the permits that a client holds."""
        return self.amount(number, word) if self.kinds.several else self.signed(number, word)

    def whole(self, number: int, word: str) -> int:
        if not word.isdigit():
            raise self.wrong(number, f"'{word}' should be a whole number.")
        return int(word)

    def signed(self, number: int, word: str) -> int:
        """A whole number that may be below 0, such as a priority."""
        return -self.whole(number, word[1:]) if word.startswith("-") else self.whole(number, word)

    def decimal(self, number: int, word: str) -> float:
        try:
            value = float(word)
        except ValueError:
            value = -1.0
        if not 0.0 <= value < 1e12:
            raise self.wrong(number, f"'{word}' should be a number, not below 0.")
        return value

    def word(self, number: int, word: str) -> str:
        return word

    def priority(self, number: int, word: str, units: int) -> int:
        """In units of a step of priority; parts of a step only where there are deadlines."""
        if not self.deadlines:
            return self.signed(number, word)
        sign = -1 if word.startswith("-") else 1
        return sign * round(self.decimal(number, word.removeprefix("-")) * units)

    def node(self, number: int, word: str) -> int:
        if self.size < 1:
            raise self.wrong(number, "say first how many nodes there are: 'nodes COUNT'.")
        node = self.whole(number, word) - self.first
        if not 0 <= node < self.size:
            raise self.wrong(
                number,
                f"there is no node {word}: they are numbered {self.called(0)} to "
                f"{self.called(self.size - 1)}.",
            )
        return node

    def called(self, node: int) -> str:
        """What the script calls this node."""
        return str(node + self.first)

    def listed(self, nodes: list[int]) -> str:
        return " ".join([self.called(node) for node in nodes]) or "nobody"

    def link(self, number: int, word: str, between: str = "-") -> tuple[int, int]:
        one, found, other = word.partition(between)
        if not found:
            raise self.wrong(number, f"'{word}' should be a link such as 0{between}1.")
        return self.node(number, one), self.node(number, other)

    def fathers(self, number: int, chains: list[str]) -> list[int]:
        """The tree that chains such as 3>2>0 make: the father of each node, NIL for the root."""
        fathers = [NIL] * self.size
        for chain in chains:
            path = [self.node(number, word) for word in chain.split(">")]
            for son, father in pairwise(path):
                if fathers[son] not in (NIL, father):
                    raise self.wrong(number, f"node {self.called(son)} has two fathers.")
                fathers[son] = father
        roots = [node for node in range(self.size) if fathers[node] == NIL]
        if len(roots) != 1:
            raise self.wrong(
                number,
                f"a tree has one node without a father, not {len(roots)}: "
                f"{self.listed(roots)}. Write it in one line, such as 'tree 2>1>0 3>1'.",
            )
        for node in range(self.size):
            above = node
            for _ in range(self.size):
                above = fathers[above] if above != NIL else NIL
            if above != NIL:
                raise self.wrong(number, f"node {self.called(node)} is its own forefather.")
        return fathers


def drawn(fathers: list[int], first: int) -> str:
    """A tree as a script writes it."""
    pairs = [(node, father) for node, father in enumerate(fathers) if father != NIL]
    return " ".join([f"{node + first}>{father + first}" for node, father in pairs])


def names() -> list[str]:
    """The scenarios that come with meshlock: errata, repairs, figures."""
    found = [path.stem for path in FOLDER.glob("*.txt")]
    return sorted(found, key=place)


def place(name: str) -> tuple[bool, str, int, str]:
    """Where in the list: J2 before J10, and what has no number of its own at the end."""
    parts = re.fullmatch(r"([A-Z])(\d+)(\w?)", name)
    if parts is None:
        return True, name, 0, ""
    return False, parts[1], int(parts[2]), parts[3]


def scenario(name: str) -> Scenario:
    """A scenario by its name, or by the path of its file."""
    path = FOLDER / f"{name}.txt" if name in names() else Path(name)
    if path.suffix != ".txt":
        raise Refused(f"There is no scenario '{name}': choose one of {', '.join(names())}.")
    try:
        with Attempt(f"read {path}"):
            return Scenario(path.stem, path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise Refused(f"{path} is not a text.") from None


def refuse_set_up(scenario: Scenario, algorithm: Algorithm, network: Graph) -> None:
    """What :func:`refuse_impossible` does not know of: trees, and names of nodes."""
    name = algorithm.name
    if scenario.first and any(kind.reductions.names is None for kind in algorithm.kinds):
        raise Refused(
            f"The messages of {name} do not say which of their fields are nodes, so its nodes "
            f"are numbered from 0: leave out 'numbered from'."
        )
    if not scenario.tree:
        return
    if scenario.layer is not None:
        raise Refused("With members every epoch makes a tree of its own: leave out 'tree'.")
    if not algorithm.assumes.any_tree:
        raise Refused(
            f"{name} does not start from a given tree of fathers: leave out 'tree', or use "
            f"general-scheme."
        )
    for node, father in enumerate(scenario.tree):
        linked = father == NIL or network.linked(node, father)
        if not linked and not algorithm.assumes.routed:
            one, other = scenario.called(node), scenario.called(father)
            raise Refused(
                f"{name} sends over links only: the tree's {one}>{other} needs the link "
                f"{one}-{other}."
            )
