"""The command that re-checks stored runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

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
OPTIONS = {
    "decisions": ("--decisions", "asks the policy again"),
    "replay": ("--replay", "repeats the run and compares the bytes"),
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
    runs, more = _runs_in(directory), _More(decisions, trust, replay)
    ok = _one(directory, as_json, more) if runs == [directory] else _many(runs, as_json, more)
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


class _More(NamedTuple):
    """What is to be done beside recomputing from the files, and what was."""

    decisions: bool
    trust: bool
    replay: bool

    def done(self, run: Path) -> dict[str, Again]:
        """In order, up to the first that differs."""
        found: dict[str, Again] = {}
        if self.decisions:
            found["decisions"] = ask_again(run, trust=self.trust)
        if self.replay and all(each.ok for each in found.values()):
            found["replay"] = _replay(run)
        return found


def _one(directory: Path, as_json: bool, more: _More) -> bool:
    from feelstream.verification import verify

    report = verify(directory)
    found = more.done(directory) if report.ok else {}
    done = ["files", *found]
    if as_json:
        print_json(report.as_dict() | {name: each.as_dict() for name, each in found.items()} | {"done": done})
    else:
        print(report)
        for each in found.values():
            print(each)
        print(f"done: {', '.join(DONE[name] for name in done)}")
        if left := [f"{option} {what}" for name, (option, what) in OPTIONS.items() if name not in done]:
            print(f"not done: {', '.join(left)}")
    return report.ok and all(each.ok for each in found.values())


def _many(runs: list[Path], as_json: bool, more: _More) -> bool:
    """A line for each run, and how many agree; a run that cannot be checked does not."""
    found: dict[str, dict[str, Any]] = {}
    for run in runs:
        ok, said, about = _checked(run, more)
        found[str(run)] = about | {"ok": ok}
        if not as_json:
            out.print(f"{'pass' if ok else 'FAIL'}  {run}{said}", markup=False, highlight=False, soft_wrap=True)
    agreeing = sum(bool(about["ok"]) for about in found.values())
    if as_json:
        print_json({"ok": agreeing == len(runs), "runs": found})
    else:
        out.print(f"runs that agree: {agreeing} of {len(runs)}", highlight=False)
    return agreeing == len(runs)


def _checked(run: Path, more: _More) -> tuple[bool, str, dict[str, Any]]:
    from feelstream.verification import verify

    try:
        report: Report = verify(run)
        found = more.done(run) if report.ok else {}
    except FeelstreamError as problem:
        return False, f": {sentence(problem)}", {"problem": sentence(problem)}
    wrong = [each for each in found.values() if not each.ok]
    said = f": {report.disagreement}" if not report.ok else f": {wrong[0]}" if wrong else ""
    return report.ok and not wrong, said, report.as_dict() | {name: each.as_dict() for name, each in found.items()}


def _replay(directory: Path) -> Again:
    with bar(f"{directory.name} again") as show:
        return replay_run(
            directory, progress=lambda record, rounds: show(record.observation.round, rounds, note(record))
        )
