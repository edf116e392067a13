"""Scenarios of any legal and of many an illegal kind: refused in a sentence, or played and verified."""

from __future__ import annotations

import math
from pathlib import Path

import feelstream as fs
from feelstream.policies import POLICIES
from feelstream.scenario.files import from_dict
from soak.attack import Attack, Lost

# Field: lowest and highest decimal exponent, and the usual value. Wide, but what somebody might mean.
FIELDS = {
    "system.round_s": (-2, 4, 4.0),
    "system.energy_budget_j": (-7, 2, 5e-4),
    "cpu.cycles": (5, 11, 4.2e8),
    "cpu.power_coefficient": (-30, -24, 1e-27),
    "radio.bandwidth_hz": (4, 9, 2e7),
    "radio.noise_w_per_hz": (-21, -10, 1e-13),
    "radio.update_bits": (2, 8, 7e5),
    "radio.rate_discount": (-1, 0.3, 1.0),
    "policy.V": (-4, 3, 0.05),
}


class Scenarios(Attack):
    name = "scenarios"

    def trial(self, directory: Path) -> str:
        draw = self.draw
        devices = draw.randint(1, 8)
        policy = draw.choice(list(POLICIES.ours))
        chosen = [f"policy.name={policy}", f"policy.size={draw.randint(1, devices)}"]
        for field, (low, high, usual) in FIELDS.items():
            if field == "policy.V" and "lyapunov" not in policy:
                continue
            value = usual if draw.random() < 0.6 else 10 ** draw.uniform(low, high)
            chosen.append(f"{field}={value!r}")
        low, high = sorted(draw.uniform(-30, 20) for _ in range(2))
        fastest = 10 ** draw.uniform(7, 10)
        slowest = fastest * draw.uniform(0.01, 1)
        chosen += [f"radio.gain_db=[{low!r}, {high!r}]", f"cpu.frequency_hz=[{slowest!r}, {fastest!r}]"]
        chosen += [f"radio.admission={draw.choice(['paper', 'largest'])}"]
        chosen += [f"radio.fading={draw.choice(['rayleigh', 'none'])}"]
        chosen += [f"data.eligible={draw.choice(['any', 'with_data'])}"]
        chosen += [f"data.fresh={draw.choice(['since_use', 'per_round'])}"]
        self.what = " ".join(chosen)
        table = {
            "system": {"devices": devices, "rounds": draw.randint(1, 6)},
            "data": {"dataset": "synthetic", "samples": 60, "arrivals": {"kind": "uniform"}},
            "learning": {"engine": "none", "model": "softmax"},
        }
        run = fs.simulate(from_dict(table, chosen), draw.randrange(2**32))
        if not all(math.isfinite(value) for value in run.rounds["queue_max_j"]):
            raise Lost("a queue is not finite")
        report = fs.verify(run.save(directory / "run"))
        if not report.ok:
            raise Lost(f"verify disagrees: {' '.join(str(report.disagreement).split())}")
        return self.what
