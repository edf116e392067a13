"""What the columns of our tables are to a reader: name, unit, scale, digits, and which direction is better.

Everything that shows numbers takes them from this one table: figures, the report, notebooks, the terminal and the
studio. Whoever adds a column registers how it is shown here, or beside the code that measures it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

Table = Literal["rounds", "devices", "runs"]


@dataclass(frozen=True)
class Quantity:
    """A column as people read it: value × scale, in `unit`."""

    name: str  # of the column
    heading: str  # in tables and sentences
    unit: str = ""
    scale: float = 1.0
    digits: int = 2  # decimals
    table: Table = "rounds"  # rounds.parquet, devices.parquet, or one number per run as in summary.csv
    group: Literal["learning", "resources"] | None = None  # where the report and the terminal show it; None: nowhere
    better: Literal["higher", "lower"] | None = None
    title: str = ""  # on axes, where it is longer than the heading
    per: str = ""  # what the unit is counted by: "round" makes mJ per round
    logarithmic: bool = False  # whether it may differ by orders of magnitude between policies
    least: float | None = 0.0  # bounds of what is possible, in `unit`
    most: float | None = None
    meaning: str = ""  # a line under the tables, for those who ask what exactly is meant

    @property
    def words(self) -> str:
        """What stands over a chart: "Energy per device"."""
        return self.title or self.heading[:1].upper() + self.heading[1:]

    @property
    def full_unit(self) -> str:
        return f"{self.unit} per {self.per}" if self.per else self.unit

    @property
    def axis(self) -> str:
        """What stands beside an axis: "Energy per device (mJ per round)"."""
        return f"{self.words} ({self.full_unit})" if self.unit else self.words

    @property
    def column_title(self) -> str:
        """What stands over a column of a table: "energy, mJ"."""
        return f"{self.heading}, {self.unit}" if self.unit else self.heading

    def text(self, value: float) -> str:
        """A value in words.

        >>> QUANTITIES["energy_mean_cum_j"].text(0.0012345)
        '1.234 mJ'
        """
        return f"{value * self.scale:.{self.digits}f} {self.unit}".rstrip()


QUANTITIES: dict[str, Quantity] = {}


def register(*new: Quantity) -> None:
    """Say how columns are shown; ValueError where a name is taken by something else."""
    for quantity in new:
        if QUANTITIES.setdefault(quantity.name, quantity) != quantity:
            raise ValueError(f"the quantity '{quantity.name}' is registered already, and otherwise")


def by_round(columns: Collection[str]) -> list[Quantity]:
    """Those of the rounds table that the report shows, of the columns that there are."""
    return [q for q in QUANTITIES.values() if q.table == "rounds" and q.group and q.name in columns]


ROUND_AXIS = "Round"

register(
    Quantity(
        "accuracy", "accuracy", "%", 100.0, group="learning", better="higher", title="Test accuracy", most=100.0
    ),
    Quantity("loss", "loss", "nat", digits=3, group="learning", better="lower", title="Test loss"),
    Quantity(
        "energy_mean_cum_j", "energy", "mJ", 1e3, 3, group="resources", better="lower", title="Energy per device",
        per="round", logarithmic=True,
    ),
    Quantity(
        "queue_mean_j", "queue", "mJ", 1e3, group="resources", better="lower", title="Mean energy queue",
        logarithmic=True,
    ),
    Quantity(
        "queue_max_j", "largest queue", "mJ", 1e3, group="resources", better="lower", title="Largest energy queue",
        logarithmic=True,
    ),
    Quantity("energy_mean_j", "energy in the round", "mJ", 1e3, 3, title="Energy per device in the round"),
    Quantity("importance_sum", "importance", digits=3, better="higher", title="Importance scheduled per round"),
    Quantity("transmitted", "transmitted", digits=0, title="Devices that transmitted"),
    Quantity("f_hz", "frequency", "GHz", 1e-9, table="devices"),
    Quantity("queue_j", "queue", "mJ", 1e3, table="devices"),
    Quantity("e_cmp_j", "energy of computing", "mJ", 1e3, 3, table="devices"),
    Quantity("e_tr_j", "energy of sending", "mJ", 1e3, 3, table="devices"),
)  # fmt: skip
