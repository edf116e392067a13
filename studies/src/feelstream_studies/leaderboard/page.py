"""docs/leaderboard.md: the protocols that a reviewer asks for, and every board at length with its plot."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from feelstream.studies.pages import PNG_DPI, markdown, origin, pareto_figure, worlds, write_page
from feelstream.studies.plans import Override, presets
from feelstream.studies.results import LEAST_SEEDS, QUANTITIES, Results, meanings, per_run, summarise, tables
from feelstream_studies.leaderboard import protocols
from feelstream_studies.leaderboard.discussion import discussion


def write_leaderboard(
    directory: Path,
    boards: Mapping[protocols.Board, Results],
    changes: Mapping[protocols.Board, Sequence[str]],
    options: Sequence[str],
    hindsight: Mapping[str, Results] | None = None,
) -> Path:
    """Write leaderboard.md and its plots, figures/pareto-SCENARIO-READING.png.

    boards: results by scenario and data.eligible, in the order of the page. changes: `section.field=value` that each
    was run with, of two for one field the last. options: what the command was given. hindsight: by scenario, the runs
    of `protocols.hindsight_plan`.
    """
    runs = {board: per_run(results) for board, results in boards.items()}
    found = {board: (results.plan, summarise(results, runs[board])) for board, results in boards.items()}
    pictures: dict[str, Figure] = {}
    text = markdown(
        "feelstream_studies.leaderboard/page.md.j2",
        winners=protocols.winners(found),
        accuracy=QUANTITIES["late_accuracy"].column_title,
        least=LEAST_SEEDS,
        boards=[
            _about(board, boards[board], runs[board], summary, changes[board], pictures)
            for board, (_, summary) in found.items()
        ],
        targets=protocols.TARGETS,
        most_shown=protocols.SHOWN,
        robustness=protocols.robustness(found),
        hindsight={name: protocols.hindsight(results) for name, results in (hindsight or {}).items()},
        meanings=meanings(QUANTITIES.values()),
        command=shlex.join(["feelstream", "leaderboard", *options]),
    )
    return write_page(directory, "leaderboard", text, pictures, dpi=PNG_DPI)


def _about(
    board: protocols.Board,
    results: Results,
    runs: pl.DataFrame,
    summary: pl.DataFrame,
    changes: Sequence[str],
    pictures: dict[str, Figure],
) -> dict[str, Any]:
    """What the page shows of a board; its plots are added to the pictures."""
    (name, reading), plan, made = board, results.plan, origin(results)
    titles = {}
    for number, (title, points) in enumerate(shown := worlds(plan, summary), start=1):
        picture = f"pareto-{Path(name).stem}-{reading}{'' if len(shown) == 1 else f'-{number}'}"
        pictures[picture], titles[picture] = pareto_figure(points), title
    return {
        "name": name,
        "reading": reading,
        "about": presets().get(name, ""),
        "entries": len(plan.arms),
        "seeds": len(plan.seeds),
        "failures": len(results.failures),
        "day": made.finished.partition(" ")[0],
        "facts": made.facts,
        "changes": {Override.parse(change).field: change for change in changes},
        "within": protocols.under_budget(plan, summary),
        "cost": protocols.cost_to_target(plan, summary),
        "tables": tables(plan, summary),
        "said": discussion(plan, runs, summary),
        "pictures": titles,
    }
