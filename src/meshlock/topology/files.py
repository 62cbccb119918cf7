"""Read a network from a file: GraphML, an edge list, or JSON.

Links are two-way and single here, so directions, repetitions and links of a node to
itself are dropped. Nodes become 0 to n - 1 in the order of their names, numbers inside
names counting as numbers (n2 before n10); names that are 0 to n - 1 stay what they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

from meshlock.errors import Refused

SUFFIXES = (".graphml", ".edgelist", ".json")
MOST_NODES = 1_000_000

Named = tuple[set[str], list[tuple[str, str]]]


def read(path: Path) -> tuple[list[str], list[tuple[int, int]]]:
    """The nodes' names, in order, and the links by the nodes' numbers."""
    readers = {".graphml": graphml, ".edgelist": edgelist, ".json": node_link}
    try:
        found, links = readers[path.suffix](path)
    except OSError as problem:
        reason = (problem.strerror or str(problem)).lower()
        raise Refused(f"The topology {path} cannot be read: {reason}.") from None
    except UnicodeDecodeError:
        raise Refused(f"{path} is not text, so it cannot be a {path.suffix} file.") from None
    names = sorted(found, key=natural)
    numbers = {name: number for number, name in enumerate(names)}
    return names, [(numbers[one], numbers[other]) for one, other in links if one != other]


def natural(name: str) -> tuple[list[tuple[bool, int, str, str]], str]:
    """Digits inside a name compare as a number, however long; the name itself settles ties."""
    keys = []
    for part in re.findall(r"[0-9]+|[^0-9]+", name):
        number = part.lstrip("0") if part[0].isdigit() else ""
        keys.append((not part[0].isdigit(), len(number), number, part))
    return keys, name


def graphml(path: Path) -> Named:
    """The nodes and links of the first graph, those inside its groups included."""
    from xml.etree import ElementTree

    try:
        root = ElementTree.parse(path).getroot()
    except (ElementTree.ParseError, LookupError, ValueError) as problem:
        raise Refused(f"{path} is not GraphML that can be read: {one_line(problem)}.") from None
    graph = root.find("{*}graph")
    if graph is None:
        raise Refused(f"{path} is not GraphML that can be read: it has no <graph> in <graphml>.")
    if graph.find(".//{*}hyperedge") is not None:
        raise Refused(f"{path} has a <hyperedge>, and a link joins two nodes: write <edge>s.")
    names = {node.get("id", "") for node in graph.iterfind(".//{*}node")}
    links = [
        (edge.get("source", ""), edge.get("target", "")) for edge in graph.iterfind(".//{*}edge")
    ]
    if "" in names:
        raise Refused(f"{path} has a <node> without an id.")
    for one, other in links:
        for name in (one, other):
            if name not in names:
                raise Refused(f"{path}: an edge {one}-{other} names node '{name}', unknown here.")
    return names, links


def edgelist(path: Path) -> Named:
    """One link a line, as two names; what follows them, and comments (#), is skipped."""
    names: set[str] = set()
    links: list[tuple[str, str]] = []
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            words = line.partition("#")[0].split()
            if not words:
                continue
            if len(words) == 1:
                raise Refused(f"{path}, line {number}: a link needs two nodes, as in '0 1'.")
            names.update(words[:2])
            links.append((words[0], words[1]))
    return names, links


def node_link(path: Path) -> Named:
    """networkx's node-link form, or {"nodes": 3, "links": [[0, 1], [1, 2]]}."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, RecursionError) as problem:
        raise Refused(f"{path} is not JSON: {one_line(problem)}.") from None
    except UnicodeDecodeError:
        raise
    except ValueError:  # Python's own bound
        raise Refused(f"{path} has a number of more than 4300 digits.") from None
    form = '{"nodes": 3, "links": [[0, 1], [1, 2]]}'
    if not isinstance(content, dict) or "nodes" not in content:
        raise Refused(f"{path} describes no network: write for example {form}.")
    nodes, links = content["nodes"], content.get("links", content.get("edges"))
    if not isinstance(links, list):
        raise Refused(f"{path} has no list of links: write for example {form}.")
    if isinstance(nodes, int):
        if nodes > MOST_NODES:
            raise Refused(f"{path} has {nodes:,} nodes, and at most {MOST_NODES:,} are kept.")
        names = {str(node) for node in range(nodes)}
    elif isinstance(nodes, list):
        names = {str(node["id"] if isinstance(node, dict) else node) for node in known(path, nodes)}
    else:
        raise Refused(f"{path}: 'nodes' must be a number or a list: write for example {form}.")
    return names, [ends(path, link, names) for link in links]


def known(path: Path, nodes: list[object]) -> Iterable[object]:
    for node in nodes:
        if isinstance(node, dict) and "id" not in node:
            raise Refused(f"{path}: the node {json.dumps(node)} has no 'id'.")
        yield node


def ends(path: Path, link: object, names: set[str]) -> tuple[str, str]:
    if isinstance(link, dict) and "source" in link and "target" in link:
        link = [link["source"], link["target"]]
    if not isinstance(link, list) or len(link) != 2:
        raise Refused(f"{path}: {json.dumps(link)} is no link; write a pair such as [0, 1].")
    one, other = str(link[0]), str(link[1])
    for name in (one, other):
        if name not in names:
            raise Refused(f"{path}: the link {json.dumps(link)} names node {name}, unknown here.")
    return one, other


def one_line(problem: BaseException) -> str:
    return " ".join(str(problem).split()).rstrip(".") or type(problem).__name__
