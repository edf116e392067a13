"""What Python users call: one run, comparisons of policies, sweeps over settings, all with progress if they like."""

from feelstream.api.comparing import compare, read, sweep
from feelstream.api.comparison import Comparison
from feelstream.api.simulating import bound, simulate, verify
from feelstream.api.tuning import Tuning, tune

__all__ = ["Comparison", "Tuning", "bound", "compare", "read", "simulate", "sweep", "tune", "verify"]
