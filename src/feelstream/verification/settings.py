"""The settings a re-check needs, taken from run.json."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from feelstream.errors import RunError
from feelstream.verification.computing import Law, read_law
from feelstream.verification.findings import Array
from feelstream.verification.intact import read_sealed
from feelstream.verification.population import (
    PAPERS_WORLD,
    Around,
    around,
    gain_range_db,
    profiles,
    ranges_of_profiles,
    resolved,
)
from feelstream.verification.promises import Promises

FORMAT = 2
POWER = "receive_power_w"
PLACES = 20.0  # energy of so many places that the fleet's queue starts at, under V = auto
CONTROLLED_OCEAN = "ocean with power control"
OUR_POLICIES = (
    "lyapunov", "lyapunov_joint", "random", "round_robin", "proportional_fair", "best_channel", "greedy_energy", "age",
    "fedcs", "power_of_choice", "oort", "ocean", CONTROLLED_OCEAN, "myopic_energy", "importance_greedy", "select_all",
    "fedcgd", "fedteddi", "fedbacys", "representative", "balanced", "balanced_joint", "update_norm", "gradient_norm",
)  # fmt: skip
ONE_DEADLINE = ("lyapunov_joint", "balanced_joint", CONTROLLED_OCEAN)
OUR_METRICS = ("combined", "amount", "dissimilarity")
OUR_LOCAL_TRAININGS = ("sgd",)
OUR_SERVER_UPDATES = (
    "fedavg", "equal", "inverse_probability", "fedavgm", "fedadam", "fedyogi", "fedadagrad", "trimmed_mean", "median",
    "gaussian", "quantise", "top_k",
)  # fmt: skip
KNOWS_PROBABILITY = ("random", "select_all", "gradient_norm")
ASKS_EVERYONE = ("gradient_norm",)  # for a report
TRAINS_FIRST = ("update_norm",)  # for which devices train


class StoredChange(NamedTuple):
    """From this round on, one of the settings V, size and budget_j has another value."""

    round: int
    setting: str
    value: Any


class Reports(NamedTuple):
    """What reports take, where the policy asks for them."""

    slot_s: float
    cycles: float
    bits: float
    trains: bool  # devices train for them


class Rationed(NamedTuple):
    """Fields of balanced_joint, and the seed of its lots."""

    seed: int
    least: int
    memory: float
    spread: float
    price: float
    pace: str
    knows: str


@dataclass(frozen=True)
class Costs:
    """What single devices have or spend beside computing and sending; one number for all, or [K] each."""

    deadline_s: float | Array
    download_s: float | Array
    download_j: float | Array
    power_max_w: float | Array  # infinite: no limit
    block_bits: float = 0.0  # above 0: blocks may fail, and be sent again
    code_overhead: float = 0.0
    cycles_per_sample: float = 0.0  # above 0: c follows what a device holds

    @property
    def downloads(self) -> bool:
        return bool(np.any(np.asarray(self.download_s) > 0))


@dataclass(frozen=True)
class StoredSettings:
    """A run's settings in SI units, under the model's symbols where it has them."""

    K: int
    T: int
    round_s: float  # less the slot for reports
    costs: Costs
    budget_j: Array  # [K]
    cycles: float | Array  # one for all, [K], or where they follow the round [R, K]
    law: Law  # what computing costs
    frequency_hz: tuple[Array, Array]  # [K] each
    bandwidth_hz: float
    noise_w_per_hz: float
    received_power_w: float  # P0
    gain: tuple[Array, Array]  # range of β, linear; [K] each
    fading: str
    rate_discount: float
    link_margin: float
    admission: str
    update_bits: float
    eligible: str
    fresh: str
    empty_used: str
    empty_fresh: str
    buffer: Promises
    classes: int | None
    policy: str
    equal_shares: bool  # who sends shares the band equally, at P0/β; for a user's own policy by its promise
    V: float | None  # the number that it stands for, where it is auto
    auto: bool  # V follows from budget and size, and the fleet has a queue of its own
    size: int | None
    cardinality: str | None
    metric: str  # "own": a user's function or policy, so importance is taken as stored
    power_max_w: float | None  # None: P0/min β
    fade_reserve: float
    least_share: float | None
    gain_known: str  # which gains the policy goes by: mean, last or oracle
    learns: bool
    local_training: str  # by name; one of ours, or a user's own
    server_update: str  # likewise; of one in another, the first that is not ours
    eval_every: int
    evaluators: tuple[str, ...]
    trace_level: str
    deployed: bool  # real devices: what is not heard of them is not known
    priority: Array  # [K], factor on importance, as the scenario gives it
    reports: Reports | None = None
    rationed: Rationed | None = None  # where the policy is balanced_joint
    around: Around = PAPERS_WORLD
    learns_reliability: bool = False  # who delivers is learned, and heeded
    passes: bool = False  # a deployment that may count static data as fresh again
    cuts: bool = False  # a deployment that waits for the first replies only
    plans_measured: bool = False  # a deployment that plans by what devices have measured
    changes: tuple[StoredChange, ...] = ()  # by round
    backlog_j: Array | None = None  # [T], the fleet's queue where V is auto

    @property
    def time_s(self) -> float | Array:
        """T_k: what computing and sending may take together; one for all, or [K]."""
        return self.costs.deadline_s - self.costs.download_s

    @property
    def period_s(self) -> float:
        """From the beginning of one round to that of the next."""
        return self.round_s + (self.reports.slot_s if self.reports else 0.0)


class _Section:
    """Looks a field up by its dotted name and complains in one sentence."""

    def __init__(self, tree: Any, name: str = "") -> None:
        self.tree, self.name = tree, name

    def __getitem__(self, key: str) -> _Section:
        name = f"{self.name}.{key}" if self.name else key
        if not isinstance(self.tree, dict) or key not in self.tree:
            raise RunError(f"run.json lacks {name}, without which the run cannot be verified.")
        return _Section(self.tree[key], name)

    def get(self, key: str) -> _Section | None:
        present = isinstance(self.tree, dict) and self.tree.get(key) is not None
        return self[key] if present else None

    def number(self) -> float:
        value = self.tree
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise RunError(f"run.json: {self.name} must be a finite number, not {value!r}.")
        return float(value)

    def positive(self) -> float:
        value = self.number()
        if value <= 0:
            raise RunError(f"run.json: {self.name} must be greater than 0, not {value!r}.")
        return value

    def whole(self, least: int = 1) -> int:
        value = self.number()
        if not value.is_integer() or value < least:
            raise RunError(f"run.json: {self.name} must be a whole number of at least {least}, not {value!r}.")
        return int(value)

    def plain(self, key: str) -> Any:
        """What stands there, unread; None where nothing does."""
        return self.tree.get(key) if isinstance(self.tree, dict) else None

    def ratio(self) -> float:
        """A number in decibels, as a plain ratio."""
        return 10.0 ** (self.decibels() / 10.0)

    def decibels(self) -> float:
        value = self.number()
        if abs(value) > 1000:
            raise RunError(f"run.json: {self.name} must lie between -1000 and 1000, not {value!r}.")
        return value

    def one_of(self, *allowed: str) -> str:
        if self.tree not in allowed:
            raise RunError(f"run.json: {self.name} must be one of {', '.join(allowed)}, not {self.tree!r}.")
        return str(self.tree)

    def name_of(self) -> str:
        """What a plug-in is called: ours, a user's file.py:Name, or one known by an entry point."""
        if not isinstance(self.tree, str):
            raise RunError(f"run.json: {self.name} must be a name, not {self.tree!r}.")
        return self.tree

    def items(self, count: int) -> list[_Section]:
        if not isinstance(self.tree, list) or len(self.tree) != count:
            raise RunError(f"run.json: {self.name} must be a list of {count} numbers.")
        return [_Section(value, f"{self.name}[{i}]") for i, value in enumerate(self.tree)]

    def entries(self) -> list[_Section]:
        if not isinstance(self.tree, list):
            raise RunError(f"run.json: {self.name} must be a list.")
        return [_Section(value, f"{self.name}[{i}]") for i, value in enumerate(self.tree)]

    def weight(self) -> float:
        """V: a number of at least 0, or the string "inf"; NaN for "auto"."""
        value = {"inf": math.inf, "auto": math.nan}.get(str(self.tree)) or self.number()
        if value < 0:
            raise RunError(f"run.json: {self.name} must be at least 0, not {value!r}.")
        return value


def read_settings(directory: Path) -> StoredSettings:
    """Read run.json of a complete run; RunError says in one sentence what is in the way."""
    path = directory / "run.json"
    if not directory.is_dir():
        raise RunError(f"{directory} is not a run directory: there is no such directory.")
    root = _Section(read_sealed(path))
    if root["format"].tree != FORMAT:
        raise RunError(f"{path} has format {root['format'].tree!r}, but this version can verify only format {FORMAT}.")
    if root["status"].tree != "complete":
        raise RunError(f"{path} is of a run that is not complete (status {root['status'].tree!r}); finish it first.")
    engine = root.get("engine")
    deployed = engine is not None and isinstance(engine.tree, dict) and engine.tree.get("name") == "flower"
    settings = _settings(root["scenario"], root.get("data"), deployed, root.plain("promises"), root.plain("cores"))
    about = root.get("deployment")
    told = about.tree if deployed and about is not None and isinstance(about.tree, dict) else {}
    settings = replace(
        settings,
        passes=told.get("passes") is True,
        plans_measured=told.get("plans") == "measured",
        cuts=told.get("first") is not None,
    )
    several = isinstance(settings.time_s, np.ndarray) or settings.costs.cycles_per_sample > 0
    if settings.policy in ONE_DEADLINE and several:
        raise RunError(f"run.json: {settings.policy} plans with one deadline and fixed cycles, but these differ.")
    if settings.policy == "balanced_joint":
        settings = replace(settings, rationed=_rationed(root["scenario"]["policy"], root["seed"]))
    return replace(with_weight(settings), changes=_changes(root.get("changes"), settings, root["scenario"]))


def _settings(scenario: _Section, data: _Section | None, deployed: bool, promises: Any, cores: Any) -> StoredSettings:
    system, cpu, radio = scenario["system"], scenario["cpu"], scenario["radio"]
    policy, learning, buffer = scenario["policy"], scenario["learning"], scenario["data"]["buffer"]
    name = str(policy["name"].tree)
    if name == "ocean" and policy["power"].one_of("control", "fixed") == "control":
        name = CONTROLLED_OCEAN
    K = system["devices"].whole()
    names, profile = profiles(scenario.plain("devices"), cpu.plain("profile"), K)
    of_profiles = ranges_of_profiles(names, profile, cores)
    population = resolved(scenario.plain("devices"), _usual(scenario, of_profiles), of_profiles)
    world = scenario.plain("world")
    mobility = world.get("mobility") if isinstance(world, dict) else None
    gain_low_db, gain_high_db = gain_range_db(mobility, promises, population["gain_low_db"], population["gain_high_db"])
    cycles = population["cycles"]
    if (of_a_sample := _cycles_per_sample(scenario)) > 0:  # no device has less to do than this
        cycles = np.full(K, of_a_sample)
    classes = data.get("classes") if data else None
    metric = policy.get("metric")
    drift_plus_penalty = name in ("lyapunov", "lyapunov_joint")
    chooses_power = drift_plus_penalty or name == "balanced_joint"
    limit, reserve = policy.get("power_max_w"), policy.get("fade_reserve")
    V = policy["V"].weight() if drift_plus_penalty else None
    reports = _reports(scenario, name, Promises.of("policies", policy.tree, promises))
    return StoredSettings(
        K=K,
        T=system["rounds"].whole(),
        round_s=system["round_s"].positive() - (reports.slot_s if reports else 0.0),
        costs=_costs_of(scenario, population, reports.slot_s if reports else 0.0),
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
        local_training=_local_training(learning.get("local")),
        server_update=_server_update(learning.get("server"), name),
        eval_every=learning["eval_every"].whole(),
        evaluators=tuple(named.name_of() for named in said.entries())
        if (said := learning.get("evaluators"))
        else ("test",),
        trace_level=scenario["trace"]["level"].one_of("full", "rounds"),
        deployed=deployed,
        priority=population["priority"],
        around=around(world, promises),
        learns_reliability=_learns_reliability(system, deployed or around(world, promises).fails),
    )


def _learns_reliability(system: _Section, may_fail: bool) -> bool:
    """Runs from before the setting learned nothing of it."""
    setting = system.get("reliability")
    return setting is not None and setting.one_of("learned", "ignored") == "learned" and may_fail


def _usual(scenario: _Section, of_profiles: tuple[Array, Array]) -> dict[str, Array]:
    """The constants of the devices [K], as they are where neither a class nor a table says otherwise.

    of_profiles: the ends of the range of frequencies where it is that of the profile.
    """
    system, cpu, radio = scenario["system"], scenario["cpu"], scenario["radio"]
    K, costs = system["devices"].whole(), _costs(scenario)
    own_range = cpu["frequency_hz"].tree == "profile"
    low_hz, high_hz = of_profiles if own_range else (item.positive() for item in cpu["frequency_hz"].items(2))
    low_db, high_db = (item.decibels() for item in radio["gain_db"].items(2))
    return {
        "cycles": np.full(K, cpu["cycles"].positive()),
        "energy_budget_j": _budget(system["energy_budget_j"], K),
        "frequency_low_hz": np.full(K, 1.0) * low_hz,
        "frequency_high_hz": np.full(K, 1.0) * high_hz,
        "gain_low_db": np.full(K, low_db),
        "gain_high_db": np.full(K, high_db),
        "priority": np.ones(K),
        "deadline_s": np.full(K, system["round_s"].positive()),
        "power_max_w": np.full(K, limit.positive() if (limit := radio.get("power_max_w")) else np.inf),
        "download_bit_per_s": np.full(K, rate.positive() if (rate := costs.get("download_bit_per_s")) else 1.0),
    }


def _reports(scenario: _Section, policy: str, promised: Promises) -> Reports | None:
    """What reports take, where a policy of ours asks for them, or a user's own by its promise."""
    trains = policy in TRAINS_FIRST
    if policy not in OUR_POLICIES:
        trains = "trains_first" in promised
    asks = trains or policy in ASKS_EVERYONE or (policy not in OUR_POLICIES and "asks_reports" in promised)
    if not asks:
        return None
    table, round_s = scenario["reports"], scenario["system"]["round_s"].positive()
    slot_s, cycles = table["slot_s"].positive(), table["cycles"].number()
    if not slot_s < round_s or cycles < 0:
        raise RunError("run.json: reports.slot_s must be below system.round_s, and reports.cycles at least 0.")
    return Reports(slot_s, cycles, table["bits"].positive(), trains)


def _server_update(server: _Section | None, policy: str) -> str:
    """Its name; weights by inverse probability need a policy of ours that knows it. Runs from before are of fedavg."""
    if server is None:
        return "fedavg"
    name = server["kind"].name_of()
    if name == "inverse_probability" and policy in OUR_POLICIES and policy not in KNOWS_PROBABILITY:
        raise RunError(f"run.json: {server.name}.kind is {name}, and {policy} knows no probabilities.")
    return name if name not in OUR_SERVER_UPDATES else _server_update(server.get("inner"), policy)


def _costs(scenario: _Section) -> _Section:
    """The table [costs]; runs from before there was one have none."""
    return scenario.get("costs") or _Section({}, "costs")


def _costs_of(scenario: _Section, population: dict[str, Array], slot_s: float) -> Costs:
    """Of the population that classes and table leave; deadlines count from the end of the slot for reports."""
    table = _costs(scenario)
    bits, power_w = (field.number() if (field := table.get(name)) else 0.0 for name in ("download_bits", POWER))
    if bits < 0 or power_w < 0:
        raise RunError(f"run.json: costs.download_bits and costs.{POWER} must be at least 0.")
    download_s = bits / population["download_bit_per_s"]
    columns = (population["deadline_s"] - slot_s, download_s, power_w * download_s, population["power_max_w"])
    alike = (float(each[0]) if (each == each[0]).all() else each for each in columns)
    block_bits, overhead = (
        max(given.number(), 0.0) if (given := scenario["radio"].get(name)) else 0.0
        for name in ("block_bits", "code_overhead")
    )
    per_sample = max(_cycles_per_sample(scenario), 0.0)
    return Costs(*alike, block_bits=block_bits, code_overhead=overhead, cycles_per_sample=per_sample)


def _cycles_per_sample(scenario: _Section) -> float:
    given = _costs(scenario).get("cycles_per_sample")
    return given.number() if given else 0.0


def _local_training(local: _Section | None) -> str:
    """Its name; the settings of ours must be possible ones. Runs from before it had a table are of sgd."""
    if local is None:
        return "sgd"
    name = local["kind"].name_of()
    if name not in OUR_LOCAL_TRAININGS:
        return name
    local["lr"].positive()
    for field in ("steps", "batch", "every"):
        local[field].whole()
    for field in ("momentum", "weight_decay", "prox"):
        if local[field].number() < 0:
            raise RunError(f"run.json: {local.name}.{field} must be at least 0, not {local[field].tree!r}.")
    local["sampling"].one_of("replacement", "epoch")
    local["schedule"].one_of("constant", "step", "cosine", "inverse")
    local["keep"].one_of("none", "momentum", "scaffold")
    return name


def _rationed(policy: _Section, seed: _Section) -> Rationed:
    if isinstance(seed.tree, bool) or not isinstance(seed.tree, int) or seed.tree < 0:
        raise RunError(f"run.json: seed must be a whole number of at least 0, not {seed.tree!r}.")
    return Rationed(
        seed=seed.tree,
        least=policy["least"].whole(),
        memory=policy["memory"].positive(),
        spread=policy["spread"].number(),
        price=policy["price"].number(),
        pace=policy["pace"].one_of("horizon", "running"),
        knows=policy["knows"].one_of("labels", "sizes"),
    )


def with_weight(s: StoredSettings) -> StoredSettings:
    """The same, with the number that V = auto stands for: PLACES·(ΣE^avg/size)²."""
    return replace(s, V=PLACES * place_j(s) ** 2) if s.auto else s


def place_j(s: StoredSettings) -> float:
    """What the budgets grant one of the places in a round."""
    return float(s.budget_j.sum()) / max(s.size or 0, 1)


def _budget(budget: _Section, K: int) -> Array:
    """E^avg [K]: one number for all, or one each."""
    many = isinstance(budget.tree, list)
    return np.array([item.number() for item in budget.items(K)] if many else [budget.number()] * K)


def _changes(changes: _Section | None, s: StoredSettings, scenario: _Section) -> tuple[StoredChange, ...]:
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
                usual = _usual(scenario, s.frequency_hz) | {"energy_budget_j": _budget(value, s.K)}
                budget_j = resolved(scenario.plain("devices"), usual, s.frequency_hz)["energy_budget_j"]
                found.append(StoredChange(round, "budget_j", budget_j))
    return tuple(found)


def _metric(policy: str, metric: _Section | None) -> str:
    """One of ours, or "own" where a user's function, or a policy that we do not know, says how important data is."""
    name = "combined" if metric is None else metric.name_of()
    return name if policy in OUR_POLICIES and name in OUR_METRICS else "own"
