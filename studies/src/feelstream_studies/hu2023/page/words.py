"""What the paper leaves open, in words."""

from __future__ import annotations

from feelstream.studies.claims import Finding, Wording
from feelstream.studies.plans import Scenario

FITTED = "used to choose T and σ, therefore no evidence"
ELIGIBLE = {"any": "any device, whether or not it holds data", "with_data": "only devices that hold data"}
FRESH = {"per_round": "what arrived in this round", "since_use": "what arrived since the device was last used"}


def settings(scenario: Scenario) -> str:
    """The readings and settings that the paper does not state, as these runs have them."""
    learning, data = scenario.learning, scenario.data
    sigma = getattr(data.arrivals, "sigma", None)
    parts = [f"T = {scenario.system.rounds} rounds"]
    if sigma is not None:
        parts.append(f"σ = {sigma:g} of the run")
    if learning.steps is not None and learning.lr is not None:
        parts += [f"{learning.steps} SGD steps of {learning.batch} samples", f"learning rate {learning.lr:g}"]
    return f"{', '.join(parts)}, fresh data read as {FRESH[data.fresh]}, and {ELIGIBLE[data.eligible]} eligible"


def caveat(finding: Finding) -> str:
    return f"The paper does not state its settings in full; these runs have {settings(finding.scenario)}."


WORDING = Wording("The paper’s claims", FITTED, caveat)
