"""Progress in a terminal or a notebook, on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

Show = Callable[[int, int, str], None]  # done, total, note
EVERY_S = 0.2


@contextmanager
def bar(title: str, wanted: bool) -> Iterator[Show]:
    """A function that shows how far it is; it does nothing unless wanted."""
    if not wanted:
        yield lambda done, total, note: None
    elif _in_notebook():
        yield from _line(title)
    else:
        yield from _rich(title)


def _in_notebook() -> bool:
    """Whether a Jupyter kernel runs this: there, rich would print a line for every step."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


def _rich(title: str) -> Iterator[Show]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(title, total=None, note="")
        yield lambda done, total, note: progress.update(task, completed=done, total=total, note=note)


def _line(title: str) -> Iterator[Show]:
    """One line below the cell that is replaced at each step."""
    # A kernel runs this, so there is one.
    from IPython.display import display  # pyright: ignore[reportMissingImports]

    last = 0.0
    line: Any = display(_Line(f"{title}: starting"), display_id=True)

    def show(done: int, total: int, note: str) -> None:
        nonlocal last
        if done < total and monotonic() - last < EVERY_S:
            return
        last = monotonic()
        line.update(_Line(f"{title}: {done}/{total} {note}".rstrip()))

    yield show


class _Line:
    """Text that a notebook shows as it is."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text
