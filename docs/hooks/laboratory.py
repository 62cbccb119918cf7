"""Put the laboratory that ``make lab`` has built beside the pages, and links that play there."""

from __future__ import annotations

import shutil
from html import escape
from pathlib import Path
from typing import Any

from meshlock.algorithms.registry import ALGORITHMS
from meshlock.simulate import scenario

LAB = Path(__file__).parents[2] / "lab"


def link(fragment: str, text: str, kind: str = "") -> str:
    """As HTML: the folder is there only when the site is complete."""
    return f'<a class="{kind}" href="../lab/index.html#{fragment}">{escape(text)}</a>'


def with_links(markdown: str, page: str) -> str:
    """The text of a page with what leads from it into the laboratory."""
    path = Path(page)
    title, _, rest = markdown.partition("\n")
    if page == f"algorithms/{path.name}" and path.stem in ALGORITHMS:
        button = link(f"algorithm={path.stem}", "Play it in this browser", "md-button")
        return f"{title}\n\n{button}\n{rest}"
    if page == "laboratory/tab.md":
        return f"{title}\n\n{link('', 'Open the laboratory', 'md-button')}\n{rest}"
    if page == "laboratory/scenarios.md":
        scripts = [scenario.scenario(name) for name in scenario.names()]
        rows = [f"- {link(f'run=scenario:{one.name}:', one.name)}: {one.title}" for one in scripts]
        return "\n".join([markdown, "## Play one in this browser", "", *rows, ""])
    return markdown


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    return with_links(markdown, page.file.src_uri) if LAB.is_dir() else markdown


def on_post_build(config: Any) -> None:
    if LAB.is_dir():
        shutil.copytree(LAB, Path(config["site_dir"]) / "lab", dirs_exist_ok=True)
