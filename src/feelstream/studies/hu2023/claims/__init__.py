"""What the paper claims, as numbers per seed."""

from feelstream.studies.hu2023.claims.statements import all_claims, energy_claims, remaining_claims

__all__ = ["all_claims", "energy_claims", "remaining_claims"]
