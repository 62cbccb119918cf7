"""What is wrong is said in sentences."""

from typing import Any

from meshlock.web.live import alarms

FINE = {"known": True, "why": "", "conflict": "", "unreachable": [], "waiting": []}
FINE |= {"members": 0, "reachable": 0, "quorum": 0}


def node(
    distance: int | None = 1, age: float | None = 0.5, left: bool = False, **more: Any
) -> dict[str, Any]:
    gone = 12.0 if distance is None else None
    found = {
        "distance": distance,
        "unreachable_for": gone,
        "age": age,
        "left": left,
        "gone": False,
        "only_way": False,
    }
    return found | {"pool_view": FINE | more}


def shown(nodes: dict[str, Any] | None = None, links: Any = None, doubt: int = 0) -> dict[str, Any]:
    nodes = {"a": node(0, 0.0)} | (nodes or {})
    shown = {"node": "a", "pool": "docks", "every": 1.0, "in_doubt": doubt}
    return shown | {"nodes": nodes, "links": links or {}}


def test_all_is_well():
    up = {"b": {"up": True, "left": False, "gone": False, "cut_for": None, "unacknowledged": 0}}
    assert alarms(shown({"b": node(), "c": node(2, None)}, up)) == []


def test_nodes_that_are_gone_or_silent():
    nodes = {"b": node(None, 40.0), "c": node(2, 7.2)}
    assert alarms(shown(nodes)) == [
        "b unreachable (for 12 s).",
        "c did not answer for 5 s, but is reachable.",
    ]
    slow = shown(nodes) | {"every": 4.0}  # with many nodes each is asked less often
    assert alarms(slow) == ["b unreachable (for 12 s)."]
    many = {name: node(None) for name in "bcdef"}
    assert alarms(shown(many)) == ["b, c, d and 2 more unreachable (for up to 12 s)."]


def test_links():
    links = {
        "b": {"up": False, "left": False, "gone": False, "cut_for": None, "unacknowledged": 2},
        "c": {"up": False, "left": False, "gone": False, "cut_for": 17.3, "unacknowledged": 0},
    }
    assert alarms(shown(None, links)) == [
        "The link to b is down; 2 messages with permits for it wait.",
        "The link to c is cut on purpose for another 17 s.",
    ]


def test_nodes_that_left_raise_no_alarm():
    nodes = {"b": node(None, 40.0, left=True), "c": node(unreachable=["b"])}
    down = {"b": {"up": False, "left": True, "gone": False, "cut_for": None, "unacknowledged": 0}}
    assert alarms(shown(nodes, down)) == []


def test_the_pool():
    nodes = {
        "b": node(conflict="Founded twice.", waiting=[{"seconds": 31.0}, {"seconds": 1.0}]),
        "c": node(conflict="Founded twice.", unreachable=["d"]),
        "e": node(why="all permits are in use"),  # no fault of anybody's
    }
    assert alarms(shown(nodes, doubt=2)) == [
        "Founded twice.",
        "d unreachable in this pool.",
        "Permits in doubt: 2 messages that carried them were sent to a node that restarted.",
        "1 at b waiting for more than 30 s.",
    ]


def test_a_pool_with_members():
    cut_off = {"members": 3, "reachable": 1, "quorum": 2}
    whole = cut_off | {"reachable": 3}
    assert alarms(shown({"b": node(**whole)})) == []
    assert alarms(shown({"b": node(**cut_off)})) == [
        "Quorum lost: b cannot reach 2 of the 3 members, and no permits are granted there."
    ]


def test_a_pool_nobody_has_told_us_of():
    unknown = shown()
    unknown["nodes"]["a"]["pool_view"] = FINE | {"known": False, "why": "no neighbour has told us"}
    assert alarms(unknown) == ["docks: no neighbour has told us."]
