"""Claims of a paper as numbers per seed, and what runs say to each.

findings = judged(results.plan, results.rounds(), claims)
"""

from feelstream.studies.claims.claim import Claim, Effects, Measured, lead, share_saved
from feelstream.studies.claims.judging import Effect, Finding, judged, p_values
from feelstream.studies.claims.verdicts import EXPLAINED, Ahead, NotBehind, Published, Verdict
from feelstream.studies.claims.words import Wording

__all__ = [
    "EXPLAINED",
    "Ahead",
    "Claim",
    "Effect",
    "Effects",
    "Finding",
    "Measured",
    "NotBehind",
    "Published",
    "Verdict",
    "Wording",
    "judged",
    "lead",
    "p_values",
    "share_saved",
]
