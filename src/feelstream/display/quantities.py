"""How numbers are put in words: a column's name, unit, scale and digits, and which direction is better.

Everything that shows numbers takes them from here: figures, the report, notebooks, the terminal and the studio. How
each of our columns is shown stands in columns.py, with all else that is known of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from math import floor, log10
from typing import Literal

from feelstream.columns import DEVICE_COLUMNS, ROUND_COLUMNS, RUN_COLUMNS, Column

Table = Literal["rounds", "devices", "runs"]
MINUS = "−"


def number(value: float, digits: int, signed: bool = False) -> str:
    """With `digits` decimals; no exponent, a true minus sign, and zero has no sign, even where rounding made it."""
    text = f"{value:{'+' if signed else ''}.{digits}f}"
    return (text if float(text) else text.lstrip("+-")).replace("-", MINUS)


def significant(value: float, digits: int) -> str:
    """With so many significant digits, written out: 312.4 to two digits is 310."""
    if value == 0:
        return "0"
    last = digits - 1 - floor(log10(abs(value)))
    return number(round(value, last), max(last, 0))


def counted(count: int, noun: str) -> str:
    """How many of something: 1 seed, 2 seeds.

    >>> counted(1, "seed"), counted(2, "seed")
    ('1 seed', '2 seeds')
    """
    return f"{count} {noun}{'s' * (count != 1)}"


def short(value: float, digits: int = 6) -> float:
    """Rounded to so many significant digits: as good on screen, and shorter to send.

    >>> short(0.1234567), short(123456.7, 4)
    (0.123457, 123500.0)
    """
    return float(f"{value:.{digits}g}")


@dataclass(frozen=True)
class Quantity:
    """A column as readers see it: value × scale, in `unit`.

    Attributes:
        name: Of the column.
        heading: In tables and sentences.
        unit: Of what is shown; none by default.
        scale: From the column to `unit`: 1000 from J to mJ.
        digits: Decimals; of logarithmic quantities the most that are shown, see `decimals`.
        table: rounds.parquet, devices.parquet, or one number per run as in summary.csv.
        group: Where the report and the terminal show it; None: nowhere.
        better: Which end is good; None: neither.
        title: On axes, where it is longer than the heading.
        per: What the unit is counted by: "round" makes mJ per round.
        logarithmic: Whether it may differ by orders of magnitude between policies.
        least: The least that is possible, in `unit`; None: no bound.
        most: The same of the greatest.
        meaning: A line under the tables, for those who ask what exactly is meant.
    """

    name: str
    heading: str
    unit: str = ""
    scale: float = 1.0
    digits: int = 2
    table: Table = "rounds"
    group: Literal["learning", "resources"] | None = None
    better: Literal["higher", "lower"] | None = None
    title: str = ""
    per: str = ""
    logarithmic: bool = False
    least: float | None = 0.0
    most: float | None = None
    meaning: str = ""

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

    def decimals(self, *values: float) -> int:
        """How many decimals to show these values with, which are in `unit` and stand together.

        What may differ by orders of magnitude has three significant digits of the largest; anything else `digits`.

        >>> [QUANTITIES["energy_j"].decimals(value) for value in (0.4981, 63.861, 5096.0, 0.0)]
        [3, 1, 0, 0]
        """
        if not self.logarithmic:
            return self.digits
        largest = max(map(abs, values))
        return min(self.digits, max(0, 2 - floor(log10(largest)))) if largest else 0

    def text(self, value: float) -> str:
        """A value in words.

        >>> QUANTITIES["energy_mean_cum_j"].text(0.0012345)
        '1.23 mJ'
        """
        shown = value * self.scale
        return f"{number(shown, self.decimals(shown))} {self.unit}".rstrip()


OUR_TABLES: dict[Table, dict[str, Column]] = {"runs": RUN_COLUMNS, "devices": DEVICE_COLUMNS, "rounds": ROUND_COLUMNS}
QUANTITIES: dict[str, Quantity] = {  # how columns are shown: ours, and those of users' evaluators
    name: Quantity(name, table=table, **({"meaning": column.meaning} if table == "runs" else {}), **column.shown)
    for table, columns in OUR_TABLES.items()
    for name, column in columns.items()
    if column.shown
}
MEASURES: dict[str, Quantity] = {}  # those of them that evaluators give by round


def register_measures(*new: Quantity) -> None:
    """Say how the numbers of evaluators are shown by round, and with them the two that they come to in each run:
    late_NAME, the mean over the evaluations of the last fifth, by which arms are compared, and final_NAME.

    A later one of the same name takes the place of an earlier one: users' evaluators may change.
    """
    for quantity in new:
        QUANTITIES[quantity.name] = MEASURES[quantity.name] = quantity
        for span, group, meaning in (
            ("late", quantity.group, "mean over the evaluations of the last fifth of the run"),
            ("final", None, "after the last round"),
        ):
            name = f"{span}_{quantity.name}"
            said = f"{quantity.meaning}, {meaning}" if quantity.meaning else meaning
            QUANTITIES[name] = replace(quantity, name=name, table="runs", group=group, meaning=said)


def measures(columns: Collection[str]) -> list[Quantity]:
    """What evaluators gave beside the test, of the columns that there are."""
    return [MEASURES[name] for name in columns if name in MEASURES]


def introduce(columns: Iterable[str], stated: Iterable[Quantity]) -> None:
    """Register how every column of a run's rounds is shown that is not ours: as run.json says, else plainly."""
    known = {quantity.name: quantity for quantity in stated}
    for column in columns:
        if column not in ROUND_COLUMNS and (column in known or column not in QUANTITIES):
            plain = Quantity(column, column.replace("_", " "), digits=4, group="learning", least=None)
            register_measures(known.get(column, plain))


def of_table(table: Table, columns: Collection[str]) -> list[Quantity]:
    """The columns of a table that it is known how to show."""
    return [quantity for quantity in QUANTITIES.values() if quantity.table == table and quantity.name in columns]


def by_round(columns: Collection[str]) -> list[Quantity]:
    """Those of the rounds table that the report shows, of the columns that there are: learning, resources, the rest."""
    known = [quantity for quantity in of_table("rounds", columns) if quantity.group]
    return sorted(known, key=lambda quantity: (quantity.name in MEASURES, quantity.group))


def meanings(shown: Iterable[Quantity]) -> dict[str, str]:
    """What the headings of a table mean; those that mean the same together."""
    found: dict[str, list[str]] = {}
    for quantity in shown:
        if quantity.meaning:
            found.setdefault(quantity.meaning, []).append(quantity.heading)
    return {", ".join(headings): meaning for meaning, headings in found.items()}


ROUND_AXIS = "Round"

register_measures(*(QUANTITIES[name] for name, column in ROUND_COLUMNS.items() if column.shown and column.when))
