"""Scheduled: any Flower strategy, trained on the devices that a feelstream policy chooses.

    Scheduled(inner=FedAdam(...), scenario="my-devices.toml")

chooses the nodes, keeps their energy queues and the deadline; the inner strategy writes the messages, averages and
evaluates. `ScheduledFedAvg(scenario=…)` is short for one with FedAvg inside. device.py is the clients' side: reports
come with training replies, and only nodes whose report is missing or too old are asked before a round.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Literal, get_args

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg, Result, Strategy
from flwr.serverapp.strategy.strategy_utils import log_strategy_start_info

from feelstream.columns import MEASURED
from feelstream.errors import FeelstreamError
from feelstream.flower.app_files import from_app, own_table, run_directory, scenario_from_app
from feelstream.flower.deployment import Deployment
from feelstream.flower.inner import Inner
from feelstream.flower.measurements import Plans
from feelstream.flower.names import Names
from feelstream.flower.patience import DeploymentError
from feelstream.flower.rounds import Evaluate, Rounds, run_all
from feelstream.flower.settings import DeploymentSettings
from feelstream.flower.updates import read_model
from feelstream.policies import Policy
from feelstream.run.callbacks import Callback
from feelstream.scenario import Scenario
from feelstream.scenario import files as scenario_files

log = logging.getLogger("flwr")
ScenarioLike = Scenario | str | Path | Mapping[str, Any]


class Scheduled(Strategy):
    """A Flower strategy on the devices that a policy schedules, with energy queues and a round deadline."""

    def __init__(
        self,
        inner: Strategy,
        scenario: ScenarioLike,
        policy: Policy | str | None = None,
        *,
        classes: int = 10,
        seed: int = 0,
        out: str | Path | None = None,
        deadline_s: float | None = None,
        clock: Literal["measured", "model"] = "measured",
        energy: Literal["measured", "model"] = "measured",
        plans: Plans = "measured",
        first: int | None = None,
        adaptive_timeout: bool = False,
        late: Literal["waste", "use"] = "waste",
        query_timeout_s: float = 30.0,
        max_report_age: int = 5,
        enough_reports: float = 0.9,
        names: Names = None,
        bind_names: bool | None = None,
        max_examples: float | Literal["auto"] | None = "auto",
        max_priority: float = 1.0,
        check_updates: bool | None = None,
        passes: bool = True,
        give_up_after: int | None = 5,
        min_available_nodes: int = 1,
        wait_s: float = 120.0,
        about: Mapping[str, Any] | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        """Describe the federation; the ServerApp then calls `start`, as with any strategy.

        inner: the strategy that averages and evaluates; it sees the replies of the senders only.
        scenario: devices, budgets, CPU and radio constants: a Scenario, a preset's name, a TOML file, or its tables.
            A name, file or table that does not set data.eligible gets with_data: only devices with data are scheduled;
            and what it leaves unset of the policy is what suits joules that nobody knows before: V = "auto" of
            lyapunov, price = "auto" of balanced.
        policy: a policy or its name, in place of the scenario's.
        classes: length of the label counts that devices report.
        out: run directory; a server that is started again with the same one goes on where it stopped. Relative paths
            are meant from the app's directory, the one with its pyproject.toml, as are those of `scenario` and `names`;
            of an app that Flower has unpacked, from `runs/PUBLISHER.APP` in Flower's home. The log tells the path.
        deadline_s: wall-clock time for a training reply; system.round_s unless clock="model".
        clock: "measured": the times that devices measure count against system.round_s; "model": those of the scenario.
        energy: "measured": the energy that devices measure is charged; "model": that of the scenario.
        plans: "measured": time and energy of training are planned as devices have measured them so far, by an estimate
            that begins with the scenario's model; "model": by that alone.
        first: a round ends with the first so many updates of the scheduled; the others are charged and not waited for.
        adaptive_timeout: wait as long as the scheduled devices have taken before, and some more, at most deadline_s.
        late: "use": updates that come up to three rounds late are averaged with the next ones, at 1/(1 + rounds) of
            their weight, where the inner strategy is a FedAvg or has accepts_late = True; "waste": they are not.
        query_timeout_s: wall-clock time for a report; enough_reports: once this share of the asked have answered,
            the others get as long again.
        max_report_age: rounds for which a report is good enough; older ones are asked for. 0: ask everyone each round.
        names: the devices' names, a pattern for them, or a file (names.py); default "0", "1", …: the partition-ids.
        bind_names: the first node that uses a name keeps it for the run; None: where nodes authenticate, in which case
            a node that is started again has the id that it had.
        max_examples: the most samples any device may claim for its weight; None: what it stores; "auto": ten times
            what it would store if it received as much as the median device.
        max_priority: the most that a node may state as its own priority; by default it can only lower it.
        check_updates: refuse updates that do not look like the model, or are not finite; off for FedXgbBagging and
            FedXgbCyclic, and to be turned off for strategies whose model grows or whose updates are parts of it.
        passes: where data is static, count all of it as fresh again once it was all used (a pass over it); otherwise
            every device has importance 0 from then on.
        give_up_after: rounds in a row without any training after which the run ends with an error, once every device
            that can be scheduled has failed; a run that has trained nobody by its last round is one too. None: never.
        min_available_nodes, wait_s: begin when so many nodes are connected, or after so many seconds; the very first
            reports may take as long, since clients may have to start first.
        about: more to note in run.json.
        callbacks: as in `simulate`: TensorBoard, MLflow, wandb, OpenMetrics or your own; on_end only with `out`.
        """
        self.inner = Inner(inner, check_updates)
        self.scenario = _resolve(scenario, policy)
        self.out = run_directory(out) if out is not None else None
        self.callbacks = tuple(callbacks)
        self.min_available_nodes, self.wait_s, self.about = min_available_nodes, wait_s, dict(about or {})
        self.settings = DeploymentSettings(
            classes=classes,
            seed=seed,
            deadline_s=_deadline_s(self.scenario.system.round_s, deadline_s, clock),
            query_timeout_s=query_timeout_s,
            wait_s=wait_s,
            max_report_age=max_report_age,
            enough_reports=enough_reports,
            names=from_app(names) if isinstance(names, Path) else names,
            bind_names=bind_names,
            give_up_after=give_up_after,
            max_examples=max_examples,
            max_priority=max_priority,
            passes=passes,
            check_updates=self.inner.check_updates,
            plans=_one_of("plans", plans),
            first=_first(first, self.scenario.policy.size),
            adaptive_timeout=adaptive_timeout,
            late=self._late(late),
            measured=tuple(
                name for name in MEASURED if {"t": clock, "e": _one_of("energy", energy)}[name[0]] == "measured"
            ),
        )  # fmt: skip
        self._running = False
        self._begin(self.scenario)

    def _late(self, late: Any) -> Literal["waste", "use"]:
        if late not in ("waste", "use"):
            raise FeelstreamError(f"late must be 'waste' or 'use', not {late!r}")
        if late == "use" and not self.inner.accepts_late:
            name = type(self.inner.strategy).__name__
            raise FeelstreamError(f"late='use': {name} does not say that it takes late updates (accepts_late = True)")
        return late

    def _begin(self, scenario: Scenario) -> None:
        """Forget everything: no queues and no reports."""
        self.deployment = Deployment(scenario, self.settings, self.inner.weight_key, self.inner.one_of_each)

    def summary(self) -> None:
        """Log the settings, ours and the inner strategy's."""
        settings, system = self.settings, self.scenario.system
        log.info("\t├──> Scheduling:")
        policy = self.scenario.policy
        log.info("\t│\t├── Policy: %s (%s), %d devices", policy.plugin_name(), policy, system.devices)
        log.info("\t│\t├── Deadline: %g s; reports count for %d rounds", settings.deadline_s, settings.max_report_age)
        log.info("\t│\t└── Run directory: %s", self.out or "none")
        self.inner.strategy.summary()

    def start(  # pyright: ignore[reportIncompatibleMethodOverride]  (num_rounds may come from the scenario)
        self,
        grid: Grid,
        initial_arrays: ArrayRecord,
        num_rounds: int | None = None,
        timeout: float = 3600,
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
        evaluate_fn: Evaluate | None = None,
    ) -> Result:
        """Run the federation to its end, or on from where an earlier server stopped.

        timeout: for client-side evaluation only; training has `deadline_s`. evaluate_fn: called before the first and
        after every round, as by any strategy; "accuracy" and "loss", where it returns both, go into the trace.
        """
        scenario = _with_rounds(self.scenario, num_rounds, evaluates=evaluate_fn is not None)
        self._begin(scenario)
        log.info("Starting %s strategy:", type(self).__name__)
        log_strategy_start_info(scenario.system.rounds, initial_arrays, train_config, evaluate_config)
        self.summary()
        rounds = Rounds(
            self, self.deployment, self.inner, grid, initial_arrays,
            train_config=train_config, evaluate_config=evaluate_config, evaluate_fn=evaluate_fn,
            evaluation_timeout_s=timeout, about=self.about,
        )  # fmt: skip
        self._running = True
        try:
            return run_all(rounds, self.out, self.callbacks)
        finally:
            self._running = False

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Choose the nodes, and send them what the inner strategy would."""
        if self.out is not None and not self._running:
            raise FeelstreamError(
                "a strategy around this one keeps no run directory; put it inside, as Scheduled(inner=…), or drop `out`"
            )
        if not self.deployment.directory.connected().any():
            self._wait(grid)
        nodes = self.deployment.begin(server_round, grid)
        contents = self.inner.contents(server_round, arrays, config, grid, nodes)
        return self.deployment.calls_for_training(nodes, contents, read_model(arrays))

    def _wait(self, grid: Grid) -> None:
        end = monotonic() + self.wait_s
        while (connected := len(list(grid.get_node_ids()))) < self.min_available_nodes and monotonic() < end:
            sleep(0.2)
        if not connected and self.settings.give_up_after is not None:
            raise DeploymentError(f"no node has connected within {self.wait_s:g} s")

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Let the inner strategy average the updates that count; (None, None) keeps the model.

        Our own loop has settled the round by now; replies from a strategy around this one are settled here.
        """
        if self.deployment.scheduler.open:
            _, replies = self.deployment.settle(server_round, replies)
        updates = list(replies)
        arrays, metrics = self.inner.aggregate(server_round, updates)
        if updates:
            self.deployment.patience.aggregated(server_round, made=arrays is not None)
        return arrays, metrics

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Left to the inner strategy, on the nodes that are devices of this run."""
        return self.inner.evaluation(server_round, arrays, config, grid, self.deployment.known_nodes(grid))

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        usable = self.deployment.evaluations(server_round, replies)
        return self.inner.aggregate_evaluation(server_round, usable) if usable else None


class ScheduledFedAvg(Scheduled):
    """Federated averaging over the devices that a policy schedules: Scheduled(inner=FedAvg(...), scenario=…)."""

    def __init__(self, scenario: ScenarioLike, policy: Policy | str | None = None, **options: Any) -> None:
        """options: those of Scheduled, and those of Flower's FedAvg (fraction_evaluate, weighted_by_key, …).

        Clients evaluate only if fraction_evaluate is given, and fraction_train is the policy's affair.
        """
        own = {name: options.pop(name) for name in list(options) if name in OWN}
        averaging = {"fraction_evaluate": 0.0, "min_train_nodes": 1, "min_available_nodes": 1} | options
        try:
            inner = FedAvg(**averaging)
        except TypeError as problem:
            name = next((name for name in options if f"'{name}'" in str(problem)), "")
            raise FeelstreamError(f"neither Scheduled nor Flower's FedAvg has an option '{name}'") from problem
        super().__init__(inner, scenario, policy, **own)


OWN = set(Scheduled.__init__.__annotations__) - {"inner", "scenario", "policy", "return"}


def _one_of(name: str, given: Any) -> Plans:
    if given not in ("measured", "model"):
        raise FeelstreamError(f"{name} must be 'measured' or 'model', not {given!r}")
    return given


def _first(first: int | None, size: int) -> int | None:
    if first is not None and not 1 <= first <= size:
        raise FeelstreamError(f"first must lie between 1 and policy.size = {size}, not {first}")
    return first


def _deadline_s(round_s: float, deadline_s: float | None, clock: str) -> float:
    _one_of("clock", clock)
    if deadline_s is None:
        return round_s
    if clock == "measured" and deadline_s != round_s:
        raise FeelstreamError(
            f"deadline_s = {deadline_s:g} and system.round_s = {round_s:g} must agree where times are measured: "
            "omit deadline_s, set system.round_s, or choose clock='model'"
        )
    if not deadline_s > 0:
        raise FeelstreamError(f"deadline_s must be greater than 0, not {deadline_s:g}")
    return deadline_s


def _resolve(given: ScenarioLike, policy: Policy | str | None) -> Scenario:
    """The scenario as it is meant in a deployment; one that is given as an object says all of it."""
    if isinstance(given, Scenario):
        scenario, said = given, set[str](type(given.policy).model_fields)
    else:
        scenario = (
            scenario_files.from_dict(given, own_table(given))
            if isinstance(given, Mapping)
            else scenario_files.load(found := scenario_from_app(given), own_table(found))
        )
        said = set(scenario.policy.model_fields_set)
        if "eligible" not in scenario.data.model_fields_set:
            # A server that knows the counts asks nobody who holds nothing; the paper's reading must be asked for.
            scenario = scenario_files.from_dict(scenario.as_dict(), ["data.eligible=with_data"])
    if isinstance(policy, Policy):
        return Scenario.of({**scenario.tables(), "policy": policy})
    if policy is not None:
        scenario = scenario_files.from_dict(scenario.as_dict(), [f"policy.name={policy}"])
    chosen = scenario.policy
    # A fixed V or price is per joule, and turns take millijoules here and kilojoules there: nobody knows it before.
    auto = (name for name, field in type(chosen).model_fields.items() if Literal["auto"] in get_args(field.annotation))
    unsaid = dict.fromkeys((name for name in auto if name not in said), "auto")
    return Scenario.of({**scenario.tables(), "policy": chosen.model_copy(update=unsaid)}) if unsaid else scenario


def _with_rounds(scenario: Scenario, rounds: int | None, evaluates: bool) -> Scenario:
    """The scenario as it is really run: so many rounds, and learning only as far as the server can see it."""
    tables = scenario.as_dict()
    tables["system"]["rounds"] = rounds or scenario.system.rounds
    if not evaluates:
        tables["learning"]["engine"] = "none"
    elif scenario.learning.engine == "none":
        tables["learning"]["engine"] = "auto"
    return scenario_files.from_dict(tables)
