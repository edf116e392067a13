"""Tables for pandas, which is not among our dependencies."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import polars as pl

from feelstream.errors import FeelstreamError


def as_pandas(table: pl.DataFrame) -> Any:
    """The table as a pandas DataFrame; column by column, so that pyarrow is not needed."""
    try:
        pandas = import_module("pandas")
    except ImportError as problem:
        raise FeelstreamError("pandas is not installed; get it with pip install 'feelstream[pandas]'") from problem
    return pandas.DataFrame({column.name: column.to_list() for column in table})
