"""Movement and contact files: the samples, small ones by hand, and broken ones."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from meshlock.errors import Refused
from meshlock.topology.mobility import recorded
from meshlock.topology.mobility.changes import LinkChange
from meshlock.topology.mobility.specification import mobility

ABOVE = [folder / "shared" / "data" for folder in Path(__file__).parents]
DATA = next((folder for folder in ABOVE if folder.exists()), ABOVE[0])
sample = pytest.mark.skipif(not DATA.exists(), reason="the sample traces are not here")

Contact = tuple[float, bool, int, int]


def contacts(file: Path, radius: float | None, until: float = 1e9) -> list[Contact]:
    found = mobility(str(file), None, None, 1, radius=radius, until=until)
    assert found is not None
    seen = [(0.0, True, one, other) for one, other in found.graph.links()]
    while (change := found.changes.next()) is not None:
        assert isinstance(change, LinkChange)
        if change.up:
            found.graph.connect(change.one, change.other)
        else:
            found.graph.cut(change.one, change.other)
        seen.append((change.time, change.up, change.one, change.other))
    return seen


def refusal(file: Path, nodes: int | None = None, radius: float | None = 5.0) -> str:
    with pytest.raises(Refused) as refused:
        mobility(str(file), None, nodes, 1, radius=None if file.suffix == ".tsv" else radius)
    text = str(refused.value)
    assert "\n" not in text
    assert len(text) < 400
    assert "?." not in text
    return text


# -- the samples


@sample
@pytest.mark.parametrize(("radius", "count"), [(30.0, 26), (50.0, 53), (100.0, 74), (200.0, 91)])
def test_bonnmotion_and_ns2_give_the_same_contacts(radius: float, count: int) -> None:
    """One motion in two forms; the border of 10 m in the ns-2 form moves everybody alike."""
    bonnmotion = contacts(DATA / "rwp_10.movements.gz", radius, 599.0)
    ns2 = contacts(DATA / "rwp_10.ns_movements", radius, 599.0)
    assert len(bonnmotion) == count
    assert [contact[1:] for contact in bonnmotion] == [contact[1:] for contact in ns2]
    assert [contact[0] for contact in bonnmotion] == pytest.approx([c[0] for c in ns2])


@sample
def test_contacts_of_a_field_experiment() -> None:
    """A link is up while either end sees the other, so each contact opens and closes once."""
    seen = contacts(DATA / "haggle-intel.tsv", None)
    assert len(seen) == 2000
    open_links: set[tuple[int, int]] = set()
    for _, up, one, other in seen:
        assert ((one, other) in open_links) != up
        open_links ^= {(one, other)}
    assert open_links == set()
    assert seen[-1][0] == 359190


# -- by hand


def test_bonnmotion_by_hand(tmp_path: Path) -> None:
    file = tmp_path / "two.movements"
    file.write_text("# comment\n0 0 0 10 10 0\n\n0 20 0 10 10 0 12 10 0 22 20 0\n")
    assert contacts(file, 4.0) == [(8.0, True, 0, 1), (pytest.approx(16.0), False, 0, 1)]


def test_ns2_by_hand(tmp_path: Path) -> None:
    """Node 1 turns round halfway, before it has come to where it was sent."""
    file = tmp_path / "two.ns_movements"
    file.write_text(
        "set god_ [God instance]\n"
        "$node_(0) set X_ 0\n$node_(0) set Y_ 0\n$node_(0) set Z_ 0\n"
        "$node_(1) set X_ 20.0\n$node_(1) set Y_ 0.0\n"
        '$ns_ at 1.0 "$node_(1) setdest 0 0 2.0"   # towards node 0\n'
        '$ns_ at 6.0 "$node_(1) setdest 20 0 1.0"\n'
        '$ns_ at 7.0 "$god_ set-dist 0 1 1"\n'
    )
    assert contacts(file, 12.0) == [(5.0, True, 0, 1), (8.0, False, 0, 1)]


def test_one_contacts_by_hand(tmp_path: Path) -> None:
    file = tmp_path / "three.tsv"
    file.write_text(
        "0 CONN 0 1 up\n0\tCONN\t2\t1\tup\n5 CONN 1 0 up\n6 CONN 0 1 down\n6 CONN 0 2 down\n"
        "7.5 CONN 1 0 down\n8 CONN 0 1 up\n8 CONN 0 1 up\n"
    )
    assert contacts(file, None) == [
        (0, True, 0, 1),
        (0, True, 1, 2),
        (7.5, False, 0, 1),  # node 0 lost sight at 6, node 1 not before 7.5
        (8.0, True, 0, 1),
    ]


def test_files_may_part_unless_that_is_to_be_prevented(tmp_path: Path) -> None:
    file = tmp_path / "three.tsv"
    file.write_text("0 CONN 0 1 up\n3 CONN 1 2 up\n")
    found = mobility(str(file), None, None, 1)
    assert found is not None
    assert (found.graph.size, found.graph.components) == (3, 2)
    assert [found.graph.father(node) for node in range(3)] == [-1, 0, 0]
    with pytest.raises(Refused, match="starts parted, node 2 cannot be reached from node 0"):
        mobility(str(file), None, None, 1, partitions="prevented")


# -- broken files


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.tsv", "0 CONN 0 1 up\n1 CONN 0\n", "line 2: not of the form"),
        ("a.tsv", "0 CONN 0 1 up\n1 CONN 0 1 do", "line 2: not of the form"),
        ("a.tsv", "-1 CONN 0 1 up\n", "line 1: the time -1 is negative"),
        ("a.tsv", "nan CONN 0 1 up\n", "line 1: the time nan is too large"),
        ("a.tsv", "0 CONN 0 1 up\n\n5 CONN 1 2 up\n4 CONN 1 2 down\n", "line 4: the time 4 lies"),
        ("a.tsv", "0 CONN 0 x up\n", "line 1: 'x' is not a node"),
        ("a.tsv", "0 CONN 0 -1 up\n", "line 1: '-1' is not a node"),
        ("a.tsv", "0 CONN 0 7 up\n", "line 1: node 7 is unknown: with 5 nodes the last is 4"),
        ("a.tsv", "0 CONN 0 99999999999 up\n", "line 1: node 1000000 is unknown"),
        ("a.tsv", "0 CONN 2 2 up\n", "line 1: node 2 meets itself"),
        ("a.tsv", "# nothing\n", "holds no contacts"),
        ("a.tsv", "0 CONN 0 1 up\n" + "x" * 2000, "line 2: longer than 1,000 characters"),
        ("a.movements", "0 0 0 10 1\n", "line 1: 5 numbers"),
        ("a.movements", "0 0 0\n0 0 zero\n", "line 2: y 'zero' is not a number"),
        ("a.movements", "0 0 0\n0 0 inf\n", "line 2: y inf is too large"),
        ("a.movements", "0 0 0\n5 0 0 -2 0 0\n", "line 2: the time -2 is negative"),
        ("a.movements", "5 0 0 2 0 0\n", "line 1: the time 2 lies before 5"),
        ("a.movements", "0 0 0\n" * 6, "line 6: a node more than the 5 there are"),
        ("a.movements", "0 0 0\n" * 4, "ends after line 4 with 4 nodes, not 5"),
        ("a.movements", "", "holds no movement"),
        ("a.ns_movements", "$node_(0) set X_\n", "line 1: neither the place"),
        ("a.ns_movements", "$node_(0) set X_ 1\n$node_(9) set Y_ 1\n", "line 2: node 9 is unknown"),
        (
            "a.ns_movements",
            '$node_(0) set X_ 1\n$ns_ at 0 "$node_(0) setdest 1 1 1"\n',
            "line 2: node 0 is sent off before it has been placed",
        ),
        (
            "a.ns_movements",
            '$node_(0) set X_ 1\n$node_(0) set Y_ 1\n$ns_ at 0 "$node_(0) setdest 1 1',
            "line 3: neither the place of a node nor a setdest order",
        ),
        (
            "a.ns_movements",
            '$node_(0) set X_ 1\n$node_(0) set Y_ 1\n$ns_ at -3 "$node_(0) setdest 1 1 1"\n',
            "line 3: the time -3 is negative",
        ),
        (
            "a.ns_movements",
            '$node_(0) set X_ 1\n$node_(0) set Y_ 1\n$ns_ at 3 "$node_(0) setdest 1 1 -1"\n',
            "line 3: the speed -1 is negative",
        ),
        ("a.ns_movements", "$node_(0) set X_ 1\n", "does not say where node 0 is"),
        ("a.ns_movements", "", "does not say where node 0 is"),
    ],
)
def test_broken(tmp_path: Path, name: str, content: str, says: str) -> None:
    file = tmp_path / name
    file.write_text(content)
    text = refusal(file, nodes=5)
    assert says in text
    assert name in text


@pytest.mark.parametrize("name", ["a.tsv", "a.movements", "a.ns_movements"])
def test_binary(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_bytes(b"\x7fELF\x02\x01\x01\x00\x00\xff\xfe" * 50)
    assert "line 1: not text" in refusal(file)


def test_missing(tmp_path: Path) -> None:
    for name in ("a.tsv", "a.movements", "a.movements.gz", "a.ns_movements"):
        assert f"{name} cannot be read: no such file" in refusal(tmp_path / name)


def test_damaged_archives(tmp_path: Path) -> None:
    file = tmp_path / "a.movements.gz"
    whole = gzip.compress(b"".join(b"0 %d %d\n" % (i, i * 7919 % 100) for i in range(5000)))
    file.write_bytes(whole[: len(whole) // 2])
    assert "the compressed file is cut off here" in refusal(file)
    file.write_bytes(whole[:50] + b"\0" * 60 + whole[110:])
    assert "the compressed file is damaged" in refusal(file)
    file.write_bytes(b"0 0 0\n")
    assert "line 1: the compressed file is damaged" in refusal(file)
    file.write_bytes(gzip.compress(b"0 " * 20_000_000))
    assert "line 1: longer than" in refusal(file)


def test_too_much_to_keep_is_refused_at_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The true bound is 5,000,000 places; a run of the test with that takes ten seconds."""
    assert recorded.MOST_PLACES == 5_000_000
    file = tmp_path / "a.ns_movements"
    order = '$ns_ at 1 "$node_(0) setdest 1 1 1"\n'
    file.write_text("$node_(0) set X_ 0\n$node_(0) set Y_ 0\n" + order * 30)

    if (recorded.__file__ or "").endswith(".py"):
        monkeypatch.setattr(recorded, "MOST_PLACES", 20)
        assert "line 21: more than 20 orders" in refusal(file)
        other = tmp_path / "a.movements"
        other.write_text("0 0 0 1 1 1\n" * 30)
        assert "line 11: more than 20 places" in refusal(other)


def test_a_long_contact_trace_is_not_kept_in_memory(tmp_path: Path) -> None:
    """300,000 lines in less than 10 MB more than one line takes; 10^7 lines need no more."""
    program = (
        "import resource, sys\n"
        "from meshlock.topology.mobility.specification import mobility\n"
        "found = mobility(sys.argv[1], None, None, 1)\n"
        "count = 0\n"
        "while (change := found.changes.next()) is not None:\n"
        "    count += 1\n"
        "print(count, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
    )
    used = []
    for count in (2, 300_000):
        file = tmp_path / f"{count}.tsv"
        with file.open("w") as out:
            for i in range(count):
                out.write(f"{i + 1} CONN {i // 2 % 50} 50 {'down' if i % 2 else 'up'}\n")
        command = [sys.executable, "-c", program, str(file)]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        changes, memory = printed.split()
        assert int(changes) == count
        used.append(int(memory) * (1 if sys.platform != "darwin" else 1 / 1024))
    assert used[1] - used[0] < 10 * 1024


# -- specifications


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("waypiont:1,1", "did you mean waypoint:SPEED,RANGE[,PAUSE]?"),
        ("xyzzy", "choose one of none, flips:RATE"),
        ("trace.csv", "its name must end in .ns_movements"),
        ("flips", "is not of the form flips:RATE"),
        ("flips:x", "is not of the form flips:RATE"),
        ("flips:0", "needs a rate above 0"),
        ("flips:-1", "is not of the form flips:RATE"),
        ("waypoint:1", "is not of the form waypoint:SPEED,RANGE[,PAUSE]"),
        ("waypoint:0,0.3", "needs a speed above 0"),
        ("waypoint:0.2-0.1,0.3", "needs a speed above 0, or LOW-HIGH"),
        ("waypoint:fast,0.3", "is not of the form waypoint"),
        ("waypoint:0.1,0", "needs a range above 0"),
        ("waypoint:0.1,0.3,1,2", "is not of the form waypoint"),
        ("waypoint:0.1,0.05", "raise the range (about 0.21 is usually enough), or allow part"),
        ("walk:0.1,0.3,0", "needs a step above 0"),
        ("gauss-markov:0.1,0.3,2", "needs a memory from 0 to 1"),
        ("manhattan:0.1,0.3,2.5", "needs a whole number of blocks"),
        ("manhattan:0.1,0.3,0", "needs a whole number of blocks"),
    ],
)
def test_refused_specifications(spec: str, says: str) -> None:
    from meshlock.topology.specification import network

    with pytest.raises(Refused) as refused:
        mobility(spec, network("ring", 50, 1), 50, 1)
    assert says in str(refused.value)


def test_what_a_specification_needs_besides(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="add --nodes"):
        mobility("waypoint:0.1,0.3", None, None, 1)
    with pytest.raises(Refused, match="give one"):
        mobility("flips:1", None, 5, 1)
    with pytest.raises(Refused, match="has its own: waypoint"):
        mobility("waypoint:0.1,0.3", None, 5, 1, radius=3.0)
    with pytest.raises(Refused, match="give the radio range, as in --range 50"):
        mobility("a.movements", None, 5, 1)
    with pytest.raises(Refused, match="leave --range out"):
        mobility("a.tsv", None, 5, 1, radius=3.0)
    with pytest.raises(Refused, match="Partitions are prevented, allowed, healed, not 'maybe'"):
        mobility("waypoint:0.1,0.3", None, 5, 1, partitions="maybe")


def test_small_numbers_and_spans_are_speeds() -> None:
    for speed in ("1e-3", "0.001-0.002", "1e-3-2e-3", ".5"):
        assert mobility(f"waypoint:{speed},0.9", None, 5, 1) is not None
    assert mobility("none", None, 5, 1) is None
