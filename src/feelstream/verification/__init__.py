"""The independent re-check of a stored run: a table of rules over its rounds and devices.

Everything here is written from the model's rules alone and reads nothing but the run directory. It shares no
formula with the simulator, so a mistake would have to be made twice to pass unseen.
"""

from feelstream.verification.findings import Check, Disagreement, Report
from feelstream.verification.recheck import verify

__all__ = ["Check", "Disagreement", "Report", "verify"]
