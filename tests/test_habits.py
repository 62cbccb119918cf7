"""What people expect of a repository says the same as the code."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

import meshlock

ROOT = Path(__file__).parent.parent


def test_version_is_the_same_in_code_changelog_and_citation() -> None:
    heading = re.search(r"^## (\S+) \((\S+)\)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert heading is not None
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert heading[1] == meshlock.__version__ == citation["version"]
    assert heading[2] == citation["date-released"]


def test_continuous_integration_calls_the_readme_s_command_on_all_supported_versions() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text())["jobs"]
    text = (ROOT / "pyproject.toml").read_text()
    supported = re.findall(r"Python :: (3\.\d+)", text)
    for job in jobs.values():
        assert job["strategy"]["matrix"]["python"] == supported
    assert "make test" in [step.get("run") for step in jobs["test"]["steps"]]


def test_hooks_before_a_commit_are_the_lint_of_make_test() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    makefile = (ROOT / "Makefile").read_text()
    for hook in hooks:
        tool = hook["entry"].split()[0].rpartition("/")[2]
        assert f"$(BIN)/{tool}" in makefile
