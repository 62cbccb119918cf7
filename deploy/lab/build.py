"""Build the laboratory as a folder of static files: python deploy/lab/build.py FOLDER

Python for browsers (Pyodide) comes from the npm registry, msgspec's WebAssembly wheel from the
package index, as npm and pip are configured. Both stay in build/lab. ``pack.mjs`` has that Python
compile what the laboratory imports, so that a tab reads bytecode.
"""

import json
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "src" / "meshlock" / "web" / "page"
CACHE = ROOT / "build" / "lab"
PYODIDE = "pyodide@314"
RUNS = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm")
LEFT_OUT = {"live.html", "live.css", "live.js", "map.js", "figures.js"}


def run(*words: object, folder: Path = ROOT) -> None:
    subprocess.run([str(word) for word in words], cwd=folder, check=True)


def pyodide() -> Path:
    """The unpacked package of Pyodide."""
    folder = CACHE / "package"
    if not folder.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=CACHE) as place:
            run("npm", "pack", PYODIDE, "--silent", "--loglevel=error", "--pack-destination", place)
            (archive,) = Path(place).glob("pyodide-*.tgz")
            with tarfile.open(archive) as file:
                file.extractall(place, filter="data")
            (Path(place) / "package").rename(folder)
    return folder


def wheel(info: dict[str, str]) -> Path:
    """The wheel of msgspec for that Python."""
    if not list(CACHE.glob("msgspec-*.whl")):
        platform = f"pyemscripten_{info['abi_version']}_{info['arch']}"
        version = ".".join(info["python"].split(".")[:2])
        words = ["--quiet", "--no-deps", "--only-binary", ":all:", "--dest", CACHE]
        words += ["--platform", platform, "--python-version", version, "msgspec"]
        run(sys.executable, "-m", "pip", "download", *words)
    (found,) = CACHE.glob("msgspec-*.whl")
    return found


def page(lab: Path) -> None:
    """The page itself. Its paths are relative, so that it works in any folder."""
    for path in PAGE.iterdir():
        if path.name in LEFT_OUT:
            continue
        if path.suffix != ".html":
            shutil.copy(path, lab / "page" / path.name)
            continue
        text = path.read_text(encoding="utf-8")
        text = text.replace('<html lang="en">', '<html lang="en" data-python="python/">')
        text = text.replace('href="compare"', 'href="compare.html"')
        (lab / path.name).write_text(text, encoding="utf-8")


def build(lab: Path) -> None:
    if shutil.which("npm") is None or shutil.which("node") is None:
        sys.exit("Building the laboratory needs npm, which brings Python for browsers: install it.")
    shutil.rmtree(lab, ignore_errors=True)
    (lab / "page").mkdir(parents=True)
    (lab / "python").mkdir()
    package = pyodide()
    info = json.loads((package / "pyodide-lock.json").read_text(encoding="utf-8"))["info"]
    for name in RUNS:
        shutil.copy(package / name, lab / "python" / name)
    lock = json.dumps({"info": info, "packages": {}})
    (lab / "python" / "pyodide-lock.json").write_text(lock, encoding="utf-8")
    page(lab)
    run("node", Path(__file__).with_name("pack.mjs"), package, wheel(info), ROOT / "src", lab)
    size = sum(path.stat().st_size for path in lab.rglob("*") if path.is_file())
    print(f"{lab}: {size / 1e6:.1f} MB. Try it: python -m http.server --directory {lab}")


if __name__ == "__main__":
    build(Path(sys.argv[1]).resolve())
