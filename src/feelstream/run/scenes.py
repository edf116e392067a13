"""A round as the policy saw it, so that it can decide again: kept while a run is played, or rebuilt from its trace."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from feelstream.columns import spent_j
from feelstream.errors import FeelstreamError, RunError
from feelstream.guard import ask
from feelstream.loop.changes import from_list, in_order, scenario_in
from feelstream.loop.round import decide
from feelstream.model.system import RoundCosts, cycles_by_data, with_costs
from feelstream.policies.base import ORACLE_GAIN, Decision, Observation, Outcome, Policy, State
from feelstream.policies.ranking import Ranking
from feelstream.randomness import Purpose, generator
from feelstream.scenario import Scenario
from feelstream.stored import Inert

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
        return decide(policy or self.policy, self.state, known, self.seed)

    def ranking(self, device: int) -> Ranking | None:
        """What the policy says that a device was ranked by."""
        return ask(self.policy, "ranking", self.state, self.observation, self.decision, device)


class Unstored(Outcome):
    """What a round came to, as far as the trace tells: not what training found."""

    def __getattribute__(self, name: str) -> Any:
        if name in ("losses", "update_norm"):
            raise RunError(f"the policy goes by {name}, which no trace holds")
        return super().__getattribute__(name)


class Scenes:
    """The rounds of a run, rebuilt from its table of devices one after the other.

    scenario: by default the run's, whose code of the user's own is not read.
    """

    def __init__(self, run: Run, scenario: Scenario | None = None) -> None:
        assert run.devices is not None
        self.scenario, self.seed, self.facts = scenario or run.scenario, run.seed, run.manifest.facts
        self.resolved = run.manifest.resolved
        self.changes = in_order(self.scenario, from_list(run.manifest.changes))
        self._rounds = run.devices.partition_by("round", as_dict=True, include_key=False)
        self._states: list[State] = []  # before the rounds 1, 2, … as far as they were asked for

    def rows(self, round: int) -> pl.DataFrame:
        return self._rounds[(round,)]

    def scene(self, round: int) -> Scene | None:
        """The round, if the policy decides again as it did.

        None for someone's own policy in a stored run, whose code is not read, and for one that goes by what the trace
        does not hold, such as losses.
        """
        if any(isinstance(self.scenario_in(t).policy, Inert) for t in (1, round)):
            return None
        try:
            scene = self.decided(round)
        except FeelstreamError:
            return None
        scheduled = np.flatnonzero(self.rows(round)["scheduled"].to_numpy())
        return scene if np.array_equal(np.sort(scene.decision.schedule), scheduled) else None

    def decided(self, round: int) -> Scene:
        """The round with what the policy decides now; FeelstreamError where the trace does not hold what it goes by."""
        policy, state, known = self.scenario_in(round).policy, self._state(round), self._observation(round)
        return Scene(policy, state, known, self.seed, decide(policy, state, known, self.seed))

    def scenario_in(self, round: int) -> Scenario:
        """With the changes until then."""
        return scenario_in(self.scenario, self.changes, round)

    def _state(self, round: int) -> State:
        """Before this round."""
        if type(self.scenario_in(round).policy).update is Policy.update:
            round = 1  # it stays as it was
        states = [*self._states]
        if not states:
            first, rng = self._observation(1).system, generator(self.seed, Purpose.POLICY, 0)
            states.append(ask(self.scenario_in(1).policy, "start", first, rng, at=0))
        for t in range(len(states), round):
            states.append(ask(self.scenario_in(t).policy, "update", states[-1], self._outcome(t), at=t))
        self._states = states
        return states[round - 1]

    def _observation(self, round: int) -> Observation:
        rows, scenario = self.rows(round), self.scenario_in(round)
        told, about = "features" in self.facts, self.resolved
        played = scenario.deployed if "deployed" in self.facts else scenario
        system = played.known_system(about.data.classes or counts(rows["fresh_labels"]).shape[1])
        if about.features is not None and about.features.reference is not None:
            system = replace(system, reference=np.array(about.features.reference))
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
            fresh_features=counts(rows["fresh_features" if told else "fresh_labels"]),
            used_features=counts(rows["used_features" if told else "used_labels"]).sum(axis=0),
            queue_j=rows["queue_j"].to_numpy(),
            available=rows["available"].to_numpy(),
            stored_features=counts(rows["stored_features" if told else "stored_labels"])
            if "labels" in self.facts
            else None,
            reliability=rows["reliability"].to_numpy() if "fallible" in self.facts else None,
            oracle_gain=rows["gain"].to_numpy() if ORACLE_GAIN in policy.needs else None,
        )

    def _outcome(self, round: int) -> Outcome:
        rows = self.rows(round)
        ids = np.flatnonzero(rows["scheduled"].to_numpy())
        sent, gain, energy_j = (column.to_numpy()[ids] for column in (rows["transmitted"], rows["gain"], spent_j(rows)))
        trained = "deployed" in self.facts or self.scenario.learning.engine != "none"
        outcome = Unstored if trained else Outcome
        report_j = rows["e_report_j"].to_numpy() if "asks" in self.facts else None
        return outcome(round, ids, sent, gain, energy_j, None, self._observation(round), report_j=report_j)


def counts(lists: pl.Series) -> NDArray:
    """A column of equally long lists as (n, m)."""
    return lists.list.explode().to_numpy().reshape(len(lists), -1)
