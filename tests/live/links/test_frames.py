"""Whatever bytes come, the decoder answers with frames or with a sentence."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshlock.live.links.frames import (
    FRAME_LIMIT,
    HANDSHAKE_LIMIT,
    LENGTH,
    BadFrame,
    Beat,
    Carry,
    Envelope,
    Frame,
    HelloFrame,
    LinksFrame,
    RefuseFrame,
    RoutedFrame,
    pack,
)
from meshlock.live.links.link import Splitter
from meshlock.live.links.session import pack_carry
from meshlock.live.machine.limits import NAME

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=10,
)
NUMBERS = st.integers(0, 2**53 - 1)
NAMES = st.from_regex(NAME, fullmatch=True)
SMALL = st.integers(0, 2**53 - 1)
CARRIES = st.builds(
    Carry,
    NUMBERS,
    NUMBERS,
    NUMBERS,
    st.booleans(),
    st.text(max_size=9),
    NUMBERS,
    st.text(max_size=9),
    st.binary(max_size=99),
    st.none() | st.tuples(SMALL, SMALL, SMALL),
)
FRAMES = st.one_of(
    st.builds(Beat, NUMBERS, NUMBERS),
    st.builds(
        Envelope,
        NAMES,
        NAMES,
        st.integers(0, 4096),
        st.binary(max_size=16),
        st.binary(max_size=99),
    ),
    st.builds(RefuseFrame, st.text(max_size=9), st.booleans()),
    st.builds(
        RoutedFrame,
        NUMBERS,
        NUMBERS,
        NUMBERS,
        st.integers(0, 2**30),
        NUMBERS,
        NUMBERS,
        NUMBERS,
        st.text(max_size=9),
        NUMBERS,
        st.text(max_size=9),
        st.binary(max_size=99),
        st.none() | st.tuples(SMALL, SMALL, SMALL),
    ),
    st.builds(LinksFrame, NAMES, SMALL, SMALL, st.lists(NAMES, max_size=5).map(tuple)),
    CARRIES,
    st.builds(
        HelloFrame,
        NUMBERS,
        st.text(max_size=9),
        NUMBERS,
        NUMBERS,
        st.integers(0, 2**30),
        st.booleans(),
        NUMBERS,
    ),
)


@given(st.lists(FRAMES, max_size=6), st.lists(st.integers(1, 40), min_size=1))
def test_frames_survive_any_cutting_of_the_stream(frames: list[Frame], cuts: list[int]) -> None:
    stream = b"".join(pack(frame) for frame in frames)
    splitter, found, place, turn = Splitter(FRAME_LIMIT), [], 0, 0
    while place < len(stream):
        size = cuts[turn % len(cuts)]
        found += list(splitter.feed(stream[place : place + size]))
        place, turn = place + size, turn + 1
    assert found == frames
    assert splitter.buffer == b""


@given(CARRIES)
def test_what_is_written_without_an_object_is_the_same(carry: Carry) -> None:
    fields = [getattr(carry, name) for name in carry.__struct_fields__]
    assert pack_carry(*fields) == pack(carry)


@given(st.lists(st.binary(max_size=200)))
def test_garbage_is_frames_or_a_sentence_and_never_grows(chunks: list[bytes]) -> None:
    splitter = Splitter(HANDSHAKE_LIMIT)
    try:
        for chunk in chunks:
            list(splitter.feed(chunk))
            assert len(splitter.buffer) <= HANDSHAKE_LIMIT + LENGTH.size
    except BadFrame as error:
        assert str(error)


@given(PLAIN)
def test_well_formed_nonsense_is_refused_by_its_type(value: object) -> None:
    body = msgspec.msgpack.encode(value)
    with pytest.raises(BadFrame):
        list(Splitter(FRAME_LIMIT).feed(LENGTH.pack(len(body)) + body))


def test_a_length_is_refused_before_its_bytes_are_read() -> None:
    with pytest.raises(BadFrame, match="4097 bytes"):
        list(Splitter(HANDSHAKE_LIMIT).feed(LENGTH.pack(HANDSHAKE_LIMIT + 1)))


def test_nesting_without_end_is_refused() -> None:
    body = b"\x97\x04\x01\x00\x00\xa1p\xa1K" + b"\x91" * 100_000 + b"\x00"
    with pytest.raises(BadFrame):
        list(Splitter(FRAME_LIMIT).feed(LENGTH.pack(len(body)) + body))


def test_a_refusal_that_does_not_say_whether_it_is_mutual_is_not() -> None:
    body = msgspec.msgpack.encode([3, "enough"])
    splitter = Splitter(HANDSHAKE_LIMIT)
    assert list(splitter.feed(LENGTH.pack(len(body)) + body)) == [
        RefuseFrame("enough", mutual=False)
    ]
