"""A trace as one HTML file that plays without a server.

The page's own modules are put into the file, and beside them what the server would answer. An
import map gives the modules their names. A policy in the file forbids it to ask for anything.
"""

from __future__ import annotations

import re
from base64 import b64encode
from typing import Any

import msgspec

from meshlock.errors import Refused
from meshlock.web.answers import PAGE
from meshlock.web.handlers import Ran, source_of
from meshlock.web.index import WINDOW, Index

MOST_STEPS = 20_000
WATCHED = 2_000
"""Steps up to which the lines that ran are noted; of later ones the handlers are shown."""

POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' data:; style-src 'unsafe-inline'; "
    "img-src data:; base-uri 'none'; form-action 'none'"
)
IMPORT = re.compile(r'(?m)^(import .* from )"\./([a-z]+\.js)";$')


def exported(index: Index, about: dict[str, Any]) -> str:
    """The file; ``about`` is what the server says of the run."""
    if index.steps > MOST_STEPS:
        raise Refused(
            f"This run has {index.steps:,} steps, and a file of its own can hold "
            f"{MOST_STEPS:,}: use meshlock view."
        )
    page = (PAGE / "index.html").read_text(encoding="utf-8")
    style = (PAGE / "style.css").read_text(encoding="utf-8")
    icon = data("image/svg+xml", (PAGE / "icon.svg").read_bytes())
    policy = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    scripts = (
        f'<script type="application/json" id="answers">{escaped(answers(index, about))}</script>\n'
        f'<script type="importmap">{escaped({"imports": modules()})}</script>\n'
        '<script type="module">import "meshlock/main.js";</script>'
    )
    replaced = {
        '<meta charset="utf-8">': f'<meta charset="utf-8">\n{policy}',
        'href="page/icon.svg"': f'href="{icon}"',
        '<link rel="stylesheet" href="page/style.css">': f"<style>\n{style}</style>",
        '<script type="module" src="page/main.js"></script>': scripts,
    }
    for old, new in replaced.items():
        assert page.count(old) == 1, old
        page = page.replace(old, new)
    return page.replace('url("icon.svg")', f'url("{icon}")')


def data(kind: str, body: bytes) -> str:
    return f"data:{kind};base64,{b64encode(body).decode()}"


def modules() -> dict[str, str]:
    """The scripts that the page imports, by names that need no place."""
    found: dict[str, str] = {}
    missing = ["main.js"]
    while missing:
        name = missing.pop()
        text = (PAGE / name).read_text(encoding="utf-8")
        missing += [part for _, part in IMPORT.findall(text) if f"meshlock/{part}" not in found]
        text = IMPORT.sub(r'\1"meshlock/\2";', text)
        found[f"meshlock/{name}"] = data("text/javascript", text.encode())
    return found


def escaped(value: Any) -> str:
    """JSON that no trace can make end its element."""
    return msgspec.json.encode(value).decode().replace("<", "\\u003c")


def answers(index: Index, about: dict[str, Any]) -> dict[str, Any]:
    """What the server would say, by path."""
    run = "/api/runs/trace"
    about = {key: value for key, value in about.items() if key not in ("driven", "riddle")}
    said: dict[str, Any] = {
        "/api/runs": {"opened": "trace", "alone": True},
        run: about,
        f"{run}/source": source_of(index.setup),
        f"{run}/overview": index.overview(600),
    }
    for number in range(max(index.steps - 1, 0) // WINDOW + 1):
        said[f"{run}/window?number={number}"] = msgspec.Raw(index.window(number))
    ran = Ran(index)
    methods: dict[bytes, int] = {}  # each is written once, however often it ran
    for step in range(1, min(index.steps, WATCHED) + 1):
        parts = []
        for part in ran.step(step):
            lit = part.pop("lit")
            place = methods.setdefault(msgspec.json.encode(part), len(methods))
            parts.append([place, lit])
        said[f"{run}/ran?step={step}"] = parts
    said["methods"] = [msgspec.Raw(text) for text in methods]
    return said
