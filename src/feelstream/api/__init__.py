"""What Python users call: one run, comparisons of policies, sweeps over settings, all with progress if they like."""

from feelstream.api.bounding import bound
from feelstream.api.comparing import compare, sweep
from feelstream.api.comparison import Comparison
from feelstream.api.simulating import simulate
from feelstream.api.tuning import Tuning, tune
from feelstream.api.verifying import verify

__all__ = ["Comparison", "Tuning", "bound", "compare", "simulate", "sweep", "tune", "verify"]
