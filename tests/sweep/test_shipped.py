"""The shipped studies and their pages belong together."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from meshlock.sweep.measures import measured
from meshlock.sweep.runs import line_of, read_line
from meshlock.sweep.study import read_study

ROOT = Path(__file__).parents[2]
STUDIES = sorted((ROOT / "studies").glob("*.toml"))
PAGES = ROOT / "docs" / "studies"
MADE = ROOT / "docs" / "appendices" / "studies"


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_every_study_has_a_page_with_its_own_figure(path):
    study = read_study(path)
    assert len(study.points) * len(study.seeds) > 1
    page = (PAGES / f"{path.stem}.md").read_text(encoding="utf-8")
    assert f"meshlock sweep studies/{path.name}" in page
    for plot in study.plots:
        assert f"(../appendices/studies/{path.stem}/{plot.name}.svg)" in page
        assert (MADE / path.stem / f"{plot.name}.svg").exists()
    report = (MADE / path.stem / "report.md").read_text(encoding="utf-8")
    assert report.startswith(f"# {study.title}\n")
    assert f"({path.stem}.md)" in (PAGES / "README.md").read_text(encoding="utf-8")


def test_the_table_in_the_docs_is_that_of_the_study():
    study = read_study(ROOT / "studies" / "cost-against-n.toml")
    with (MADE / "cost-against-n" / "results.csv").open() as file:
        row = next(csv.DictReader(file))
    line = read_line(line_of({**study.points[0].values, "seed": study.seeds[0]}, study.events))
    assert float(row["messages_per_entry"]) == measured(line.figures, "messages_per_entry")
