"""Runs inside Pyodide, see pack.mjs: two archives of what the laboratory imports, as bytecode."""

import importlib._bootstrap_external as bootstrap
import shutil
import sys
import zipfile
from pathlib import Path

LEVEL = 9
SITE = Path("/meshlock")
PARTS = ("algorithms", "check", "properties", "simulate", "topology", "trace", "web", "world")
FILES = ("__init__.py", "errors.py", "settings.py", "live/__init__.py")
LIVE = ("interfaces/__init__.py", "interfaces/site.py", "machine/__init__.py")
LIVE += ("machine/labels.py", "machine/limits.py")
NOT = ("web/live.py", "web/server.py")
WITH_TEXT = "meshlock/algorithms/"
"""Lines of these are shown beside a run, and changed in the editor."""

MORE = ("bisect", "collections", "dataclasses", "decimal", "enum", "fractions", "heapq", "math")
MORE += ("itertools", "pprint", "queue", "random", "statistics", "string", "typing", "uuid")
"""Modules that somebody's own algorithm may import."""


def bytecode(text, name, optimize=-1):
    """As it stands in a file, never compared with its source again."""
    code = compile(text, name, "exec", dont_inherit=True, optimize=optimize)
    return bootstrap._code_to_hash_pyc(code, bytes(8), False)


def add(archive, name, content):
    archive.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), content, 8, LEVEL)


def collect():
    """What is copied from the source, and the wheel, in one folder."""
    with zipfile.ZipFile(WHEEL) as wheel:  # noqa: F821 - pack.mjs sets it
        wheel.extractall(SITE)
    source = Path("/source/meshlock")
    paths = [path for part in PARTS for path in (source / part).rglob("*") if path.is_file()]
    paths += [source / name for name in FILES] + [source / "live" / name for name in LIVE]
    for path in paths:
        name = path.relative_to("/source")
        if path.suffix in (".so", ".pyc") or str(name.relative_to("meshlock")) in NOT:
            continue
        (SITE / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, SITE / name)


def own():
    """meshlock and msgspec; only where lines are shown is the source there, too."""
    with zipfile.ZipFile("/lab/python/meshlock.zip", "w") as archive:
        for path in sorted(SITE.rglob("*")):
            name = str(path.relative_to(SITE))
            if not path.is_file() or path.suffix in (".pyc", ".pyi"):
                continue
            if path.suffix != ".py":
                add(archive, name, path.read_bytes())
                continue
            shown = name.startswith(WITH_TEXT)
            compiled = bytecode(path.read_bytes(), str(path))
            place = f"{path.parent.relative_to(SITE)}/__pycache__/{path.stem}"
            add(
                archive,
                f"{place}.{sys.implementation.cache_tag}.pyc" if shown else f"{name}c",
                compiled,
            )
            if shown:
                add(archive, name, path.read_bytes())


def standard():
    """The standard library, as far as anything here imports it."""
    found = [getattr(module, "__file__", None) or "" for module in list(sys.modules.values())]
    names = {file.split(".zip/")[1] for file in found if ".zip/" in file}
    with (
        zipfile.ZipFile("/packed/python_stdlib.zip") as library,
        zipfile.ZipFile("/lab/python/python_stdlib.zip", "w") as archive,
    ):
        for name in sorted(names):
            text = library.read(name)
            place = f"/lib/python{sys.version_info[0]}{sys.version_info[1]}.zip/{name}"
            if name.endswith(".py"):
                add(archive, f"{name}c", bytecode(text, place, 2))
            else:
                add(archive, name, text)


def rehearse():
    """Import what a session imports, now or later."""
    sys.path.append(str(SITE))
    for name in ("meshlock.web.tab", "meshlock.algorithms.outside", "importlib.metadata", *MORE):
        __import__(name)
    from meshlock.algorithms.registry import find

    try:
        find("nothing of this name")  # looks at installed packages
    except Exception as error:
        print(error)


collect()
rehearse()
own()
standard()
