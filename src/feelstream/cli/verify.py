"""The command that re-checks stored runs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from feelstream.api.simulating import note
from feelstream.errors import FeelstreamError, RunError, sentence
from feelstream.experiment import replaying
from feelstream.run.run import SO_FAR
from feelstream.terminal.common import JsonOption, out, print_json
from feelstream.terminal.progress import bar

if TYPE_CHECKING:
    from feelstream.experiment.replaying import Again
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
    runs, told = _runs_in(directory), dict[str, dict[str, Any]]()
    for run in runs:
        found, problem = dict[str, "Report | Again"](), ""
        try:
            for name, result in _results(run, decisions, trust, replay):
                found[name] = result
                problem = "" if result.ok else str(getattr(result, "disagreement", result))
            own = {name: result.as_dict() for name, result in found.items()}
            about = own.pop("files") | own | {"done": [*found]}
        except FeelstreamError as cannot:
            if runs == [directory]:
                raise
            problem = sentence(cannot)
            about = {"problem": problem}
        told[str(run)] = about | {"ok": not problem}
        if not as_json and runs == [directory]:
            for result in found.values():
                print(result)
            print(f"done: {', '.join(DONE[name] for name in found)}")
            if left := [what for name, what in LEFT.items() if name not in found]:
                print(f"not done: {', '.join(left)}")
        elif not as_json:
            out.print(f"FAIL  {run}: {problem}" if problem else f"pass  {run}", soft_wrap=True)
    agreeing = sum(about["ok"] for about in told.values())
    if as_json:
        print_json(told[str(directory)] if runs == [directory] else {"ok": agreeing == len(runs), "runs": told})
    elif runs != [directory]:
        out.print(f"runs that agree: {agreeing} of {len(runs)}")
    if agreeing < len(runs):
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


def _results(run: Path, decisions: bool, trust: bool, replay: bool) -> Iterator[tuple[str, Report | Again]]:
    """What the files say, and then what was asked for beside that, up to the first that differs."""
    from feelstream.verification import verify

    result = verify(run)
    yield "files", result
    if decisions and result.ok:
        result = replaying.ask_again(run, trust=trust)
        yield "decisions", result
    if replay and result.ok:
        with bar(f"{run.name} again") as show:
            result = replaying.replay(
                run, progress=lambda record, rounds: show(record.observation.round, rounds, note(record))
            )
        yield "replay", result
