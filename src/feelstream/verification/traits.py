"""What rules ask of a run beside its facts, as `when` names it; and which of our policies are known by more."""

from __future__ import annotations

from feelstream.verification.decisions import SCORES
from feelstream.verification.files import Stored
from feelstream.verification.rounds import METRICS

LYAPUNOV = ("lyapunov", "lyapunov_joint")
BY_ENERGY = ("lyapunov", "greedy_energy")  # whose scores follow from the energy law
# Who goes by the data that devices hold, who takes as many as planned (or all), and who plans for what it schedules.
WITH_DATA = ("balanced", "balanced_joint", "fedcgd", "fedteddi", "fedbacys", "representative")
AS_MANY = ("random", "round_robin", "power_of_choice", "oort", "balanced", "fedteddi", "representative", "update_norm")
PACKED = ("select_all", "fedcs")


def traits_of(stored: Stored) -> frozenset[str]:
    """All of a run."""
    run, policy, world = stored.run, stored.run.policy, stored.run.world
    ours, law, name = "policy" not in run.own, run.law.kind != "own", policy.name if "policy" not in run.own else ""
    nothing_leaves, since_use = run.data.keeps and not run.data.empties_on_use, run.data.fresh == "since_use"
    scored = (name, policy.gain) in SCORES or (name, None) in SCORES
    free = name in LYAPUNOV and policy.cardinality == "free"
    optimal = name == "lyapunov" and law
    holds = {
        "ours": ours,
        "equal": policy.equal_shares,
        "planned by ours": ours or policy.equal_shares,  # with feasible sets and power limits that are known
        "law": law,
        "metric": ours and "policy.metric" not in run.own and policy.metric in METRICS,
        "scored": scored and (law or name not in BY_ENERGY),
        "optimal": optimal,
        "lowest": name == "update_norm" or (policy.by_score and not optimal),
        "as many": name in AS_MANY or (policy.by_score and not optimal),
        "packed": name in PACKED or free,
        "all that fit": name == "select_all",
        "with data": name in WITH_DATA,
        "priced": name == "lyapunov_joint",  # only who can be planned with the band has a score
        "norms": name == "update_norm",
        "asks everyone": name == "gradient_norm",
        "cap": name in LYAPUNOV and policy.cardinality == "cap",
        "free": free,
        "changes": len(run.phases) > 1,
        "moves": world.moves,
        "inputs decide": world.comes_and_goes
        or world.battery_j is not None
        or bool({"deployed", "fallible"} & stored.facts),
        "no fading": run.radio.fading == "none",
        "keeps since use": nothing_leaves and since_use,
        "keeps per round": nothing_leaves and not since_use,
        "empties": run.data.empties_on_use and since_use,
        "limited": run.data.most_held is not None,
        "capacity": "batteries" in stored.facts and world.battery_j is not None,
        "margin": run.radio.link_margin >= 1,
        "keeps to its budget": name == "balanced_joint" and len(run.phases) == 1 and "deployed" not in stored.facts,
    }
    return stored.facts | {trait for trait, true in holds.items() if true}
