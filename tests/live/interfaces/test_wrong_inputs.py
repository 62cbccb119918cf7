"""Wrong inputs of all kinds: each is answered by one sentence that says what to do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import meshlock
from meshlock.live.interfaces.agent_connection import Connection
from waiting import LIMIT, run, sooner_or_later

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="agents have Unix sockets")

PROGRAM = [sys.executable, "-c", "from meshlock.cli.main import run; run()"]

ONE_AFTER_THE_OTHER = """
import contextlib, io, json, sys, traceback
from meshlock.cli.main import run
for sys.argv in json.load(sys.stdin):
    out, err, code = io.StringIO(), io.StringIO(), None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            run()
        except SystemExit as end:
            code = end.code
        except BaseException:
            traceback.print_exc()
    print(json.dumps([code, out.getvalue(), err.getvalue()]))
"""

CONFIGURATION = """
name = "ann"
socket = "ann.sock"

[pools.docks]
permits = 3

[pools.gpus]
permits = ["gpu0", "gpu1"]

[pools.papers]
permits = 2
recovery = "none"
founder = true
"""


def is_a_sentence(text: str) -> bool:
    return text.count("\n") == 0 and text.endswith(".") and len(text) < 300 and "`" not in text


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where an agent runs."""
    folder = tmp_path_factory.mktemp("agent")
    (folder / "ann.toml").write_text(CONFIGURATION)
    (folder / "broken.jsonl").write_text("no trace")
    with (folder / "log").open("wb") as log:
        agent = subprocess.Popen([*PROGRAM, "agent", "ann.toml"], cwd=folder, stderr=log)
    sooner_or_later(lambda: b'"ready"' in (folder / "log").read_bytes() or agent.poll())
    yield folder
    agent.terminate()
    assert agent.wait(LIMIT) == 0
    assert "Traceback" not in (folder / "log").read_text()


# -- the command line -------------------------------------------------------------------------

COMMANDS: dict[str, str] = {
    # flags
    "polo": "No such command 'polo'. Did you mean 'pool'? See 'meshlock --help'.",
    "pool membrs docks": "Did you mean 'members'? See 'meshlock pool --help'.",
    "status --sokcet x": "No such option",
    "exec --pool docks": "Missing argument 'COMMAND...'. See 'meshlock exec --help'.",
    "exec -- true": "Missing option '--pool'.",
    "exec --pool docks --want x -- true": "Invalid value for '--want'",
    # an agent that is not there
    "exec --pool docks --socket none -- true": "start one with 'meshlock agent'",
    "status --socket none": "No agent answers at none (No such file or directory)",
    "pool list --socket none": "set --socket or MESHLOCK_SOCKET.",
    "top --socket ann.toml": "No agent answers at ann.toml (Connection refused)",
    # permits
    "exec --pool doks -- true": "No pool 'doks'; known: docks, gpus, papers.",
    "exec --pool a/b -- true": "'a/b' is not a valid name for a pool: use 1 to 64 letters",
    "exec --pool docks --want 0 -- true": "--want 0 is out of range: use 1 to 100,000.",
    "exec --pool docks --want 9 -- true": (
        "Cannot grant 9 permits: pool docks has 3. Use want 3 or less."
    ),
    "exec --pool docks --priority 99999999999 -- true": "--priority 99999999999 is out of range",
    "exec --pool docks --timeout -1 -- true": "--timeout -1.0 is out of range: use 0 to",
    "exec --pool docks --timeout nan -- true": "--timeout nan is out of range",
    "exec --pool gpus --slots-to A=B -- true": "--slots-to takes the name of a variable",
    # pools
    "pool show": "Missing argument 'NAME'. See 'meshlock pool show --help'.",
    "pool show doks": "No pool 'doks'; known: docks, gpus, papers.",
    "pool set docks": "Nothing to set: give --permits NUMBER or --slots NAMES.",
    "pool set docks --permits 0": "--permits 0 is out of range: use 1 to 100,000.",
    "pool set docks --permits 5000": "and 1,000 is the limit with members",
    "pool set doks --permits 3": "No pool 'doks'",
    "pool set papers --permits 3": (
        "The permits of papers cannot be changed: the pool has no leases."
    ),
    "pool members docks --add bob": "bob is not on the link map: start it, then add it.",
    "pool members docks --add a,b": "'a,b' is not a valid name for a node",
    "pool members docks --add a --remove b": "give one to add or one to remove.",
    "pool members docks --remove ann": (
        "Cannot remove ann: it is the last member of docks. Add another one first."
    ),
    "pool members papers": "The pool papers has no members: it was made without leases.",
    "pool reset doks --yes": "No pool 'doks'",
    "pool reset docks --yes": "which is a quorum. The pool recovers by itself.",
    "pool remove doks": "No pool 'doks'",
    # agents
    "agent --socket ann.sock --state none": "stop that agent, or use --socket.",
    "agent --name ann --socket x --pool docks=3": "give this node another name or state folder.",
    "agent --state ann.toml/x --socket x --pool docks=3": "Use another one, or state 'none'.",
    f"agent --state none --socket {'x' * 256} --pool docks=3": "file name too long.",
    "agent --pool docks=three": "--pool takes NAME, NAME=PERMITS or NAME=SLOT,SLOT,...",
    "agent --pool gpus=gpu0,gpu0": "names 'gpu0' twice: give every permit its own name.",
    "agent --pool gpus=gpu0,": "'' is not a valid name for a permit: use 1 to 64 letters",
    "agent --pool docks=3 --lease 0.01": "lease must be a number >= 0.3.",
    "agent --pool docks=3 --members a,b,b": "members names 'b' twice: name every node once.",
    "agent --pool docks=3 --members a,,b": "'' is not a valid name for a node",
    "agent --pool docks=3 --most-members 0": "most-members must be a whole number >= 1.",
    "agent --pool docks=3 --link a": "links[0] must be a list of length 2, not 1.",
    "agent --pool docks=3 --recovery some": "recovery is 'none' or left out, not 'some'.",
    "agent --pool docks=3 --recovery none --lease 3": (
        "lease is only for pools with recovery: leave it out for docks."
    ),
    "agent --pool docks=3 --founder": (
        'founder is only for pools with recovery = "none": leave it out for docks'
    ),
    "agent --pool docks=3 --algorithm jaing": "did you mean 'jiang'?",
    "agent --pool docks=3 --option patience": "--option takes NAME=VALUE, not 'patience'.",
    "agent --lease 3": "add --pool NAME=PERMITS.",
    "agent --name a/b": "'a/b' is not a valid name for a node",
    "agent --listen nowhere": "'nowhere' is not the address of a node: write host:port.",
    "agent --listen 127.0.0.1:99999": "the port must be at most 65535.",
    "agent --listen 0.0.0.0:0": "set a secret or certificates.",
    "agent --secret-file none": "Cannot read the secret in none: No such file or directory.",
    "agent --certificates none": "make one with 'meshlock certs'.",
    "agent --http 0.0.0.0:0 --state none --socket x": "use --http-token-file.",
    "agent --heartbeat 1 --dead 0.5": (
        "heartbeat must be less than dead: lower heartbeat or raise dead."
    ),
    "agent --listen 127.0.0.1:0 --state broken.jsonl/x": (
        "Cannot write to the state folder broken.jsonl/x: Not a directory."
    ),
    "agent --trace-limit 1": "trace-limit 1 is out of range: use 100,000 to",
    "agent --log-level loud": "use debug, info, warning or error.",
    "agent none.toml": "Cannot read none.toml: No such file or directory.",
    # the rest
    "certs node ann --folder none": "make one with 'meshlock certs authority'.",
    "view none.jsonl": "Cannot read none.jsonl: No such file or directory.",
    "view broken.jsonl": "broken.jsonl",
}


def answers(folder: Path, commands: list[list[str]]) -> list[list[Any]]:
    """Of one process, for it takes a while to start."""
    done = subprocess.run(
        [sys.executable, "-c", ONE_AFTER_THE_OTHER],
        input=json.dumps([["meshlock", *command] for command in commands]),
        cwd=folder,
        env={**os.environ, "MESHLOCK_SOCKET": "ann.sock"},
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def is_refused(answer: list[Any], sentence: str) -> bool:
    code, out, err = answer
    assert (code, out) == (2, ""), answer
    assert err.startswith("meshlock: ") and err.endswith("\n"), err
    text = err.removeprefix("meshlock: ")[:-1]
    return (is_a_sentence(text) or text.endswith("?")) and sentence in text


@pytest.fixture(scope="module")
def said(folder: Path) -> dict[str, list[Any]]:
    found = answers(folder, [command.split() for command in COMMANDS])
    return dict(zip(COMMANDS, found, strict=True))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_wrong_command_is_exit_2_and_one_sentence(
    said: dict[str, list[Any]], command: str
) -> None:
    assert is_refused(said[command], COMMANDS[command]), said[command]


# -- files ------------------------------------------------------------------------------------

FILES: dict[str, str] = {
    "name = ": "x.toml is not TOML: Invalid value",
    "alow-actions = true": "there is no 'alow-actions'; did you mean 'allow-actions'.",
    "name = 7": "name must be a text or nothing, not a whole number.",
    'peers = "north:7400"': "peers must be a list, not a text.",
    "[pools.docks]\npermit = 3": "there is no 'permit'; did you mean 'permits'.",
    "[pools.docks]\npermits = 0": "permits must be a whole number >= 1.",
    '[pools.docks]\npermits = "3"': "permits must be ",
    '[pools.gpus]\npermits = ["gpu 0"]': "'gpu 0' is not a valid name for a permit",
    '[pools.gpus]\npermits = ["a", "a"]': "names 'a' twice: give every permit its own name.",
    '[pools.gpus]\npermits = ["a"]\nrecovery = "none"': "Named permits need leases",
    "[pools.docks]\npermits = 3\nlease = inf": "lease",
    "[pools.docks]\npermits = 3\nmembers = 3": "members must be ",
    "[pools.docks]\npermits = 3\nmembers = []": "members names nobody: name nodes, or leave it",
    "heartbeat = nan": "heartbeat",
}


@pytest.fixture(scope="module")
def files_said(folder: Path) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for text in FILES:
        (folder / "x.toml").write_text(text)
        command = ["agent", "x.toml", "--socket", "x", "--state", "none"]
        [found[text]] = answers(folder, [command])
    return found


@pytest.mark.parametrize("text", FILES)
def test_a_wrong_configuration_is_one_sentence(files_said: dict[str, list[Any]], text: str) -> None:
    assert is_refused(files_said[text], FILES[text]), files_said[text]


# -- HTTP -------------------------------------------------------------------------------------

BODIES: list[tuple[str, str, str, int, str]] = [
    ("POST", "/v1/pools/doks/acquire", "{}", 404, "No pool 'doks'; known: docks, gpus, papers."),
    ("POST", "/v1/pools/docks/acquire", "{", 400, "Not a request: "),
    ("POST", "/v1/pools/docks/acquire", "[]", 400, "it must be a table, not a list."),
    ("POST", "/v1/pools/docks/acquire", '{"wnat": 1}', 400, "no 'wnat'; did you mean 'want'."),
    ("POST", "/v1/pools/docks/acquire", '{"want": "2"}', 400, "want must be a whole number"),
    ("POST", "/v1/pools/docks/acquire", '{"want": 0}', 400, "want 0 is out of range: use 1 to"),
    (
        "POST",
        "/v1/pools/docks/acquire",
        '{"want": 9}',
        409,
        "Cannot grant 9 permits: pool docks has 3. Use want 3 or less.",
    ),
    ("POST", "/v1/pools/docks/acquire", '{"ttl": 0}', 400, "ttl 0 is out of range"),
    ("POST", "/v1/pools/docks/acquire", '{"timeout": -1}', 400, "timeout -1 is out of range"),
    ("POST", "/v1/pools/docks/acquire", '{"session": "x"}', 404, "no such session"),
    ("POST", "/v1/pools/docks/acquire", '{"label": 7}', 400, "label must be a text or nothing"),
    ("POST", "/v1/pools/docks/permits", "{}", 400, "Not a request: 'permits' is missing."),
    (
        "POST",
        "/v1/pools/docks/permits",
        '{"permits": 5000}',
        409,
        "1,000 is the limit with members",
    ),
    ("POST", "/v1/pools/papers/permits", '{"permits": 5}', 409, "the pool has no leases."),
    ("POST", "/v1/pools/docks/members", "{}", 409, "give one to add or one to remove."),
    ("POST", "/v1/pools/docks/reset", "", 409, "which is a quorum. The pool recovers by itself."),
    ("GET", "/v1/pools/doks/who", "", 404, "No pool 'doks'"),
    ("GET", "/v1/grants/none", "", 404, ""),
    ("DELETE", "/v1/pools/docks", "", 405, ""),
    ("GET", "/v1/nothing", "", 404, ""),
]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "sentence"),
    BODIES,
    ids=[f"{method} {path} {body}" for method, path, body, *_ in BODIES],
)
def test_a_wrong_call_is_answered_by_one_sentence(
    folder: Path, method: str, path: str, body: str, status: int, sentence: str
) -> None:
    line = Connection(os.path.relpath(folder / "ann.sock"))
    found, said = line.call(method, path, body)
    line.close()
    why = json.loads(said)["why"]
    assert found == status and sentence in why and is_a_sentence(why), (found, why)


# -- the library ------------------------------------------------------------------------------

Asks = Callable[[meshlock.Node], Any]

CALLS: dict[str, tuple[Asks, str]] = {
    "no pool": (lambda node: node.pool("doks").acquire(timeout=LIMIT), "No pool 'doks'; known:"),
    "a name twice": (lambda node: node.pool("gpus", ["a", "a"]), "names 'a' twice"),
    "no names": (lambda node: node.pool("gpus", []), "names 0 permits: name 1 to 1000."),
    "names without leases": (
        lambda node: node.pool("gpus", ["a"], recovery="none"),
        "Named permits need leases",
    ),
    "a member twice": (
        lambda node: node.pool("bays", 1, members=["ann", "bob", "bob"]),
        "members names 'bob' twice: name every node once.",
    ),
    "no members": (lambda node: node.pool("bays", 1, members=[]), "members names nobody"),
    "too many members": (
        lambda node: node.pool("bays", 1, members=[f"n{i}" for i in range(200)]),
        "members: name fewer.",
    ),
    "too many permits": (lambda node: node.pool("bays", 5000), "1,000 is the limit with members"),
    "more later": (
        lambda node: node.pool("docks").set_permits(5000),
        "1,000 is the limit with members",
    ),
    "a lease in words": (lambda node: node.pool("bays", 1, lease="long"), "lease must be a number"),
    "peers that are no list": (
        lambda node: meshlock.Node("bob", state=None, peers="ann:7400"),
        "peers is a list of addresses: write peers=['ann:7400'].",
    ),
    "no such recovery": (
        lambda node: node.pool("bays", 1, recovery="some"),
        "recovery is 'none' or left out",
    ),
    "a deadline before now": (
        lambda node: node.pool("docks").acquire(deadline=-1.0),
        "deadline -1.0 is out of range: use 0 to 31,536,000 s.",
    ),
    "a deadline with too many digits": (
        lambda node: node.pool("docks").acquire(deadline=10**5000),
        "deadline with too many digits is out of range: use 0 to 31,536,000 s.",
    ),
    "a label of numbers": (
        lambda node: node.pool("docks").acquire(label=7),
        "label must be a text, not 7.",
    ),
    "more than there are": (
        lambda node: node.pool("docks").try_acquire(9),
        "Cannot grant 9 permits: pool docks has 3. Use want 3 or less.",
    ),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_wrong_call_of_the_library_is_refused_in_one_sentence(call: str) -> None:
    asks, sentence = CALLS[call]

    async def story() -> None:
        async with meshlock.Node("ann", state=None) as node:
            node.pool("docks", permits=3)
            with pytest.raises(meshlock.Refused) as refused:
                await asks(node)
            assert sentence in str(refused.value) and is_a_sentence(str(refused.value))

    run(story)
