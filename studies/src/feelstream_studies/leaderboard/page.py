"""docs/leaderboard.md and leaderboard.csv: what every policy came to on every board, and what a reviewer asks of it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from feelstream.studies.pages import markdown, write_page
from feelstream.studies.plans import Override
from feelstream.studies.results import (
    HIGHER,
    LEAST_SEEDS,
    LOWER,
    QUANTITIES,
    Results,
    by_arm,
    compared,
    per_run,
    summarise,
)
from feelstream_studies import tables
from feelstream_studies.leaderboard import protocols
from feelstream_studies.leaderboard.figure import overview_figure
from feelstream_studies.leaderboard.protocols import Board, Summaries

NAME = "leaderboard"
DIGITS = 6  # of the table: energies over budget reach the thousands
REFERENCE = "random"
LOOKED_FOR = ("lyapunov", REFERENCE)
Row = dict[str, Any]


def write_leaderboard(
    directory: Path,
    boards: Mapping[Board, Results],
    changes: Mapping[Board, Sequence[str]],
    options: Sequence[str],
    hindsight: Mapping[str, Results] | None = None,
) -> Path:
    """Write leaderboard.csv, leaderboard.md and figures/leaderboard.png.

    boards: results by scenario and data.eligible, in the order of the page. changes: `section.field=value` that each
    was run with, of two for one field the last. options: what the command was given. hindsight: by scenario, the runs
    of `protocols.hindsight_plan`.
    """
    gaps = {name: protocols.gaps_in_hindsight(results) for name, results in (hindsight or {}).items()}
    rows = [row for board, results in boards.items() for row in _rows(board, results, gaps.pop(board[0], {}))]
    command = shlex.join(["feelstream", "leaderboard", *options])
    about = tables.merged(*(tables.about(results, command) for results in boards.values()))
    about["Changed"] = "; ".join(f"{_title(board)}: {_last(changed)}" for board, changed in changes.items())
    if missing := sum(len(results.failures) for results in boards.values()):
        about["Missing"] = f"{missing} runs failed"
    made = tables.Table(tables.rounded(pl.DataFrame(rows, infer_schema_length=None), DIGITS), about)
    page = write_page(directory, NAME, text(made), pictures_of(made))
    tables.write(directory / f"{NAME}.csv", made, DIGITS)
    return page


def from_tables(docs: Path) -> str:
    """The page as the table beside it says."""
    return text(tables.read(docs / f"{NAME}.csv"))


def pictures(docs: Path) -> dict[str, Figure]:
    return pictures_of(tables.read(docs / f"{NAME}.csv"))


def _rows(board: Board, results: Results, gaps: Mapping[str, Sequence[float]]) -> Iterator[Row]:
    """A row for each policy: means with 95 % intervals, medians of times to an accuracy, and what the tests say."""
    runs = per_run(results)
    found = by_arm(summarise(results, runs))
    late = {arm: own["late_accuracy"]["mean"] for arm, own in found.items() if "late_accuracy" in own}
    best = max((arm for arm in late if late[arm] is not None), key=lambda arm: late[arm], default="")
    verdicts = {
        f"{word}_against_{whom}": _verdicts(runs, quantity, reference, list(found))
        for word, quantity in (("accuracy", "late_accuracy"), ("energy", "energy_j"))
        for whom, reference in (("random", REFERENCE), ("best", best if word == "accuracy" else ""))
    }
    for arm, own in found.items():
        row: Row = {"scenario": board[0], "eligible": board[1], "policy": arm, "seeds": own["energy_j"]["n"]}
        for name, of in own.items():
            if of["reached"] is not None:
                row |= {name: of["median"], f"{name}_is_bound": of["median_is_bound"]}
            else:
                row |= {name: of["mean"], f"{name}_low": of["low"], f"{name}_high": of["high"]}
        row |= {name: said[arm] for name, said in verdicts.items() if arm in said}
        if arm in gaps:
            row |= {"gap_to_bound": fmean(gaps[arm]), "gap_to_bound_worst": max(gaps[arm])}
        yield row


def _verdicts(runs: pl.DataFrame, quantity: str, reference: str, arms: list[str]) -> dict[str, str]:
    """What the paired tests say of each arm against the reference: better, worse, or why neither."""
    if reference not in arms or quantity not in runs.columns or runs[quantity].null_count() == len(runs):
        return {}
    words = {HIGHER: "worse", LOWER: "worse"} | {QUANTITIES[quantity].better: "better"}
    return {arm: words.get(said, said) for arm, (_, said) in compared(runs, quantity, reference, arms).items()}


def summaries(rows: pl.DataFrame) -> Summaries:
    """The table as each board's seeds and summary, a row per policy and quantity."""
    found = {}
    for (name, reading), own in rows.group_by("scenario", "eligible", maintain_order=True):
        of = [cell for row in own.rows(named=True) for cell in _cells(row)]
        found[str(name), str(reading)] = (own["seeds"].max(), pl.DataFrame(of, infer_schema_length=None))
    return found


def _cells(row: Row) -> Iterator[Row]:
    for name in (name for name in row if name in QUANTITIES):
        cell = {"arm": row["policy"], "quantity": name, "n": row["seeds"] if row[name] is not None else 0}
        if f"{name}_is_bound" in row:
            reached = round(row["seeds"] * (row[f"reached_{name.rpartition('_')[2]}"] or 0))
            yield cell | {"median": row[name], "median_is_bound": row[f"{name}_is_bound"], "reached": reached}
        else:
            yield cell | {"mean": row[name], "low": row.get(f"{name}_low"), "high": row.get(f"{name}_high")}


def text(table: tables.Table) -> str:
    found, (scenarios, gaps) = summaries(table.rows), protocols.hindsight(table.rows)
    return markdown(
        "feelstream_studies.leaderboard/page.md.j2",
        about=table.about,
        seeds=max(seeds for seeds, _ in found.values()),
        least=LEAST_SEEDS,
        boards=[_about(board, *found[board], _title(board, found), table.rows) for board in found],
        titles=[QUANTITIES[name].column_title for name in protocols.UNDER_BUDGET],
        targets=protocols.TARGETS,
        most_shown=protocols.SHOWN,
        robustness=_shown(protocols.robustness(found)) if len(found) > 1 else [],
        scenarios=scenarios,
        hindsight=_shown(gaps),
        reference=REFERENCE,
        pictured=bool(pictures_of(table)),
    )


def _shown(rows: protocols.Rows) -> protocols.Rows:
    """The first of a table, and who else a reader looks for."""
    return [row for place, row in enumerate(rows) if place < protocols.SHOWN or row[0].strip("`") in LOOKED_FOR]


def _about(board: Board, seeds: int, summary: pl.DataFrame, title: str, table: pl.DataFrame) -> dict[str, Any]:
    """What the page tells of a board."""
    own = table.filter(scenario=board[0], eligible=board[1])
    judged = [name for name in own.columns if "_against_" in name]
    return {
        "title": title,
        "entries": len(own),
        "leaders": protocols.leaders(summary),
        "budget": protocols.under_budget(seeds, summary),
        "cost": protocols.cost_to_target(seeds, summary),
        "judged": {name: [(own[name] == word).sum() for word in ("better", "worse")] for name in judged},
    }


def pictures_of(table: tables.Table) -> dict[str, Figure]:
    """Those that the page's tables are about have colours of their own."""
    found = summaries(table.rows)
    leaders = [protocols.leaders(summary) for _, summary in found.values()]
    named = dict.fromkeys(arm for each in leaders for arm in (*each["kept"], *each["best"]))
    figure = overview_figure({_title(board, found): own for board, (_, own) in found.items()}, [*named, *LOOKED_FOR])
    return {} if figure is None else {NAME: figure}


def _title(board: Board, boards: Mapping[Board, object] | None = None) -> str:
    """The scenario; where it has two boards, or none are given to tell, with who may be scheduled."""
    alone = boards is not None and [name for name, _ in boards].count(board[0]) == 1
    return board[0] if alone else f"{board[0]}, {board[1]}"


def _last(changes: Sequence[str]) -> str:
    return " ".join({Override.parse(change).field: change for change in changes}.values())
