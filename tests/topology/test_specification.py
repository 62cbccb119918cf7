"""What --topology takes, what it makes of it, and how it refuses the rest."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import networkx
import pytest

from meshlock.algorithms.actor import NIL
from meshlock.errors import Refused
from meshlock.topology.graphs import BinaryTree, Complete, Graph, Topology
from meshlock.topology.mobility.live_graph import LiveGraph
from meshlock.topology.specification import any_tree, network, some_pairs


def links(topology: Topology) -> list[tuple[int, int]]:
    return list(topology.links())


def refusal(spec: str, nodes: int | None = None) -> str:
    with pytest.raises(Refused) as refused:
        network(spec, nodes, 7)
    text = str(refused.value)
    assert "\n" not in text
    return text


# -- regular networks


@pytest.mark.parametrize(
    ("spec", "nodes", "expected"),
    [
        ("line", 4, [(0, 1), (1, 2), (2, 3)]),
        ("ring", 4, [(0, 1), (0, 3), (1, 2), (2, 3)]),
        ("ring", 3, [(0, 1), (0, 2), (1, 2)]),
        ("ring", 2, [(0, 1)]),
        ("star", 4, [(0, 1), (0, 2), (0, 3)]),
        ("tree", 5, [(0, 1), (0, 2), (1, 3), (1, 4)]),
        ("grid:2x3", None, [(0, 1), (0, 3), (1, 2), (1, 4), (2, 5), (3, 4), (4, 5)]),
        ("grid:2x3", 6, [(0, 1), (0, 3), (1, 2), (1, 4), (2, 5), (3, 4), (4, 5)]),
        ("complete", 3, [(0, 1), (0, 2), (1, 2)]),
        ("edges:0-1,2-1", None, [(0, 1), (1, 2)]),
        ("edges:0-1,0-2,1-2", 3, [(0, 1), (0, 2), (1, 2)]),
    ],
)
def test_regular(spec: str, nodes: int | None, expected: list[tuple[int, int]]) -> None:
    assert links(network(spec, nodes, 7)) == expected


@pytest.mark.parametrize(
    "spec", ["line", "ring", "star", "tree", "complete", "random:0", "links:0", "geometric:0"]
)
def test_a_single_node_is_a_network(spec: str) -> None:
    alone = network(spec, 1, 7)
    assert alone.size == 1
    assert links(alone) == []


def test_formulas_stay_formulas() -> None:
    assert isinstance(network("tree", 1_000_000, 7), BinaryTree)
    assert isinstance(network("complete", 1_000_000, 7), Complete)


# -- random networks


@pytest.mark.parametrize("spec", ["random:0.15", "links:60", "geometric:0.35"])
def test_random_networks_are_connected_and_belong_to_their_seed(spec: str) -> None:
    drawn = [network(spec, 40, seed) for seed in range(20)]
    for seed, one in enumerate(drawn):
        assert -1 not in [one.distance(0, node) for node in range(40)]
        assert links(network(spec, 40, seed)) == links(one)
    assert len({tuple(links(one)) for one in drawn}) == 20


@pytest.mark.parametrize("count", [39, 40, 100, 700, 779, 780])
def test_links_are_exactly_as_many_as_asked_for(count: int) -> None:
    assert len(links(network(f"links:{count}", 40, 3))) == count


def test_every_tree_of_three_nodes_is_drawn_equally_often() -> None:
    drawn = [tuple(links(network("links:2", 3, seed))) for seed in range(600)]
    assert sorted(set(drawn)) == [((0, 1), (0, 2)), ((0, 1), (1, 2)), ((0, 2), (1, 2))]
    assert all(150 < drawn.count(tree) < 250 for tree in set(drawn))


@pytest.mark.parametrize("nodes", [1, 2, 3, 10, 200])
def test_trees_are_those_of_networkx(nodes: int) -> None:
    """The same draws must give the same tree, link by link."""
    for seed in range(20):
        theirs = networkx.random_labeled_tree(nodes, seed=Random(seed))
        expected = sorted((min(link), max(link)) for link in theirs.edges)
        assert sorted(any_tree(nodes, Random(seed))) == expected


@pytest.mark.parametrize("chance", [0.0, 0.003, 0.2, 0.97, 1.0])
@pytest.mark.parametrize("nodes", [1, 2, 3, 60])
def test_pairs_are_those_of_networkx(nodes: int, chance: float) -> None:
    for seed in range(20):
        theirs = networkx.fast_gnp_random_graph(nodes, chance, seed=Random(seed))
        expected = sorted((min(link), max(link)) for link in theirs.edges)
        assert sorted(some_pairs(nodes, chance, Random(seed))) == expected


@pytest.mark.parametrize("chance", [1e-17, 5e-324])
def test_a_chance_next_to_nothing_draws_nothing(chance: float) -> None:
    assert list(some_pairs(60, chance, Random(7))) == []


def test_random_has_the_density_asked_for() -> None:
    drawn = links(network("random:0.1", 400, 7))
    assert len(drawn) == pytest.approx(0.1 * 400 * 399 / 2, rel=0.03)


def test_geometric_links_all_that_are_in_range() -> None:
    """The cells must miss nobody: compare with all pairs of the same places."""
    stream = Random("5:topology")
    places = [(stream.random(), stream.random()) for _ in range(300)]
    expected = [
        (a, b)
        for a in range(300)
        for b in range(a + 1, 300)
        if (places[a][0] - places[b][0]) ** 2 + (places[a][1] - places[b][1]) ** 2 <= 0.15**2
    ]
    assert links(network("geometric:0.15", 300, 5)) == expected


# -- files


def test_graphml_with_names_and_a_self_loop(tmp_path: Path) -> None:
    file = tmp_path / "net.graphml"
    edges = [("n10", "n2"), ("n2", "n1"), ("n1", "n2"), ("n1", "n1")]
    file.write_text(
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="directed">'
        + "".join(f'<node id="{name}"/>' for name in ("n10", "n2", "n1"))
        + "".join(f'<edge source="{a}" target="{b}"/>' for a, b in edges)
        + "</graph></graphml>"
    )
    assert links(network(str(file), None, 7)) == [(0, 1), (1, 2)]


def test_graphml_as_networkx_writes_it(tmp_path: Path) -> None:
    file = tmp_path / "net.graphml"
    theirs = networkx.random_labeled_tree(30, seed=1)
    networkx.set_edge_attributes(theirs, 2.5, "weight")
    networkx.write_graphml(theirs, file)
    expected = sorted((min(link), max(link)) for link in theirs.edges)
    assert links(network(str(file), None, 7)) == expected


def test_graphml_with_a_group_and_no_namespace(tmp_path: Path) -> None:
    """A group's nodes and links belong to the network like any other; so yEd writes them."""
    file = tmp_path / "net.graphml"
    file.write_text(
        '<graphml><key id="d0" for="node"/><graph edgedefault="undirected">'
        '<node id="n0"><data key="d0">desk</data></node>'
        '<node id="n1" yfiles.foldertype="group"><graph id="n1:">'
        '<node id="n1::n0"/><edge source="n1::n0" target="n1"/></graph></node>'
        '<edge source="n0" target="n1::n0"/></graph></graphml>'
    )
    assert links(network(str(file), None, 7)) == [(0, 2), (1, 2)]


def test_edge_list(tmp_path: Path) -> None:
    file = tmp_path / "net.edgelist"
    file.write_text("# a comment\n2 0 {'weight': 3}\n\n0 1\n1 0\n10 2\n")
    assert links(network(str(file), 4, 7)) == [(0, 1), (0, 2), (2, 3)]


@pytest.mark.parametrize(
    "content",
    [
        {"nodes": 3, "links": [[0, 1], [2, 1]]},
        {"nodes": [0, 1, 2], "edges": [[0, 1], [1, 2]]},
        {
            "nodes": [{"id": "a"}, {"id": "b"}, {"id": "c"}],
            "links": [{"source": "a", "target": "b"}, {"source": "c", "target": "b"}],
        },
    ],
)
def test_json(tmp_path: Path, content: object) -> None:
    file = tmp_path / "net.json"
    file.write_text(json.dumps(content))
    assert links(network(str(file), None, 7)) == [(0, 1), (1, 2)]


def test_numbers_in_names_may_be_long(tmp_path: Path) -> None:
    file = tmp_path / "net.edgelist"
    file.write_text(f"n10 n{'9' * 5000}\nn2 n10\n")
    assert links(network(str(file), None, 7)) == [(0, 1), (1, 2)]


# -- refusals


@pytest.mark.parametrize(
    ("spec", "nodes", "says"),
    [
        ("rnig", 5, "There is no topology 'rnig': did you mean ring?"),
        ("gird:2x2", 4, "did you mean grid:ROWSxCOLUMNS?"),
        ("xyzzy", 5, "choose one of line, ring,"),
        ("net.txt", 5, "its name must end in .graphml, .edgelist, .json"),
        ("ring", None, "add --nodes"),
        ("ring", 0, "at least one node"),
        ("ring:3", 5, "write ring"),
        ("grid", 5, "write grid:ROWSxCOLUMNS"),
        ("grid:4", 5, "as in grid:4x5"),
        ("grid:0x3", 5, "as in grid:4x5"),
        ("grid:2x3", 7, "grid:2x3 has 6 nodes, not 7"),
        ("grid:9999999x9999999", None, "at most 10,000,000 are kept"),
        ("edges", 3, "write edges:0-1,1-2,..."),
        ("edges:0-1,2", None, "'2' in topology 'edges:0-1,2' is not a link between two nodes"),
        ("edges:0-0", None, "is not a link between two nodes: write 0-1"),
        ("edges:0-1", 3, "edges:0-1 has 2 nodes, not 3"),
        ("edges:0-1,2-3", None, "node 2 cannot be reached from node 0"),
        ("edges:0-99999999", None, "at most 10,000,000 are kept"),
        ("links:3", 5, "use links:4 or more"),
        ("links:11", 5, "at most 10 links"),
        ("links:many", 5, "is not a count"),
        ("random:often", 5, "is not a number"),
        ("random:1.5", 5, "use 0 to 1"),
        ("random:nan", 5, "use 0 to 1"),
        ("random:0.01", 50, "raise the probability (about 0.12 is usually enough)"),
        ("random:0.5", 1_000_000, "at most 10,000,000 are kept"),
        ("geometric:0.01", 50, "raise the range (about 0.21 is usually enough)"),
        ("geometric:-1", 50, "is no distance"),
        ("nowhere/net.graphml", None, "nowhere/net.graphml cannot be read: no such file"),
    ],
)
def test_refused_with_advice(spec: str, nodes: int | None, says: str) -> None:
    assert says in refusal(spec, nodes)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("net.graphml", "<graphml><graph>", "is not GraphML that can be read: no element found"),
        ("net.graphml", "", "is not GraphML"),
        ("net.graphml", "\x00\x01", "is not GraphML"),
        ("net.graphml", "<?xml version='1.0' encoding='odd'?><graphml/>", "is not GraphML"),
        ("net.graphml", "<gexf/>", "has no <graph> in <graphml>"),
        ("net.graphml", "<graphml><graph/></graphml>", "has no nodes"),
        ("net.graphml", "<graphml><graph><node/></graph></graphml>", "a <node> without an id"),
        (
            "net.graphml",
            "<graphml><graph><node id='a'/><edge source='a' target='b'/></graph></graphml>",
            "an edge a-b names node 'b', unknown here",
        ),
        ("net.graphml", "<graphml><graph><hyperedge/></graph></graphml>", "has a <hyperedge>"),
        ("net.edgelist", "0 1\n2\n", "net.edgelist, line 2: a link needs two nodes"),
        ("net.edgelist", "0 1\n2 3\n", "node 2 cannot be reached from node 0"),
        ("net.edgelist", "a b\nx y\n", "node x cannot be reached from node a"),
        ("net.edgelist", "# nothing\n", "has no nodes"),
        ("net.json", "[1, 2", "is not JSON"),
        ("net.json", "[" * 100_000, "is not JSON"),
        ("net.json", f'{{"nodes": 2, "links": [[0, {"9" * 5000}]]}}', "more than 4300 digits"),
        ("net.json", "[1, 2]", "describes no network"),
        ("net.json", '{"nodes": 3}', "has no list of links"),
        ("net.json", '{"nodes": "x", "links": []}', "must be a number or a list"),
        ("net.json", '{"nodes": 1e9, "links": []}', "must be a number or a list"),
        ("net.json", '{"nodes": 1000000000, "links": []}', "at most 1,000,000"),
        ("net.json", '{"nodes": [{"x": 1}], "links": []}', "the node {\"x\": 1} has no 'id'"),
        ("net.json", '{"nodes": 2, "links": [[0, 5]]}', "names node 5, unknown here"),
        ("net.json", '{"nodes": 2, "links": [[0]]}', "[0] is no link"),
        ("net.json", '{"nodes": 0, "links": []}', "has no nodes"),
    ],
)
def test_broken_files(tmp_path: Path, name: str, content: str, says: str) -> None:
    file = tmp_path / name
    file.write_text(content)
    text = refusal(str(file))
    assert says in text
    assert name in text


def test_binary_file_and_folder(tmp_path: Path) -> None:
    file = tmp_path / "net.edgelist"
    file.write_bytes(b"\xff\xfe\x00")
    assert "is not text" in refusal(str(file))
    folder = tmp_path / "net.json"
    folder.mkdir()
    assert "cannot be read: is a directory" in refusal(str(folder))


def test_nodes_that_contradict_the_file(tmp_path: Path) -> None:
    file = tmp_path / "net.edgelist"
    file.write_text("0 1\n")
    assert "has 2 nodes, not 5" in refusal(str(file), 5)


# -- networks in parts


@pytest.mark.parametrize("seed", range(10))
def test_parts_cut_off_from_node_0_hang_on_it_whether_links_change_or_not(seed: int) -> None:
    pairs = list(some_pairs(20, 0.06, Random(seed)))
    fixed, changing = Graph(20, pairs), LiveGraph(20, pairs)
    assert changing.components > 1
    assert [fixed.father(node) for node in range(20)] == changing.fathers
    whole = networkx.Graph(pairs)
    whole.add_nodes_from(range(20))
    roots = sorted(min(part) for part in networkx.connected_components(whole))
    assert fixed.roots == changing.roots() == roots
    assert [node for node in range(20) if fixed.father(node) not in whole[node]] == roots
    assert [fixed.father(root) for root in roots] == [NIL] + [0] * (len(roots) - 1)
