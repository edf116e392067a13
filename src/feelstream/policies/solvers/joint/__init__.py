"""CPU frequency, band and power chosen together: the convex problem of a set of devices, and the search for the set.

docs/joint.md derives everything here.
"""

from feelstream.policies.solvers.joint.allocation import Allocation, allocate, alone_j
from feelstream.policies.solvers.joint.devices import Devices, energy_j, least_power_w
from feelstream.policies.solvers.joint.planning import check_computing_counts, frequencies, planned_devices
from feelstream.policies.solvers.joint.response import Response, respond
from feelstream.policies.solvers.joint.search import Choice, choose
from feelstream.policies.solvers.joint.sending import power_limit_w, send, weights

__all__ = [
    "Allocation",
    "Choice",
    "Devices",
    "Response",
    "allocate",
    "alone_j",
    "check_computing_counts",
    "choose",
    "energy_j",
    "frequencies",
    "least_power_w",
    "planned_devices",
    "power_limit_w",
    "respond",
    "send",
    "weights",
]
