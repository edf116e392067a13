"""CPU frequency, band and power chosen together: the convex problem of a set of devices, and the search for the set.

docs/joint.md derives everything here.
"""

from feelstream.policies.solvers.joint.allocation import Allocation, allocate
from feelstream.policies.solvers.joint.devices import Devices, energy_j, least_power_w
from feelstream.policies.solvers.joint.response import Response, respond
from feelstream.policies.solvers.joint.search import Choice, choose

__all__ = ["Allocation", "Choice", "Devices", "Response", "allocate", "choose", "energy_j", "least_power_w", "respond"]
