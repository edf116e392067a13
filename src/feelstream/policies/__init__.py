"""Scheduling policies: the contract in base.py, one rule per file."""

from feelstream.plugins import plugin_registry
from feelstream.policies.base import Policy
from feelstream.policies.lyapunov import Lyapunov
from feelstream.policies.lyapunov_joint import LyapunovJoint
from feelstream.policies.random import Random

POLICIES = plugin_registry("policies", Policy, Lyapunov, LyapunovJoint, Random)
