"""Scheduling policies: the contract in base.py, one rule per file. docs/policies.md is the catalogue."""

from feelstream.plugins import Kind
from feelstream.policies.age import Age
from feelstream.policies.balanced import Balanced
from feelstream.policies.balanced_joint import BalancedJoint
from feelstream.policies.base import Policy
from feelstream.policies.best_channel import BestChannel
from feelstream.policies.fedbacys import FedBacys
from feelstream.policies.fedcgd import FedCGD
from feelstream.policies.fedcs import FedCS
from feelstream.policies.fedteddi import FedTeddi
from feelstream.policies.gradient_norm import GradientNorm
from feelstream.policies.greedy_energy import GreedyEnergy
from feelstream.policies.importance_greedy import ImportanceGreedy
from feelstream.policies.lyapunov import Lyapunov
from feelstream.policies.lyapunov_joint import LyapunovJoint
from feelstream.policies.myopic_energy import MyopicEnergy
from feelstream.policies.ocean import Ocean
from feelstream.policies.oort import Oort
from feelstream.policies.power_of_choice import PowerOfChoice
from feelstream.policies.proportional_fair import ProportionalFair
from feelstream.policies.random import Random
from feelstream.policies.representative import Representative
from feelstream.policies.round_robin import RoundRobin
from feelstream.policies.select_all import SelectAll
from feelstream.policies.update_norm import UpdateNorm

POLICIES = Kind(
    "policy",
    "policies",
    Policy,
    {
        "lyapunov": Lyapunov,
        "lyapunov_joint": LyapunovJoint,
        "balanced": Balanced,
        "balanced_joint": BalancedJoint,
        "random": Random,
        "round_robin": RoundRobin,
        "proportional_fair": ProportionalFair,
        "best_channel": BestChannel,
        "greedy_energy": GreedyEnergy,
        "age": Age,
        "fedcs": FedCS,
        "power_of_choice": PowerOfChoice,
        "oort": Oort,
        "ocean": Ocean,
        "myopic_energy": MyopicEnergy,
        "fedcgd": FedCGD,
        "fedteddi": FedTeddi,
        "fedbacys": FedBacys,
        "representative": Representative,
        "update_norm": UpdateNorm,
        "gradient_norm": GradientNorm,
        "importance_greedy": ImportanceGreedy,
        "select_all": SelectAll,
    },
)
