"""Figures and the HTML report of any results, from the parts that are handed in."""

from feelstream.report.content import Content, Section
from feelstream.report.writing import Written, results_in, write

__all__ = ["Content", "Section", "Written", "results_in", "write"]
