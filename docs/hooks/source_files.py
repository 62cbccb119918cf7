"""Give links to files outside docs/ a page of their own in the built site.

In a clone such a link leads to the file. The site has no clone around it, so every file that a page
links to is shown on a page below source/, and the link leads there.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
LINK = re.compile(r"(?<=\]\()([^)\s#:]+)(?=[)#])")
LANGUAGES = {".service": "ini", ".yml": "yaml", "": "docker"}


def outside(page: Path, target: str) -> Path | None:
    """The file or folder beside docs/ that a link leads to, if it leads there."""
    found = Path(os.path.normpath(page.parent / target))
    inside = found.is_relative_to(DOCS) or not found.is_relative_to(ROOT)
    return None if inside or not found.exists() else found


def shown_at(path: Path) -> Path:
    """Where the page of a file would lie in docs/."""
    return DOCS / "source" / f"{path.relative_to(ROOT)}.md".replace(".md.md", ".md")


def leads(markdown: str, page: Path, seen_from: Path) -> str:
    """The text of a page with links as they are from elsewhere, outside files by their pages."""

    def lead(found: re.Match[str]) -> str:
        path = outside(page, found[0])
        to = shown_at(path) if path else page.parent / found[0]
        return os.path.relpath(to, seen_from.parent)

    return LINK.sub(lead, markdown)


def text_of(path: Path) -> str:
    if path.suffix == ".md":
        return leads(path.read_text(encoding="utf-8"), path, shown_at(path))
    head = f"# {path.relative_to(ROOT)}\n\n"
    if path.is_dir():
        names = sorted(p.name for p in path.iterdir() if p.is_file() and p.suffix == ".py")
        return head + "".join(f"- [{name}]({path.name}/{name}.md)\n" for name in names)
    language = LANGUAGES.get(path.suffix, path.suffix[1:])
    return f"{head}~~~~{language}\n{path.read_text(encoding='utf-8')}~~~~\n"


def linked(page: Path) -> list[Path]:
    """Files outside docs/ that a page links to."""
    targets = LINK.findall(page.read_text(encoding="utf-8"))
    return [path for target in targets if (path := outside(page, target))]


def on_files(files: Files, config: Any) -> Files:
    pages = [Path(file.abs_src_path) for file in files.documentation_pages() if file.abs_src_path]
    waiting = [path for page in pages for path in linked(page)]
    done: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path in done:
            continue
        done.add(path)
        where = shown_at(path).relative_to(DOCS).as_posix()
        front = "---\nsearch:\n  exclude: true\n---\n\n"
        files.append(File.generated(config, where, content=front + text_of(path)))
        if path.is_dir():
            waiting += path.glob("*.py")
        elif path.suffix == ".md":
            waiting += linked(path)
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    if page.file.abs_src_path is None:
        return markdown
    here = Path(page.file.abs_src_path)
    return leads(markdown, here, here)
