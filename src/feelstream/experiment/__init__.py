"""Many runs: a plan of arms × seeds, played on any `concurrent.futures` executor, resumable, and read back as tables.

plan = Plan("first look", (Arm("lyapunov", fs.preset("tiny")),), seeds=tuple(range(10)))
results = execute(plan, Path("results"))
results.rounds()
"""

from feelstream.experiment.plan import Arm, Plan
from feelstream.experiment.pool import dask_executor
from feelstream.experiment.runner import Progress, execute
from feelstream.experiment.store import Failure, Results, gathered, load

__all__ = ["Arm", "Failure", "Plan", "Progress", "Results", "dask_executor", "execute", "gathered", "load"]
