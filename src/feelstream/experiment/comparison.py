"""Policies × settings as arms of a plan, and the table that compares them with the first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import polars as pl

from feelstream.display.quantities import by_round, of_table, short
from feelstream.errors import RunError, ScenarioError
from feelstream.experiment import Arm, Results, statistics
from feelstream.experiment.runs import per_run
from feelstream.experiment.statistics import compared
from feelstream.plugins import did_you_mean
from feelstream.policies import POLICIES, Policy
from feelstream.scenario import Scenario
from feelstream.scenario.fields import leaf_at
from feelstream.scenario.files import load
from feelstream.scenario.overrides import (
    AnyOverride,
    Override,
    Tables,
    overridden,
    parsed,
    placed,
    plugin_object,
    split,
)

Varied = tuple[str, Sequence[Any]]  # section.field and its values
Entry = str | Policy | type[Policy]

MOST_ARMS = 10_000  # more take minutes to check, and nobody reads their table


def arms(
    source: str | Path | Scenario,
    policies: Iterable[Entry | tuple[str | None, Entry]] = (),
    overrides: Iterable[AnyOverride] = (),
    vary: Iterable[str | Varied] = (),
) -> tuple[Arm, ...]:
    """An arm for each policy at each point of the grid.

    policies: names, `file.py:Class`, either with fields as in `lyapunov(V=0.1,metric=amount)`, or `all`, or objects;
    none: that of the scenario. Several names may share an entry, with commas between; of a pair, the first is what the
    policy is to be called. overrides: `section.field=value`,
    or the field alone. vary: `section.field=value,value,…`, for a grid. A field of a policy is passed over for policies
    that do not have it, if at least one of them does.
    """
    bare = parsed(overrides)
    world = base_of(source, ())
    # Not checked: a kind may ask for what another override sets, as the voltage law does for a profile.
    tables = overridden(world.tables(), [override for override in bare if override.names_a_table])
    engines = [world.learning.engine, *(each.value for each in bare if each.field in ("learning.engine", "engine"))]
    wanted = _by_label(policies, learns=engines[-1] != "none") or {"": ()}
    fields = {label: _fields_of(overridden(tables, own[:1])) for label, own in wanted.items()}
    changes = [_in_full(override, tables, fields) for override in bare]
    axes = [[_in_full(override, tables, fields) for override in _axis(entry)] for entry in vary]
    size = len(wanted) * prod(map(len, axes))
    if size > MOST_ARMS:
        raise ScenarioError(f"--vary: {size:,} configurations were asked for, and at most {MOST_ARMS:,} are possible")
    found: dict[str, Arm] = {}
    for label, own in wanted.items():
        passed_over = {f"policy.{name}" for name in frozenset().union(*fields.values()) - fields[label]}
        base = [override for override in changes if override.field not in passed_over]
        for point in product(*(axis for axis in axes if not axis or axis[0].field not in passed_over)):
            scenario = base_of(source, [*base, *own, *point])
            first = label or scenario.policy.plugin_name()
            name = " ".join([first, *(f"{each.field.removeprefix('policy.')}={_said(each.value)}" for each in point)])
            if name in found and found[name].scenario != scenario:
                name = " ".join([first, *(str(each).removeprefix("policy.") for each in point)])
            found.setdefault(name, Arm(name, scenario))
    return tuple(found.values())


def _by_label(policies: Iterable[Entry | tuple[str | None, Entry]], learns: bool) -> dict[str, tuple[Override, ...]]:
    """Each policy that was asked for as the overrides that set it, the first of which is its name or itself.

    `name`, `name(field=value,…)` or an object; the label of an object has the fields that were set. all: but those that
    ask devices for reports of a model, where there is none.
    """
    every = [name for name in POLICIES.names() if learns or not POLICIES.lookup(name)().probes]  # type: ignore[attr-defined]
    whole: dict[str, tuple[Override, ...]] = {}
    for called, entry in (each if isinstance(each, tuple) else (None, each) for each in policies):
        found: dict[str, tuple[Override, ...]] = {}
        if isinstance(entry, str):
            if not split(entry):
                raise ScenarioError("policies: name at least one, as in lyapunov, random")
            for name in (each for part in split(entry) for each in (every if part == "all" else [part])):
                named, *settings = parsed([Override("policy.name", name)])
                own = ",".join(str(each).removeprefix("policy.") for each in settings)
                found.setdefault(f"{named.value}({own})" if own else named.value, (named, *settings))
        else:
            policy = plugin_object(POLICIES, entry, "policy")
            own = ",".join(f"{field}={getattr(policy, field)}" for field in sorted(policy.model_fields_set))
            name = policy.plugin_name().rpartition(":")[2] if isinstance(entry, Policy) else policy.plugin_name()
            found.setdefault(f"{name}({own})" if own else name, (Override("policy", policy),))
        if called and len(found) > 1:
            raise ScenarioError(f"'{called}' is the label of {len(found)} policies; give each its own")
        for label, overrides in found.items():
            whole.setdefault(called or label, overrides)
    return whole


def _said(value: Any) -> str:
    """A value in a label: 0.0316228 of np.logspace(-3, 0, 3), whose other digits nobody reads."""
    return str(short(value)) if isinstance(value, float) else str(value)


def _fields_of(tables: Tables) -> frozenset[str]:
    """The fields of the policy of a scenario."""
    policy = leaf_at(("policy",), tables)
    return frozenset({"name", *policy.model.model_fields}) if policy and policy.model else frozenset()


def _in_full(override: Override, tables: Tables, fields: Mapping[str, frozenset[str]]) -> Override:
    """With its section: that of the policies, where any of them has a field of this name, or the scenario's.

    fields: of each policy that is compared; ScenarioError for one that none of them has.
    """
    known = frozenset().union(*fields.values())
    if len(override.path) == 1:
        places = [f"policy.{override.last}"]
        if override.last not in known:
            places = [each.field for each in placed([override], tables)]
        if len(places) == 1:  # otherwise both functions of an algorithm share it
            override = replace(override, field=places[0])
    if override.section == ("policy",) and override.last not in known:
        names = ", ".join(label or "the scenario's policy" for label in fields)
        close = did_you_mean(override.last, sorted(known)).strip()
        raise ScenarioError(f"{override.field}: there is no such field in {names}{'; ' + close if close else ''}")
    return override


def base_of(source: str | Path | Scenario, overrides: Iterable[AnyOverride]) -> Scenario:
    """A scenario from a preset's name, a TOML file or a scenario, with overrides."""
    return source.overridden(overrides) if isinstance(source, Scenario) else load(source, overrides)


def _axis(entry: str | Varied) -> list[Override]:
    """The field of `section.field=value,value,…` set to each of the values."""
    if not isinstance(entry, str):
        field, values = entry
        return [Override(field, value) for value in values]
    field, _, values = entry.partition("=")
    found = [Override.parse(f"{field}={value}") for value in split(values)] if field.strip() else []
    if not found:
        raise ScenarioError(f"--vary '{entry}' must read section.field=value,value,…, as in policy.V=0.005,0.05,0.5")
    if found[0].field in ("policy.name", "policy"):
        raise ScenarioError("--vary policy.name: give each policy as --policy instead")
    return found


def summarise(results: Results, runs: pl.DataFrame | None = None) -> pl.DataFrame:
    """One row per arm and quantity: `SUMMARY`, with the paired difference against the first arm.

    The quantities are those of `quantities` that a run has one number of; one that no run has a value of is left out
    (accuracy, where nothing was learned). n counts the seeds with a value. The difference is null for the first arm
    itself; verdicts are those of `statistics.compared`, corrected for the number of arms. A time to an accuracy has a
    median: it has a mean, and a difference, only where every run reached that accuracy, and median_is_bound says
    whether the median is more than the number given. runs: `per_run(results)`, if it is at hand.
    """
    runs = per_run(results) if runs is None else runs
    if runs.is_empty():
        raise RunError(f"no run of '{results.plan.name}' finished: {results.failures[0].reason}")
    labels, names = [arm.label for arm in results.plan.arms], [q.name for q in of_table("runs", runs.columns)]
    known = [name for name in names if runs[name].null_count() < len(runs)]
    gaps = {name: compared(runs, name, labels[0], labels) for name in known}
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for label in labels:
        for name in known:
            row = rows[label, name] = {"arm": label, "quantity": name, **_own(runs.filter(arm=label), name)}
            if label == labels[0]:
                continue
            gap, verdict = gaps[name][label]
            if all(each.get("reached") in (None, each["n"]) for each in (row, rows[labels[0], name])):
                row |= {"difference": gap.mean, "difference_low": gap.low, "difference_high": gap.high}
            else:
                verdict = statistics.CENSORED
            row |= {"pairs": gap.n, "verdict": verdict}
    return pl.DataFrame([*rows.values()], schema=SUMMARY)


SUMMARY: dict[str, Any] = {
    "arm": pl.String, "quantity": pl.String, "mean": pl.Float64, "low": pl.Float64, "high": pl.Float64, "n": pl.Int64,
    "difference": pl.Float64, "difference_low": pl.Float64, "difference_high": pl.Float64, "pairs": pl.Int64,
    "verdict": pl.String, "median": pl.Float64, "median_is_bound": pl.Boolean, "reached": pl.Int64,
}  # fmt: skip


def _own(runs: pl.DataFrame, quantity: str) -> dict[str, Any]:
    """What an arm came to; of a time to an accuracy its median, and a mean where every run reached it."""
    values = runs[quantity].drop_nulls()
    own = statistics.interval(values)
    row: dict[str, Any] = {"mean": own.mean, "low": own.low, "high": own.high, "n": own.n}
    if not own.n or not quantity.startswith(("rounds_to_", "joules_to_")):
        return row
    got = runs.drop_nulls(quantity)[f"reached_{quantity.rpartition('_')[2]}"] == 1.0
    median, is_bound = statistics.censored_median(values, got)
    row |= {"median": median, "median_is_bound": is_bound, "reached": int(got.sum())}
    return row if got.all() else row | {"mean": None, "low": None, "high": None}


def curves(results: Results) -> pl.DataFrame:
    """Columns quantity, arm, round, mean, low, high, n: what is drawn, for every quantity that has values."""
    rounds = results.rounds()
    bands = [
        statistics.band_by_round(rounds, column).select(pl.lit(column).alias("quantity"), pl.all())
        for column in (quantity.name for quantity in by_round(rounds.columns))
    ]
    return pl.concat(bands)
