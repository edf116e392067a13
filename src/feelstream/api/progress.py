"""Progress in a terminal or a notebook, on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from time import monotonic

Show = Callable[[int, int, str], None]  # done, total, note
EVERY_S = 0.2


@contextmanager
def bar(title: str, wanted: bool) -> Iterator[Show]:
    """A function that shows how far it is; it does nothing unless wanted."""
    if not wanted:
        yield lambda done, total, note: None
    elif _in_notebook() and find_spec("ipywidgets") is None:
        yield from _line(title)
    else:
        yield from _rich(title)


def _in_notebook() -> bool:
    """Whether a Jupyter kernel runs this: there, rich needs ipywidgets for anything that moves."""
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
    """One line of text that is written over: works everywhere."""
    last, longest = 0.0, 0

    def show(done: int, total: int, note: str) -> None:
        nonlocal last, longest
        if done < total and monotonic() - last < EVERY_S:
            return
        last = monotonic()
        text = f"{title}: {done}/{total} {note}".rstrip()
        longest = max(longest, len(text))
        sys.stderr.write(f"\r{text:{longest}}")
        sys.stderr.flush()

    yield show
    sys.stderr.write("\n")
