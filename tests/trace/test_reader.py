"""Whatever is wrong with a trace is one sentence, whether it is judged or replayed."""

import gzip

import msgspec
import pytest

from meshlock.simulate.schedule import read
from meshlock.trace.audit import Audit
from meshlock.trace.reader import BadTrace, Trace
from meshlock.trace.writer import TraceWriter
from runs import finished

RUN = {"algorithm": "jiang", "topology": "ring", "nodes": 4, "permits": 2, "requests": 15}
HUGE = 10**400


@pytest.fixture
def lines(tmp_path):
    path = tmp_path / "run.jsonl"
    with path.open("wb") as file:
        finished(TraceWriter(file, False), **RUN, want="1-2", priority="1-3")
    return path.read_bytes().splitlines(keepends=True)


def written(tmp_path, lines, number, **change):
    """The trace with other values in this line."""
    line = {**msgspec.json.decode(lines[number]), **change}
    # msgspec writes no whole number of more than 64 bits
    text = msgspec.json.encode(line).replace(b'"HUGE"', str(HUGE).encode())
    path = tmp_path / "other.jsonl"
    path.write_bytes(b"".join([*lines[:number], text + b"\n", *lines[number + 1 :]]))
    return path


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *[("ageing", value) for value in ("x", None, "HUGE")],
        *[("holder", value) for value in ("x", None, [0])],
        *[("links", value) for value in ([[0]], [["a", "b"]], [[0, 4]], [[0, -1]], [0], "x", 5)],
        *[("options", value) for value in (None, 5, "x", [])],
        *[("tree", value) for value in ("x", None, ["a"], [4], 5)],
        *[("permits", value) for value in ("x", None, 0)],
    ],
)
def test_a_bad_set_up_is_refused(tmp_path, lines, key, value):
    with pytest.raises(BadTrace, match=f"^Line 1 of .* has no valid '{key}'"):
        Trace(written(tmp_path, lines, 0, **{key: value}))


@pytest.mark.parametrize("key", ["tokens", "free", "permits", "lent", "priority"])
@pytest.mark.parametrize("value", ["x", None, [1]])
@pytest.mark.parametrize("judge", [Audit, read])
def test_what_is_no_number_is_refused(tmp_path, lines, key, value, judge):
    path = written(tmp_path, lines, 3, **{key: value})
    with pytest.raises(BadTrace, match=f"^Line 4 of .* needs a .*number as '{key}'"):
        judge(Trace(path))


@pytest.mark.parametrize("key", ["t", "priority"])
def test_a_number_that_no_float_holds_is_refused(tmp_path, lines, key):
    with pytest.raises(BadTrace, match=r"^Line 4 of "):
        Audit(Trace(written(tmp_path, lines, 3, **{key: "HUGE"})))


def test_a_damaged_byte_of_a_compressed_trace_is_one_sentence(tmp_path, lines):
    whole = gzip.compress(b"".join(lines), mtime=0)
    path = tmp_path / "run.jsonl.gz"
    for place in range(20, len(whole), 7):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        with pytest.raises(BadTrace):
            Audit(Trace(path))
