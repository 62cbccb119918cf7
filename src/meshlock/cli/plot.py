"""Draw what ``meshlock compare`` measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from meshlock.errors import Refused


def refuse_if_impossible(path: Path) -> None:
    """Before anything is run: whoever waits for a picture should not wait in vain."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise Refused("--plot needs matplotlib: pip install 'meshlock[plot]'.") from None
    if not path.parent.is_dir():
        raise Refused(f"Cannot draw to {path}: there is no folder {path.parent}.")


def draw(results: dict[str, dict[str, Any]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    names = list(results)
    figure, (costs, waits, levels) = pyplot.subplots(1, 3, figsize=(14, 1.8 + 0.6 * len(names)))
    kinds = sorted({kind for result in results.values() for kind in result["messages"]})
    left = [0.0] * len(names)
    for kind in kinds:
        widths = [r["messages"].get(kind, 0) / (r["entries"] or 1) for r in results.values()]
        costs.barh(names, widths, left=left, label=kind)
        left = [a + b for a, b in zip(left, widths, strict=True)]
    costs.set_title("messages per entry")
    costs.legend(fontsize="small")
    for shade, part in ((0.3, "max"), (0.5, "p95"), (0.9, "mean")):
        spreads = [result["waiting"][part] for result in results.values()]
        waits.barh(names, spreads, color=(0.1, 0.3, 0.7), alpha=shade, label=part)
    waits.set_title("waiting: mean, p95, max")
    waits.legend(fontsize="small")
    for name, result in results.items():
        points = sorted((int(k), v["mean"]) for k, v in result["waiting_by_priority"].items())
        levels.plot([p for p, _ in points], [w for _, w in points], marker="o", label=name)
    levels.set_title("mean waiting by priority")
    levels.set_xlabel("priority")
    levels.legend(fontsize="small")
    for axes in (costs, waits):
        axes.invert_yaxis()
    figure.tight_layout()
    try:
        figure.savefig(path)
    except (OSError, ValueError) as error:
        raise Refused(f"Cannot draw to {path}: {error}.") from None
    pyplot.close(figure)
