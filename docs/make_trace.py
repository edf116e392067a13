"""Write the tables of docs/reference/trace.md from the columns, so that the page cannot disagree with the program.

python docs/make_trace.py
"""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl

from feelstream.columns import CONSTANT_COLUMNS, CONSTANTS, DEVICE_COLUMNS, EVALUATION_COLUMNS, ROUND_COLUMNS, Column

PAGE = Path(__file__).with_name("reference") / "trace.md"
TABLES = {
    "rounds.parquet": ROUND_COLUMNS,
    "devices.parquet": DEVICE_COLUMNS,
    "evaluations.parquet": EVALUATION_COLUMNS,
    CONSTANTS: CONSTANT_COLUMNS,
}
BAR = "\\|"  # within a cell


def page(text: str) -> str:
    """The page with the table under the heading of each file made again; what is written around it stays."""
    for name, columns in TABLES.items():
        text = re.sub(
            rf"(\n## {re.escape(name)}\n\n)(\|[^\n]*\n)+", lambda found, of=columns: found[1] + table(of), text
        )
    return text


def table(columns: dict[str, Column]) -> str:
    rows = [
        f"| `{name}` | {_kind(column.kind)} | {column.unit} | {column.described.replace('|', BAR)} |"
        for name, column in columns.items()
    ]
    return "\n".join(["| column | type | unit | meaning |", "|---|---|---|---|", *rows]) + "\n"


def _kind(kind: pl.DataType) -> str:
    return f"list of {_kind(kind.inner)}" if isinstance(kind, pl.List) else str(kind).lower()  # type: ignore[arg-type]


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
