"""A round as the policy saw it, so that it can decide again: kept while a run is played, or rebuilt from its trace."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from feelstream.columns import spent_j
from feelstream.errors import FeelstreamError
from feelstream.guard import ask
from feelstream.loop.changes import from_list, in_order, scenario_in
from feelstream.loop.round import select
from feelstream.model.costs import RoundCosts, cycles_by_data, with_costs
from feelstream.plugins import Inert
from feelstream.policies.base import ORACLE_GAIN, Decision, Observation, Outcome, Policy, State
from feelstream.randomness import Purpose, generator
from feelstream.scenario import Scenario

if TYPE_CHECKING:
    from feelstream.run.run import Run

COSTS = ("cost_cycles", "cost_bits", "cost_down_s", "cost_down_j")  # in the order of RoundCosts
PLANNED = (("t_cmp", "s"), ("e_cmp", "j"))  # what a deployment plans, and the units


@dataclass(frozen=True)
class Scene:
    """Everything that a decision follows from, and the decision."""

    policy: Policy
    state: State
    observation: Observation
    seed: int
    decision: Decision

    def decide(self, policy: Policy | None = None, observation: Observation | None = None) -> Decision:
        """The decision with another policy or observation, and the same random numbers."""
        known = observation or self.observation
        return select(policy or self.policy, self.state, known, self.seed)


class Scenes:
    """The rounds of a run, rebuilt from its table of devices one after the other."""

    def __init__(self, run: Run) -> None:
        assert run.devices is not None
        self.scenario, self.seed, self.facts = run.scenario, run.seed, run.manifest.facts
        self.changes = in_order(run.scenario, from_list(run.about.get("changes") or []))
        self._rounds = run.devices.partition_by("round", as_dict=True, include_key=False)
        self._states: dict[int, State] = {}  # before each round

    def rows(self, round: int) -> pl.DataFrame:
        return self._rounds[(round,)]

    def scene(self, round: int) -> Scene | None:
        """The round, if the policy decides again as it did.

        None for someone's own policy in a stored run, whose code is not read, and for one that goes by what the trace
        does not hold, such as losses.
        """
        if any(isinstance(self._at(t).policy, Inert) for t in (1, round)):
            return None
        try:
            policy, observation = self._at(round).policy, self._observation(round)
            scene = Scene(
                policy, self._state(round), observation, self.seed, Decision(np.zeros(0, int), observation.plan(1))
            )
            decision = scene.decide()
        except FeelstreamError:
            return None
        rows = self.rows(round)
        scheduled = np.flatnonzero(rows["scheduled"].to_numpy())
        return replace(scene, decision=decision) if np.array_equal(np.sort(decision.schedule), scheduled) else None

    def _at(self, round: int) -> Scenario:
        return scenario_in(self.scenario, self.changes, round)

    def _state(self, round: int) -> State:
        policy = self._at(round).policy
        if type(policy).update is Policy.update or round == 1:
            first = self._observation(1).system
            return ask(self._at(1).policy, "start", first, generator(self.seed, Purpose.POLICY, 0), at=0)
        if round not in self._states:
            before = self._nearest(round)
            state = self._state(before) if before == 1 else self._states[before]
            for t in range(before, round):
                state = ask(self._at(t).policy, "update", state, self._outcome(t), at=t)
            self._states = {**self._states, round: state}
        return self._states[round]

    def _nearest(self, round: int) -> int:
        return max((t for t in self._states if t < round), default=1)

    def _observation(self, round: int) -> Observation:
        rows, scenario = self.rows(round), self._at(round)
        labels = counts(rows["fresh_labels"])
        system = scenario.known_system(labels.shape[1])
        stored = rows["stored"].to_numpy()
        own = "own_costs" in self.facts  # by a rule of the user's own, which is not asked again
        said = [rows[column].to_numpy() for column in COSTS] if own else [cycles_by_data(system, stored)]
        system = with_costs(system, RoundCosts(*said), own, stored)
        if "deployed" in self.facts:  # a deployment's devices may state one
            system = replace(system, priority=rows["priority"].to_numpy())
        if "plans_measured" in self.facts:  # a deployment plans by what was measured
            time, energy = (rows[f"{name}_planned_{u}"] / rows[f"{name}_prior_{u}"] for name, u in PLANNED)
            system = system.learned(time.to_numpy(), energy.to_numpy())
        policy = scenario.policy
        return Observation(
            system=system,
            round=round,
            f_hz=rows["f_hz"].to_numpy(),
            beta=rows["beta"].to_numpy(),
            stored=stored,
            fresh=rows["fresh"].to_numpy(),
            fresh_labels=labels,
            used_labels=counts(rows["used_labels"]).sum(axis=0),
            queue_j=rows["queue_j"].to_numpy(),
            available=rows["available"].to_numpy(),
            stored_labels=counts(rows["stored_labels"]) if "labels" in self.facts else None,
            reliability=rows["reliability"].to_numpy() if "fallible" in self.facts else None,
            oracle_gain=rows["gain"].to_numpy() if ORACLE_GAIN in policy.needs else None,
        )

    def _outcome(self, round: int) -> Outcome:
        rows = self.rows(round)
        ids = np.flatnonzero(rows["scheduled"].to_numpy())
        sent, gain, energy_j = (column.to_numpy()[ids] for column in (rows["transmitted"], rows["gain"], spent_j(rows)))
        return Outcome(round, ids, sent, gain, energy_j, None, self._observation(round))


def counts(lists: pl.Series) -> NDArray:
    """A column of equally long lists as (n, m)."""
    return lists.list.explode().to_numpy().reshape(len(lists), -1)
