"""What the paper claims, as numbers per seed, and what our runs say to each.

findings = judged(results.plan, results.rounds())
"""

from feelstream.experiment.claims.judging import Effect, Finding, judged, p_values
from feelstream.experiment.claims.statements import Claim, Measured, all_claims, remaining_claims
from feelstream.experiment.claims.verdicts import EXPLAINED, Verdict

__all__ = [
    "EXPLAINED",
    "Claim",
    "Effect",
    "Finding",
    "Measured",
    "Verdict",
    "all_claims",
    "judged",
    "p_values",
    "remaining_claims",
]  # fmt: skip
