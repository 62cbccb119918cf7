"""Two ends of a link, whatever happens to the connections between them.

The story is always the same: both ends send numbered messages, connections break at any
moment and lose what was on them, either end may give the other up. In one generation each
end hears what the other sent, in order, nothing twice, nothing missing but the tail. What
was in custody is heard exactly once, over all generations.
"""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strangers import carried, content

from meshlock.live.links.frames import FRAME_LIMIT, BadFrame, Carry
from meshlock.live.links.link import Splitter
from meshlock.live.links.session import IN_FLIGHT, MOST_BYTES, OVERHEAD, LinkSession, Overflow


class End:
    def __init__(self, name: str, boot: int, peer: str) -> None:
        self.session = LinkSession(name, boot, peer)
        self.sent: dict[int, list[object]] = {}  # generation: what was sent in it
        self.heard: dict[int, list[object]] = {}
        self.kept: list[object] = []  # sent in custody
        self.got: list[object] = []  # heard in custody
        self.written = 0

    def say(self, text: object, custody: bool) -> None:
        if self.session.up:
            self.sent.setdefault(self.session.generation, []).append(text)
        if custody:
            self.kept.append(text)
        self.session.send(content("TOKEN" if custody else "LINK", (text,)), custody)

    def frames(self) -> list[Carry]:
        """What a connection writes now."""
        fresh = self.session.after(self.written)
        self.written = self.session.sent
        return list(Splitter(FRAME_LIMIT).feed(b"".join(fresh)))  # type: ignore[arg-type]

    def hear(self, frame: Carry) -> None:
        if self.session.take(frame):
            [text] = msgspec.msgpack.decode(frame.payload)
            self.heard.setdefault(self.session.generation, []).append(text)
            if frame.custody:
                self.got.append(text)


def greet(dialler: End, dialled: End, *, welcome_arrives: bool = True) -> bool:
    hello = dialler.session.hello()
    welcome, _ = dialled.session.welcome(hello)
    dialled.written = hello.received if hello.known == dialled.session.boot else 0
    if not welcome_arrives:
        return False
    assert dialler.session.obey(welcome, hello) is not None
    dialler.written = welcome.received
    return True


def pair() -> tuple[End, End]:
    return End("ann", 11, "bob"), End("bob", 22, "ann")


def test_a_new_connection_takes_over_where_the_old_one_stopped() -> None:
    ann, bob = pair()
    greet(ann, bob)
    for text in range(5):
        ann.say(text, custody=False)
    for frame in ann.frames()[:2]:
        bob.hear(frame)  # the connection breaks behind the second
    greet(bob, ann)
    for frame in ann.frames():
        bob.hear(frame)
    assert bob.heard == {1: [0, 1, 2, 3, 4]}


def test_a_token_that_had_arrived_does_not_come_again() -> None:
    ann, bob = pair()
    greet(ann, bob)
    ann.say("token", custody=True)
    for frame in ann.frames():
        bob.hear(frame)  # and the acknowledgement never gets back
    ann.session.end()
    bob.session.end()
    greet(ann, bob)
    assert ann.frames() == []
    assert bob.got == ["token"]
    assert not ann.session.custody


def test_a_token_that_had_not_arrived_comes_when_the_link_returns() -> None:
    ann, bob = pair()
    greet(ann, bob)
    ann.say("before", custody=False)
    ann.say("token", custody=True)
    ann.frames()  # all lost
    ann.session.end()
    greet(ann, bob)  # bob had not noticed anything
    ann.say("after", custody=False)
    for frame in ann.frames():
        bob.hear(frame)
    assert bob.heard == {2: ["token", "after"]}


def test_a_process_that_forgot_is_not_sent_what_its_former_life_may_have_had() -> None:
    ann, bob = pair()
    greet(ann, bob)
    ann.say("token", custody=True)
    ann.frames()
    reborn = End("bob", 23, "ann")
    greet(ann, reborn)
    assert ann.frames() == []
    ann.say("news", custody=True)
    for frame in ann.frames():
        reborn.hear(frame)
    assert reborn.got == ["news"]


def test_what_we_told_may_be_outdated_when_the_answer_comes() -> None:
    ann, bob = pair()
    greet(ann, bob)
    hello = ann.session.hello()
    ann.session.end()  # silence, while the handshake was under way
    welcome, _ = bob.session.welcome(hello)
    assert ann.session.obey(welcome, hello) is None


def test_gaps_and_impossible_acknowledgements_are_faults() -> None:
    ann, bob = pair()
    greet(ann, bob)
    for number, acknowledged in ((2, 0), (1, 7)):
        with pytest.raises(BadFrame):
            frame = carried(number, "LINK")
            bob.session.take(msgspec.structs.replace(frame, acknowledged=acknowledged))


def test_a_peer_that_takes_nothing_costs_bounded_memory() -> None:
    ann, bob = pair()
    greet(ann, bob)
    for text in range(IN_FLIGHT):
        ann.say(text, custody=False)
    with pytest.raises(Overflow):
        ann.say("one more", custody=False)


def test_all_that_waited_goes_out_when_the_link_returns_however_much_it_is() -> None:
    ann, bob = pair()
    for text in range(IN_FLIGHT + 10):
        ann.say(text, custody=True)
    greet(ann, bob)
    with pytest.raises(Overflow):
        ann.say("one more", custody=False)
    for frame in ann.frames():
        bob.hear(frame)
    assert bob.got == ann.kept


def test_what_waits_is_bounded_in_bytes_and_a_receipt_makes_room() -> None:
    ann, bob = pair()
    greet(ann, bob)
    long = "x" * (FRAME_LIMIT // 2)
    ann.session.end()
    with pytest.raises(Overflow, match="has not acknowledged"):
        for _ in range(1000):
            ann.say(long, custody=True)
    assert ann.session.waiting_bytes < MOST_BYTES + FRAME_LIMIT
    assert len(ann.session.custody) < 1000
    ann.session.acknowledge(len(ann.session.custody) - 1)
    assert ann.session.waiting_bytes == OVERHEAD + len(ann.session.custody[0][2].payload)
    greet(ann, bob)
    with pytest.raises(Overflow, match="has not acknowledged"):
        for _ in range(1000):
            ann.say(long, custody=False)


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.booleans(), st.booleans()),
        st.tuples(st.just("pass"), st.booleans(), st.integers(0, 4)),
        st.tuples(st.just("break"), st.booleans(), st.booleans()),
        st.tuples(st.just("give up"), st.booleans(), st.booleans()),
    ),
    max_size=60,
)


@settings(max_examples=400, deadline=None)
@given(ACTIONS)
def test_any_story_of_breaks_and_returns(actions: list[tuple[str, bool, int]]) -> None:
    ann, bob = pair()
    wires: dict[End, list[Carry]] = {ann: [], bob: []}  # on the connection, by sender
    connected = greet(ann, bob)
    text = 0
    for action, who, what in actions:
        end, other = (ann, bob) if who else (bob, ann)
        if action == "say":
            text += 1
            end.say(text, bool(what))
        elif action == "pass" and connected:
            wires[end] += end.frames()
            for frame in wires[end][:what]:
                other.hear(frame)
            del wires[end][:what]
        elif action == "give up":
            end.session.end()
            connected = False
        elif action == "break":
            connected = False
        if not connected:
            wires[ann].clear()
            wires[bob].clear()
            if action == "break":
                connected = greet(end, other, welcome_arrives=bool(what))
    greet(ann, bob)
    for end, other in ((ann, bob), (bob, ann)):
        for frame in end.frames():
            other.hear(frame)
        for generation, heard in other.heard.items():
            said = end.sent.get(generation, [])
            fresh = [word for word in heard if word in said]
            assert fresh == said[: len(fresh)]
            assert len(set(heard)) == len(heard)
        assert other.got == end.kept


def test_what_is_meant_for_the_new_process_outlives_the_old_one() -> None:
    a, b = End("a", 1, "b"), End("b", 2, "a")
    assert greet(a, b)
    for text, boot in (("old", 2), ("new", 3), ("any", 0), ("newer", 3)):
        a.session.send(content("TOKEN", (text,))._replace(boot=boot), True)
    again = End("b", 3, "a")  # it restarted; a had heard of that before the link failed
    assert greet(a, again)
    for frame in a.frames():
        again.hear(frame)
    assert again.got == ["new", "newer"]
    assert a.session.forsaken == 2
    again.session.send(content("LINK", ("thanks",)), False)
    for frame in again.frames():
        a.hear(frame)
    assert not a.session.custody and a.session.waiting_bytes == 0
