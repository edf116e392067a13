"""Checks that users run on policies of their own."""
