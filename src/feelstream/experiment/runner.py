"""Execute a plan: find out what is missing, play it, keep the failures."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from feelstream.columns import FORMAT
from feelstream.errors import RunError, ScenarioError, sentence
from feelstream.experiment import store, worker
from feelstream.experiment.batches import batches, is_short
from feelstream.experiment.identity import run_names, same_identity
from feelstream.experiment.index import Index
from feelstream.experiment.plan import Arm, Plan
from feelstream.experiment.pool import Job, play_here, play_on
from feelstream.experiment.repeating import tell_repeated
from feelstream.experiment.store import Failure, Key, Results
from feelstream.experiment.worker import Answer
from feelstream.learning import cores
from feelstream.run.checkpoint import rounds_so_far
from feelstream.run.files import sole_writer, usable_directory
from feelstream.scenario import model_cost
from feelstream.version import __version__


@dataclass(frozen=True)
class Progress:
    """How far a plan is. Runs that were there before count as done; rounds are those of the others.

    rounds_done counts what runs under way have stored, where they are played on this machine.
    """

    runs: int
    runs_done: int
    runs_failed: int
    rounds: int
    rounds_done: int


def execute(
    plan: Plan,
    out: str | Path,
    *,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: Callable[[Progress], None] | None = None,
    runs: str | Path | None = None,
) -> Results:
    """Run what is missing of a plan and give all its results.

    workers: processes on this machine; default: one per core. executor: any other `concurrent.futures.Executor`
    instead, such as Dask's; its workers need feelstream, and no shared file system. runs: directory of the runs,
    default OUT/runs; plans that name the same one share the runs they have in common.

    A run that fails does not stop the others; it is in `failures` with its reason, and is tried again by the next call.
    """
    if workers is not None and workers < 1:
        raise RunError(f"workers must be 1 or more, not {workers}")
    out = usable_directory(Path(out))
    store.refuse_other_formats(out)
    where = Path(runs) if runs is not None else out / "runs"
    with sole_writer(where):
        return _execute(plan, out, where, workers or cores(), executor, progress or (lambda _: None))


def _execute(
    plan: Plan,
    out: Path,
    runs: Path,
    workers: int,
    executor: Executor | None,
    progress: Callable[[Progress], None],
) -> Results:
    store.tidy(out, runs)
    plan, known, problems = _identities(plan, executor)
    directories: dict[Key, Path] = {
        (arm.label, seed): runs / name
        for arm in plan.arms
        if arm.label in known
        for seeds in [plan.seeds_of(arm)]
        for seed, name in zip(seeds, run_names(arm.scenario, seeds, known[arm.label]), strict=True)
    }
    tell_repeated(out, plan, directories, known)
    store.write_plan(out, runs, plan, directories, problems)
    index = Index(out)
    finished, why_not = store.checked(directories.values(), index)

    jobs: dict[Path, Job] = {}
    promised: dict[Path, dict[str, Any]] = {}
    rounds: dict[Path, int] = {}
    for arm in plan.arms:
        table = arm.scenario.as_dict()  # one for all seeds: it is sent to a worker once for a batch
        for seed in plan.seeds_of(arm):
            path = directories.get((arm.label, seed))
            if path is None or why_not[path] != store.NOT_YET:  # damage is reported, and nothing thrown away unasked
                continue
            made_with = {what: known[arm.label][what] for what in ("files", "data")}
            jobs[path] = Job(table, seed, path, made_with)
            promised[path], rounds[path] = known[arm.label], arm.scenario.system.rounds

    distinct, all_rounds = len(set(directories.values())), sum(rounds.values())
    under_way, reasons = dict[Path, int](), dict[Path, str]()  # rounds stored so far; why a run failed
    runs_played = rounds_played = 0

    def report() -> None:
        progress(
            Progress(
                runs=distinct,
                runs_done=distinct - len(jobs) + runs_played - len(reasons),
                runs_failed=len(reasons),
                rounds=all_rounds,
                rounds_done=rounds_played + rounds_under_way(),
            )
        )

    def rounds_under_way() -> int:
        """Of the runs that a worker has; a plan may have tens of thousands of others, which are not looked at."""
        for path, stored in under_way.items():  # a run that is just ending has no checkpoint any more
            under_way[path] = max(stored, rounds_so_far(path))
        return sum(under_way.values())

    def begun(job: Job) -> None:
        if not is_short(job.scenario):  # a short one stores nothing before its end
            under_way.setdefault(job.directory, 0)

    def done(job: Job, answer: Answer) -> None:
        nonlocal runs_played, rounds_played
        problem = answer.problem
        try:
            if answer.files is not None:
                problem = store.receive(job.directory, answer.files, promised[job.directory])
        except (OSError, RunError) as trouble:
            answer = Answer.of(trouble)
            problem = answer.problem
        if answer.disk_full:
            raise RunError(f"the disk that holds {runs} is full; make room and give the same command again to go on")
        under_way.pop(job.directory, None)
        runs_played, rounds_played = runs_played + 1, rounds_played + rounds[job.directory]
        if problem:
            reasons[job.directory] = problem
        report()

    report()
    if jobs and executor is not None:
        play_on(executor, batches(jobs.values(), workers), done)
    elif jobs:
        play_here(
            min(workers, len(jobs)),
            batches(jobs.values(), workers),
            done,
            begun=begun,
            meanwhile=report,
        )

    played, outcomes = store.checked(jobs, index)
    why_not |= outcomes
    failures = [
        Failure(arm.label, seed, problems.get(arm.label) or reasons.get(path or Path(), reason))
        for arm in plan.arms
        for seed in plan.seeds_of(arm)
        if (reason := why_not.get(path := directories.get((arm.label, seed)), store.NOT_YET))
    ]
    return Results(plan, directories, failures, finished | played, index)


def _identities(plan: Plan, executor: Executor | None) -> tuple[Plan, dict[str, dict[str, Any]], dict[str, str | None]]:
    """What each arm will be run with, asked where it will be run, or the problem with it.

    The plan comes back with numbers where its scenarios say auto: they follow from the model and the data there.
    """
    answers: dict[tuple[str, bool], Answer] = {}
    for arm in plan.arms:
        key = same_identity(arm.scenario), bool(arm.scenario.autos)
        if key in answers:
            continue
        table = arm.scenario.as_dict()
        if executor is None:
            answers[key] = worker.identify(table)
            continue
        try:
            answers[key] = executor.submit(worker.identify, table).result()
        except Exception as problem:
            raise RunError(f"the executor does not work: {sentence(problem)}") from problem
    arms: list[Arm] = []
    known: dict[str, dict[str, Any]] = {}
    problems: dict[str, str | None] = {}
    for arm in plan.arms:
        arms.append(arm)
        answer = answers[same_identity(arm.scenario), bool(arm.scenario.autos)]
        if answer.identity is None:
            problems[arm.label] = answer.problem
            continue
        theirs = answer.identity
        if (theirs["feelstream"], theirs["format"]) != (__version__, FORMAT):
            raise RunError(
                f"the workers have feelstream {theirs['feelstream']} and this is {__version__}; install the same there"
            )
        try:
            if answer.cost is not None:
                arms[-1] = replace(arm, scenario=model_cost.resolved(arm.scenario, answer.cost))
        except ScenarioError as problem:
            problems[arm.label] = str(problem)
            continue
        if answer.parameters is not None:
            model_cost.tell_contradiction(arms[-1].scenario, answer.parameters)
        known[arm.label] = theirs
    return replace(plan, arms=tuple(arms)), known, problems
