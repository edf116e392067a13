"""Figures, claims and the HTML report of any results."""

from feelstream.report.writing import Written, results_in, write

__all__ = ["Written", "results_in", "write"]
