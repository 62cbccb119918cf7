"""The printed edition: faithful to its lines, safe, and stuck more often than not."""

import re
from pathlib import Path

import pytest
from random_walk import walk

from meshlock.algorithms import jiang_printed
from meshlock.algorithms.jiang_printed import PrintedNode

LINES = {
    "request": 5,
    "leave": 7,
    "TOKEN": 6,
    "REQUEST": 8,
    "UPDATE": 7,
    "RELEASE": 4,
    "LINK": 8,
    "failure": 6,
    "formation": 3,
    "forwardRequest": 2,
    "forwardUpdate": 2,
    "forwardRelease": 2,
    "giveToken": 14,
    "raiseHeight": 6,
    "aging": 2,
}
"""The appendix: handler or procedure, and how many lines it has."""

SOURCE = Path(jiang_printed.__file__).with_suffix("").with_suffix(".py")


@pytest.mark.skipif(not SOURCE.exists(), reason="compiled, without its source")
def test_every_printed_line_is_in_the_file_once_and_in_order():
    comments = "\n".join(re.findall(r"# .*", SOURCE.read_text(encoding="utf-8")))
    for handler, count in LINES.items():
        numbers = re.findall(rf"\b{handler} (\d+)", comments)
        assert numbers == [str(number) for number in range(1, count + 1)], handler


def node():
    return PrintedNode(0, [], (0, 0, 0), {1: (0, 1, 1), 2: (0, 1, 2)}, 1, True)


# Jiang, Prioritized h-out of-k Resource Allocation, section 3, of UPDATE: "i changes the priority
# of j's request message and adjust its position in Q according to the new priority if j's request
# message is in Q."
def test_the_queue_is_by_priority_and_equals_keep_their_order():
    waiting = node()
    for who, priority in ((1, 3.0), (2, 5.0), (1, 5.0), (2, 3.0)):
        waiting.enqueue(who, priority)
    assert waiting.queue == [(2, 5.0), (1, 5.0), (1, 3.0), (2, 3.0)]


def test_a_thousand_epsilons_are_one():
    waiting = node()
    waiting.enqueue(1, 3.0)
    for _ in range(1000):
        waiting.age()
    assert waiting.queue == [(1, 4.0)]


def stuck(recheck, changes=0):
    return sum(
        len(walk("jiang-printed", seed, changes=changes, option=f"recheck={recheck}").waiting) > 0
        for seed in range(400)
    )


# Jiang, Prioritized h-out of-k Resource Allocation, section 4, Theorem 3, which fails as printed:
# "The algorithm ensures the bounded delay property."
def test_how_many_of_400_random_runs_get_stuck():
    """12 requests each, 2 to 6 nodes, 1 to 4 permits, FIFO links that do not change."""
    assert stuck("prose") == 228
    assert stuck("appendix") == 286


# Jiang, Prioritized h-out of-k Resource Allocation, section 4, Theorem 1: "The algorithm ensures
# the mutual exclusion property."
def test_safe_with_one_token_and_every_permit_accounted_for_while_links_change():
    for seed in range(150):
        violated = walk("jiang-printed", seed, changes=15).monitor.violated
        assert not {"safety", "one-token", "conservation"} & set(violated), seed


# Jiang, Prioritized h-out of-k Resource Allocation, section 1, of Reverse Link: "The RL algorithm
# totally orders nodes so that the lowest-ordered node is always the token holder."
def test_the_holder_is_the_lowest_of_all():
    def look(director):
        for holder in director.nodes:
            if holder.tokens():
                assert all(holder.height <= other.height for other in director.nodes)

    for seed in range(40):
        walk("jiang-printed", seed, changes=15, look=look)


def test_a_frozen_node_thaws_to_the_same_node():
    def swap(director):
        """Put every node's state into the node that was there, by way of freeze and thaw."""
        for each in director.nodes:
            state = each.freeze()
            hash(state)
            each.thaw(walk("jiang-printed", 0, requests=0).nodes[0].freeze())
            each.thaw(state)
            assert each.freeze() == state

    for seed in range(10):
        plain = walk("jiang-printed", seed, changes=10)
        assert walk("jiang-printed", seed, changes=10, look=swap).lines == plain.lines


def test_permits_are_lost_when_there_is_no_neighbour_to_send_them_to():
    """J7 for a RELEASE: the text does not say what to do, and nothing is done."""
    alone = node()
    alone.token_holder, alone.free, alone.want = False, 0, 1
    alone.link_down(1)
    alone.link_down(2)
    alone.out.clear()
    alone.release(0)
    assert alone.out == []
