"""Figures: a panel per measure, intervals, laws as broad pale lines, and a mark at what is broken.

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

    rows = panels_of(study, plot, found)
    places = position(study, plot.x, plot.panels) if plot.x else None
    curves = places is not None
    if places is None:
        labels = study.labels(plot.x) if plot.x else [""]
        places = {label: float(number) for number, label in enumerate(labels)}
    size = (4.6 * len(plot.measures) + 1.8, (3.4 if curves else 4.4) * len(rows) + 0.5)
    with pyplot.rc_context({"font.size": 9, "svg.hashsalt": "meshlock", "svg.fonttype": "none"}):
        figure, grid = pyplot.subplots(
            len(rows), len(plot.measures), figsize=size, squeeze=False, layout="constrained"
        )
        figure.suptitle(plot.title)
        for row, axes_row in zip(rows, grid, strict=True):
            for panel, axes in zip(row, axes_row, strict=True):
                axes.set_title(panel.title, fontsize="medium")
                draw_panel(axes, panel, places, plot, curves)
            if len(row[0].series) > 1:
                axes_row[-1].legend(fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
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


def draw_panel(
    axes: Any, panel: Panel, places: dict[Value, float], plot: Plot, curves: bool
) -> None:
    """``curves``: x is a scale of numbers; else its values stand side by side."""
    heights: list[float] = []
    nowhere: dict[float, list[str]] = {}  # marks of points without a height
    for style, (name, points) in enumerate(panel.series.items()):
        look = {"color": COLOURS[style % len(COLOURS)]}
        aside = 0.0 if curves else (style + 0.5) / len(panel.series) * 0.6 - 0.3
        here = [(places[at] + aside, points[at]) for at in panel.xs if at in points]
        laws = [(x, one.laws[panel.measure]) for x, one in here if panel.measure in one.laws]
        if laws:
            axes.plot(*zip(*laws, strict=True), linewidth=3.0, alpha=0.3, **look)
        means = [(x, got) for x, one in here if (got := one.estimates[panel.measure]) is not None]
        axes.errorbar(
            [x for x, _ in means], [got.mean for _, got in means],
            [got.half or 0.0 for _, got in means], label=name,
            marker=MARKERS[style % len(MARKERS)], markersize=4.5,
            linestyle=DASHES[style % len(DASHES)] if curves else "", linewidth=1.1, capsize=2,
            **look
        )  # fmt: skip
        heights += [got.mean for _, got in means]
        for x, one in here if panel.measure != BROKEN else []:
            got = one.estimates[panel.measure]
            if one.mark and got is not None:
                annotate(axes, one.mark, (x, got.mean), "data")
            elif one.mark:
                nowhere.setdefault(x, []).append(f"{name} {one.mark}".strip())
    for x, texts in nowhere.items():
        annotate(axes, ", ".join(texts), (x, 0.03), ("data", "axes fraction"))
    scale_x(axes, {at: places[at] for at in panel.xs}, plot, list(places), curves)
    scale_y(axes, heights, plot)
    axes.set_ylabel(panel.unit or panel.measure)
    axes.grid(alpha=0.3)


def scale_x(
    axes: Any, shown: dict[Value, float], plot: Plot, labels: list[Value], curves: bool
) -> None:
    axes.set_xlabel(axis_title(plot.x, labels))
    if not curves:
        names = [str(label) for label in shown]
        axes.set_xticks(list(shown.values()), names, rotation=45, ha="right")
        axes.set_xlim(min(shown.values()) - 0.5, max(shown.values()) + 0.5)
        return
    if is_log("x", list(shown.values()), plot):
        axes.set_xscale("log")
        label_ticks(axes, sorted(set(shown.values())))


def scale_y(axes: Any, heights: list[float], plot: Plot) -> None:
    from matplotlib.ticker import LogFormatter

    if is_log("y", heights, plot):
        axes.set_yscale("log")
        axes.set_ylim(bottom=min(heights) / 1.6)  # an interval may reach below 0
        for which in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
            which(LogFormatter(labelOnlyBase=False, minor_thresholds=(1.5, 0.5)))
    else:
        axes.set_ylim(bottom=min(0.0, *heights, 0.0))


def is_log(axis: str, values: list[float], plot: Plot) -> bool:
    """As the study says, or where the values span a wide range."""
    if plot.log is not None:
        return axis in plot.log
    return bool(values) and min(values) > 0 and max(values) >= WIDE_RANGE * min(values)


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
