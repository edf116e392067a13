"""The quantities that figures and the report show by round: column, words, unit, scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Quantity:
    """A column of the rounds table as people read it: value × scale, in `unit`."""

    column: str
    title: str
    unit: str
    scale: float
    better: Literal["higher", "lower"]
    least: float | None = 0.0  # bounds of what is possible, in `unit`
    most: float | None = None

    @property
    def axis(self) -> str:
        return f"{self.title} ({self.unit})"


QUANTITIES: dict[str, Quantity] = {
    quantity.column: quantity
    for quantity in (
        Quantity("accuracy", "Test accuracy", "%", 100.0, "higher", most=100.0),
        Quantity("loss", "Test loss", "nat", 1.0, "lower"),
        Quantity("energy_mean_cum_j", "Energy per device", "mJ per round", 1e3, "lower"),
        Quantity("queue_mean_j", "Mean energy queue", "mJ", 1e3, "lower"),
        Quantity("queue_max_j", "Largest energy queue", "mJ", 1e3, "lower"),
    )
}
ROUND_AXIS = "Round"
