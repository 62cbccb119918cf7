"""The general scheme: the report's worked example, step by step, and its queues."""

from collections import deque

import pytest

from meshlock.algorithms.general_scheme import AlwaysProxy, AlwaysTransit, Request, SchemeNode
from meshlock.algorithms.interface import NIL, Enter, Message
from meshlock.algorithms.queues import Fifo, Lift

# The example's two figures: a path 8 > 7 > ... > 1 with the token at 1; 3, 5, 6 are proxies.
STORY = """\
8 asks
8 sends REQUEST(8) to 7
7 sends REQUEST(8) to 6
6 sends REQUEST(6) to 5
5 sends REQUEST(5) to 4
4 sends REQUEST(5) to 3
3 sends REQUEST(3) to 2
2 sends REQUEST(3) to 1
1 sends TOKEN(nil) to 3
3 sends TOKEN(3) to 5
5 sends TOKEN(3) to 6
6 sends TOKEN(3) to 8
8 enters
8 leaves
8 sends TOKEN(nil) to 3
"""


def test_the_example_of_figures_2_and_3():
    out = []
    nodes = {
        me: SchemeNode(
            me,
            out,
            NIL if me == 1 else me - 1,
            AlwaysProxy() if me in (3, 5, 6) else AlwaysTransit(),
            Fifo(),
        )
        for me in range(1, 9)
    }
    story, flying = [], deque()

    def tell(me):
        for effect in out:
            if isinstance(effect, Message):
                value = effect.freeze()[1]
                text = "nil" if value == NIL else value
                story.append(f"{me} sends {effect.kind}({text}) to {effect.receiver}")
                flying.append(effect)
            elif isinstance(effect, Enter):
                story.append(f"{me} enters")
        out.clear()
        while flying:
            message = flying.popleft()
            nodes[message.receiver].receive(message)
            tell(message.receiver)

    story.append("8 asks")
    nodes[8].request(1, 1, 0)
    tell(8)
    story.append("8 leaves")
    nodes[8].release(1)
    tell(8)

    assert "\n".join(story) + "\n" == STORY
    assert sum("REQUEST" in line for line in story) == 7
    assert sum("TOKEN" in line for line in story) == 5
    fathers = {me: node.father for me, node in nodes.items() if node.father != NIL}
    assert fathers == {1: 3, 2: 3, 4: 5, 5: 3, 6: 5, 7: 8, 8: 6}
    assert [me for me, node in nodes.items() if node.token_here] == [3]
    assert nodes[3].free_permits() == 1
    assert not any(node.asked for node in nodes.values())


@pytest.mark.parametrize("queue", [Fifo(), Lift(7)], ids=["fifo", "lift"])
def test_a_queue_gives_out_all_it_took_in_and_survives_freezing(queue):
    for item in [*range(200), 7]:
        if item != 7 or isinstance(queue, Lift):
            queue.push(item)
    taken = []
    while len(queue):
        taken.append(queue.pop())
        again = Lift(7) if isinstance(queue, Lift) else Fifo()
        again.thaw(queue.freeze())
        assert again.freeze() == queue.freeze()
        assert len(again) == len(queue)
    assert sorted(taken) == sorted(set(range(200)) - ({7} if type(queue) is Fifo else set()))


def test_lift_serves_its_own_first_but_never_twice_in_a_row_while_others_wait():
    queue = Lift(0)
    for other in (5, 6):
        queue.push(other)
    served = []
    for _ in range(5):
        queue.push(0)  # the node asks again at once
        served.append(queue.pop())
    assert served == [0, 5, 0, 6, 0]


def test_a_request_is_kept_until_the_node_is_free():
    out = []
    node = SchemeNode(1, out, NIL, AlwaysTransit(), Fifo())
    node.request(1, 1, 0)
    assert [type(effect) for effect in out] == [Enter]
    out.clear()
    ask = Request(1, 2)
    ask.sender = 2
    node.receive(ask)
    assert out == []
    node.release(1)
    assert [(effect.kind, effect.receiver) for effect in out] == [("TOKEN", 2)]
