"""Execute a plan: find out what is missing, play it, keep the failures."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from feelstream import code
from feelstream.columns import FORMAT
from feelstream.display.quantities import counted
from feelstream.errors import RunError, ScenarioError, sentence, sentence_and_place
from feelstream.experiment import identity, store
from feelstream.experiment.identity import Identity, canonical, run_names
from feelstream.experiment.plan import Arm, Job, Plan, in_order, is_short
from feelstream.experiment.pool import play_here, play_on
from feelstream.experiment.store import Key, Results
from feelstream.experiment.worker import Answer
from feelstream.learning import cores
from feelstream.run.checkpoint import rounds_so_far
from feelstream.run.files import sole_writer, usable_directory
from feelstream.scenario import model_cost
from feelstream.version import __version__

log = logging.getLogger("feelstream")


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
) -> Results:
    """Run what is missing of a plan and give all its results.

    workers: processes on this machine; default: one per core. executor: any other `concurrent.futures.Executor`
    instead, such as Dask's; its workers need feelstream, and no shared file system.

    A run that fails does not stop the others; it is in `failures` with its reason, and is tried again by the next call.
    """
    if workers is not None and workers < 1:
        raise RunError(f"workers must be 1 or more, not {workers}")
    out = usable_directory(Path(out))
    earlier = store.read_plan(out / "plan.json")
    with sole_writer(out / "runs"):
        store.tidy(out)
        plan, known, problems = _identities(plan, executor)
        directories, jobs = dict[Key, Path](), dict[Path, Job]()
        for arm in (arm for arm in plan.arms if arm.label in known):
            seeds, table, made_with = plan.seeds_of(arm), arm.scenario.as_dict(), known[arm.label]
            for seed, name in zip(seeds, run_names(arm.scenario, seeds, made_with), strict=True):
                path = directories[arm.label, seed] = out / "runs" / name
                jobs[path] = Job(arm.scenario, table, seed, path, made_with)
        if earlier is not None:
            _tell_replaced(earlier, plan, out)
            _tell_repeated(earlier, plan, directories, known)
        store.write_plan(out, plan, directories, known, problems)
        why_not = store.checked(jobs)  # damage is reported, and nothing thrown away unasked
        missing = in_order(job for path, job in jobs.items() if why_not[path] == store.NOT_YET)
        playing = _Playing(missing, len(jobs), progress or (lambda _: None))
        if missing and executor is not None:
            play_on(executor, missing, playing.done)
        elif missing:
            number = min(workers or cores(), len(missing))
            play_here(number, missing, playing.done, begun=playing.begun, meanwhile=playing.report)
        played = store.checked(job.directory for job in missing)
        why_not |= {path: reason and playing.failed.get(path, reason) for path, reason in played.items()}
        return Results.of(plan, directories, problems, why_not)


class _Playing:
    """What has become of the jobs of a plan."""

    def __init__(self, jobs: list[Job], runs: int, progress: Callable[[Progress], None]) -> None:
        self.runs, self.stored, self.progress = runs, runs - len(jobs), progress
        self.rounds = sum(job.scenario.system.rounds for job in jobs)
        self.played = self.rounds_played = 0
        self.under_way, self.failed = dict[Path, int](), dict[Path, str]()  # rounds stored so far; why a run failed
        self.report()

    def begun(self, job: Job) -> None:
        if not is_short(job.scenario):  # a short one stores nothing before its end
            self.under_way.setdefault(job.directory, 0)

    def done(self, job: Job, answer: Answer) -> None:
        problem = answer.problem
        try:
            if answer.files is not None:
                problem = store.receive(job.directory, answer.files, job.made_with)
        except (OSError, RunError) as trouble:
            answer = Answer.of(trouble)
            problem = answer.problem
        if answer.disk_full:
            runs = job.directory.parent
            raise RunError(f"the disk that holds {runs} is full; make room and give the same command again to go on")
        self.under_way.pop(job.directory, None)
        self.played, self.rounds_played = self.played + 1, self.rounds_played + job.scenario.system.rounds
        if problem:
            self.failed[job.directory] = problem
        self.report()

    def report(self) -> None:
        for path, stored in self.under_way.items():  # a run that is just ending has no checkpoint any more
            self.under_way[path] = max(stored, rounds_so_far(path))
        rounds_done = self.rounds_played + sum(self.under_way.values())
        failed = len(self.failed)
        self.progress(Progress(self.runs, self.stored + self.played - failed, failed, self.rounds, rounds_done))


Identities = tuple[Plan, dict[str, dict[str, Any]], dict[str, str | None]]


def _identities(plan: Plan, executor: Executor | None) -> Identities:
    """What each arm will be run with, asked where it will be run, or the problem with it.

    The plan comes back with numbers where its scenarios say auto: they follow from the model and the data there.
    """
    arms, known, problems = list[Arm](), dict[str, dict[str, Any]](), dict[str, str | None]()
    for arm in plan.arms:
        table = arm.scenario.as_dict()
        try:
            ask = identity.identify
            found = ask(table) if executor is None else executor.submit(ask, table).result()
        except Exception as problem:
            raise RunError(f"the executor does not work: {sentence(problem)}") from problem
        try:
            if found.cost is not None:
                arm = replace(arm, scenario=model_cost.with_numbers(arm.scenario, found.cost))
        except ScenarioError as problem:
            found = Identity(sentence_and_place(problem))
        arms.append(arm)
        if found.known is None:
            problems[arm.label] = found.problem
            continue
        if (found.known["feelstream"], found.known["format"]) != (__version__, FORMAT):
            theirs = found.known["feelstream"]
            raise RunError(f"the workers have feelstream {theirs} and this is {__version__}; install the same there")
        model_cost.warn(arm.scenario, found.parameters)
        known[arm.label] = found.known
    return replace(plan, arms=tuple(arms)), known, problems


def _tell_replaced(earlier: Mapping[str, Any], plan: Plan, out: Path) -> None:
    """Say that the stored plan was another one, of which something is not in this one: a configuration or a seed."""
    if store.left_out(earlier, plan) or set(earlier["seeds"]) - {*plan.seeds}:
        labels = [entry["label"] for entry in earlier["arms"]]
        more = f" and {len(labels) - 3} more" if len(labels) > 3 else ""
        held = f"{', '.join(labels[:3])}{more}, over {counted(len(earlier['seeds']), 'seed')}"
        log.warning(f"{out} held another comparison ({held}); this one replaces its tables and report, its runs stay")


def _tell_repeated(
    earlier: Mapping[str, Any], plan: Plan, directories: Mapping[Key, Path], known: Mapping[str, Mapping[str, Any]]
) -> None:
    """Say which stored runs are played again, because a file that they were made from has changed; before they are.

    earlier: the plan that is stored. directories: where runs are or will be. known: what each arm is made with.
    """
    entries = {entry["label"]: entry for entry in earlier["arms"]}
    runs, changed, without = 0, set[str](), set[str]()
    for (label, seed), path in directories.items():
        scenario, entry = plan.arm(label).scenario, entries.get(label, {})
        old, name = entry.get("files", {}), entry.get("runs", {}).get(str(seed))
        if name is None or path.exists() or canonical(scenario.as_dict()) != canonical(entry["scenario"]):
            continue
        new, once = known[label]["files"], set(code.without_file(scenario))
        other = {file for file in old | new if old.get(file) != new.get(file)}
        if (other or once) and store.why_not(path.with_name(name)) is None:
            runs, changed, without = runs + 1, changed | (other - once), without | once
    if not runs:
        return
    script = {name for name in changed if name.startswith(code.MAIN) and " > " not in name}
    files = {name.rpartition(" > ")[2] for name in changed - script}
    why = [f"{file.rpartition(':')[0] or file} has changed" for file in sorted(files)]
    why += ["the script has changed"] * bool(script) + [f"{name} has no file" for name in sorted(without)]
    keep = "; in a file of its own (file.py:Name) a policy keeps its runs" if script or without else ""
    are = "stored run is" if runs == 1 else "stored runs are"
    log.warning(f"{runs} {are} played again, since {' and '.join(why)}{keep}")
