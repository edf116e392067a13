"""Imported before NumPy and PyTorch: one thread each for their loops, also in the processes that tests start.

Several files are tested at a time. With threads for each, all of them wait for one another in busy loops, and
the reference trainings in float64, on models of a few hundred numbers, take many times as long.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
