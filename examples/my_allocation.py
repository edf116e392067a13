"""A policy that splits the band itself: devices that computed longer get more of it, so that all finish together.

After W. Shi, S. Zhou, Z. Niu, M. Jiang, L. Geng, "Joint Device Scheduling and Resource Allocation for Latency
Constrained Wireless Federated Learning", IEEE Trans. Wireless Commun. 20(1), 2021: for a set of devices the round is
shortest when the band is split so that their updates arrive at the same moment.

feelstream check examples/my_allocation.py:FinishTogether
feelstream run stress --set policy.name=examples/my_allocation.py:FinishTogether --out results/together
"""

from __future__ import annotations

import numpy as np

from feelstream import Decision, Policy, Transmission


class FinishTogether(Policy):
    """The `size` devices with the most fresh data that have time left at all; shares so that all finish together."""

    def select(self, state, observation, rng):
        in_time = observation.available & (observation.compute_time_s < observation.system.round_s)
        plan = observation.plan(self.size, feasible=in_time)  # with its own split, slow devices are feasible too
        shuffled = rng.permutation(np.flatnonzero(in_time))
        return Decision(np.sort(shuffled[np.argsort(-observation.fresh[shuffled], kind="stable")][: self.size]), plan)

    def transmit(self, observation, decision, gain):
        system, ids = observation.system, decision.schedule
        computed_s, power_w = observation.compute_time_s[ids], system.received_power_w / observation.beta[ids]

        def rate(share):  # bit/s
            hz = share * system.bandwidth_hz
            return hz * np.log2(1 + power_w * gain / (hz * system.noise_w_per_hz))

        def shares(end_s):  # the least share with which each is done at that time, by bisection; 1 is too little
            low, high = np.zeros(len(ids)), np.ones(len(ids))
            for _ in range(60):
                middle = (low + high) / 2
                enough = rate(middle) * (end_s - computed_s) >= system.update_bits
                low, high = np.where(enough, low, middle), np.where(enough, middle, high)
            return high

        sent = rate(np.ones(len(ids))) * (system.round_s - computed_s) >= system.update_bits
        while sent.any() and shares(system.round_s)[sent].sum() > 1:  # whoever needs most of the band is dropped
            sent[np.argmax(np.where(sent, shares(system.round_s), -1))] = False
        first, last = computed_s[sent].max(initial=0), system.round_s
        for _ in range(60):  # the earliest end at which the shares fit the band
            middle = (first + last) / 2
            first, last = (first, middle) if shares(middle)[sent].sum() <= 1 else (middle, last)
        share = np.where(sent, shares(last), 0.0)
        sending_s = np.where(sent, system.update_bits / np.where(sent, rate(np.where(sent, share, 1)), 1), 0.0)
        power_w = np.where(sent, power_w, 0.0)
        computing_j = system.compute_energy_j(observation.f_hz[ids], ids)
        return Transmission(sent, share, power_w, computed_s, sending_s, computing_j, power_w * sending_s)
