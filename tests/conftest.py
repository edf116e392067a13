"""Settings of all property tests, and the results that several rooms report on."""

from hypothesis import HealthCheck, settings
from small_results import learned_results, paper_output, paper_results

__all__ = ["learned_results", "paper_output", "paper_results"]  # fixtures

# Derandomised: a failure is the same failure on every machine. The machine may be slow, so no deadline.
settings.register_profile(
    "feelstream", deadline=None, derandomize=True, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("feelstream")
