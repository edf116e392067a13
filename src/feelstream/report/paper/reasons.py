"""Why a claim may not have come out: one sentence, from the settings that were in fact used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from feelstream.experiment.statistics import Interval
from feelstream.report.numbers import significant
from feelstream.report.paper.verdicts import Size, Verdict
from feelstream.scenario import Scenario

if TYPE_CHECKING:
    from feelstream.report.paper.claims import Claim

_FRESH = {
    "per_round": "what arrived in this round",
    "since_use": "what arrived since the device was last used",
}


def inferred(scenario: Scenario) -> str:
    """The settings that the paper does not state, as these runs have them."""
    learning, data = scenario.learning, scenario.data
    sigma = getattr(data.arrivals, "sigma", None)
    parts = [f"T = {scenario.system.rounds} rounds"]
    if sigma is not None:
        parts.append(f"σ = {sigma:g} of the run")
    parts += [f"{learning.steps} SGD steps of {learning.batch} samples", f"learning rate {learning.lr:g}"]
    return f"{', '.join(parts)}, and fresh data read as {_FRESH[data.fresh]}"


def reason(claim: Claim, ours: Interval, verdict: Verdict, scenario: Scenario) -> str:
    """Empty where the claim was reproduced."""
    if verdict is Verdict.REPRODUCED:
        return ""
    if verdict is Verdict.NO_INTERVAL:
        return "Give at least two seeds."
    if verdict is Verdict.OPEN:
        half = significant(ours.half_width or 0.0, 2)
        return f"{ours.n} seeds leave it open (±{half} {claim.unit}); more seeds narrow the interval."
    why = f"The paper does not state its settings in full; ours are inferred: {inferred(scenario)}."
    if isinstance(claim.test, Size):
        why += " The saving depends strongly on T and σ (the preset long-iid, with T = 300 and σ = 1/8, saves far more)"
        if scenario.data.fresh == "since_use":
            why += ", and counting as fresh only what arrived in this round (data.fresh=per_round) lowers it"
        why += "."
    return why
