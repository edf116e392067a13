"""What the paper claims, as numbers per seed."""

from feelstream_studies.hu2023.claims.statements import all_claims, figure_claims, remaining_claims

__all__ = ["all_claims", "figure_claims", "remaining_claims"]
