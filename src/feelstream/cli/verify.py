"""The command that re-checks stored runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from feelstream.api.simulating import note
from feelstream.errors import RunError, sentence
from feelstream.run.replaying import Replay
from feelstream.run.replaying import replay as replay_run
from feelstream.run.run import SO_FAR
from feelstream.terminal.common import JsonOption, out, print_json
from feelstream.terminal.progress import bar

if TYPE_CHECKING:
    from feelstream.verification import Report

app = typer.Typer()


@app.command("verify")
def verify_runs(
    directory: Annotated[Path, typer.Argument(help="The run directory to check, or one with runs anywhere below.")],
    as_json: JsonOption = False,
    replay: Annotated[
        bool,
        typer.Option(
            "--replay", help="Also repeat the run and compare the bytes; this executes the code that the run names."
        ),
    ] = False,
) -> None:
    """Recompute stored runs from their files alone; exit code 1 if anything disagrees."""
    runs = _runs_in(directory)
    ok = _one(directory, as_json, replay) if runs == [directory] else _many(runs, as_json, replay)
    if not ok:
        raise typer.Exit(1)


def _runs_in(directory: Path) -> list[Path]:
    """The directory itself, if it is a run, and all runs below it."""
    if directory.is_file():
        raise RunError(f"{directory} is a file; give the directory that it is in: {directory.parent}")
    if not directory.is_dir():
        return [directory]
    found, seen = list[Path](), set[str]()
    for place, inside, files in os.walk(directory, onerror=_refused, followlinks=True):
        if (real := os.path.realpath(place)) in seen:  # a link led here
            inside.clear()
        elif "run.json" in files:
            found.append(Path(place))
            inside[:] = set(inside) - {SO_FAR}  # the first rounds of this very run, for a report
        seen.add(real)
    if not found:
        raise RunError(f"{directory} holds no run: neither it nor a directory in it has a run.json")
    return sorted(found)


def _refused(problem: OSError) -> None:
    if not isinstance(problem, FileNotFoundError):  # a run that is being stored is moved away
        raise RunError(f"cannot look for runs in {problem.filename}: {problem.strerror}") from problem


def _one(directory: Path, as_json: bool, replay: bool) -> bool:
    from feelstream.verification import verify

    report = verify(directory)
    again = _replay(directory) if replay and report.ok else None
    if as_json:
        print_json(report.as_dict() | ({"replay": again.as_dict()} if again else {}))
    else:
        print(report)
        print(again or "feelstream verify --replay also repeats the run and compares the bytes")
    return report.ok and (again is None or again.ok)


def _many(runs: list[Path], as_json: bool, replay: bool) -> bool:
    """A line for each run, and how many agree; a run that cannot be checked does not."""
    found: dict[str, dict[str, object]] = {}
    for run in runs:
        ok, said, about = _checked(run, replay)
        found[str(run)] = about | {"ok": ok}
        if not as_json:
            out.print(f"{'pass' if ok else 'FAIL'}  {run}{said}", markup=False, highlight=False, soft_wrap=True)
    agreeing = sum(bool(about["ok"]) for about in found.values())
    if as_json:
        print_json({"ok": agreeing == len(runs), "runs": found})
    else:
        out.print(f"runs that agree: {agreeing} of {len(runs)}", highlight=False)
    return agreeing == len(runs)


def _checked(run: Path, replay: bool) -> tuple[bool, str, dict[str, object]]:
    from feelstream.verification import verify

    try:
        report: Report = verify(run)
        again = _replay(run) if replay and report.ok else None
    except RunError as problem:
        return False, f": {sentence(problem)}", {"problem": sentence(problem)}
    said = "" if report.ok else f": {report.disagreement}"
    if again is not None and not again.ok:
        said = f": {again}"
    return report.ok and (again is None or again.ok), said, report.as_dict()


def _replay(directory: Path) -> Replay:
    total = list[int]()
    with bar(f"{directory.name} again") as show:
        return replay_run(
            directory,
            begin=lambda scenario: total.append(scenario.system.rounds),
            progress=lambda record: show(record.observation.round, total[0], note(record)),
        )
