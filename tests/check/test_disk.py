"""States that outgrow memory go to disk, and everything else stays as it was."""

import json
import os
import resource
import signal
import subprocess
import sys
from array import array
from pathlib import Path

import pytest
from checks import FOR_EVER, SET_UPS, sizes

from meshlock.check import outgrowing
from meshlock.check.disk import CHUNK, Row, Space, space
from waiting import LIMIT
from whole import WHOLE

SEARCHES = {**SET_UPS, **FOR_EVER}


def figures(verdict):
    explorer = verdict.explorer
    ways = {it.name: (it.text, it.labels, it.loop) for it in verdict.violations()}
    count = explorer.count()
    states = [explorer.state(number) for number in range(0, count, 1 + count // 50)]
    return count, explorer.transitions, explorer.depth, verdict.complete(), ways, states


@pytest.mark.parametrize("at_hand", [50, 700, 10**6] if WHOLE else [50, 700])
@pytest.mark.parametrize("name", SEARCHES)
def test_the_same_states_come_in_the_same_order(name, at_hand, found, in_memory, tmp_path):
    on_disk = found(SEARCHES[name], at=Space(str(tmp_path), at_hand))
    assert isinstance(on_disk.explorer, outgrowing.Outgrowing)
    assert figures(on_disk) == figures(in_memory(name))
    assert on_disk.explorer.backward == in_memory(name).explorer.backward


def test_what_is_on_disk_is_more_than_what_is_at_hand(found, tmp_path):
    explorer = found(SET_UPS["raymond"], at=Space(str(tmp_path), 50)).explorer
    assert explorer.store.away > 400 > 2 * len(explorer.numbers)


@pytest.mark.parametrize("most", [1, 2, 300, 499])
@pytest.mark.parametrize("few", [1, 100, 10**6])
@pytest.mark.parametrize("name", ["raymond", "deadlock", "renews the dead"])
def test_it_ends_in_the_same_state_where_it_is_told_to(
    name, most, few, found, tmp_path, monkeypatch
):
    monkeypatch.setattr(outgrowing, "FEW", few)
    words = SET_UPS[name]
    on_disk = found(words, most, Space(str(tmp_path), 90))
    assert figures(on_disk) == figures(found(words, most))


def test_names_are_reduced_on_disk_too(found, tmp_path):
    words = {"algorithm": "general-scheme", "nodes": 3}
    on_disk = found(words, at=Space(str(tmp_path), 50), reduction="symmetry")
    assert figures(on_disk) == figures(found(words, reduction="symmetry"))


@pytest.mark.parametrize("at_hand", [150, 10**6] if WHOLE else [150])
@pytest.mark.parametrize("name", SEARCHES)
def test_several_processes_count_the_same(name, at_hand, found, in_memory, soon, tmp_path):
    for workers in (2, 3) if WHOLE else (3,):
        together = found(SEARCHES[name], at=Space(str(tmp_path), at_hand), workers=workers)
        assert sizes(together) == sizes(in_memory(name))


def test_several_processes_know_whether_there_may_be_cycles(found, in_memory, soon, tmp_path):
    """They keep no transitions: one process searches again where some lead back up."""
    alone = in_memory("custody")
    together = found(SET_UPS["custody"], at=Space(str(tmp_path), 500), workers=2)
    assert alone.explorer.backward > 0
    assert isinstance(together.explorer, outgrowing.Outgrowing)
    assert figures(together)[:-1] == figures(alone)[:-1]  # states have other numbers


def test_a_row_is_read_as_it_was_written(tmp_path):
    row = Row(str(tmp_path), "q")
    row.append(array("q", range(-5, CHUNK)))
    row.append(array("q", [7]))
    assert row.size == CHUNK + 6 and row.at(0) == -5 and row.at(row.size - 1) == 7
    assert list(row.part(4, 8)) == [-1, 0, 1, 2] and list(row.view()[:2]) == [-5, -4]
    assert list(Row(str(tmp_path), "I").view()) == []
    row.close()


def test_memory_is_given_in_gib():
    assert space("/tmp", 1).at_hand == 2 * space("/tmp", 0.5).at_hand
    assert space("/tmp", 0).at_hand == 1
    assert space("/tmp", 1).shared(2).at_hand == space("/tmp", 0.5).at_hand


# -- at the command line -----------------------------------------------------------------------

CHECK = [sys.executable, "-m", "meshlock", "check", "--algorithm", "raymond", "--topology", "line"]


def check(*words, **how):
    return subprocess.run([*CHECK, *words], capture_output=True, text=True, check=False, **how)


def test_nothing_is_left_behind(tmp_path):
    done = check("--nodes", "5", "--disk", str(tmp_path), "--memory", "0.0001", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["states"] == 6_593
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_full_disk_is_one_sentence(workers, tmp_path):
    def narrow():
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))

    words = ["--nodes", "6", "--disk", str(tmp_path), "--memory", "0.0001", "--workers", workers]
    done = check(*words, preexec_fn=narrow)
    assert done.returncode == 2
    assert done.stderr.startswith(f"meshlock: Cannot keep states in {tmp_path}: File too large.")
    assert "no violation among these, which proves nothing about the rest" in done.stderr
    assert len(done.stderr.splitlines()) == 1 and not done.stdout


def test_a_folder_must_be_there(tmp_path):
    done = check("--nodes", "3", "--disk", str(tmp_path / "missing"))
    assert done.returncode == 2
    assert done.stderr == f"meshlock: --disk: there is no folder {tmp_path / 'missing'}.\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--memory", "1"], "--memory goes with --disk."),
        (["--disk", ".", "--memory", "-1"], "--memory is at least 0."),
        (
            ["--disk", ".", "--reduction", "por"],
            "Choose one of --disk and --reduction por: a reduction of steps must have all states "
            "at hand.",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(words, sentence):
    done = check("--nodes", "3", *words)
    assert (done.returncode, done.stderr) == (2, f"meshlock: {sentence}\n")


@pytest.mark.parametrize("workers", ["1", "2"])
def test_ctrl_c_leaves_nothing_behind(workers, tmp_path):
    """Its files have no names: how else could it be seen that it is at work than by its own?"""
    words = ["--nodes", "9", "--disk", str(tmp_path), "--workers", workers]
    process = subprocess.Popen([*CHECK, *words], stdout=subprocess.PIPE, text=True)
    opened = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while not writes(process.pid, opened, tmp_path):
        assert process.poll() is None
    os.kill(process.pid, signal.SIGINT)
    said, _ = process.communicate(timeout=LIMIT)
    assert process.returncode == 130
    assert "there are more; no violation among these" in said
    assert list(tmp_path.iterdir()) == []


def writes(pid, children, folder):
    """Does it, or one of its processes, have a file of more than nothing in that folder?"""
    try:
        everybody = [pid, *map(int, children.read_text().split())]
        files = [file for one in everybody for file in Path(f"/proc/{one}/fd").iterdir()]
        return any(
            str(file.readlink()).startswith(str(folder)) and file.stat().st_size > 10**5
            for file in files
        )
    except OSError:
        return False
