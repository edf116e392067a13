"""What a run came to: the numbers behind its settings, stated once when it is prepared (resolved.py has the types)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import polars as pl

from feelstream import resolved as types
from feelstream.arrays import Reals
from feelstream.columns import BUDGET, CONSTANT_COLUMNS, Column, budget_column, constant_columns
from feelstream.loop.changes import Change, scenario_in
from feelstream.model import physics
from feelstream.model.energy import Cubic, EnergyLaw, Voltage
from feelstream.model.system import System
from feelstream.plugins import Plugin
from feelstream.policies.lyapunov import weight_j2
from feelstream.scenario import Scenario
from feelstream.scenario.fields import leaves

P = TypeVar("P", bound=types.Part)
ROUNDING_DB = 1e-6  # by so much gains that move may miss the range that their process states


def resolved(
    scenario: Scenario,
    classes: int | None,
    changes: Sequence[Change] = (),
    deployment: Mapping[str, Any] | None = None,
    reference: Reals | None = None,
) -> tuple[types.Resolved, pl.DataFrame | None]:
    """All of it, and the table of the constants in which devices differ; None where they are alike.

    classes: of labels, where they are known; of what is counted in a deployment. deployment: what run.json says of it,
    where the run is one. reference: the mix of features that balance is measured against, if it is not even.
    """
    played = scenario if deployment is None else scenario.deployed
    system, world, data = played.known_system(classes or 1), scenario.world, scenario.data
    columns = _constants(scenario, system)
    alike = {name: float(values[0]) for name, values in columns.items() if _alike(values)}
    differing = {name: values for name, values in columns.items() if name not in alike}
    phases = []
    for first in sorted({1, *(change.round for change in changes)}):
        present = scenario_in(scenario, changes, first)
        budget_j = present.population.energy_budget_j
        one = float(budget_j[0]) if _alike(budget_j) else None
        if one is None:
            differing[budget_column(first)] = budget_j
        phases.append(_phase(present, first, one))
    found = types.Resolved(
        devices=system.devices,
        rounds=system.rounds,
        round_s=system.round_s,
        period_s=system.period_s,
        alike=alike,
        signed_queues=system.signed_queues,
        cycles_per_sample=system.cycles_per_sample,
        radio=_part(types.Radio, system, fading=scenario.radio.fading),
        slot=system.reports,
        law=_law(scenario.cpu.energy, system),
        data=_part(types.Data, data, data.buffer, classes=classes, passes=bool(deployment and deployment["passes"])),
        features=_features(scenario, None if classes is None else played.data.features.size(classes), reference),
        world=_part(
            types.World,
            world.harvest,
            comes_and_goes=not world.availability.always_there,
            moves=not world.mobility.fixed,
            fails=not world.faults.never_fails,
        ),
        policy=_policy(scenario),
        learning=_part(types.Learning, scenario.learning, learns=scenario.learning.engine != "none"),
        trace=scenario.trace.level,
        phases=tuple(phases),
        own=own_code(scenario),
    )
    return found, _table(differing, constant_columns(phase.first for phase in phases), system.devices)


def _part(kind: type[P], *sources: object, **said: Any) -> P:
    """A part of it: what is said here, and all other fields by their names from the first source that has them."""
    return kind(**{name: _first(name, *sources) for name in kind.model_fields if name not in said}, **said)


def _first(name: str, *sources: object) -> Any:
    return next(getattr(source, name) for source in sources if hasattr(source, name))


def own_code(scenario: Scenario) -> tuple[str, ...]:
    """The fields that pick something that is not ours, such as policy or learning.evaluators."""
    found = []
    for leaf in leaves(type(scenario), scenario):
        if leaf.kind is None or leaf.value is None:
            continue
        picked = [leaf.value] if isinstance(leaf.value, str | Plugin) else leaf.value
        names = [each.plugin_name() if isinstance(each, Plugin) else each for each in picked]
        if not leaf.kind.ours.keys() >= set(names):
            found.append(".".join(leaf.path))
    return tuple(found)


def _constants(scenario: Scenario, system: System) -> dict[str, Reals]:
    """(K,) each by column, without the budgets."""
    population, mobility = scenario.population, scenario.world.mobility
    low_db, high_db = population.gain_low_db, population.gain_high_db
    if not mobility.within_gain_db:
        low_db, high_db = mobility.gain_range_db(float(low_db.min()), float(high_db.max()))
        low_db, high_db = low_db - ROUNDING_DB, high_db + ROUNDING_DB
    own = {
        "beta_low": physics.ratio(np.asarray(low_db)),
        "beta_high": physics.ratio(np.asarray(high_db)),
        "core": 0 if system.core is None else system.core,
    }
    wanted = [name for name in CONSTANT_COLUMNS if name not in ("device", BUDGET)]
    found = {name: own[name] if name in own else _first(name, system, population) for name in wanted}
    return {name: np.broadcast_to(np.asarray(values), system.devices) for name, values in found.items()}


def _alike(values: Reals) -> bool:
    return values.strides == (0,) or bool((values == values[0]).all())


def _table(differing: Mapping[str, Reals], columns: Mapping[str, Column], devices: int) -> pl.DataFrame | None:
    if not differing:
        return None
    found = {"device": np.arange(devices), **differing}
    return pl.DataFrame({name: pl.Series(name, each, dtype=columns[name].kind) for name, each in found.items()})


def _law(law: EnergyLaw, system: System) -> types.Law:
    kind, cores, discrete = "cubic" if type(law) is Cubic else "own", (), False
    if type(law) is Voltage:
        leakage = {} if law.leakage_w is None else {"leakage_w": law.leakage_w}
        kind, discrete = "voltage", law.points == "discrete"
        cores = tuple(_part(types.Core, core, **leakage) for core in system.cores)
    return types.Law(kind=kind, power_coefficient=system.power_coefficient, discrete=discrete, cores=cores)


def _features(scenario: Scenario, size: int | None, reference: Reals | None) -> types.Features | None:
    kind = scenario.data.features
    if not kind.reported:
        return None
    mix = None if reference is None else tuple(reference.tolist())
    return _part(types.Features, kind, size=size, reference=mix)


def _policy(scenario: Scenario) -> types.Policy:
    policy = scenario.policy
    texts = {name: _field(policy, name, str) for name in ("cardinality", "gain", "power", "pace")}
    numbers = {name: _field(policy, name, float) for name in ("power_max_w", "least_share")}
    return types.Policy(
        name=policy.plugin_name(),
        equal_shares=policy.equal_shares,
        by_score=policy.by_score,
        asks=bool(policy.probes),
        metric=_field(policy, "metric", str) or "combined",
        **texts,
        **{name: value if value is not None and 0 < value < np.inf else None for name, value in numbers.items()},
    )


def _phase(scenario: Scenario, first: int, budget_j: float | None) -> types.Phase:
    policy = scenario.policy
    auto = getattr(policy, "V", None) == "auto"
    V = weight_j2(scenario.known_system(classes=1), policy.size) if auto else _field(policy, "V", float)
    V = V if V is not None and V >= 0 else None
    return types.Phase(
        first=first, V=V, auto=auto, size=policy.size, smallest_plan=policy.smallest_plan, energy_budget_j=budget_j
    )


def _field(policy: Plugin, name: str, kind: type) -> Any:
    """A field of ours by its name; None where the policy has none, or one of its own that means something else."""
    value = getattr(policy, name, None)
    return value if isinstance(value, kind) else None
