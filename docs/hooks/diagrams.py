"""Draw the diagrams of the docs when the site is built.

They are Mermaid in the pages, which GitHub draws. The theme would load Mermaid from a server when
somebody reads the site; the site has pictures in its pages instead, and needs no network.
"""

from __future__ import annotations

import re
from typing import Any

import flowcharts
import sequences

ROLE = re.compile(r":(?:attr|class|data|func|meth|mod):<code>[~.]*")
PLOT = re.compile(r"^(!\[[^\]]*\]\((\S+\.svg)\))$", re.MULTILINE)
BLOCK = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def draw(source: str) -> str:
    kind = source.split(maxsplit=1)[0]
    return (sequences if kind == "sequenceDiagram" else flowcharts).draw(source)


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    markdown = PLOT.sub(r"[\1](\2)", markdown)  # a click shows it in full size
    return BLOCK.sub(lambda found: f'<div style="overflow-x:auto">{draw(found[1])}</div>', markdown)


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Docstrings name other things with roles of Sphinx, which this site does not have."""
    return ROLE.sub("<code>", html)
