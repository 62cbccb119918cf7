"""Properties of one's own, in searches, simulations and traces; and leases of plain nodes."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from commands import meshlock
from meshlock.errors import Refused
from meshlock.properties.own import own_property

ROOT = Path(__file__).parents[2]
CONSUL = str(ROOT / "models/consul.py")

RULES = """
def few_ask(seen):
    waiting = [node.number for node in seen.nodes if node.waiting]
    return f"nodes {waiting} wait at once" if len(waiting) > 1 else ""

def no_two_requests(seen):
    for node in seen.nodes:
        if len([one for one in node.inbox if one.kind == "REQUEST" and one.origin != 0]) > 1:
            return f"two requests are on their way to {node.number}"

def known_client(seen):
    for node in seen.nodes:
        if node.inside and node.client == -1:
            return f"node {node.number} has forgotten its client"

def broken(seen):
    return seen.nodes[0].nothing_of_the_kind

number = 3

def all_is_well(seen):
    return True

def counts(seen):
    return 7

async def waits(seen):
    return ""

def tells(seen):
    yield "wrong"

def leaves(seen):
    raise SystemExit(3)

def safety(seen):
    return ""

class Rule:
    pass
"""


@pytest.fixture
def rules(tmp_path: Path) -> str:
    (tmp_path / "rules.py").write_text(RULES)
    return str(tmp_path / "rules.py")


CHECK = ("check", "--algorithm", "raymond", "--topology", "star", "--nodes", "3")
SIMULATE = ("simulate", "--algorithm", "raymond", "--topology", "star", "--nodes", "5")


def test_a_search_finds_the_shortest_way(rules: str) -> None:
    done = meshlock(*CHECK, "--property", f"{rules}:few-ask", "--json")
    found = json.loads(done.stdout)["violations"]
    assert done.returncode == 1
    assert [(one["property"], one["length"]) for one in found] == [("few-ask", 2)]


def test_a_search_ends_where_it_holds(rules: str) -> None:
    done = meshlock(*CHECK, "--property", f"{rules}:known_client", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["complete"]


def test_messages_on_their_way_are_seen(rules: str) -> None:
    done = meshlock(*CHECK, "--property", f"{rules}:no-two-requests")
    assert "two requests are on their way to 0" in done.stdout
    trace = str(Path(rules).with_name("run.jsonl"))
    flags = ("--property", f"{rules}:no-two-requests", "--requests", "40", "--trace", trace)
    done = meshlock(*SIMULATE, *flags)
    assert done.returncode == 1
    assert "no-two-requests: two requests are on their way to 0" in done.stdout
    done = meshlock("audit", trace, "--property", f"{rules}:no-two-requests", "--json")
    assert list(json.loads(done.stdout)["violated"]) == ["no-two-requests"]


def test_variables_of_a_trace_are_seen(rules: str) -> None:
    trace = str(Path(rules).with_name("run.jsonl"))
    meshlock(*SIMULATE, "--requests", "40", "--trace", trace, "--trace-states")
    done = meshlock("audit", trace, "--property", f"{rules}:known-client")
    assert done.returncode == 0 and "known-client  holds" in done.stdout


@pytest.mark.parametrize(
    ("named", "more", "said"),
    [
        ("nothing", (), "has no function 'nothing'"),
        ("number", (), "has no function 'number'"),
        ("", (), "Say which function"),
        ("broken", (), "broken does not run: line 17, AttributeError"),
        ("all-is-well", (), "all-is-well returns True: let it return a sentence"),
        ("counts", (), "counts returns 7: let it"),
        ("waits", (), "waits returns a value of the type coroutine: let it"),
        ("tells", (), "tells returns a value of the type generator: let it"),
        ("leaves", (), "leaves does not run: line 34, it ends the program (sys.exit)"),
        ("safety", (), "'safety' has the name of one of meshlock's own"),
        ("Rule", (), "has no function 'Rule'"),
        ("few-ask", ("--reduction", "por"), "leave out --reduction por"),
        ("few-ask", ("--members", "all"), "leave that out"),
    ],
)
def test_what_cannot_be_judged_is_refused(
    rules: str, named: str, more: tuple[str, ...], said: str
) -> None:
    done = meshlock(*CHECK, *more, "--property", f"{rules}:{named}")
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "Warning" not in done.stderr and "Traceback" not in done.stderr


def test_a_property_is_in_a_python_file(tmp_path: Path) -> None:
    (tmp_path / "rules").write_text(RULES)
    for named in ("ties", f"{tmp_path}/rules:few-ask", f"{tmp_path}/rules.py.old:few-ask"):
        done = meshlock(*SIMULATE, "--requests", "1", "--property", named)
        assert done.returncode == 2
        assert f"such as rules.py:name, not '{named}'" in done.stderr


def test_a_trace_without_states_says_what_is_missing(rules: str) -> None:
    trace = str(Path(rules).with_name("run.jsonl"))
    meshlock(*SIMULATE, "--requests", "4", "--trace", trace)
    done = meshlock("audit", trace, "--property", f"{rules}:known-client")
    assert done.returncode == 2
    assert "This trace has no states: write it with --trace-states." in done.stderr


LEASES = """
from meshlock.algorithms.actor import Algorithm, Assumptions, Lost, Message, Serves
from meshlock.algorithms.site import OneClientSite, sites

class Over(Message):
    "The lease of the sender's client is over."

class Node(OneClientSite):
    def request(self, client, want, priority):
        self.client = client
        self.enter(client)
        self.send(Over(self.me))
    def release(self, client):
        self.client = -1
    def receive(self, message):
        if self.client != -1:
            self.out.append(Lost(self.client, 0))
            self.client = -1

def no_end(seen):
    idle = [node for node in seen.nodes if not node.inbox and not node.inside]
    return "a lease is over" if idle else ""

ALGORITHMS = [
    Algorithm("leases", "Leases", "tests", "mutex", sites(Node), (Over,),
              Assumptions(routed=True), Serves(token=False))
]
"""


def test_a_client_whose_lease_has_ended_is_not_inside(tmp_path: Path) -> None:
    """The checker follows it, and so do its traces; the simulator says that it does not."""
    file, trace = str(tmp_path / "leases.py"), str(tmp_path / "way.jsonl")
    Path(file).write_text(LEASES)
    words = ("--algorithm", file, "--nodes", "1")
    assert meshlock("check", *words, "--request", "0", "--request", "0").returncode == 0
    done = meshlock("check", *words, "--property", "safety")
    assert "every state was seen" in done.stdout
    done = meshlock(
        "check",
        *words,
        "--lead",
        "request 0",
        "--lead",
        "deliver OVER 0>0",
        "--property",
        f"{file}:no-end",
        "--trace",
        trace,
    )
    assert done.returncode == 1
    assert [json.loads(line)["event"] for line in Path(trace).read_text().splitlines()[1:]] == [
        "request",
        "enter",
        "send",
        "deliver",
        "lease-lost",
    ]
    assert meshlock("audit", trace, "--json").returncode == 0
    done = meshlock("simulate", *words, "--requests", "1", "--hold", "9")
    assert done.returncode == 2
    assert "only 'meshlock check' follows" in done.stderr


def test_only_a_function_with_a_name_is_a_property() -> None:
    for given in (partial(len), 3):
        with pytest.raises(Refused, match="A property is a function with a name, not"):
            own_property(given)  # type: ignore[arg-type]
