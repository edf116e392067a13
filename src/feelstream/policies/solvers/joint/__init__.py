"""CPU frequency, band and power chosen together: the problem of a set of devices, and the search for the set.

docs/joint.md derives everything here.
"""

from feelstream.policies.solvers.joint.allocation import Allocation
from feelstream.policies.solvers.joint.devices import Devices, energy_j, least_power_w
from feelstream.policies.solvers.joint.modes import Modes
from feelstream.policies.solvers.joint.planning import check_plannable, frequencies, planned_devices
from feelstream.policies.solvers.joint.problem import Problem, allocate, alone_j
from feelstream.policies.solvers.joint.response import Response, respond
from feelstream.policies.solvers.joint.search import Choice, choose
from feelstream.policies.solvers.joint.sending import power_limit_w, send, weights

__all__ = [
    "Allocation",
    "Choice",
    "Devices",
    "Modes",
    "Problem",
    "Response",
    "allocate",
    "alone_j",
    "check_plannable",
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
