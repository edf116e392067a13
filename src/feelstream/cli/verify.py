"""The command that re-checks stored runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from feelstream.api.simulating import note
from feelstream.errors import FeelstreamError, RunError, sentence
from feelstream.experiment.replaying import Again, ask_again
from feelstream.experiment.replaying import replay as replay_run
from feelstream.run.run import SO_FAR
from feelstream.terminal.common import JsonOption, out, print_json
from feelstream.terminal.progress import bar

if TYPE_CHECKING:
    from feelstream.verification import Report

app = typer.Typer()
DONE = {"files": "recomputed from the files", "decisions": "asked the policy again", "replay": "repeated the run"}
LEFT = {
    "decisions": "--decisions asks the policy again",
    "replay": "--replay repeats the run and compares the bytes",
}


@app.command("verify")
def verify_runs(
    directory: Annotated[Path, typer.Argument(help="The run directory to check, or one with runs anywhere below.")],
    as_json: JsonOption = False,
    decisions: Annotated[
        bool,
        typer.Option(
            "--decisions", help="Also ask the policy again in every round, by what the tables say that it knew."
        ),
    ] = False,
    trust: Annotated[
        bool,
        typer.Option("--trust", help="With --decisions: run a policy, metric or energy law of the run's own code."),
    ] = False,
    replay: Annotated[
        bool,
        typer.Option(
            "--replay", help="Also repeat the run and compare the bytes; this executes the code that the run names."
        ),
    ] = False,
) -> None:
    """Recompute stored runs from their files alone; exit code 1 if anything disagrees."""
    if trust and not decisions:
        raise RunError("--trust is of --decisions; --replay runs the code that the run names in any case")
    runs = _runs_in(directory)
    again = {"decisions": partial(ask_again, trust=trust)} if decisions else {}
    again |= {"replay": _replay} if replay else {}
    ok = _one(directory, as_json, again) if runs == [directory] else _many(runs, as_json, again)
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


def _found(run: Path, again: Mapping[str, Callable[[Path], Again]]) -> tuple[Report, dict[str, Again]]:
    """What the files say, and then what was done beside that, in order, up to the first that differs."""
    from feelstream.verification import verify

    report, found, ok = verify(run), dict[str, Again](), True
    for name, ask in again.items():
        if report.ok and ok:
            found[name] = ask(run)
            ok = found[name].ok
    return report, found


def _one(directory: Path, as_json: bool, again: Mapping[str, Callable[[Path], Again]]) -> bool:
    report, found = _found(directory, again)
    if as_json:
        print_json(_about(report, found) | {"done": ["files", *found]})
    else:
        for each in (report, *found.values()):
            print(each)
        print(f"done: {', '.join(DONE[name] for name in ('files', *found))}")
        if left := [what for name, what in LEFT.items() if name not in found]:
            print(f"not done: {', '.join(left)}")
    return report.ok and all(each.ok for each in found.values())


def _many(runs: list[Path], as_json: bool, again: Mapping[str, Callable[[Path], Again]]) -> bool:
    """A line for each run, and how many agree; a run that cannot be checked does not."""
    told: dict[str, dict[str, Any]] = {}
    for run in runs:
        try:
            report, found = _found(run, again)
            wrong = [report.disagreement] if not report.ok else [each for each in found.values() if not each.ok]
            about = _about(report, found)
        except FeelstreamError as problem:
            wrong = [sentence(problem)]
            about = {"problem": wrong[0]}
        told[str(run)] = about | {"ok": not wrong}
        if not as_json:
            said = f"FAIL  {run}: {wrong[0]}" if wrong else f"pass  {run}"
            out.print(said, soft_wrap=True)
    agreeing = sum(about["ok"] for about in told.values())
    if as_json:
        print_json({"ok": agreeing == len(runs), "runs": told})
    else:
        out.print(f"runs that agree: {agreeing} of {len(runs)}")
    return agreeing == len(runs)


def _about(report: Report, found: dict[str, Again]) -> dict[str, Any]:
    return report.as_dict() | {name: each.as_dict() for name, each in found.items()}


def _replay(directory: Path) -> Again:
    with bar(f"{directory.name} again") as show:
        return replay_run(
            directory, progress=lambda record, rounds: show(record.observation.round, rounds, note(record))
        )
