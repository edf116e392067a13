"""Claims of a paper as numbers per seed, and what runs say to each.

findings = judged(results.plan, results.rounds(), claims)
"""

from feelstream.studies.claims.claim import (
    Ahead,
    Claim,
    Effects,
    Evidence,
    Measured,
    NotBehind,
    PerSeed,
    Published,
    lead,
    share_saved,
)
from feelstream.studies.claims.judging import EXPLAINED, Finding, Verdict, chance, judged, one_run, ours

__all__ = [
    "EXPLAINED", "Ahead", "Claim", "Effects", "Evidence", "Finding", "Measured", "NotBehind", "PerSeed", "Published",
    "Verdict", "chance", "judged", "lead", "one_run", "ours", "share_saved",
]  # fmt: skip
