"""The multiverse in tables: every claim at a glance, what it needs, and how many are reproduced together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from feelstream.quantities import number
from feelstream.studies.claims import Claim
from feelstream.studies.hu2023.multiverse.outcomes import shares, specification_of, together
from feelstream.studies.hu2023.multiverse.settings import LEARNING, Factor, read_by

NEEDS = 0.25  # a setting matters to a claim if the share moves by this much between two of its values
DIGITS = {"nat": 2, "pp": 1, "%": 0}


def percent(share: float) -> str:
    return f"{number(100 * share, 0)} %"


def needs(claim: Claim, by_value: pl.DataFrame, settings: Mapping[str, Factor], most: int = 3) -> str:
    """The settings that move a claim most: value with the largest share, value with the least."""
    parts: list[tuple[float, str]] = []
    own = by_value.filter(pl.col("setting").is_in(read_by(claim, settings)), claim=claim.key)
    for (name,), rows in own.group_by("setting", maintain_order=True):
        ordered = rows.sort("comes_out", descending=True, maintain_order=True)
        first, last = ordered.row(0, named=True), ordered.row(-1, named=True)
        moved = first["comes_out"] - last["comes_out"]
        if moved >= NEEDS:
            high, low = percent(first["comes_out"]), percent(last["comes_out"])
            parts.append((moved, f"`{name}` = {first['value']} ({high}; {last['value']}: {low})"))
    parts.sort(key=lambda part: -part[0])
    return ", ".join(text for _, text in parts[:most]) or "no single one"


@dataclass(frozen=True)
class Shown:
    """A claim over all its specifications: shares under which it is reproduced, and quantiles of its effect."""

    specifications: int
    comes_out: float
    clear: float
    median: float
    low: float  # 5 %
    high: float  # 95 %


def shown(rows: pl.DataFrame) -> Shown:
    """rows: the outcomes of one claim, one at least."""
    out, clear = (float(rows[column].cast(pl.Float64).sum()) / len(rows) for column in ("comes_out", "clear"))
    middle, low, high = (rows["effect"].quantile(q, "linear") or 0.0 for q in (0.5, 0.05, 0.95))
    return Shown(len(rows), out, clear, middle, low, high)


def glance(table: pl.DataFrame, claims: Sequence[Claim], settings: Mapping[str, Factor]) -> str:
    """A row for each claim that a table of outcomes has."""
    by_value = shares(table, settings)
    lines = [
        "| figure | claim | specifications | reproduced | clearly | effect: median [5 %, 95 %] | needs |",
        "|---|---|---|---|---|---|---|",
    ]
    for claim in claims:
        rows = table.filter(claim=claim.key)
        if rows.is_empty():
            continue
        digits, found = DIGITS[claim.unit], shown(rows)
        signed = claim.unit != "%"
        effect = f"{number(found.median, digits, signed)} {claim.unit} [{number(found.low, digits, signed)}, "
        effect += f"{number(found.high, digits, signed)}]"
        lines.append(
            f"| {claim.panel} | {claim.statement}{' †' if claim.fitted else ''} | {found.specifications} | "
            f"{percent(found.comes_out)} | {percent(found.clear)} | {effect} | {needs(claim, by_value, settings)} |"
        )
    return "\n".join(lines) + "\n"


def best(whole: pl.DataFrame, claims: int, most: int = 5) -> str:
    """The specifications under which the most claims are reproduced."""
    names = [name for name in LEARNING if whole[name].null_count() < len(whole)]
    lines = [
        f"| {' | '.join(names)} | reproduced | clearly | missing |",
        "|" + "---|" * (len(names) + 3),
    ]
    for row in whole.head(most).iter_rows(named=True):
        values = " | ".join(str(row[name]) for name in names)
        missing = ", ".join(row["missing"]) or "none"
        lines.append(f"| {values} | {row['come_out']} of {claims} | {row['clear']} | {missing} |")
    return "\n".join(lines) + "\n"


def by_figure(table: pl.DataFrame, claims: Sequence[Claim]) -> str:
    """For each figure alone: under how many specifications all its claims are reproduced, and one of them."""
    lines = ["| figure | claims | specifications | all reproduced | for instance |", "|---|---|---|---|---|"]
    figures: dict[str, list[Claim]] = {}
    for claim in claims:
        figures.setdefault(claim.panel[0], []).append(claim)
    for figure, own in figures.items():
        found = together(table, [claim.key for claim in own])
        if found.is_empty():
            continue
        whole = found.filter(pl.col("come_out") == len(own))
        example = f"`{specification_of(whole.row(0, named=True))}`" if len(whole) else "–"
        lines.append(f"| {figure} | {len(own)} | {len(found)} | {len(whole)} | {example} |")
    return "\n".join(lines) + "\n"


def settings_table(settings: Mapping[str, Factor]) -> str:
    kinds = {"reading": "a reading", "unstated": "not stated", "learning": "not stated (learning)"}
    lines = ["| name | field | values | the paper |", "|---|---|---|---|"]
    lines += [
        f"| `{each.name}` | `{each.field}` | {', '.join(each.values)} | {kinds[each.kind]} |"
        for each in settings.values()
    ]
    return "\n".join(lines) + "\n"
