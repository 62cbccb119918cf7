"""Figures: a panel per measure, intervals, laws as thin lines, and a mark at what is broken.

Colours are Okabe and Ito's, which colour-blind people can tell apart; markers and dashes differ as
well, so that a print in grey can be read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from meshlock.errors import Refused
from meshlock.sweep.measures import AXES, BROKEN
from meshlock.sweep.study import Plot, Study, Value, position
from meshlock.sweep.sweep import Panel, Summary, panels_of
from meshlock.trace.files import replacing

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "osD^vP*X<>ph"
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
BROKEN_COLOUR = "#AA0000"

WIDE_RANGE = 20.0
"""A scale whose ends differ by more than this factor is logarithmic unless the study says."""


def can_draw() -> bool:
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return False
    return True


def draw(study: Study, plot: Plot, found: list[Summary], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.patches import Patch

    rows = panels_of(study, plot, found)
    places = position(study, plot.x, plot.panels) if plot.x else None
    bars = places is None
    tallest = max(len(panel.xs) * max(1, len(panel.series)) for row in rows for panel in row)
    height = 1.3 + 0.3 * tallest if bars else 3.4
    size = (4.6 * len(plot.measures) + 1.8, height * len(rows) + 0.5)
    with pyplot.rc_context({"font.size": 9, "svg.hashsalt": "meshlock", "svg.fonttype": "none"}):
        figure, grid = pyplot.subplots(
            len(rows), len(plot.measures), figsize=size, squeeze=False, layout="constrained"
        )
        figure.suptitle(plot.title)
        for row, axes_row in zip(rows, grid, strict=True):
            styles = {name: number for number, name in enumerate(row[0].series)}
            for panel, axes in zip(row, axes_row, strict=True):
                axes.set_title(panel.title, fontsize="medium")
                if places is None:
                    draw_bars(axes, panel, styles)
                else:
                    draw_curves(axes, panel, places, styles, plot)
            if len(styles) > 1:
                handles = None
                if bars:
                    handles = [Patch(label=name, **bar(style)) for name, style in styles.items()]
                axes_row[-1].legend(
                    handles=handles, fontsize="small", loc="upper left", bbox_to_anchor=(1, 1)
                )
        save(figure, path)
        pyplot.close(figure)


def save(figure: Any, path: Path) -> None:
    metadata = {"Date": None} if path.suffix == ".svg" else None
    try:
        with replacing(path) as file:
            figure.savefig(file, format=path.suffix[1:] or "png", metadata=metadata, dpi=150)
    except OSError as error:
        raise Refused(f"Cannot draw to {path}: {error.strerror or error}.") from None
    except ValueError as error:
        raise Refused(f"Cannot draw to {path}: {error}.") from None


def draw_curves(
    axes: Any, panel: Panel, places: dict[Value, float], styles: dict[str, int], plot: Plot
) -> None:
    from matplotlib.ticker import LogFormatter

    heights = []
    marks: list[tuple[float, float | None, str]] = []
    for name, points in panel.series.items():
        style = styles[name]
        look = {"color": COLOURS[style % len(COLOURS)]}
        xs, ys, halves = [], [], []
        for at in panel.xs:
            if at not in points:
                continue
            summary = points[at]
            got = summary.estimates[panel.measure]
            if got is not None:
                xs.append(places[at])
                ys.append(got.mean)
                halves.append(got.half or 0.0)
            if summary.mark and panel.measure != BROKEN:
                told = summary.mark if got else f"{name} {summary.mark}".strip()
                marks.append((places[at], got.mean if got else None, told))
        laws = [(places[at], points[at].laws[panel.measure]) for at in panel.xs
                if at in points and panel.measure in points[at].laws]  # fmt: skip
        if laws:
            axes.plot(*zip(*laws, strict=True), linewidth=3.0, alpha=0.3, **look)
        axes.errorbar(
            xs, ys, halves, label=name, marker=MARKERS[style % len(MARKERS)], markersize=4.5,
            linestyle=DASHES[style % len(DASHES)], linewidth=1.1, capsize=2, **look
        )  # fmt: skip
        heights += ys
    wide_x = min(places.values()) > 0 and max(places.values()) >= WIDE_RANGE * min(places.values())
    wide_y = bool(heights) and min(heights) > 0 and max(heights) >= WIDE_RANGE * min(heights)
    if "x" in plot.log if plot.log is not None else wide_x:
        axes.set_xscale("log")
        label_ticks(axes, sorted({places[at] for at in panel.xs}))
    if "y" in plot.log if plot.log is not None else wide_y:
        axes.set_yscale("log")
        axes.set_ylim(bottom=min(heights) / 1.6)  # an interval may reach below 0
        for which in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
            which(LogFormatter(labelOnlyBase=False, minor_thresholds=(1.5, 0.5)))
    else:
        axes.set_ylim(bottom=min(0.0, *heights, 0.0))
    axes.set_xlabel(axis_title(plot.x, list(places)))
    axes.set_ylabel(panel.unit or panel.measure)
    axes.grid(alpha=0.3)
    nowhere: dict[float, list[str]] = {}  # marks of points without a height
    for x, y, mark in marks:
        if y is None:
            nowhere.setdefault(x, []).append(mark)
        else:
            annotate(axes, mark, (x, y), "data")
    for x, texts in nowhere.items():
        annotate(axes, ", ".join(texts), (x, 0.03), ("data", "axes fraction"))


def annotate(axes: Any, mark: str, at: tuple[float, float], where: str | tuple[str, str]) -> None:
    axes.annotate(
        mark, at, xycoords=where, color=BROKEN_COLOUR, fontsize="x-small", ha="center",
        va="bottom", rotation=90, zorder=5
    )  # fmt: skip


def axis_title(axis: str, labels: list[Value]) -> str:
    """With the unit, if it has one, and the word that all its values begin with."""
    words = {str(label).partition(":")[0] for label in labels if ":" in str(label)}
    title = f"{axis}: {words.pop()}" if len(words) == 1 else axis
    return f"{title}, {AXES[axis]}" if axis in AXES else title


def label_ticks(axes: Any, at: list[float]) -> None:
    """The values that were run, if they fit."""
    if len(at) <= 12:
        axes.set_xticks(at, [f"{x:g}" if x < 1e5 else f"{x:,.0f}" for x in at])
        axes.set_xticks([], minor=True)
        if len(at) > 7:
            axes.tick_params(axis="x", labelrotation=45)


HATCHES = ("", "//", "..", "\\\\", "xx", "--", "oo")


def bar(style: int) -> dict[str, Any]:
    return {
        "facecolor": COLOURS[style % len(COLOURS)],
        "alpha": 0.75,
        "hatch": HATCHES[style % len(HATCHES)],
        "edgecolor": "black",
        "linewidth": 0.5,
    }


def draw_bars(axes: Any, panel: Panel, styles: dict[str, int]) -> None:
    """Categories from top to bottom. A point without any unbroken run has a mark and no bar."""
    count = len(panel.series)
    ticks, labels = [], []
    for number, x in enumerate(panel.xs):
        for place, (name, points) in enumerate(panel.series.items()):
            at = number * (count + 0.5) + place
            if place == (count - 1) // 2:
                ticks.append(number * (count + 0.5) + (count - 1) / 2)
                labels.append(str(x))
            if x not in points:
                continue
            summary = points[x]
            got = summary.estimates[panel.measure]
            if got is not None:
                axes.barh(
                    at, got.mean, xerr=got.half or None, height=0.8, capsize=2, **bar(styles[name])
                )
            if summary.mark and panel.measure != BROKEN:
                end = got.mean + (got.half or 0.0) if got else 0.0
                axes.annotate(
                    " " + summary.mark, (end, at), color=BROKEN_COLOUR, va="center",
                    fontsize="small",
                )  # fmt: skip
    axes.set_yticks(ticks, labels)
    axes.set_ylim(len(panel.xs) * (count + 0.5) - 0.8, -0.7)
    axes.margins(x=0.15)
    axes.set_xlabel(panel.unit or panel.measure)
    axes.grid(axis="x", alpha=0.3)
