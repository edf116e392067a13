"""The settings a re-check needs, taken from run.json."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from feelstream.columns import FORMAT
from feelstream.errors import RunError
from feelstream.verification.computing import read_law
from feelstream.verification.intact import read_sealed
from feelstream.verification.ours import CONTROLLED_OCEAN, ONE_DEADLINE, OUR_METRICS, OUR_POLICIES
from feelstream.verification.population import around, gain_range_db, profiles, ranges_of_profiles, resolved
from feelstream.verification.promises import Promises
from feelstream.verification.section import Section
from feelstream.verification.stored import Rationed, StoredChange, StoredSettings, with_weight
from feelstream.verification.stored_costs import budget_of, costs_of, cycles_per_sample, usual_constants
from feelstream.verification.stored_learning import local_training_of, reports_of, server_update_of


def read_settings(directory: Path) -> StoredSettings:
    """Read run.json of a complete run; RunError says in one sentence what is in the way."""
    path = directory / "run.json"
    if not directory.is_dir():
        raise RunError(f"{directory} is not a run directory: there is no such directory.")
    root = Section(read_sealed(path))
    if root["format"].tree != FORMAT:
        raise RunError(f"{path} has format {root['format'].tree!r}, but this version can verify only format {FORMAT}.")
    if root["status"].tree != "complete":
        raise RunError(f"{path} is of a run that is not complete (status {root['status'].tree!r}); finish it first.")
    engine = root.get("engine")
    deployed = engine is not None and isinstance(engine.tree, dict) and engine.tree.get("name") == "flower"
    settings = _settings(root, root["scenario"], root.plain("promises"))
    about = root.get("deployment")
    told = about.tree if deployed and about is not None and isinstance(about.tree, dict) else {}
    settings = replace(settings, passes=told.get("passes") is True)
    several = isinstance(settings.time_s, np.ndarray) or settings.costs.cycles_per_sample > 0 or settings.costs.own
    if settings.policy in ONE_DEADLINE and several:
        raise RunError(f"run.json: {settings.policy} plans with one deadline and fixed cycles, but these differ.")
    if settings.policy == "balanced_joint":
        settings = replace(settings, rationed=_rationed(root["scenario"]["policy"], root["seed"]))
    reliability = root["scenario"]["system"].get("reliability")
    _check_facts(settings, deployed, reliability is not None and reliability.one_of("learned", "ignored") == "learned")
    return replace(with_weight(settings), changes=_changes(root.get("changes"), settings, root["scenario"]))


def _settings(root: Section, scenario: Section, promises: Any) -> StoredSettings:
    data, cores = root.get("data"), root.plain("cores")
    system, cpu, radio = scenario["system"], scenario["cpu"], scenario["radio"]
    policy, learning, buffer = scenario["policy"], scenario["learning"], scenario["data"]["buffer"]
    name = str(policy["name"].tree)
    if name == "ocean" and policy["power"].one_of("control", "fixed") == "control":
        name = CONTROLLED_OCEAN
    K = system["devices"].whole()
    names, profile = profiles(scenario.plain("devices"), cpu.plain("profile"), K)
    of_profiles = ranges_of_profiles(names, profile, cores)
    population = resolved(scenario.plain("devices"), usual_constants(scenario, of_profiles), of_profiles)
    world = scenario.plain("world")
    mobility = world.get("mobility") if isinstance(world, dict) else None
    gain_low_db, gain_high_db = gain_range_db(mobility, promises, population["gain_low_db"], population["gain_high_db"])
    cycles = population["cycles"]
    if (of_a_sample := cycles_per_sample(scenario)) > 0:  # no device has less to do than this
        cycles = np.full(K, of_a_sample)
    classes = data.get("classes") if data else None
    metric = policy.get("metric")
    drift_plus_penalty = name in ("lyapunov", "lyapunov_joint")
    chooses_power = drift_plus_penalty or name == "balanced_joint"
    limit, reserve = policy.get("power_max_w"), policy.get("fade_reserve")
    V = policy["V"].weight() if drift_plus_penalty else None
    reports = reports_of(scenario, name, Promises.of("policies", policy.tree, promises))
    return StoredSettings(
        K=K,
        T=system["rounds"].whole(),
        round_s=system["round_s"].positive() - (reports.slot_s if reports else 0.0),
        costs=costs_of(scenario, population, reports.slot_s if reports else 0.0, promises),
        reports=reports,
        budget_j=population["energy_budget_j"],
        cycles=float(cycles[0]) if (cycles == cycles[0]).all() else cycles,
        law=read_law(cpu.tree, cores, profile, names, cpu["power_coefficient"].number()),
        frequency_hz=(population["frequency_low_hz"], population["frequency_high_hz"]),
        bandwidth_hz=radio["bandwidth_hz"].positive(),
        noise_w_per_hz=radio["noise_w_per_hz"].positive(),
        received_power_w=radio["received_power_dbm"].ratio() / 1000.0,
        gain=(10.0 ** (gain_low_db / 10), 10.0 ** (gain_high_db / 10)),
        fading=radio["fading"].one_of("rayleigh", "none"),
        rate_discount=radio["rate_discount"].positive(),
        link_margin=radio["link_margin"].positive(),
        admission=radio["admission"].one_of("paper", "largest"),
        update_bits=radio["update_bits"].positive(),
        eligible=scenario["data"]["eligible"].one_of("any", "with_data"),
        empty_used=scenario["data"]["empty_used"].one_of("zero", "vector"),
        empty_fresh=scenario["data"]["empty_fresh"].one_of("zero", "vector"),
        fresh=scenario["data"]["fresh"].one_of("since_use", "per_round"),
        buffer=Promises.of("buffers", buffer.tree, promises),
        classes=classes.whole() if classes and isinstance(classes.tree, int) else None,
        policy=name,
        equal_shares=name in OUR_POLICIES or "equal_shares" in Promises.of("policies", policy.tree, promises),
        V=V,
        auto=V is not None and math.isnan(V),
        size=policy["size"].whole(0) if name in OUR_POLICIES else None,
        cardinality=policy["cardinality"].one_of("exact", "cap", "free") if drift_plus_penalty else None,
        metric=_metric(name, metric),
        gain_known=str(known.tree) if (known := policy.get("gain")) and name in OUR_POLICIES else "mean",
        least_share=policy["least_share"].positive() if name == "ocean" else None,
        power_max_w=limit.positive() if limit and chooses_power else None,
        fade_reserve=reserve.positive() if reserve and chooses_power else 1.0,
        learns=learning["engine"].tree != "none",
        local_training=local_training_of(learning.get("local")),
        server_update=server_update_of(learning.get("server"), name),
        eval_every=learning["eval_every"].whole(),
        evaluators=tuple(named.name_of() for named in said.entries())
        if (said := learning.get("evaluators"))
        else ("test",),
        trace_level=scenario["trace"]["level"].one_of("full", "rounds"),
        facts=frozenset(fact.name_of() for fact in root["facts"].entries()),
        priority=population["priority"],
        around=around(world, promises),
    )


def _check_facts(s: StoredSettings, deployed: bool, learned: bool) -> None:
    """No run may state what its settings do not say: then it would be held to other rules."""
    by_settings = {
        "packet_errors": s.costs.block_bits > 0,
        "downloads": s.costs.downloads,
        "own_costs": s.costs.own,
        "labels": "labels" in s.facts or (s.rationed is not None and s.rationed.knows == "labels"),
        "asks": s.reports is not None,
        "fallible": learned and (deployed or s.around.fails),
        "batteries": not deployed and (s.around.capacity_j is not None or "batteries" in s.facts),  # unknown of some
        "deployed": deployed,
    }
    for name, holds in by_settings.items():
        if holds != (name in s.facts):
            raise RunError(f"run.json: by its settings '{name}' {'belongs' if holds else 'does not belong'} to facts.")


def _rationed(policy: Section, seed: Section) -> Rationed:
    if isinstance(seed.tree, bool) or not isinstance(seed.tree, int) or seed.tree < 0:
        raise RunError(f"run.json: seed must be a whole number of at least 0, not {seed.tree!r}.")
    return Rationed(
        seed=seed.tree,
        least=policy["least"].whole(),
        memory=policy["memory"].positive(),
        spread=policy["spread"].number(),
        price=policy["price"].number(),
        scarcity=policy["scarcity"].number(),
        haste=haste.positive() if (haste := policy.get("haste")) else 1.0,  # of runs before the setting: even rations
        peak=peak.positive() if (peak := policy.get("peak")) else np.inf,  # and no limit of this kind
        lead=policy["lead"].positive(),
        lead_part=part.number() if (part := policy.get("lead_part")) else 0.0,  # of runs before the setting: none
        tolerance=policy["tolerance"].number(),
        pace=policy["pace"].one_of("horizon", "running"),
        knows=policy["knows"].one_of("labels", "sizes"),
    )


def _changes(changes: Section | None, s: StoredSettings, scenario: Section) -> tuple[StoredChange, ...]:
    """All changes in order. A budget of system.energy_budget_j is that of the devices that have none of their own."""
    found: list[StoredChange] = []
    for entry in changes.entries() if changes else []:
        round, value = entry["round"].whole(), entry["value"]
        if not (found[-1].round if found else 1) <= round <= s.T:
            raise RunError(f"run.json: {entry.name}.round must be in order and at most {s.T}, not {round}.")
        match entry["field"].one_of("policy.V", "policy.size", "system.energy_budget_j"):
            case "policy.V":
                found.append(StoredChange(round, "V", value.weight()))
            case "policy.size":
                found.append(StoredChange(round, "size", value.whole()))
            case _:
                usual = usual_constants(scenario, s.frequency_hz) | {"energy_budget_j": budget_of(value, s.K)}
                budget_j = resolved(scenario.plain("devices"), usual, s.frequency_hz)["energy_budget_j"]
                found.append(StoredChange(round, "budget_j", budget_j))
    return tuple(found)


def _metric(policy: str, metric: Section | None) -> str:
    """One of ours, or "own" where a user's function, or a policy that we do not know, says how important data is."""
    name = "combined" if metric is None else metric.name_of()
    return name if policy in OUR_POLICIES and name in OUR_METRICS else "own"
