"""What the report and docs/within-budget-results.md say: accuracy, energy and margins, scenario by scenario."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from feelstream.studies.claims import Finding
from feelstream.studies.pages import DOCS_DPI, Page, Section, origin_parts, save, write_page
from feelstream.studies.results import Results, counted, significant
from feelstream_studies.within_budget.configurations import ALL_SEEDS, LONGER, OURS, REFERENCE, SCENARIOS
from feelstream_studies.within_budget.figure import figure_of
from feelstream_studies.within_budget.findings import MARGINS, held, per_run, table_of
from feelstream_studies.within_budget.overview import WORST, overview_figure, overview_table, same_server
from feelstream_studies.within_budget.words import HOW, LONGER_STEPS, OPENING, SAME_SERVER, SETTING

TITLE = "Within the budget, against training everyone"
LONGER_TITLE, LONGER_PAGE = "Within the budget, with longer steps of the server", "within-budget-longer"
MEASURED = {"late_accuracy": "accuracy of the last fifth", "accuracy_area": "mean accuracy over the run"}
NONE = "–"


def page(results: Results) -> Page:
    table = table_of(per_run(results))
    html = "".join(
        f"<h3>{escape(scenario)}</h3><pre>{escape(_table(table, scenario))}</pre>" for scenario in _scenarios(table)
    )
    return Page(title=TITLE, comparison=False, sections=[Section("budget", "Budgets", html)], docs=write_docs)


def write_docs(directory: Path, results: Results, findings: Sequence[Finding]) -> Path:
    """Write within-budget-results.md, within-budget.csv, figures/within-budget.png and within-budget-overview.png.

    And of the server with longer steps, where it was played, within-budget-longer.md, .csv and figures/….png.
    """
    # Rounded first, so that page and table cannot disagree in a digit.
    table = table_of(per_run(results)).with_columns(pl.selectors.float().round_sig_figs(4))
    text = "\n".join([opening(table), *origin_parts(results)]).rstrip() + "\n"
    path = write_page(directory, "within-budget-results", text, "within-budget", table, figure_of(table))
    save(overview_figure(table), directory / "figures", "within-budget-overview", formats=("png",), dpi=DOCS_DPI)
    if LONGER in table["policy"]:
        longer = table.filter(pl.col("policy").is_in(ALL_SEEDS))
        text = "\n".join([longer_steps(longer), *origin_parts(results)]).rstrip() + "\n"
        write_page(directory, LONGER_PAGE, text, LONGER_PAGE, longer, overview_figure(longer, LONGER))
    return path


def _scenarios(table: pl.DataFrame) -> list[str]:
    return table["scenario"].unique(maintain_order=True).to_list()


def opening(table: pl.DataFrame) -> str:
    """The page but for its origin: what came out, a table and a picture of it, and then scenario by scenario."""
    parts = [
        f"# {TITLE}\n",
        f"{summary(table)}{_not_run(table)}\n",
        overview_table(table),
        "![Accuracy and energy of balanced_joint and of training everyone](figures/within-budget-overview.png)\n",
        OPENING,
        "## All policies\n",
        "![Accuracy against energy over budget, by scenario](figures/within-budget.png)\n",
        SETTING,
    ]
    return "\n".join([*parts, *_by_scenario(table), HOW])


def longer_steps(table: pl.DataFrame) -> str:
    """The page on the server that steps further, but for its origin."""
    parts = [
        f"# {LONGER_TITLE}\n",
        f"{summary(table, LONGER)}{_not_run(table)}\n",
        "## Against everyone with the same server\n",
        SAME_SERVER,
        _beside_everyone(table),
        "## Against everyone with FedAvg\n",
        overview_table(table, LONGER),
        f"![Accuracy and energy of both](figures/{LONGER_PAGE}.png)\n",
        LONGER_STEPS,
    ]
    return "\n".join([*parts, *_by_scenario(table), HOW.replace("within-budget.csv", f"{LONGER_PAGE}.csv")])


def _by_scenario(table: pl.DataFrame) -> list[str]:
    parts = [[f"## {scenario}, {_seeds(table, scenario)}\n", _table(table, scenario)] for scenario in _scenarios(table)]
    return [part for both in parts for part in both]


def _beside_everyone(table: pl.DataFrame) -> str:
    """The gaps of longer steps to everyone with its own server, scenario by scenario."""
    own = table.filter(policy=LONGER).drop_nulls("late_accuracy_same").to_dicts()
    rows = [f"| `{row['scenario']}` | {' | '.join(_beside(row, name) for name in MARGINS)} |" for row in own]
    return (
        "\n".join([f"| scenario | {' | '.join(MEASURED[name] for name in MARGINS)} |", "|---|---|---|", *rows]) + "\n"
    )


def _beside(row: dict[str, Any], name: str) -> str:
    """A gap in points to everyone with the same server, with its 95 % interval."""
    mean, low, high = (row[f"{name}_same{end}"] for end in ("", "_low", "_high"))
    return _points(100 * mean) + ("" if low is None else f" [{_points(100 * low)}, {_points(100 * high)}]")


def _seeds(table: pl.DataFrame, scenario: str) -> str:
    counts = table.filter(scenario=scenario)["seeds"]
    least, most = int(counts.min() or 0), int(counts.max() or 0)  # type: ignore[arg-type]
    return counted(most, "seed") if least == most else f"{least} to {counted(most, 'seed')}"


def _not_run(table: pl.DataFrame) -> str:
    rest = [f"`{name}`" for name in SCENARIOS if name not in _scenarios(table)]
    return f" Not run yet: {', '.join(rest)}." if rest else ""


def summary(table: pl.DataFrame, policy: str = OURS) -> str:
    """What `balanced_joint` with a server that makes more of it reaches and what it spends, in sentences."""
    own, everyone = (table.filter(policy=name) for name in (policy, REFERENCE))
    both = own.join(everyone.select("scenario", everyone="energy_over_budget"), on="scenario")
    gaps, worst, over = (both[name].to_numpy() for name in ("late_accuracy_gap", "worst_device", "devices_over_budget"))
    times = (both["everyone"] / both["energy_over_budget"]).drop_nulls().to_numpy()
    none_over = f"Up to {100 * over.max():.1f} % of devices exceeded" if over.any() else "No device exceeded"
    alike = ""  # like for like first, where it was played
    if all(same_server(table, policy)):
        alike = f"{_apart(both['late_accuracy_same'].to_numpy())} training everyone with the same server, and "
    said = [
        f"In {len(both)} scenarios, `balanced_joint` ends {alike}{_apart(gaps)} training everyone with FedAvg.",
        f"Under the law λ c f² it spends 1/{times.min():.0f} to 1/{times.max():.0f} of the energy of training "
        f"everyone. {none_over} its budget; the worst device, mean over seeds, spent {worst.max():.2f} of it.",
    ]
    shown = [
        f"{_at_most(margin)} in {MEASURED[name]} {'is shown in' if first else 'in'} {_share(table, policy, name)}"
        for first, (name, margin) in zip((True, False), MARGINS.items(), strict=True)
    ]
    losses = ", and one of ".join(shown)
    return " ".join([*said, f"Against FedAvg, a loss of {losses}; elsewhere the tests do not show it."])


def _at_most(margin: float) -> str:
    return f"at most {counted(round(100 * margin), 'point')}"


def _share(table: pl.DataFrame, policy: str, name: str) -> str:
    """In how many of the scenarios a margin holds."""
    holds, not_shown = held(table, policy, name)
    return f"{len(holds)} of {len(holds) + len(not_shown)}"


def _apart(gaps: NDArray[np.float64]) -> str:
    """From the smallest loss to the largest, or with signs where something is gained."""
    points = 100 * gaps
    if points.max() < 0:
        return f"{-points.max():.1f} to {-points.min():.1f} points below"
    return f"{_points(points.min())} to {_points(points.max())} points from"


def _points(value: float) -> str:
    return f"{value:+.1f}".replace("-", "−")


def _table(table: pl.DataFrame, scenario: str) -> str:
    rows = [
        "| policy | accuracy, last fifth, % | gap | accuracy, whole run, % | gap "
        f"| energy, mJ | energy / budget | {WORST} | over |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in table.filter(scenario=scenario).iter_rows(named=True):
        cells = [f"`{row['policy']}`"]
        for name in MARGINS:
            cells += [_percent(row, name), _gap(row, name)]
        cells += [_magnitude(row, "energy_j", 1e3), _magnitude(row, "energy_over_budget", 1.0)]
        worst, over = row["worst_device"], row["devices_over_budget"]
        cells += [NONE if worst is None else significant(worst, 3), NONE if over is None else f"{100 * over:.0f} %"]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def _percent(row: dict[str, Any], name: str) -> str:
    if row[name] is None:
        return NONE
    half = _half(row, name)
    return f"{100 * row[name]:.1f}" + ("" if half is None else f" ± {100 * half:.1f}")


def _magnitude(row: dict[str, Any], name: str, scale: float) -> str:
    """Energies of policies differ a thousandfold, so digits are counted from the first one."""
    if row[name] is None:
        return NONE
    half = _half(row, name)
    return significant(scale * row[name], 3) + ("" if half is None else f" ± {significant(scale * half, 2)}")


def _half(row: dict[str, Any], name: str) -> float | None:
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    return None if low is None else (high - low) / 2


def _gap(row: dict[str, Any], name: str) -> str:
    if row["policy"] == REFERENCE or row[f"{name}_gap"] is None:
        return ""
    holds = row[f"{name}_holds"]
    verdict = "" if holds is None else f", within {100 * MARGINS[name]:.0f}" if holds else ", not shown"
    return f"{_points(100 * row[f'{name}_gap'])}{verdict}"
