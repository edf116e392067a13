"""Where results came from: the command that makes them again, the versions, the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from feelstream.display.quantities import significant
from feelstream.experiment import Results


@dataclass(frozen=True)
class Origin:
    title: str
    command: str  # empty: nobody gave one
    finished: str  # when the last run was, UTC
    feelstream: str
    facts: dict[str, str]


def origin(results: Results, title: str = "", command: str = "") -> Origin:
    """Read from the plan and from what each finished run says about itself.

    title and command: of whoever made the plan, where they are not the plan's own.
    """
    plan = results.plan
    abouts = [results.about(*key) for key in results.finished]
    finished = max((about.timings.get("finished", "") for about in abouts), default="")
    when = f"{finished[:10]} {finished[11:16]} UTC" if finished else "at an unknown time"
    total_s = sum(about.timings.get("total_s", 0.0) for about in abouts)
    versions = _distinct(about.feelstream for about in abouts)
    facts = {
        "Seeds": _ranges(plan.seeds),
        "feelstream": versions,
        **{
            name: _distinct(about.versions.get(name, "") for about in abouts)
            for name in dict.fromkeys(name for about in abouts for name in about.versions)
        },
        "Learning engine": _distinct(_engine(about.engine) for about in abouts),
        "Data": _distinct(_data(about.data) for about in abouts),
        "Computing time": f"{significant(total_s, 2)} s" + (" over all runs" if len(results.finished) > 1 else ""),
    }
    known = {name: fact for name, fact in facts.items() if fact}
    return Origin(title or plan.name, command or plan.command, when, versions, known)


def _distinct(values: Any) -> str:
    return "; ".join(dict.fromkeys(str(value) for value in values if value))


def _data(data: dict[str, Any]) -> str:
    """Devices of a deployment train on data of their own, which has no digest here."""
    return f"{data['name']}, SHA-256 {data['digest']}" if "digest" in data else "the devices' own"


def _engine(engine: dict[str, Any]) -> str:
    details = ", ".join(f"{name} {value}" for name, value in engine.items() if name != "name")
    return f"{engine['name']} ({details})" if details else str(engine["name"])


def _ranges(seeds: tuple[int, ...]) -> str:
    """0–9, 12"""
    parts: list[list[int]] = []
    for seed in sorted(seeds):
        if parts and seed == parts[-1][1] + 1:
            parts[-1][1] = seed
        else:
            parts.append([seed, seed])
    return ", ".join(f"{first}–{last}" if first != last else str(first) for first, last in parts)
