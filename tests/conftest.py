"""Settings of all property tests."""

from hypothesis import HealthCheck, settings

# Derandomised: a failure is the same failure on every machine. The machine may be slow, so no deadline.
settings.register_profile(
    "feelstream", deadline=None, derandomize=True, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("feelstream")
