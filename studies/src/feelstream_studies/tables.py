"""Tables of results: CSV files that the pages of docs/ are made from. Their first lines say where they come from.

# Command: feelstream study silicon --seeds 20 --seed-start 4000 --docs docs
# Seeds: 4000–4019
scenario,budget,law,policy,saving,…
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path

import polars as pl

from feelstream.studies.pages import origin
from feelstream.studies.results import Results

DIGITS = 4  # significant, of every number; rounded first, so that a page and its table cannot differ in a digit


@dataclass(frozen=True)
class Table:
    """rows; about: what made them, as facts by name."""

    rows: pl.DataFrame
    about: dict[str, str] = field(default_factory=dict)


def read(path: Path) -> Table:
    lines = path.read_text(encoding="utf-8").splitlines()
    facts = dict(line.removeprefix("# ").split(": ", 1) for line in lines if line.startswith("# "))
    return Table(pl.read_csv(path, comment_prefix="#", infer_schema_length=None), facts)


def write(path: Path, table: Table, digits: int = DIGITS) -> Path:
    facts = "".join(f"# {name}: {fact}\n" for name, fact in table.about.items())
    path.write_text(f"{facts}{rounded(table.rows, digits).write_csv()}", encoding="utf-8")
    return path


def rounded(rows: pl.DataFrame, digits: int = DIGITS) -> pl.DataFrame:
    """As a table is read again once it was written."""
    shorter = rows.with_columns(pl.selectors.float().round_sig_figs(digits))
    return pl.read_csv(BytesIO(shorter.write_csv().encode()), infer_schema_length=None)


def about(results: Results, command: str = "") -> dict[str, str]:
    """What made these results: the command, day and commit of the runs, seeds, versions and data."""
    made = origin(results, command=command)
    return {"Command": made.command, "Runs": made.finished.partition(" ")[0], "Commit": commit(), **made.facts}


def commit() -> str:
    """Of the repository in which a page is written, so that its numbers can be made again."""
    asked = ["git", "describe", "--always", "--dirty", "--abbrev=10"]
    try:
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def merged(*tables: Mapping[str, str]) -> dict[str, str]:
    """The facts of several results, each once."""
    names = dict.fromkeys(name for table in tables for name in table)
    return {name: "; ".join(dict.fromkeys(table[name] for table in tables if name in table)) for name in names}
