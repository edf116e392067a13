"""Progress on standard error: a bar in a terminal, one line that is replaced in a notebook."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from feelstream.experiment import Progress

Show = Callable[[int, int, str], None]  # done, total, note
EVERY_S = 0.2


@contextmanager
def bar(title: str, wanted: bool = True) -> Iterator[Show]:
    """A function that shows how far it is; it does nothing unless wanted."""
    if not wanted:
        yield lambda done, total, note: None
    elif _in_notebook():
        yield from _line(title)
    else:
        yield from _bar(title)


@contextmanager
def plan_bar(title: str, wanted: bool = True) -> Iterator[Callable[[Progress], None]]:
    """A bar that counts the rounds of many runs, and tells runs and rounds per second."""
    with bar(title, wanted) as show:
        start = monotonic()
        show(0, 1, "")

        def tell(state: Progress) -> None:
            speed = state.rounds_done / max(monotonic() - start, 1e-9)
            failed = f", {state.runs_failed} failed" if state.runs_failed else ""
            note = f"{state.runs_done}/{state.runs} runs{failed}, {speed:.0f} rounds/s"
            show(state.rounds_done if state.rounds else 1, max(state.rounds, 1), note)

        yield tell


def _in_notebook() -> bool:
    """Whether a Jupyter kernel runs this: there, rich would print a line for every step."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


def _bar(title: str) -> Iterator[Show]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from feelstream.terminal.common import err

    columns = (
        TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(),
        TextColumn("{task.fields[note]}", markup=False), TimeRemainingColumn(),
    )  # fmt: skip
    progress = Progress(*columns, console=err)
    task = progress.add_task(title, total=None, note="")

    def show(done: int, total: int, note: str) -> None:
        progress.start()  # only now: what goes wrong before the first step is a sentence without a bar
        progress.update(task, completed=done, total=total, note=note)

    try:
        yield show
    finally:
        if progress.live.is_started:
            progress.stop()


def _line(title: str) -> Iterator[Show]:
    """One line below the cell that is replaced at each step."""
    # A kernel runs this, so there is one.
    from IPython.display import display  # pyright: ignore[reportMissingImports]

    last = 0.0
    line: Any = display({"text/plain": f"{title}: starting"}, raw=True, display_id=True)

    def show(done: int, total: int, note: str) -> None:
        nonlocal last
        if done == total or monotonic() - last >= EVERY_S:
            last = monotonic()
            line.update({"text/plain": f"{title}: {done}/{total} {note}".rstrip()}, raw=True)

    yield show
