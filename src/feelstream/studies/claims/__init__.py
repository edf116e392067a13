"""Claims of a paper as numbers per seed, and what runs say to each.

findings = judged(results.plan, results.rounds(), claims)
"""

from feelstream.studies.claims.claim import Claim, Effects, Measured, PerSeed, lead, share_saved
from feelstream.studies.claims.judging import Effect, Finding, evidence, judged, p_values
from feelstream.studies.claims.verdicts import EXPLAINED, Ahead, NotBehind, Published, Verdict
from feelstream.studies.claims.words import Wording, chance, one_run, ours, verdict

__all__ = [
    "EXPLAINED",
    "Ahead",
    "Claim",
    "Effect",
    "Effects",
    "Finding",
    "Measured",
    "NotBehind",
    "PerSeed",
    "Published",
    "Verdict",
    "Wording",
    "chance",
    "evidence",
    "judged",
    "lead",
    "one_run",
    "ours",
    "p_values",
    "share_saved",
    "verdict",
]
