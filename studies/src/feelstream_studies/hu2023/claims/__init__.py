"""What the paper claims, as numbers per seed."""

from feelstream_studies.hu2023.claims.statements import (
    LATE,
    all_claims,
    claims_of_late,
    energy_claims,
    figure_claims,
    remaining_claims,
)

__all__ = ["LATE", "all_claims", "claims_of_late", "energy_claims", "figure_claims", "remaining_claims"]
