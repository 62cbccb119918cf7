"""Every link within README, CONTRIBUTING, CHANGELOG and docs leads somewhere, its anchor too."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import unicodedata
from functools import cache
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token
from pages import PAGES, ROOT, named

from meshlock import __version__

OUTSIDE = re.compile(r"[a-z]+:")


@cache
def parsed(page: Path) -> list[Token]:
    return MarkdownIt().enable("table").parse(page.read_text(encoding="utf-8"))


def links(page: Path) -> set[str]:
    found = set()
    for token in parsed(page):
        for child in token.children or []:
            target = child.attrGet("href") or child.attrGet("src")
            if target is not None and not OUTSIDE.match(str(target)):
                found.add(unquote(str(target)))
        if token.type == "html_block":
            found |= set(re.findall(r'(?:src|href)="(?!\w+:)([^"]+)"', token.content))
    return found


@cache
def anchors(page: Path) -> frozenset[str]:
    """As mkdocs makes them for its pages, and GitHub for those beside them."""
    found: dict[str, int] = {}
    ours = ROOT / "docs" in page.parents
    names = set()
    tokens = parsed(page)
    for heading, token in pairwise(tokens):
        if heading.type == "heading_open":
            text = "".join(child.content for child in token.children or [])
            name = slug(text) if ours else re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            again = found.get(name, 0)
            found[name] = again + 1
            names.add(f"{name}{'_' if ours else '-'}{again}" if again else name)
    return frozenset(names | set(re.findall(r'<a (?:id|name)="(.+?)"', page.read_text("utf-8"))))


def slug(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def broken(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.exists():
        return True
    return bool(anchor) and target.suffix == ".md" and anchor not in anchors(target)


@pytest.mark.parametrize("page", PAGES, ids=map(named, PAGES))
def test_links_lead_somewhere(page: Path) -> None:
    assert [link for link in sorted(links(page)) if broken(page, link)] == []


def test_the_pages_have_links() -> None:
    assert sum(len(links(page)) for page in PAGES) > 300


MKDOCS = Path(sys.executable).with_name("mkdocs")


@pytest.mark.skipif(not MKDOCS.exists(), reason="mkdocs is not installed: make docs installs it")
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    """Each link within it leads to a file, also those to source files; it needs no network."""
    site = tmp_path / "site"
    done = subprocess.run(
        [MKDOCS, "build", "--strict", "--site-dir", site],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and "WARNING" not in done.stderr, done.stderr
    gone, loaded = [], []
    for page in site.rglob("*.html"):
        for target in re.findall(r'(?:href|src)="([^"#?:]+)[#?]?[^":]*"', page.read_text("utf-8")):
            there = site if target.startswith("/") else page.parent
            path = there / unquote(target).lstrip("/")
            if not (path.is_file() or (path / "index.html").is_file()):
                gone.append(f"{page.relative_to(site)}: {target}")
        loaded += re.findall(
            r'src="\w+:[^"]*"|<link[^>]*href="https?:[^"]*"', page.read_text("utf-8")
        )
        loaded += re.findall(r'class="mermaid"', page.read_text("utf-8"))
    shutil.rmtree(site)
    assert gone == []
    assert loaded == [], "reading the site loads this from elsewhere, or a script to draw it"


def test_every_picture_is_made_by_a_script() -> None:
    scripts = [*(ROOT / "tests" / "web").glob("*.py"), *(ROOT / "benchmarks").glob("*.py")]
    source = "\n".join(path.read_text(encoding="utf-8") for path in scripts)
    pictures = sorted((ROOT / "docs" / "pictures").iterdir())
    pictures.remove(ROOT / "docs" / "pictures" / "logo.svg")  # drawn by hand
    names = {
        path.name: f'"{path.stem}"' if path.suffix == ".png" else path.name for path in pictures
    }
    assert [name for name, said in names.items() if said not in source] == []


def test_the_changelog_begins_with_this_version() -> None:
    heading = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert heading is not None and heading[1] == __version__
