"""docs/reproduction.md and the table in the README, made from docs/reproduction.csv and a table with a row per run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from feelstream.studies.pages import markdown, panel_figures
from feelstream.studies.results import number
from feelstream_studies import tables
from feelstream_studies.hu2023 import one_screen, paper
from feelstream_studies.hu2023.judgments import FITTED, SPECIFICATIONS, TEXT, curves_of, judgments, read_runs

NAME = "reproduction"
RUNS = Path("archive", "results", "confirmation.csv")
COLUMNS = {"text": TEXT, "fitted": FITTED}
MARKS = ("<!-- paper -->", "<!-- /paper -->")  # of the README, around the table


def judged(docs: Path) -> pl.DataFrame:
    """What docs/reproduction.csv has to say, from the tables of runs."""
    return judgments(read_runs(docs / RUNS), tables.read(docs / "silicon.csv").rows)


def from_tables(docs: Path) -> str:
    table = tables.read(docs / f"{NAME}.csv")
    rows = table.rows
    other = pl.read_csv(docs / "archive" / "results" / "other-seeds.csv")
    return markdown(
        f"feelstream_studies.hu2023/{NAME}.md.j2",
        one_screen=one_screen.one_screen(rows),
        **{name: _counted(rows, name) for name in COLUMNS},
        other=_other(other),
        empty={name: _empty(rows, name) for name in COLUMNS},
        leads={name: _leads(rows, name) for name in COLUMNS},
        slopes=_slopes(rows),
        open={name: _settings(name) for name in COLUMNS},
        others=_exchanged(rows),
        commits=re.findall(r"\b[0-9a-f]{10}\b", table.about["Commit"]),
        seeds=rows["seeds"].max(),
        first=2000,
        last=2019,
    )


def pictures(docs: Path) -> dict[str, Figure]:
    """Figures 1 to 3 by the text."""
    figures = [paper.FIGURES[key] for key in ("fig1", "fig2", "fig3")]
    drawn = panel_figures(figures, curves_of(read_runs(docs / RUNS), TEXT))
    return {name: picture for name, picture in drawn if name in paper.FIGURES}


def readme(text: str, docs: Path) -> str:
    """The README with the table of the paper between its marks as it is now."""
    before, begin, rest = text.partition(MARKS[0])
    _, end, after = rest.partition(MARKS[1])
    table = one_screen.one_screen(tables.read(docs / f"{NAME}.csv").rows, "docs/")
    return f"{before}{begin}\n{table}{end}{after}"


def _own(rows: pl.DataFrame, claims: str, name: str, eligible: str = "any") -> one_screen.Rows:
    return one_screen.of(rows, one_screen.Line("", claims, eligible=eligible), COLUMNS[name])


# The paper's claims but for the savings.
CLAIMS = r"1[ab]-n\d-(mean|end)|1[ab]-widths|2[ab]-(early|late)|3b-(gap|clearer)|\d[ab]-combined"


def _counted(rows: pl.DataFrame, name: str) -> dict[str, int]:
    own = _own(rows, CLAIMS, name)
    kept, wrong = one_screen.counts(own)
    return {"all": len(own), "kept": kept, "wrong": wrong}


def _other(table: pl.DataFrame) -> str:
    by_name = dict(table.iter_rows())
    told = []
    for settings, words in (("literal", "by the text"), ("fitted", "with fitted settings")):
        each = [by_name[f"saved by the {settings} settings, i.i.d., n = {n}, seeds 4000 to 4039, %"] for n in (2, 4)]
        told.append(f"{' % and '.join(each)} % {words}")
    return ", ".join(told)


def _empty(rows: pl.DataFrame, name: str) -> dict[str, float]:
    return {who: _own(rows, f"empty-{who}", name)[0]["mean"] for who in ("random", "proposed")}


def _leads(rows: pl.DataFrame, name: str) -> dict[str, str]:
    """Over the run, with and without devices that hold nothing; and what is saved without."""
    before, after = (one_screen.lead(_own(rows, r"1[ab]-n\d-mean", name, who)) for who in ("any", "with_data"))
    saved = one_screen.saving(_own(rows, r"1[cd]-n\d-saving", name, "with_data"))
    return {"before": before, "after": after, "saved": saved}


def _slopes(rows: pl.DataFrame) -> str:
    words = {"text": "by the text", "fitted": "with fitted settings"}
    each = {name: [number(row["mean"], 1) for row in _own(rows, "1[ab]-widths", name)] for name in COLUMNS}
    return ", ".join(f"{' and '.join(means)} points {words[name]}" for name, means in each.items())


def _settings(name: str) -> dict[str, Any]:
    scenario = paper.scenario(paper.proposed("iid", 2), COLUMNS[name].overrides)
    local: Any = scenario.learning.local
    steps, batch = local.shape
    arrivals: Any = scenario.data.arrivals
    return {
        "rounds": scenario.system.rounds, "sigma": f"{arrivals.sigma:g}", "steps": steps, "batch": batch,
        "lr": f"{local.lr:g}", "momentum": f"momentum {local.momentum:g}" if local.momentum else "no momentum",
    }  # fmt: skip


def _exchanged(rows: pl.DataFrame) -> str:
    """What comes out where each of the two has the other's reading of fresh data."""
    told = []
    for each in SPECIFICATIONS[2:]:
        own = one_screen.of(rows, one_screen.Line("", CLAIMS), each)
        words = "the text's other settings" if each.settings == "literal" else "the fitted ones"
        told.append(f"{one_screen.counts(own)[0]} of {len(own)} with {words}")
    return " and ".join(told)
