"""Odd texts for --set, TOML files, run.json and plan.json: a value, or a sentence."""

from __future__ import annotations

import json
import string
from pathlib import Path

import feelstream as fs
from feelstream.experiment import load as load_results
from feelstream.run.files import write_sealed
from feelstream.scenario.files import load
from soak.attack import Attack

NUMBERS = [
    "nan",
    "-nan",
    "inf",
    "-inf",
    "1e999",
    "-1e-999",
    "0x10",
    "1_000",
    "9" * 5000,
    "1" * 400 + ".5",
    "-1",
    "1e-320",
]
DEEP = ["[" * 3000, "{" * 3000, "[" * 90 + "]" * 90, "[]", "{}", "[1,2", "{a=1}", "[[[]]]"]
TEXTS = ["", " ", "=", '"', "'", '"""', "true", "none", "null", "2020-01-01", "07:00:00", "1.", ".5", "+5", "1e3", "\\"]
NASTY = ["\x00", "\x1b[31m", "\ud800", "\udcff", "é", "𝔘", "\u202e", "$(id)", "`id`", "%s", "{0}"]
PATHS = ["a.b", "..", "../../etc/passwd", "/dev/null", "x.py:Y", ":", "::", "os:system", "file.py:", ".py:x", "/"]
ODD = [*NUMBERS, *DEEP, *TEXTS, *NASTY, *PATHS]
FIELDS = [
    "system.devices", "system.rounds", "system.round_s", "system.energy_budget_j", "cpu.frequency_hz", "radio.gain_db",
    "radio.fading", "data.dataset", "data.partition.kind", "data.arrivals.kind", "data.buffer.kind", "data.samples",
    "policy.name", "policy.V", "policy.size", "policy.metric", "learning.engine", "learning.model", "trace.level",
]  # fmt: skip


class Inputs(Attack):
    name = "inputs"

    def prepare(self) -> None:
        scenario = fs.preset("tiny", ["learning.engine=none", "system.rounds=3"])
        self.run = fs.simulate(scenario).save(self.place / "run")
        self.about = json.loads((self.run / "run.json").read_text())
        self.toml = fs.to_toml(scenario)

    def trial(self, directory: Path) -> str:
        return self.draw.choice([self._override, self._file, self._stored, self._plan])(directory)

    def _text(self) -> str:
        if self.draw.random() < 0.7:
            return self.draw.choice(ODD)
        return "".join(self.draw.choice(string.printable + "é\ud800\u202e") for _ in range(self.draw.randint(1, 30)))

    def _override(self, directory: Path) -> str:
        field = self.draw.choice(FIELDS) if self.draw.random() < 0.8 else self._text()
        self.what = f"--set {field[:60]!r}={(text := self._text())[:60]!r}"
        fs.preset("tiny", [f"{field}={text}"])
        return self.what

    def _file(self, directory: Path) -> str:
        content = bytearray(self.toml.encode())
        for _ in range(self.draw.randint(1, 5)):
            at, odd = self.draw.randrange(len(content)), self._text().encode("utf-8", "surrogatepass")
            content[at : at + self.draw.randint(0, 20)] = odd
        (directory / "scenario.toml").write_bytes(content)
        self.what = "a TOML file"
        load(directory / "scenario.toml")
        return self.what

    def _value(self) -> object:
        values: list[object] = [None, True, -1, 0, 1, 2**70, 1e308, "inf", [], {}, [[[]]], {"a": {}}, self._text()]
        return self.draw.choice(values)

    def _changed(self, tree: object) -> object:
        """One place of the tree with something else in it."""
        if isinstance(tree, dict) and tree and self.draw.random() < 0.8:
            key = self.draw.choice(list(tree))
            if self.draw.random() < 0.2:
                return {name: value for name, value in tree.items() if name != key}
            return {**tree, key: self._changed(tree[key])}
        return self._value()

    def _stored(self, directory: Path) -> str:
        """run.json changed and sealed again, as by a hand: reading and verifying never do worse than refuse."""
        tree = self._changed(self.about)
        self.what = f"run.json {str(tree)[:80]}"
        for table in self.run.glob("*.parquet"):
            (directory / table.name).write_bytes(table.read_bytes())
        if isinstance(tree, dict):
            write_sealed(directory / "run.json", tree)
        else:
            (directory / "run.json").write_text(json.dumps(tree))
        fs.read(directory)
        fs.verify(directory)
        return self.what

    def _plan(self, directory: Path) -> str:
        about = {name: self.about[name] for name in ("scenario", "promises")}
        arm = {"label": "a", **about, "runs": {"0": "x"}, "most_seeds": None, "problem": None}
        plan = {"format": 1, "feelstream": "0", "name": "p", "command": "", "study": "", "seeds": [0], "arms": [arm]}
        tree = self._changed(plan)
        self.what = f"plan.json {str(tree)[:80]}"
        if isinstance(tree, dict):
            write_sealed(directory / "plan.json", tree)
        else:
            (directory / "plan.json").write_text(json.dumps(tree))
        load_results(directory)
        return self.what
