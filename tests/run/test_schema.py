"""The format of a run, guarded: what is written, stated, documented and read by `verify` is one and the same.

`python tests/run/test_schema.py` renews schema.json, the columns as the present format has them. Within a format only
columns that some runs have may be added: they were in no run before.
"""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from typing import Any

import polars as pl

import feelstream as fs
from feelstream import columns
from feelstream.columns import DEVICE_COLUMNS, FACTS, ROUND_COLUMNS, SPENT, Column, columns_of
from feelstream.display.quantities import MEASURES, QUANTITIES

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).with_name("schema.json")
MAKER = runpy.run_path(str(ROOT / "docs" / "make_trace.py"))
TABLES: dict[str, dict[str, Column]] = MAKER["TABLES"]
UNITS = {"_j": "J", "_s": "s", "_hz": "Hz", "_w": "W"}
SHOWN_IN = {"_j": "mJ", "_hz": "GHz"}  # what people read


def stated() -> dict[str, Any]:
    """The columns as src/feelstream/columns.py has them: type, unit, whether they may be null, which runs."""
    tables = {
        table: {name: ", ".join([str(c.kind), c.unit or "no unit", *_more(c)]) for name, c in of.items()}
        for table, of in TABLES.items()
    }
    return {"format": columns.FORMAT, **tables}


def _more(column: Column) -> list[str]:
    return ["may be null"] * column.may_be_null + ([FACTS[column.when]] if column.when else [])


def against_the_last_format(golden: dict[str, Any]) -> list[str]:
    now, renew = stated(), "renew the list by python tests/run/test_schema.py"
    if now["format"] != golden["format"]:
        return [f"FORMAT was raised: {renew}, and tell CHANGELOG.md what changed"]
    if needs_another_format(golden, now):
        return [
            "the columns in src/feelstream/columns.py are not those of format "
            f"{golden['format']} ({', '.join(_differences(golden, now))}): raise FORMAT in "
            f"src/feelstream/columns.py, then {renew}"
        ]
    return [f"{', '.join(_differences(golden, now))} is new: {renew}"] if now != golden else []


def needs_another_format(golden: dict[str, Any], now: dict[str, Any]) -> bool:
    """Whether a run of this format would be another one: all is as it was, but for columns that some runs have now."""
    for table, of in TABLES.items():
        kept = [(name, about) for name, about in now[table].items() if name in golden[table] or not of[name].when]
        if kept != list(golden[table].items()):
            return True
    return False


def _differences(golden: dict[str, Any], now: dict[str, Any]) -> list[str]:
    return [
        f"{name} in {table}"
        for table in TABLES
        for name in {**golden.get(table, {}), **now[table]}
        if golden.get(table, {}).get(name) != now[table].get(name)
    ] or ["their order"]


def against_their_names() -> list[str]:
    wrong = []
    for table, of in TABLES.items():
        for name, column in of.items():
            ending = next((unit for end, unit in UNITS.items() if name.endswith(end)), "")
            if column.unit != ending:
                wrong.append(f"{name} of {table} has the unit '{column.unit}', and its name says '{ending}'")
    return wrong


def against_the_page() -> list[str]:
    page = MAKER["PAGE"].read_text(encoding="utf-8")
    missing = [name for of in TABLES.values() for name in of if f"\n| `{name}` |" not in page]
    stale = MAKER["page"](page) != page or missing or " + ".join(f"`{name}`" for name in SPENT) not in page
    return ["docs/reference/trace.md is stale; run python docs/make_trace.py"] if stale else []


def against_what_is_written() -> list[str]:
    """A run with batteries, downloads, packet errors and all evaluators has all columns that a simulation can have; a
    deployment is in test_verify_deployment.py.
    """
    from builders import small  # not where this file is run by itself

    learning = ("learning.engine=native", 'learning.evaluators=["test", "stream", "devices", "classes"]')
    run = fs.simulate(
        small("world.harvest.kind=packets", "costs.download_bits=1e6", "radio.block_bits=1e4", *learning), 1
    )
    wrong = []
    for table, found in zip(TABLES, (run.rounds, run.devices, run.evaluations), strict=False):
        assert found is not None
        of = {name: column.kind for name, column in columns_of(TABLES[table], run.manifest.facts).items()}
        wrong += [f"{table}: {problem}" for problem in unlike(found, of)]
    return wrong


def unlike(found: pl.DataFrame, of: dict[str, pl.DataType]) -> list[str]:
    """What is written and not stated, or stated and not written, or of another type."""
    names = {**dict(found.schema), **of}
    wrong = [name for name in names if name not in of or dict(found.schema).get(name) != of[name]]
    told = [f"{name} is written as {found.schema.get(name)} and stated as {of.get(name)}" for name in wrong]
    return [f"{', '.join(told)}: see device_rows and round_row in src/feelstream/run/trace.py"] if told else []


def test_the_format_is_the_same_everywhere() -> None:
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    wrong = against_the_last_format(golden) + against_their_names()
    wrong += against_the_page() + against_what_is_written()
    assert not wrong, "\n".join(["", *wrong])


def test_what_is_shown_is_there_and_a_dimension_has_one_unit() -> None:
    tables = {"rounds": ROUND_COLUMNS, "devices": DEVICE_COLUMNS}
    for quantity in QUANTITIES.values():
        assert quantity.table == "runs" or quantity.name in MEASURES or quantity.name in tables[quantity.table]
        unit = next((unit for ending, unit in SHOWN_IN.items() if quantity.name.endswith(ending)), quantity.unit)
        assert (quantity.unit, quantity.scale) == (unit, {"mJ": 1e3, "%": 100.0, "GHz": 1e-9}.get(unit, 1.0))
    assert [name for name, column in ROUND_COLUMNS.items() if column.when and name not in MEASURES] == []


def test_a_column_of_some_runs_may_be_added_within_a_format() -> None:
    golden, now = json.loads(GOLDEN.read_text(encoding="utf-8")), stated()
    del golden["devices.parquet"]["battery_j"]
    assert not needs_another_format(golden, now)
    assert against_the_last_format(golden)[0].startswith("battery_j in devices.parquet is new: renew")
    del golden["devices.parquet"]["beta"]
    assert needs_another_format(golden, now)
    other_order = {**now, "rounds.parquet": dict(reversed(now["rounds.parquet"].items()))}
    assert "their order" in against_the_last_format(other_order)[0]


if __name__ == "__main__":
    last = json.loads(GOLDEN.read_text(encoding="utf-8"))
    if last["format"] == columns.FORMAT and needs_another_format(last, stated()):
        sys.exit(against_the_last_format(last)[0])
    GOLDEN.write_text(json.dumps(stated(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
