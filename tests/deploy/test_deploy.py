"""The files for operators: what they name exists, and what they start works."""

from __future__ import annotations

import asyncio
import configparser
import fnmatch
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("yaml")
pytest.importorskip("prometheus_client")
pytest.importorskip("cryptography")

import yaml

from meshlock import Node
from meshlock.live.interfaces import configuration
from meshlock.live.interfaces.exposition import exposition
from ports import free_ports
from waiting import LIMIT, sooner_or_later

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
PROGRAM = [sys.executable, "-m", "meshlock"]
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def flags_of(command: str) -> set[str]:
    done = subprocess.run([*PROGRAM, command, "--help"], capture_output=True, text=True, check=True)
    return set(re.findall(r"--[a-z-]+", done.stdout))


def unknown_flags(words: list[str]) -> set[str]:
    """Of a command line of meshlock, without the program."""
    return {word for word in words if word.startswith("--")} - flags_of(words[0])


# -- the image ---------------------------------------------------------------------------------


def instructions() -> list[tuple[str, str]]:
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines()]
    split = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
    return [(name, rest) for name, rest in split]


def last(name: str) -> str:
    return [rest for each, rest in instructions() if each == name][-1]


def ignored(path: str) -> bool:
    """By the last pattern that says something of it, as Docker has it."""
    verdict = False
    for line in (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines():
        pattern = line.removeprefix("!")
        if line and not line.startswith("#") and fnmatch.fnmatch(path, pattern):
            verdict = not line.startswith("!")
    return verdict


def test_the_image_is_built_from_files_that_are_there() -> None:
    known = {"FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "VOLUME", "EXPOSE", "STOPSIGNAL"}
    assert {name for name, _ in instructions()} <= known | {"HEALTHCHECK", "ENTRYPOINT", "CMD"}
    copied = [rest for name, rest in instructions() if name == "COPY" and "--from" not in rest]
    sources = [word for rest in copied for word in rest.split()[:-1]]
    assert sources and all((ROOT / source).exists() for source in sources)
    assert not [source for source in sources if ignored(source)]
    assert ignored("tests") and ignored(".git")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needed = {project["project"]["readme"], *project["project"]["license-files"]}
    assert needed <= set(sources)  # the build reads them
    extras = re.search(r"'\.\[([a-z,]+)\]'", " ".join(rest for _, rest in instructions()))
    assert extras is not None
    assert set(extras[1].split(",")) <= set(project["project"]["optional-dependencies"])
    assert {"live", "web"} <= set(extras[1].split(","))


def test_the_image_runs_as_nobody_in_particular_and_is_asked_for_its_health() -> None:
    user = last("USER").split(":")[0]
    assert user.isdecimal() and user != "0" and f"--uid {user} " in last("RUN")
    assert json.loads(last("ENTRYPOINT")) == ["meshlock"]
    asked = json.loads(last("HEALTHCHECK").split(" CMD ")[1])
    assert asked[0] == "meshlock" and not unknown_flags(asked[1:])
    assert not unknown_flags(json.loads(last("CMD")))
    folders = {"/var/lib/meshlock", "/run/meshlock"}
    assert folders <= set(last("RUN").split())
    place = dict(word.split("=", 1) for word in last("ENV").split())["MESHLOCK_SOCKET"]
    assert str(Path(place).parent) in folders


# -- three nodes -------------------------------------------------------------------------------


def test_the_three_nodes_fit_together() -> None:
    services = COMPOSE["services"]
    settings = configuration.read(DEPLOY / "agent.toml")
    for name, service in services.items():
        assert service["hostname"] == name
        assert service["command"][-2:] == ["--name", name]
        assert not unknown_flags(service["command"])
        assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).exists()
        (volume,) = service["volumes"]
        assert volume == f"{name}:{settings.state}" and name in COMPOSE["volumes"]
        assert service["configs"] == [{"source": "agent", "target": service["command"][1]}]
        secrets = {f"/run/secrets/{secret}" for secret in service["secrets"]}
        assert secrets == {settings.secret_file, settings.http_token_file}
        assert set(service["secrets"]) == set(COMPOSE["secrets"])
    assert (DEPLOY / COMPOSE["configs"]["agent"]["file"]).samefile(DEPLOY / "agent.toml")
    assert settings.listen is not None
    port = settings.listen.rpartition(":")[2]
    assert list(settings.peers) == [f"{name}:{port}" for name in services]
    assert settings.pools["docks"].members == list(settings.http_names) == list(services)
    scraped = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())
    (job,) = scraped["scrape_configs"]
    assert settings.http is not None
    port = settings.http.rpartition(":")[2]
    assert job["static_configs"] == [{"targets": [f"{name}:{port}" for name in services]}]
    assert job["authorization"]["credentials_file"] == settings.http_token_file
    assert port in last("EXPOSE").split()


class Nodes:
    """The services of the compose file as processes of this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.services = COMPOSE["services"]
        ports = free_ports(2 * len(self.services))
        self.mesh = dict(zip(self.services, ports, strict=False))
        self.http = dict(zip(self.services, ports[len(self.services) :], strict=True))
        for secret in ("meshlock-secret", "http-token"):
            (folder / secret).write_text(f"a {secret} that nobody guesses")
        self.processes = {name: self.start(name) for name in self.services}

    def start(self, name: str) -> subprocess.Popen[bytes]:
        home = self.folder / name
        home.mkdir()
        text = (DEPLOY / "agent.toml").read_text()
        for peer, port in self.mesh.items():
            text = text.replace(f"{peer}:7400", f"127.0.0.1:{port}")
        text = text.replace("0.0.0.0:7400", f"127.0.0.1:{self.mesh[name]}")
        text = text.replace("0.0.0.0:7480", f"127.0.0.1:{self.http[name]}")
        text = text.replace("/run/secrets", str(self.folder))
        text = text.replace("/run/meshlock", str(home)).replace("/var/lib/meshlock", str(home))
        (home / "agent.toml").write_text(text)
        command = [
            str(home / "agent.toml") if word == "/etc/meshlock/agent.toml" else word
            for word in self.services[name]["command"]
        ]
        with (home / "log").open("wb") as log:
            return subprocess.Popen([*PROGRAM, *command], stderr=log)

    def run(self, name: str, *words: str) -> subprocess.CompletedProcess[str]:
        given = {**os.environ, "MESHLOCK_SOCKET": str(self.folder / name / "meshlock.sock")}
        return subprocess.run(
            [*PROGRAM, *words], env=given, capture_output=True, text=True, timeout=LIMIT
        )

    def metrics(self, name: str) -> str:
        from urllib.request import Request, urlopen

        request = Request(f"http://127.0.0.1:{self.http[name]}/metrics")
        token = (self.folder / "http-token").read_text()
        request.add_header("Authorization", f"Bearer {token}")
        request.add_header("Host", f"{name}:7480")  # as Prometheus asks
        with urlopen(request, timeout=LIMIT) as answer:
            return str(answer.read().decode())

    def wait_until(self, name: str, line: str) -> None:
        """Until the metrics of this node have this line."""
        sooner_or_later(lambda: line in self.metrics(name).splitlines())

    def healthy(self, name: str) -> bool:
        asked = json.loads(last("HEALTHCHECK").split(" CMD ")[1])
        return self.run(name, *asked[1:]).returncode == 0


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    nodes = Nodes(tmp_path)
    yield nodes
    for process in nodes.processes.values():
        process.kill()
        process.wait()


def test_three_nodes_serve_lose_one_properly_and_one_not(nodes: Nodes) -> None:
    for name in nodes.services:
        while not nodes.healthy(name):
            assert nodes.processes[name].poll() is None
    served = nodes.run("south", "exec", "--pool", "docks", "--timeout", "120", "--", "echo", "in")
    assert (served.returncode, served.stdout) == (0, "in\n"), served.stderr
    nodes.wait_until("north", "meshlock_nodes 3.0")
    nodes.wait_until("north", 'meshlock_quorum_reachable{pool="docks"} 1.0')

    nodes.processes["west"].terminate()
    assert nodes.processes["west"].wait(LIMIT) == 0
    nodes.wait_until("north", "meshlock_nodes 2.0")
    assert "meshlock_nodes_unreachable 0.0" in nodes.metrics("north").splitlines()
    served = nodes.run("north", "exec", "--pool", "docks", "--timeout", "120", "--", "echo", "in")
    assert served.returncode == 0, served.stderr

    nodes.processes["south"].kill()
    nodes.wait_until("north", 'meshlock_quorum_reachable{pool="docks"} 0.0')
    text = nodes.metrics("north")
    assert "meshlock_nodes_unreachable 1.0" in text.splitlines()
    assert 'meshlock_node_unreachable_seconds{peer="south"}' in text
    assert 'peer="west"' not in text
    nodes.processes["north"].terminate()
    assert nodes.processes["north"].wait(LIMIT) == 0


# -- systemd -----------------------------------------------------------------------------------

UNIT = DEPLOY / "systemd" / "meshlock.service"


class Unit(configparser.ConfigParser):
    def optionxform(self, optionstr: str) -> str:
        return optionstr


def test_the_unit_and_the_configuration_fit_together() -> None:
    unit = Unit(strict=False, interpolation=None)
    unit.read_string(UNIT.read_text())
    service = unit["Service"]
    assert service["Type"] == "notify" and float(service["WatchdogSec"]) > 0
    words = shlex.split(service["ExecStart"])
    assert words[0].endswith("/meshlock") and not unknown_flags(words[1:])
    settings = configuration.read(DEPLOY / "systemd" / "agent.toml")
    assert settings.state == f"/var/lib/{service['StateDirectory']}"
    assert settings.socket == f"/run/{service['RuntimeDirectory']}/meshlock.sock"


def test_the_page_on_systemd_shows_these_files() -> None:
    page = (ROOT / "docs" / "operate" / "systemd.md").read_text()
    assert f"```ini\n{UNIT.read_text()}```" in page
    assert f"```toml\n{(DEPLOY / 'systemd' / 'agent.toml').read_text()}```" in page


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed")
    copy = tmp_path / "meshlock.service"
    copy.write_text(UNIT.read_text().replace("/opt/meshlock/bin/meshlock", sys.executable))
    done = subprocess.run(
        [program, "verify", "--man=no", str(copy)], capture_output=True, text=True, timeout=LIMIT
    )
    assert (done.returncode, done.stderr) == (0, "")


# -- Prometheus and Grafana --------------------------------------------------------------------

RULES: dict[str, Any] = yaml.safe_load((DEPLOY / "prometheus" / "rules.yml").read_text())
DASHBOARD: dict[str, Any] = json.loads((DEPLOY / "grafana" / "meshlock.json").read_text())


def alerts() -> dict[str, dict[str, Any]]:
    return {rule["alert"]: rule for group in RULES["groups"] for rule in group["rules"]}


def questions() -> list[str]:
    """What the dashboard asks of Prometheus, its variables filled in."""
    asked = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
    known = {"$__rate_interval": "1m", "$node": ".*", "$pool": ".*"}
    for name, value in known.items():
        asked = [text.replace(name, value) for text in asked]
    return asked


def exposed() -> set[str]:
    """The names of all samples that an agent can show."""

    async def text() -> str:
        async with Node("ann") as node:
            node.pool("docks", permits=1)
            return exposition(node._local)

    names: set[str] = set()
    for name, kind in re.findall(r"(?m)^# TYPE (\w+) (\w+)$", asyncio.run(text())):
        parts = ("_bucket", "_count", "_sum") if kind == "histogram" else ("",)
        names |= {name + part for part in parts}
    return names


def test_every_metric_that_is_asked_for_exists() -> None:
    asked = [rule["expr"] for rule in alerts().values()] + questions()
    variables = [each.get("query") for each in DASHBOARD["templating"]["list"]]
    asked += [each["query"] for each in variables if isinstance(each, dict)]
    named = {name for text in asked for name in re.findall(r"\b(?:meshlock|process)_\w+", text)}
    assert named <= exposed()
    tested = (DEPLOY / "prometheus" / "rules_test.yml").read_text()
    series = re.findall(r"series: '(\w+)\{", tested)
    assert series and set(series) <= exposed()


def test_what_an_operator_is_woken_for() -> None:
    assert set(alerts()) == {
        "MeshlockQuorumLost",
        "MeshlockNodeWithoutQuorum",
        "MeshlockNoGrant",
        "MeshlockLeaseLost",
        "MeshlockNodeUnreachable",
        "MeshlockConflict",
        "MeshlockErrors",
    }
    for rule in alerts().values():
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert set(rule["annotations"]) == {"summary", "description"}


def test_the_dashboard_has_no_two_panels_in_one_place() -> None:
    places = [
        (x, y)
        for panel in DASHBOARD["panels"]
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(places) == len(set(places)) and max(x for x, _ in places) < 24
    numbers = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(numbers) == len(set(numbers))


def test_prometheus_takes_rules_configuration_and_questions(tmp_path: Path) -> None:
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is not installed")
    rules = [{"record": f"panel:{n}", "expr": text} for n, text in enumerate(questions())]
    dashboard = tmp_path / "dashboard.yml"
    dashboard.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    for words in (
        ["check", "rules", "rules.yml", str(dashboard)],
        ["check", "config", "--syntax-only", "prometheus.yml"],
        ["test", "rules", "rules_test.yml"],
    ):
        done = subprocess.run(
            [program, *words],
            cwd=DEPLOY / "prometheus",
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
        assert done.returncode == 0, done.stdout + done.stderr
