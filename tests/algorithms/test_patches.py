"""Mutants are patches: each fits the source, and nothing but the mutant is changed by it."""

from __future__ import annotations

import subprocess
import sys
import traceback

import pytest

from meshlock.algorithms import general_scheme, queues, registry
from meshlock.algorithms.actor import Message
from meshlock.algorithms.mutants.catalogue import MUTANTS
from meshlock.algorithms.mutants.mutant import Mutant
from meshlock.algorithms.mutants.patches import Patched, applied, hunks, text_of
from meshlock.topology.graphs import Complete
from meshlock.web.handlers import handlers, source

RAYMOND = {"queue": "fifo", "start": "shortest"}


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=list(MUTANTS))
def test_what_a_patch_replaces_is_there_exactly_once(mutant: Mutant) -> None:
    for module, text in applied(mutant.name, mutant.patch).items():
        assert text != text_of(module)
        compile(text, module, "exec")


@pytest.mark.parametrize(
    ("lines", "count"), [("-        self.priority = 0\n", 2), ("-nothing\n", 0), ("+new\n", 0)]
)
def test_a_patch_that_does_not_fit_is_refused(lines: str, count: int) -> None:
    with pytest.raises(ValueError, match="The patch of mueller/x does not fit") as error:
        applied("mueller/x", f"@@ mueller.py\n{lines}")
    assert f"mueller.py: this is there {count} times, not once" in str(error.value)


def test_a_patch_may_have_several_hunks_and_files() -> None:
    found = hunks("@@ a.py\n-one\n+two\n\n stays\n@@\n-three\n@@ recovery/b.py\n-four\n")
    assert found == [
        ("a.py", "one\n\nstays\n", "two\n\nstays\n"),
        ("a.py", "three\n", ""),
        ("recovery/b.py", "four\n", ""),
    ]


def test_the_real_modules_stay_as_they_are() -> None:
    before = dict(vars(queues)), dict(vars(general_scheme)), dict(registry.ALGORITHMS)
    mutant = MUTANTS["raymond/last-in-first-out"]
    node = mutant.algorithm.make(Complete(2), 1, RAYMOND, [])[0]
    assert isinstance(node, general_scheme.SchemeNode)
    assert isinstance(node.waiting, queues.Fifo)
    assert type(node.waiting) is not queues.Fifo
    assert (dict(vars(queues)), dict(vars(general_scheme)), dict(registry.ALGORITHMS)) == before
    assert (mutant.algorithm.newcomers.join, mutant.algorithm.kinds) == (None, mutant.origin.kinds)


def test_nothing_is_run_for_a_list() -> None:
    code = (
        "import sys; from meshlock.check.riddles import riddles;"
        "from meshlock.check.mutants import command;"
        "from meshlock.web.opening import offered;"
        "from meshlock.algorithms.mutants import catalogue;"
        "riddles(); offered(); [command(m) for m in catalogue.MUTANTS.values()];"
        "print([name for name in sys.modules if ':' in name])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


BASE = "@@ maekawa.py\n-        self.voted = ballot\n+        self.voted = NOBODY\n"


def test_modules_that_build_on_a_patched_one_are_patched_too() -> None:
    mutant = Mutant("sanders/x", "", BASE, {})
    node = mutant.algorithm.make(Complete(2), 1, {"structure": "groups"}, [])[0]
    node.vote((1, 1))  # type: ignore[attr-defined]
    assert node.voted == (0, -1)  # type: ignore[attr-defined]


def test_a_traceback_shows_the_patched_line() -> None:
    patch = "@@ lelann.py\n-        self.token_here = True\n+        raise KeyError('lost')\n"
    mutant = Mutant("lelann/x", "", patch, {})
    node = mutant.algorithm.make(Complete(2), 1, {}, [])[1]
    with pytest.raises(KeyError) as error:
        node.receive(Message(1))
    text = "".join(traceback.format_exception(error.value))
    assert "lelann.py lelann:x" in text
    assert "raise KeyError('lost')" in text


def test_the_page_shows_the_patched_lines() -> None:
    shown = handlers("naimi-trehel-original/takes-the-messenger-for-the-asker")
    (_, receive) = shown["deliver REQUEST"]
    assert receive["file"].startswith("naimi_trehel.py ")
    assert "        self.requested(message.sender)" in receive["lines"]
    assert source("meshlock.algorithms.queues") is not None


def test_a_class_that_is_open_is_extended() -> None:
    """So that compiled code, which knows the real class, takes it."""
    line = "        self.forks = set(range(me + 1, self.size))  # the lower of the two has it"
    patch = f"@@ chandy_misra.py\n-{line}\n+        self.forks = set()\n"
    anew = Patched("x/y", patch).module("meshlock.algorithms.chandy_misra").ChandyMisraNode
    assert anew.__mro__[1].__name__ == "OneClientSite"
    line = "            self.token(message.lender, message.sender)"
    patch = f"@@ general_scheme.py\n-{line}\n+            self.token(NIL, message.sender)\n"
    kind = Patched("x/y", patch).module("meshlock.algorithms.general_scheme").SchemeNode
    assert kind.__mro__[1] is general_scheme.SchemeNode
    beside = {
        "__module__",
        "__doc__",
        "__dict__",
        "__weakref__",
    }  # some if compiled
    assert set(vars(kind)) - beside == {"receive"}
