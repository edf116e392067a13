"""What a study reads: the stored results of its plan, what the panels of a figure show of them, and statistics."""

from feelstream.display.quantities import MINUS, QUANTITIES, counted, number, significant
from feelstream.errors import RunError
from feelstream.experiment import Results
from feelstream.experiment.comparison import summarise
from feelstream.experiment.hindsight import bound_of
from feelstream.experiment.measures import by_arm, cell, tables
from feelstream.experiment.runs import SPANS, Span, per_run
from feelstream.experiment.statistics import (
    HIGHER,
    LEAST_SEEDS,
    LEVEL,
    LOWER,
    Interval,
    compared,
    holm,
    interval,
    one_sided_p,
    student,
    t_quantile,
)  # fmt: skip
from feelstream.report.groups import Curve, Panel, PanelFigure

__all__ = [
    "HIGHER", "LEAST_SEEDS", "LEVEL", "LOWER", "MINUS", "QUANTITIES", "SPANS", "Curve", "Interval", "Panel",
    "PanelFigure", "Results", "RunError", "Span", "bound_of", "by_arm", "cell", "compared", "counted", "holm",
    "interval", "number", "one_sided_p", "per_run", "significant", "student", "summarise", "t_quantile",
    "tables",
]  # fmt: skip
