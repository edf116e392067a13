"""Scheduled: any Flower strategy, trained on the devices that a feelstream policy chooses.

    Scheduled(inner=FedAdam(...), scenario="my-devices.toml")

chooses the nodes, keeps their energy queues and the deadline; the inner strategy writes the messages, averages and
evaluates. `ScheduledFedAvg(scenario=…)` is short for one with FedAvg inside. device.py is the clients' side: reports
come with training replies, and only nodes whose report is missing or too old are asked before a round.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Any

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg, Result, Strategy

from feelstream.errors import FeelstreamError
from feelstream.flower.inner import Inner
from feelstream.flower.play import Evaluate, Rounds, run_all
from feelstream.flower.round import Deployment
from feelstream.flower.settings import (
    GROUP_OF,
    Devices,
    Measuring,
    Options,
    ScenarioLike,
    Trust,
    Waiting,
    from_app,
    run_directory,
    scenario_of,
    with_rounds,
)
from feelstream.policies import Policy
from feelstream.run.callbacks import Callback
from feelstream.scenario import Scenario

log = logging.getLogger("flwr")


class Scheduled(Strategy):
    """A Flower strategy on the devices that a policy schedules, with energy queues and a round deadline."""

    def __init__(
        self,
        inner: Strategy,
        scenario: ScenarioLike,
        policy: Policy | str | None = None,
        *,
        seed: int = 0,
        out: str | Path | None = None,
        devices: Devices | None = None,
        waiting: Waiting | None = None,
        trust: Trust | None = None,
        measuring: Measuring | None = None,
        about: Mapping[str, Any] | None = None,
        callbacks: Sequence[Callback] = (),
        **settings: Any,
    ) -> None:
        """Describe the federation; the ServerApp then calls `start`, as with any strategy.

        inner: the strategy that averages and evaluates; it sees the replies of the senders only.
        scenario: devices, budgets, CPU and radio constants: a Scenario, a preset's name, a TOML file, or its tables.
            A name, file or table that does not set data.eligible gets with_data: only devices with data are scheduled;
            and what it leaves unset of the policy is what suits joules that nobody knows before: V = "auto" of
            lyapunov, price = "auto" of balanced.
        policy: a policy or its name, in place of the scenario's.
        seed: of the policy's random numbers.
        out: run directory; a server that is started again with the same one goes on where it stopped. Relative paths
            are meant from the app's directory, the one with its pyproject.toml, as are those of `scenario` and `names`;
            of an app that Flower has unpacked, from `runs/PUBLISHER.APP` in Flower's home. The log tells the path.
        devices, waiting, trust, measuring: who the devices are, how long a round waits for them, how far they are
            believed, and what counts of what they measure; settings.py documents each setting.
        about: more to note in run.json.
        callbacks: as in `simulate`: TensorBoard, MLflow, wandb, OpenMetrics or your own; on_end only with `out`.
        settings: single ones of those four by their own names, such as classes=10 or late="use".
        """
        groups = {"devices": devices, "waiting": waiting, "trust": trust, "measuring": measuring}
        names = settings.get("names", devices.names if devices else None)
        if isinstance(names, Path):
            settings["names"] = from_app(names)
        self.options = Options.of(seed, groups, settings)
        self.inner = Inner(inner, self.options.trust.check_updates)
        self.scenario = scenario_of(scenario, policy)
        _check(self.options, self.scenario, self.inner)
        self.out = run_directory(out) if out is not None else None
        self.callbacks, self.about = tuple(callbacks), dict(about or {})
        self._running = False
        self._begin(self.scenario)

    def _begin(self, scenario: Scenario) -> None:
        """Forget everything: no queues and no reports."""
        self.deployment = Deployment(scenario, self.options, self.inner)
        self._aggregated: tuple[int, ArrayRecord | None, MetricRecord | None] = (0, None, None)

    def summary(self) -> None:
        """Log the settings, ours and the inner strategy's."""
        policy, who = self.scenario.policy, self.options.devices
        log.info("\t├──> Scheduling:")
        log.info("\t│\t├── Policy: %s (%s), %d devices", policy.plugin_name(), policy, self.scenario.system.devices)
        log.info("\t│\t├── Deadline: %g s; reports count for %d rounds", self.deployment.deadline_s, who.max_report_age)
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
        scenario = with_rounds(self.scenario, num_rounds, evaluates=evaluate_fn is not None)
        self._begin(scenario)
        log.info("Starting %s strategy:", type(self).__name__)
        megabytes = sum(len(array.data) for array in initial_arrays.values()) / 2**20
        log.info("\t├── Number of rounds: %d", scenario.system.rounds)
        log.info("\t├── ArrayRecord (%.2f MB)", megabytes)
        log.info("\t├── ConfigRecord (train): %s", dict(train_config or {}) or "(empty!)")
        log.info("\t├── ConfigRecord (evaluate): %s", dict(evaluate_config or {}) or "(empty!)")
        self.summary()
        if self.options.devices.bind_names is None and not self.deployment.directory.all_bound:
            log.warning(
                "bind_names is not set, so any node may use a name while no other does: set it to True where nodes "
                "authenticate, or to False if this is meant"
            )
        rounds = Rounds(self, grid, initial_arrays, train_config, evaluate_config, evaluate_fn, timeout)
        self._running = True
        try:
            return run_all(rounds, self.out)
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
        nodes = self.deployment.begin(server_round, grid)
        contents = self.inner.contents(server_round, arrays, config, grid, nodes)
        return self.deployment.messages(nodes, contents)

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Let the inner strategy average the updates that count; (None, None) keeps the model.

        Asked twice by a strategy around this one, it gives the same answer again.
        """
        if self.deployment.plays(server_round):
            updates = self.deployment.close(replies)
            arrays, metrics = self.inner.aggregate(server_round, updates)
            if updates:
                self.deployment.patience.aggregated(server_round, made=arrays is not None)
            self._aggregated = server_round, arrays, metrics
        t, arrays, metrics = self._aggregated
        return (arrays, metrics) if t == server_round else (None, None)

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
        ours = {*signature(Scheduled).parameters, *GROUP_OF} - {"inner", "settings"}
        own = {name: options.pop(name) for name in list(options) if name in ours}
        averaging = {"fraction_evaluate": 0.0, "min_train_nodes": 1, "min_available_nodes": 1} | options
        try:
            inner = FedAvg(**averaging)
        except TypeError as problem:
            name = next((name for name in options if f"'{name}'" in str(problem)), "")
            raise FeelstreamError(f"neither Scheduled nor Flower's FedAvg has an option '{name}'") from problem
        super().__init__(inner, scenario, policy, **own)


def _check(options: Options, scenario: Scenario, inner: Inner) -> None:
    """FeelstreamError where settings contradict the scenario, or what is inside."""
    waiting, round_s, size = options.waiting, scenario.system.round_s, scenario.policy.size
    if waiting.first is not None and waiting.first > size:
        raise FeelstreamError(f"waiting.first: must lie between 1 and policy.size = {size}, not {waiting.first}")
    if waiting.late == "use" and not inner.accepts_late:
        name = type(inner.strategy).__name__
        raise FeelstreamError(f"late='use': {name} does not say that it takes late updates (accepts_late = True)")
    if waiting.deadline_s not in (None, round_s) and options.measuring.clock == "measured":
        raise FeelstreamError(
            f"deadline_s = {waiting.deadline_s:g} and system.round_s = {round_s:g} must agree where times are "
            "measured: omit deadline_s, set system.round_s, or choose clock='model'"
        )
