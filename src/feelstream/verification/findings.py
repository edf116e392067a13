"""What a re-check finds: the tolerance, the first disagreement, the report."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

# Both sides compute in float64 from the same stored inputs, but in another order of operations, and every
# quantity is a handful of operations away from what is stored. That leaves differences near 1e-14; 1e-9 is
# far above those and far below any wrong formula. Where terms cancel, it is relative to the terms.
RELATIVE = 1e-9
ABSOLUTE = 1e-30


class Stage(Enum):
    """The stages of a round, in the order in which a mistake would spread, by their names in the report."""

    FILES = "files by SHA-256"
    INPUTS = "inputs"
    FEASIBLE = "feasible set"
    IMPORTANCE = "importance"
    SCORE = "score"
    DECISION = "decision"
    ADMISSION = "admission"
    ENERGY = "times and energies"
    QUEUE = "queue step"
    DRIFT = "drift bound"
    ROUND = "round totals"
    EVALUATION = "evaluators"
    WHOLE_RUN = "whole run"


ORDER = {stage: place for place, stage in enumerate(Stage)}


class Check(NamedTuple):
    """One theme of the re-check: its name, how many things were checked, and a remark (may be empty)."""

    name: str
    checked: int
    note: str


@dataclass(frozen=True)
class Disagreement:
    """A stored value that the rules do not give; `device` is None where it belongs to the whole round."""

    round: int
    device: int | None
    field: str
    stored: Any
    recomputed: Any
    rule: str

    def __str__(self) -> str:
        where = f"round {self.round}" + ("" if self.device is None else f", device {self.device}")
        values = f"stored {self.stored!r}, recomputed {self.recomputed!r}"
        return f"{where}, {self.field}: {values}\n  rule: {self.rule}"


@dataclass(frozen=True)
class Report:
    """The outcome of a re-check; `disagreement` is the first one by round, stage of the round, device."""

    path: str
    checks: list[Check]
    disagreement: Disagreement | None = None
    not_checked: list[str] = field(default_factory=list)  # what the files alone cannot tell

    @property
    def ok(self) -> bool:
        return self.disagreement is None

    def as_dict(self) -> dict[str, Any]:
        """Plain values only; NaN and infinities, which JSON lacks, become strings."""
        found = self.disagreement
        return {
            "ok": self.ok,
            "path": self.path,
            "checks": [check._asdict() for check in self.checks],
            "not_checked": self.not_checked,
            "disagreement": None
            if found is None
            else {name: _for_json(value) for name, value in asdict(found).items()},
        }

    def to_json(self) -> str:
        return json.dumps(self.as_dict(), indent=2, allow_nan=False, ensure_ascii=False)

    def __repr__(self) -> str:
        count = sum(check.checked for check in self.checks)
        found = f"all of {count:,} values agree" if self.ok else "DISAGREES"
        return f"Report({self.path}: {found})"

    def __str__(self) -> str:
        width = max((len(check.name) for check in self.checks), default=0)
        lines = [
            f"  {check.name:<{width}}  {check.checked:>12,} checked" + (f"  ({check.note})" if check.note else "")
            for check in self.checks
        ]
        if self.disagreement is None:
            lines += [f"  not checked: {what}" for what in self.not_checked]
            return "\n".join([f"{self.path}: every stored value that can be recomputed agrees", *lines])
        return "\n".join([f"{self.path}: DISAGREES", *lines, f"first disagreement: {self.disagreement}"])


@dataclass
class Findings:
    """Collects counts and notes per stage, and keeps the disagreement that comes first."""

    counts: dict[Stage, int] = field(default_factory=dict)
    notes: dict[Stage, str] = field(default_factory=dict)
    first: Disagreement | None = None
    _key: tuple[int, int, int] | None = None

    def flag(
        self, stage: Stage, name: str, rounds: Array, bad: Array, stored: Array, recomputed: Array, rule: str,
        null: Array | None = None,
    ) -> None:  # fmt: skip
        """Count the checks in `bad` [R] or [R, K] and remember its first True, if none came before.

        `rounds` [R] are the round numbers; `stored` and `recomputed` are broadcast against `bad` (an extra
        last axis holds a list of label counts). `null` marks stored values that are missing.
        """
        self.counts[stage] = self.counts.get(stage, 0) + bad.size
        if not bad.any():
            return
        index = np.unravel_index(int(np.argmax(bad)), bad.shape)
        device = int(index[1]) if bad.ndim == 2 else None
        key = (int(rounds[index[0]]), ORDER[stage], -1 if device is None else device)
        if self._key is None or key < self._key:
            self._key = key
            missing = null is not None and bool(null[index])
            value = None if missing else _at(stored, index, bad.shape)
            self.first = Disagreement(key[0], device, name, value, _at(recomputed, index, bad.shape), rule)

    def checks(self) -> list[Check]:
        """All stages; evaluators only where the run has some beside the test."""
        stages = (stage for stage in Stage if stage is not Stage.EVALUATION or stage in self.counts)
        return [Check(stage.value, self.counts.get(stage, 0), self.notes.get(stage, "")) for stage in stages]


def close(left: Array, right: Array | float, scale: Array | float = 0.0, by: float = RELATIVE) -> Array:
    """|left − right| ≤ by·max(|left|, |right|, scale) + ABSOLUTE; never for NaN and infinity."""
    size = np.maximum(np.maximum(np.abs(left), np.abs(right)), scale)
    return np.isfinite(size) & (np.abs(left - right) <= by * size + ABSOLUTE)


def _at(values: Array, index: tuple[Any, ...], shape: tuple[int, ...]) -> Any:
    values = np.asarray(values)
    extra = values.shape[len(shape) :]
    value = np.broadcast_to(values, shape + extra)[index]
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _for_json(value: Any) -> Any:
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
