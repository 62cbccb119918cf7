"""Pictures for the documentation, made by the tests: MESHLOCK_PICTURES=1 pytest tests/web."""

import contextlib
import os
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"


def wanted():
    return bool(os.environ.get("MESHLOCK_PICTURES"))


def picture(page, name):
    """Keep what the page shows now, if pictures are asked for."""
    if wanted():
        FOLDER.mkdir(parents=True, exist_ok=True)
        page.wait_for_timeout(250)
        path = FOLDER / f"{name}.png"
        page.screenshot(path=path)
        with contextlib.suppress(ImportError):  # smaller, where Pillow is there
            from PIL import Image

            Image.open(path).convert("RGB").quantize(160).save(path, optimize=True)
