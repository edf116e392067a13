"""A standing proof that nothing is lost, hung or silently wrong: `python -m soak`. See docs/trust.md."""
