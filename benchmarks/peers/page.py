"""docs/speed.md: what the peers' benchmark found, as tables and sentences that follow from the numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from machine import described

LAST = 5  # rounds whose mean accuracy is compared: one round's jumps by a percentage point
AGREE = 4.0  # standard deviations of feelstream's own accuracy over seeds

INTRODUCTION = """# Speed against other simulators

This page is written by `python benchmarks/peers/run.py`, which makes an environment for each simulator, runs two
workloads on all of them in turns, and compares. How the engine behind these numbers works is described in [the native
engine](engine.md).

**Rules**: every simulator runs once *as its users would run it* (its documentation's way, PyTorch's own number of
threads) and once *tuned*, in the fastest form that we found (two processes or threads, channels_last, batches taken
by one indexing, a test without needless metrics). All get the same normalised arrays, and the same shares of them
except FLGo, which deals them itself, evenly and at random too, and takes part in the first workload only. Weights are
equal, and all 10,000 test images are classified after each round. Nothing of feelstream's streams and energy is used.
The time is that of all rounds, training, aggregation and test; a round before them belongs to the start-up, so that
nobody pays in the loop for worker processes that load their libraries or for compilers. Of a tuned form the best of
its turns counts. Memory is the most that a process and its descendants held, shared pages counted once, looked at
twice a second. PyTorch stands for a loop that a user writes without any framework; tuned, it has two processes and
channels_last, and a peer may still use PyTorch better.
"""
WORKLOADS = {
    "mnist": """## First workload: MNIST, the paper's network

Federated averaging on MNIST, dealt evenly and at random to K = 40 clients; n random clients a round; each takes 20 SGD
steps of 32 images (learning rate 0.02, no momentum) on the paper's network of 21,840 parameters; {rounds} rounds.
""",
    "cifar": """## Second workload: CIFAR-10, three convolutions of 3×3

Federated averaging on CIFAR-10, each class of which is dealt to K = 100 clients by shares from a Dirichlet distribution
of 0.3, to none fewer than 32 images; n = 10 random clients a round; each takes 10 SGD steps of 32 images (learning rate
0.05, no momentum) on `cifar-cnn` of 94,890 parameters; {rounds} rounds.
""",
}
PLANNED = {"mnist": 40, "cifar": 30}
MARK = "<!-- workload: {} -->"
NOT_YET = "Not measured yet: `python benchmarks/peers/run.py --workloads {}` on an idle machine fills this in.\n"


def settled(accuracy: Sequence[float]) -> float:
    """The mean accuracy of the last rounds."""
    return float(np.mean(accuracy[-LAST:])) if accuracy else float("nan")


def best(results: dict[str, Any], name: str, tuned: bool, size: int) -> dict[str, Any] | None:
    """The fastest successful turn, or None."""
    turns = [
        run for run in results["taken"]
        if (run["name"], run["tuned"], run["size"]) == (name, tuned, size) and not run["failed"]
    ]  # fmt: skip
    return min(turns, key=lambda run: run["loop_s"]) if turns else None


def names(results: dict[str, Any]) -> list[str]:
    return list(dict.fromkeys(run["name"] for run in results["taken"]))


def tables(results: dict[str, Any]) -> str:
    """One table for each n: times, ratios to the tuned feelstream run, start-up, memory, accuracy."""
    parts = []
    for size in sorted({run["size"] for run in results["taken"]}):
        ours = best(results, "feelstream", True, size)
        rows = [
            f"### {size} clients a round\n",
            f"| | form | {results['rounds']} rounds | against feelstream | start-up | memory | accuracy |",
            "|---|---|---:|---:|---:|---:|---:|",
        ]
        for name in names(results):
            for tuned in (False, True):
                run = best(results, name, tuned, size)
                if run is None:
                    continue
                ratio = f"{run['loop_s'] / ours['loop_s']:.1f}×" if ours else "–"
                rows.append(
                    f"| {name} | {'tuned' if tuned else 'as users'}: {run['form']} | {run['loop_s']:.2f} s | {ratio} | "
                    f"{run['startup_s']:.1f} s | {run['memory_mb']:.0f} MB | {settled(run['accuracy']):.2%} |"
                )
        parts.append("\n".join(rows))
    return "\n\n".join(parts)


def agreement(results: dict[str, Any]) -> str:
    """Whether all accuracies are feelstream's, given how much its own vary with the seed."""
    sentences = []
    for size, values in results["noise"].items():
        if len(values) < 2:
            continue
        mean, deviation = float(np.mean(values)), float(np.std(values, ddof=1))
        others = {
            f"{run['name']} ({'tuned' if run['tuned'] else 'as users'})": settled(run["accuracy"])
            for run in results["taken"]
            if run["size"] == int(size) and not run["failed"]
        }
        apart = [f"{who} {value:.2%}" for who, value in others.items() if abs(value - mean) > AGREE * deviation]
        sentences.append(
            f"With n = {size}, feelstream's accuracy (mean of the last {LAST} rounds) is {mean:.2%} over {len(values)} "
            f"other seeds, with a standard deviation of {deviation:.2%}; the contenders' lie from "
            f"{min(others.values()):.2%} to {max(others.values()):.2%}. "
            + (f"More than {AGREE:.0f} deviations away: {', '.join(apart)}." if apart else
               f"All are within {AGREE:.0f} deviations.")
        )  # fmt: skip
    return "\n".join(sentences)


def summary(results: dict[str, Any]) -> str:
    """feelstream against the fastest peer and against the best PyTorch."""
    sentences = []
    for size in sorted({run["size"] for run in results["taken"]}):
        ours, torch = best(results, "feelstream", True, size), best(results, "PyTorch", True, size)
        peers = [
            run for name in names(results) if name not in ("feelstream", "PyTorch") for tuned in (False, True)
            if (run := best(results, name, tuned, size))
        ]  # fmt: skip
        if ours and torch and peers:
            first = min(peers, key=lambda run: run["loop_s"])
            sentences.append(
                f"With n = {size}, feelstream takes {ours['loop_s']:.2f} s; the fastest peer, {first['name']}, takes "
                f"{first['loop_s'] / ours['loop_s']:.1f} times as long, and a plain loop in PyTorch "
                f"{torch['loop_s'] / ours['loop_s']:.1f} times."
            )
    return "\n".join(sentences)


def failures(results: dict[str, Any]) -> str:
    lines = [f"- {name} does not install: {reason}" for name, reason in results["absent"].items()]
    failed = {
        (run["name"], run["tuned"], run["size"]): run["failed"] for run in results["taken"] if run["failed"]
    }  # fmt: skip
    for (name, tuned, size), reason in failed.items():
        lines.append(f"- {name}, {'tuned' if tuned else 'as users'}, n = {size}, did not finish: `{reason}`")
    return "\n".join(lines) or "All installed and all ran."


def turns(results: dict[str, Any]) -> str:
    """How often each tuned form was measured, where that is not the same for all."""
    counts: dict[int, list[str]] = {}
    for name in names(results):
        runs = [run for run in results["taken"] if run["name"] == name and run["tuned"] and not run["failed"]]
        counts.setdefault(len(runs) // len({run["size"] for run in results["taken"]}), []).append(name)
    counts.pop(0, None)
    if len(counts) < 2:
        return ""
    said = [f"{count} of {', '.join(who)}" for count, who in sorted(counts.items(), reverse=True)]
    return f"Turns of the tuned forms: {'; '.join(said)}."


def section(workload: str, results: dict[str, Any] | None) -> str:
    """One workload: what it is, and what came out, or that it was not measured yet."""
    about = WORKLOADS[workload]
    if results is None:
        return "\n".join([MARK.format(workload), about.format(rounds=PLANNED[workload]), NOT_YET.format(workload)])
    versions = [f"- {name}: {listed}" for name, listed in results["versions"].items() if name in names(results)]
    return "\n".join(
        [
            MARK.format(workload),
            about.format(rounds=results["rounds"]),
            f"**Machine**: {described(results['machine'])}.\n",
            summary(results) + "\n",
            tables(results) + "\n",
            "### Do they compute the same?\n",
            agreement(results) + "\n",
            "### What took part\n",
            "\n".join(versions) + "\n",
            "\n".join(filter(None, [failures(results), turns(results)])) + "\n",
        ]
    )


def text(measured: dict[str, dict[str, Any]], before: str) -> str:
    """The page; a workload that was not measured keeps its section of the page as it was before."""
    parts = [INTRODUCTION]
    for workload in WORKLOADS:
        _, mark, rest = before.partition(MARK.format(workload))
        kept = mark + rest.partition(MARK.partition("{")[0])[0] if mark else None
        known = measured.get(workload)
        parts.append(kept.rstrip() + "\n" if kept and known is None else section(workload, known))
    return "\n".join(parts)
