"""What a study file means, and what it must not say."""

from __future__ import annotations

import pytest

from meshlock.errors import Refused
from meshlock.sweep.measures import UNLIKE, estimate, measured, refuse_unknown, student
from meshlock.sweep.runs import line_of, read_line
from meshlock.sweep.study import Formula, harmonic, study, tree_distance
from meshlock.topology.specification import network


def labels(table):
    return [tuple(point.labels.values()) for point in study(table, "s").points]


def test_lists_are_axes_and_later_ones_vary_faster():
    made = study(
        {
            "nodes": [8, 16, 32],
            "workload": ["poisson:0.1", "poisson:0.2", "poisson:0.3"],
            "hold": 0.5,
            "repetitions": 3,
            "seed": 7,
        },
        "s",
    )
    assert made.axes == ["nodes", "workload"]
    assert [tuple(point.labels.values()) for point in made.points][:4] == [
        (8, "poisson:0.1"),
        (8, "poisson:0.2"),
        (8, "poisson:0.3"),
        (16, "poisson:0.1"),
    ]
    assert len(made.points) == 9
    assert made.points[0].values == {"nodes": 8, "workload": "poisson:0.1", "hold": "0.5"}
    assert made.seeds == [7, 8, 9]


def test_tables_go_together_and_stand_above_the_rest():
    table = {
        "nodes": [4, 8],
        "network": [
            {"name": "flat", "topology": "line"},
            {"name": "large", "topology": "tree", "nodes": [16, 31, 63]},
            {"topology": "star", "nodes": 5},
        ],
    }
    assert labels(table) == [
        (4, "flat"),
        (8, "flat"),
        (16, "large"),
        (31, "large"),
        (63, "large"),
        (5, "topology=star, nodes=5"),
    ]


def test_changed_priorities_and_released_parts_are_axes():
    table = {"raise": [0.1, 0.2], "release-part": [0, 0.5], "priority": "1-9", "want": "1-2"}
    assert labels({**table, "permits": 2}) == [
        ("0.1", 0),
        ("0.1", "0.5"),
        ("0.2", 0),
        ("0.2", "0.5"),
    ]


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ({"nods": [4, 8]}, "did you mean 'nodes'"),
        ({"algorithm": ["raymnd"]}, "did you mean 'raymond'"),
        ({"algorithm": ["raymond", "jiang"], "moves": "quiet"}, "raymond has no option 'moves'"),
        ({"nodes": []}, "empty"),
        ({"nodes": {"from": 8}}, "a list of them"),
        ({"nodes": [4, 4]}, "Two points are the same"),
        ({"nodes": [4.5]}, "whole number"),
        ({"topology": [{"nodes": 4}]}, "'topology' is a setting"),
        ({"repetitions": 0}, "1 or more"),
        ({"repetitions": 2, "seed": [1, 2]}, "Both repetitions and a list"),
        ({"seed": [1, 1]}, "twice"),
        ({"nodes": list(range(1, 200_000))}, "at most 100,000 runs"),
        ({"measures": ["cpu_s"]}, "runs.jsonl"),
        ({"measures": "waiting"}, "list of texts"),
        ({"nodes": [4, 8], "plot": [{"y": "nodes"}]}, "A plot has no 'y'"),
        ({"nodes": [4, 8], "plot": [{"x": "hold"}]}, "the axes are: nodes"),
        ({"nodes": [4, 8], "hold": [1, 2], "plot": [{"x": "nodes", "series": []}]}, "'hold'"),
        ({"nodes": [4, 8], "plot": [{"log": "z"}]}, "x, y, xy"),
        ({"plot": [{"name": "a"}, {"name": "a"}]}, "same name"),
        ({"laws": {"messages_per_entry": "2"}}, "[laws.MEASURE]"),
        ({"laws": {"waiting.mean": {"jiang": "import os"}}}, "The formula 'import os'"),
    ],
)
def test_what_is_wrong_is_said_before_any_run(table, sentence):
    with pytest.raises(Refused) as refused:
        study(table, "s")
    assert sentence in str(refused.value)


def test_laws_are_formulas_of_the_settings():
    assert Formula("2 * (nodes - 1) / nodes").value({"nodes": 8}) == 1.75
    assert Formula("H(nodes)").value({"nodes": 4}) == harmonic(4) == pytest.approx(25 / 12)
    assert Formula("Q(nodes)").value({"nodes": 3}) == pytest.approx(1 + 2 / 3 + 2 / 9)
    assert Formula("-sqrt(nodes) ** 2").value({"nodes": 9}) == -9
    for text in ("nodes.real", "open('x')", "__import__('os')", "permits", "f(1)", "'a' * 3"):
        with pytest.raises(Refused):
            Formula(text).value({"nodes": 8})


@pytest.mark.parametrize("nodes", [1, 2, 7, 20])
def test_the_mean_distance_in_a_tree(nodes):
    tree = network("tree", nodes, 1)
    total = 0
    for start in range(nodes):
        distance = {start: 0}
        order = [start]
        for node in order:
            for other in tree.neighbours(node):
                if other not in distance:
                    distance[other] = distance[node] + 1
                    order.append(other)
        total += sum(distance.values())
    assert tree_distance(nodes) == pytest.approx(total / nodes**2)


def test_students_t():
    """Against the usual tables."""
    table = {1: 12.706, 2: 4.303, 10: 2.228, 11: 2.201, 15: 2.131, 20: 2.086, 30: 2.042, 120: 1.980}
    for freedom, value in table.items():
        assert student(freedom) == pytest.approx(value, abs=6e-4)


def test_mean_and_interval():
    got = estimate([1.0, 2.0, 3.0, 4.0])
    assert got.mean == 2.5
    assert got.half == pytest.approx(3.18245 * (5 / 3) ** 0.5 / 2)
    assert estimate([5.0]).half is None
    assert estimate([]) is None


def test_measures_by_path():
    figures = {"entries": 4, "messages": {"LINK": 6}, "waiting": {"p95": 2.0}, "recovery": None}
    assert measured(figures, "waiting.p95") == 2.0
    assert measured(figures, "messages.LINK / entries") == 1.5
    assert measured(figures, "messages.CALL / entries") == 0.0
    assert measured(figures, "recovery.idle_share") is None
    assert measured({"entries": 0, "messages": {}}, "messages.LINK / entries") is None


@pytest.mark.parametrize(
    "table",
    [
        {"measures": ["waitin.mean"]},
        {"measures": ["waiting.p96"]},
        {"measures": ["messages.LINK / entris"]},
        {"laws": {"waiting.men": {}}},
        {"plot": [{"measures": ["recovery.served_share.men"]}]},
    ],
)
def test_an_unknown_measure_is_refused(table):
    with pytest.raises(Refused, match="There is no measure '"):
        study({"nodes": [3, 4], **table}, "s")


LINES = [
    {
        "nodes": 3,
        "requests": 30,
        "raise": "0.1",
        "priority": "1-9",
        "release-part": "0.1",
        "permits": 2,
        "want": "2",
    },
    {"nodes": 4, "requests": 30, "members": "all", "crashes": "300", "workload": "poisson:0.05"},
    {"nodes": 4, "requests": 30, "mobility": "flips:0.05", "workload": "poisson:0.5"},
]


@pytest.mark.parametrize("values", LINES)
def test_every_number_of_a_run_is_a_measure(values):
    line = read_line(line_of(values, 0))
    assert line is not None and line.figures is not None, line

    def walk(path, value):
        if isinstance(value, dict) and path != "options":
            for key, part in value.items():
                walk(f"{path}.{key}".strip("."), part)
        elif isinstance(value, int | float) and path not in ("seed", *UNLIKE):
            refuse_unknown(path)

    walk("", line.figures)
