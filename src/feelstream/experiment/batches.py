"""Which runs go to a worker together.

A plan may have tens of thousands of runs of a few hundredths of a second each. Handed out one by one, each would pay
for its own checkpoints and its own arrivals; in a batch, runs that meet the same arrivals follow each other and share
them (feelstream.data.streaming.arrivals keeps the last). Runs that learn are handed out one by one, the longest first:
a long one that begins last would leave all other workers idle at the end.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from feelstream.experiment.identity import canonical
from feelstream.experiment.pool import Batch, Job

SHORT = 50_000  # rows of devices × rounds up to which a run without learning is over in moments
AT_MOST = 64  # runs in a batch: what a killed call may have to play again is less than this


def batches(jobs: Iterable[Job], workers: int) -> list[Batch]:
    """All jobs in batches: long runs alone and first, by how long they take; short ones by the arrivals they meet.

    Batches are made small enough that every worker gets several.
    """
    jobs = list(jobs)
    short = [job for job in jobs if is_short(job.scenario)]
    size = max(1, min(AT_MOST, len(short) // (4 * workers)))
    worlds: dict[str, list[Job]] = {}
    for job in short:
        worlds.setdefault(_world(job), []).append(job)
    in_order = [job for world in worlds.values() for job in world]
    together = [tuple(in_order[start : start + size]) for start in range(0, len(in_order), size)]
    alone = sorted((job for job in jobs if not is_short(job.scenario)), key=lambda job: -work(job.scenario))
    return [*((job,) for job in alone), *together]


def work(scenario: dict[str, Any]) -> float:
    """How long a run takes, roughly: samples that pass through the model, or device-rounds where nothing is learned.

    A sample that is trained on takes about three times as long as one that is tested; a test has about 10,000. Policies
    that ignore `size` schedule everyone.
    """
    system, policy, learning = scenario["system"], scenario["policy"], scenario["learning"]
    decided = system["rounds"] * system["devices"] / 100
    if learning["engine"] == "none":
        return decided
    scheduled = system["devices"] if policy["name"] == "select_all" else policy.get("size", 1)
    local = learning["local"]
    trained = system["rounds"] * scheduled * local.get("steps", 20) * local.get("batch", 32)
    return decided + 3 * trained + 10_000 * system["rounds"] / learning["eval_every"]


def is_short(scenario: dict[str, Any]) -> bool:
    """No learning, no device table, and few rounds: the run needs no checkpoint."""
    system = scenario["system"]
    schedule_only = scenario["learning"]["engine"] == "none" and scenario["trace"]["level"] == "rounds"
    return schedule_only and system["devices"] * system["rounds"] <= SHORT


def _world(job: Job) -> str:
    """Equal for runs whose samples arrive at the same devices at the same times."""
    data = job.scenario["data"]
    arriving = {key: data[key] for key in ("dataset", "samples", "partition", "arrivals")}
    return canonical([job.scenario["system"], arriving, job.seed])
