"""The independent re-check of a run, wherever it is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from feelstream.errors import RunError
from feelstream.run import Run
from feelstream.verification import Report
from feelstream.verification import verify as verify_files


def verify(run: Run | str | Path) -> Report:
    """Recompute every decision, energy and queue step of a run from its files alone, with formulas of its own.

    Args:
        run: Its directory, or the run itself; one that is kept nowhere is written to a directory for the time being.

    Returns:
        What was checked; `ok` says whether all of it agrees, and `disagreement` is the first that does not.

    >>> from feelstream import simulate
    >>> verify(simulate("tiny", rounds=3, engine="none")).ok
    True
    """
    if isinstance(run, Run) and run.directory is None:
        with TemporaryDirectory(prefix="feelstream-") as place:
            return replace(verify_files(run.save(Path(place) / "run")), path=repr(run))
    path = run.directory if isinstance(run, Run) else run
    if not isinstance(path, str | Path):
        raise RunError(f"verify: give a run or its directory, as in verify('runs/first'), not {path!r:.60}")
    return verify_files(path)
