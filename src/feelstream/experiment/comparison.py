"""Policies × settings as arms of a plan, and the table that compares them with the first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path

import polars as pl

from feelstream.errors import RunError, ScenarioError
from feelstream.experiment import Arm, Results, leaderboard, statistics
from feelstream.experiment.measures import COLUMNS, MEASURES, participation
from feelstream.policies import POLICIES
from feelstream.scenario.files import load

CURVES = ("accuracy", "loss", "energy_mean_cum_j", "queue_mean_j")
QUANTITIES = tuple(leaderboard.MEASURES)


def arms(
    source: str | Path, policies: Sequence[str] = (), overrides: Iterable[str] = (), vary: Iterable[str] = ()
) -> tuple[Arm, ...]:
    """An arm for each policy at each point of the grid.

    policies: names, `file.py:Class`, either with fields as in `lyapunov(V=0.1,metric=amount)`, or `all`; none: that
    of the scenario. overrides: `section.field=value`. vary: `section.field=value,value,…`, every combination.
    A field of a policy is passed over for policies that do not have it, if at least one of them does.
    """
    overrides, grid = list(overrides), [_values(entry) for entry in vary]
    wanted = [_policy(text) for text in _expanded(policies)] or [(None, [])]
    fields = [_fields_of(name, source, overrides) for name, _ in wanted]
    for field in [*(override.partition("=")[0].strip() for override in overrides), *(field for field, _ in grid)]:
        if field.startswith("policy.") and not any(field.removeprefix("policy.") in known for known in fields):
            names = ", ".join(name or "the scenario's policy" for name, _ in wanted)
            raise ScenarioError(f"{field}: there is no such field in {names}")
    found: dict[str, Arm] = {}
    for (name, own), known in zip(wanted, fields, strict=True):

        def has(field: str, known: frozenset[str] = known) -> bool:
            return not field.startswith("policy.") or field.removeprefix("policy.") in known

        base = [override for override in overrides if has(override.partition("=")[0].strip())]
        base += [f"policy.name={name}"] if name else []
        base += [f"policy.{setting}" for setting in own]
        axes = [(field, values) for field, values in grid if has(field)]
        for point in product(*(values for _, values in axes)):
            settings = [f"{field}={value}" for (field, _), value in zip(axes, point, strict=True)]
            scenario = load(source, [*base, *settings])
            words = [f"{name or scenario.policy.plugin_name()}{'(' + ','.join(own) + ')' if own else ''}"]
            words += [setting.removeprefix("policy.") for setting in settings]
            found.setdefault(" ".join(words), Arm(" ".join(words), scenario))
    return tuple(found.values())


def _expanded(policies: Iterable[str]) -> Iterable[str]:
    for text in policies:
        yield from POLICIES.names() if text.strip() == "all" else [text.strip()]


def _policy(text: str) -> tuple[str, list[str]]:
    """`name` or `name(field=value,…)` → name and its fields."""
    match = re.fullmatch(r"([^()]+)(?:\((.*)\))?", text)
    own = _split(match[2]) if match and match[2] else []
    if match is None or not all("=" in setting for setting in own):
        raise ScenarioError(f"--policy '{text}' must read name or name(field=value,…), as in lyapunov(V=0.1)")
    return match[1].strip(), own


def _fields_of(name: str | None, source: str | Path, overrides: Sequence[str]) -> frozenset[str]:
    try:
        policy = POLICIES.lookup(name) if name else type(load(source, overrides).policy)
    except ScenarioError as problem:
        raise problem if name is None else ScenarioError(f"policy.name: {problem}") from problem
    return frozenset({"name", *policy.model_fields})


def _values(text: str) -> tuple[str, list[str]]:
    field, equals, values = text.partition("=")
    found = _split(values)
    if not equals or "." not in field or not found:
        raise ScenarioError(f"--vary '{text}' must read section.field=value,value,…, as in policy.V=0.005,0.05,0.5")
    if field.strip() == "policy.name":
        raise ScenarioError("--vary policy.name: give each policy as --policy instead")
    return field.strip(), found


def _split(text: str) -> list[str]:
    """At commas, but not inside brackets: `[1,2],[3,4]` is two values."""
    pieces, depth = [""], 0
    for letter in text:
        depth += (letter in "[{(") - (letter in "]})")
        if letter == "," and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += letter
    return [piece.strip() for piece in pieces if piece.strip()]


def per_run(results: Results) -> pl.DataFrame:
    """`statistics.per_run` of every finished run, with the measures that need its device table."""
    rows = [
        {"arm": arm, "seed": seed} | participation(results.devices(arm, seed, COLUMNS), results.plan.arm(arm).scenario)
        for arm, seed in results.finished
    ]
    schema = {"arm": pl.String, "seed": pl.Int64} | dict.fromkeys(MEASURES, pl.Float64)
    found = pl.DataFrame(rows, schema=schema)
    return statistics.per_run(results.rounds()).join(found, on=["arm", "seed"], how="left", maintain_order="left")


def summarise(results: Results, runs: pl.DataFrame | None = None) -> pl.DataFrame:
    """One row per arm and quantity: arm, quantity, mean, low, high, n and the paired difference against the first arm.

    The quantities are those of `leaderboard.MEASURES`; one that no run has a value of is left out (accuracy, where
    nothing was learned). n counts the seeds with a value: `rounds_to_90` is over the seeds that reached 90 %. The
    difference is null for the first arm itself. runs: `per_run(results)`, if it is at hand.
    """
    runs = per_run(results) if runs is None else runs
    if runs.is_empty():
        raise RunError(f"no run of '{results.plan.name}' finished: {results.failures[0].reason}")
    first = results.plan.arms[0].label
    rows = []
    for arm in results.plan.arms:
        for quantity in QUANTITIES:
            values = runs.filter(arm=arm.label)[quantity].drop_nulls()
            if runs[quantity].null_count() == len(runs):
                continue
            own = statistics.interval(values)
            row = [arm.label, quantity, own.mean, own.low, own.high, own.n]
            if arm.label != first:
                gap = statistics.compare_arms(runs, quantity, arm.label, first)
                row += [gap.mean, gap.low, gap.high, gap.n, gap.verdict]
            rows.append(row + [None] * (11 - len(row)))
    number, count = pl.Float64, pl.Int64
    schema = {
        "arm": pl.String, "quantity": pl.String, "mean": number, "low": number, "high": number, "n": count,
        "difference": number, "difference_low": number, "difference_high": number, "pairs": count, "verdict": pl.String,
    }  # fmt: skip
    return pl.DataFrame(rows, schema=schema, orient="row")


def curves(results: Results) -> pl.DataFrame:
    """Columns quantity, arm, round, mean, low, high, n: what is drawn, for every quantity that has values."""
    rounds = results.rounds()
    bands = [
        statistics.band_by_round(rounds, column).select(pl.lit(column).alias("quantity"), pl.all()) for column in CURVES
    ]
    return pl.concat(bands)
