"""Scenarios of any legal kind, at the ends of their ranges too: refused in a sentence, or played and verified."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import polars as pl
from pydantic import BaseModel

import feelstream as fs
from feelstream.model.importance import METRICS
from feelstream.policies import POLICIES
from feelstream.scenario import Scenario
from feelstream.scenario.fields import kinds
from feelstream.scenario.files import from_dict
from soak import fields
from soak.attack import Attack, Lost
from soak.files import natural_stream, traced

# Field: lowest and highest decimal exponent of what somebody might mean.
REAL: dict[tuple[str, str], tuple[float, float]] = {
    ("system", "round_s"): (-2, 4),
    ("system", "energy_budget_j"): (-7, 2),
    ("cpu", "cycles"): (5, 11),
    ("cpu", "power_coefficient"): (-30, -24),
    ("radio", "bandwidth_hz"): (4, 9),
    ("radio", "noise_w_per_hz"): (-21, -10),
    ("radio", "update_bits"): (2, 8),
    ("radio", "rate_discount"): (-1, 0.3),
    ("policy", "V"): (-4, 3),
    ("reports", "slot_s"): (-3, 1),
    ("reports", "cycles"): (0, 9),
    ("reports", "bits"): (0, 6),
}
KINDS = {(path[0], path[1]): kind for path, kind in kinds().items() if path[0] in ("data", "world")}
NEED_FILES = {"trace", "recorded", "natural"}  # see soak/files.py
NEEDED = re.compile(r"can ever fit .* takes (\S+) s\b")
SAMPLES = 60  # of the synthetic data set
# What the attack decides by itself, so that a trial takes milliseconds.
SIZES = {"devices", "rounds", "samples", "size", "engine", "model", "dataset", "steps", "batch"}
Tables = dict[str, dict[str, Any]]


class Scenarios(Attack):
    name = "scenarios"
    verified = 1.0  # the share of runs that are verified too

    def drawn(self, directory: Path) -> Scenario:
        """A scenario, to be played with `seed` and `changes`; FeelstreamError where what was drawn is refused."""
        draw = self.draw
        tables, self.seed = self._ordinary(), draw.randrange(2**32)
        for _ in range(draw.choice([0, 0, 1, 1, 2, 4])):
            self._extreme(tables)
        self.files = self._files(tables, directory) if draw.random() < 0.3 else {}
        self.changes = self._changes(tables) if draw.random() < 0.4 else []
        self._note(tables)
        return self._fitting(tables)

    def trial(self, directory: Path) -> str:
        scenario = self.drawn(directory)
        run = fs.simulate(scenario, self.seed, changes=[fs.Change.parse(text) for text in self.changes])
        for table in (run.rounds.drop("loss"), run.devices):  # learning at any rate may go anywhere
            if table is not None:
                finite = table.select(pl.col(pl.Float64).fill_null(0.0).is_finite().all()).row(0, named=True)
                if wrong := [name for name, all_are in finite.items() if not all_are]:
                    raise Lost(f"{wrong[0]} is not finite")
        self.check(run)
        if self.draw.random() < self.verified:
            report = fs.verify(run.save(directory / "run"))
            if not report.ok:
                raise Lost(f"verify disagrees: {' '.join(str(report.disagreement).split())}")
        return self.what

    def prepare(self) -> None:
        self.natural = natural_stream(self.place / "natural.npz")

    def _note(self, tables: Tables) -> None:
        self.what = f"seed {self.seed}, {json.dumps(tables)}"
        if self.changes or self.files:
            self.what += f", changes {self.changes}, files {json.dumps(self.files)}"

    def _files(self, tables: Tables, directory: Path) -> dict[str, Any]:
        """Traces and tables in the place of draws, or a natural stream."""
        draw = self.draw
        if draw.random() < 0.7:
            return traced(draw, tables, directory, SAMPLES)
        tables["data"]["dataset"] = str(self.natural)
        del tables["data"]["samples"]
        if draw.random() < 0.7:
            tables["data"]["partition"] = {"kind": "natural"}
        if draw.random() < 0.7:
            start, speed = draw.choice(["together", "spread"]), draw.choice(["fit", 1.0, 10 ** draw.uniform(-6, 6)])
            tables["data"]["arrivals"] = {"kind": "recorded", "start": start, "speed": speed}
        return {}

    def _changes(self, tables: Tables) -> list[str]:
        """Up to four changes of V, size or budget; some that are refused."""
        draw, found = self.draw, []
        devices, rounds = tables["system"]["devices"], tables["system"]["rounds"]
        for _ in range(draw.randint(1, 4)):
            budgets = [10 ** draw.uniform(-7, 2) for _ in range(devices)]
            values = {
                "policy.V": draw.choice(["auto", "inf", f"{10 ** draw.uniform(-4, 3)!r}"]),
                "policy.size": str(draw.randint(1, devices)),
                "system.energy_budget_j": draw.choice([repr(budgets[0]), repr(budgets), "0.0"]),
            }
            known = [name for name in values if name != "policy.V" or "V" in self._policy(tables).model_fields]
            field = draw.choice(known if draw.random() < 0.95 else list(values))
            found.append(f"{draw.randint(1, rounds)}:{field}={values[field]}")
        return found

    def check(self, run: fs.Run) -> None:
        """What else must hold of a run."""

    def _ordinary(self) -> Tables:
        """A small scenario of any kind, each number the usual one or what somebody might mean."""
        draw = self.draw
        devices = draw.randint(1, 8)
        learns = draw.random() < 0.02
        tables: Tables = {
            "system": {"devices": devices, "rounds": draw.randint(1, 5)},
            "cpu": {},
            "costs": {},
            "radio": {name: fields.drawn(draw, _section("radio"), name) for name in ("fading", "admission")},
            "data": {"dataset": "synthetic", "samples": SAMPLES},
            "world": {},
            "policy": {"name": draw.choice(list(POLICIES.ours)), "size": draw.randint(1, devices)},
            "learning": {"engine": "native" if learns else "none", "model": "softmax", "steps": 1},
            "reports": {},
            "trace": {"level": "rounds" if draw.random() < 0.05 else "full"},
        }
        for name in ("eligible", "fresh", "empty_used", "empty_fresh"):
            tables["data"][name] = fields.drawn(draw, _section("data"), name)
        for (section, name), registry in KINDS.items():
            names = [name for name in registry.ours if name not in NEED_FILES]
            tables[section][name] = {"kind": draw.choice(names) if draw.random() < 0.3 else names[0]}
        if tables["radio"]["fading"] == "none" and draw.random() < 0.9:
            tables["world"]["channel"] = {"kind": "independent"}  # no other goes with it
        if self._policy(tables).needs and draw.random() < 0.95:  # type: ignore[attr-defined]
            tables["learning"]["engine"] = "native"
        known = self._policy(tables).model_fields
        if "metric" in known:
            tables["policy"]["metric"] = draw.choice(list(METRICS.ours))
        if "cardinality" in known:
            tables["policy"]["cardinality"] = fields.drawn(draw, self._policy(tables), "cardinality")
        for (section, name), (low, high) in REAL.items():
            if (section != "policy" or name in known) and draw.random() < 0.4:
                tables[section][name] = 10 ** draw.uniform(low, high)
        if draw.random() < 0.2:
            tables["radio"]["gain_db"] = sorted(draw.uniform(-30, 20) for _ in range(2))
        if draw.random() < 0.4:
            fastest = 10 ** draw.uniform(7, 10)
            tables["cpu"]["frequency_hz"] = [fastest * draw.uniform(0.01, 1), fastest]
        if draw.random() < (0.01 if tables["learning"]["engine"] == "native" else 0.15):  # with reports it is refused
            tables["costs"] = {
                "download_bits": 10 ** draw.uniform(3, 7),
                "download_bit_per_s": 10 ** draw.uniform(5, 8),
            }
            tables["costs"]["receive_power_w"] = draw.choice([0.0, 10 ** draw.uniform(-3, 0)])
        if draw.random() < 0.05:
            tables["costs"]["cycles_per_sample"] = 10 ** draw.uniform(4, 9)
        if draw.random() < 0.1:
            tables["radio"] |= {"block_bits": 10 ** draw.uniform(1, 7), "code_overhead": 10 ** draw.uniform(-3, 0)}
        if draw.random() < 0.1:
            tables["radio"]["power_max_w"] = 10 ** draw.uniform(-1, 1)
        if draw.random() < 0.1:
            share = draw.uniform(0.1, 0.9)
            classes = [{"share": share}, {"share": 1 - share, "energy_budget_j": 10 ** draw.uniform(-7, 2)}]
            own = {"cycles": (6, 10), "deadline_s": (-0.5, 0.6), "power_max_w": (-1, 1), "download_bit_per_s": (5, 8)}
            for name, (low, high) in own.items():
                if draw.random() < 0.4:
                    classes[0][name] = 10 ** draw.uniform(low, high)
            tables["devices"] = {"classes": classes}  # type: ignore[assignment]
        return tables

    def _fitting(self, tables: Tables) -> Scenario:
        """The scenario; where no update ever fits a round, mostly one with longer rounds, for more to be played."""
        draw = self.draw
        for _ in range(draw.choice([0, 3, 6, 6, 6])):
            try:
                return from_dict(tables)
            except fs.FeelstreamError as problem:
                sentence = str(problem)
                taken = NEEDED.search(sentence)  # the sentence says how long it takes, so few steps suffice
                if taken is None and "slot_s: must be below" not in sentence:
                    raise
            needed_s = float(taken[1]) if taken else tables["reports"].get("slot_s", 0.5)
            longer_s = needed_s * 10 ** draw.uniform(0.01, 1.5)
            if "fit a slot" in sentence:
                tables["reports"]["slot_s"] = longer_s
            tables["system"]["round_s"] = tables["system"].get("round_s", 4.0) + longer_s
            self._note(tables)
        return from_dict(tables)

    def _extreme(self, tables: Tables) -> None:
        """One field somewhere in all of its range."""
        draw = self.draw
        section = draw.choice(["system", "cpu", "radio", "data", "world", "policy", "learning", "reports"])
        place, model = tables[section], self._policy(tables) if section == "policy" else _section(section)
        if section in ("data", "world") and draw.random() < 0.9:
            name = draw.choice([name for where, name in KINDS if where == section])
            place, model = place[name], KINDS[section, name].ours[place[name]["kind"]]
        known = [name for name in fields.names(model) if name not in SIZES and (section, name) not in KINDS]
        if section == "cpu" and draw.random() < 0.3:
            place["frequency_hz"] = sorted(10 ** draw.uniform(-100, 100) for _ in range(2))
        elif section == "radio" and draw.random() < 0.1:
            place["gain_db"] = sorted(draw.uniform(-1000, 1000) for _ in range(2))
        elif known:
            name = draw.choice(known)
            place[name] = math.inf if name == "V" and draw.random() < 0.2 else fields.drawn(draw, model, name)

    def _policy(self, tables: Tables) -> type[BaseModel]:
        return POLICIES.ours[tables["policy"]["name"]]


def _section(name: str) -> type[BaseModel]:
    model: Any = Scenario.model_fields[name].annotation
    return model
