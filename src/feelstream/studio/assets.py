"""The files of the page that are no Python: style and scripts."""

from __future__ import annotations

from functools import cache
from importlib import resources


@cache
def asset(name: str) -> str:
    return resources.files("feelstream.studio").joinpath(name).read_text(encoding="utf-8")
