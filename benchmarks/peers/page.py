"""docs/speed.md: what the peers' benchmark found, as tables and sentences that follow from the numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from machine import described

LAST = 5  # rounds whose mean accuracy is compared: one round's jumps by a percentage point
AGREE = 4.0  # standard deviations of feelstream's own accuracy over seeds

INTRODUCTION = """# Speed against other simulators

This page is written by `python benchmarks/peers/run.py`, which makes an environment for each simulator, runs one
workload on all of them in turns, and compares. How the engine behind these numbers works is described in [the native
engine](engine.md).

**Workload**: federated averaging on MNIST, dealt evenly and at random to K = 40 clients; n random clients a round;
each takes 20 SGD steps of 32 images (learning rate 0.02, no momentum) on the paper's network of 21,840 parameters;
equal weights; all 10,000 test images are classified after each of {rounds} rounds. Nothing of feelstream's streams
and energy is used.

**Rules**: every simulator runs once *as its users would run it* (its documentation's way, PyTorch's own number of
threads) and once *tuned*, in the fastest form that we found (two processes or threads, channels_last, batches taken
by one indexing, a test without needless metrics). All get the same normalised arrays, and the same shares of them
except FLGo, which deals them itself, evenly and at random too. The time is that of
{rounds} rounds, training, aggregation and test; a round before them belongs to the start-up, so that nobody pays in
the loop for worker processes that load their libraries or for compilers. Of a tuned form the best of its turns
counts. Memory is the most that a process and its descendants held, shared pages counted once, looked at twice a
second. PyTorch stands for a loop that a user writes without any framework; tuned, it has two processes and
channels_last, and a peer may still use PyTorch better.
"""


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


def text(results: dict[str, Any], shown: str) -> str:
    versions = "\n".join(f"- {name}: {listed}" for name, listed in results["versions"].items())
    return "\n".join(
        [
            INTRODUCTION.format(rounds=results["rounds"]),
            f"**Machine**: {described(results['machine'])}.\n",
            "## Results\n",
            summary(results) + "\n",
            shown + "\n",
            "## Do they compute the same?\n",
            agreement(results) + "\n",
            "## What took part\n",
            versions + "\n",
            failures(results) + "\n",
        ]
    )
