"""Play what the table does not hold yet, seed by seed, and add it as it is finished."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from feelstream.experiment import Arm, Plan, Results
from feelstream.studies.hu2023 import STUDY
from feelstream.studies.hu2023.claims.empty_slots import empty_slots
from feelstream.studies.hu2023.confirmation import table as tables
from feelstream.studies.hu2023.confirmation.candidates import Specified

Play = Callable[[Plan], Results]


def missing(path: Path, candidates: Iterable[Specified], labels: Sequence[str], seed: int) -> dict[tables.Key, Arm]:
    """The runs of one seed that the table does not hold."""
    known = tables.keys(tables.read(path))
    found: dict[tables.Key, Arm] = {}
    for candidate in candidates:
        for label in labels:
            key = tables.key(candidate.settings, candidate.fresh, label, seed)
            if key not in known and key not in found:
                found[key] = Arm(" | ".join(key[:3]), candidate.scenario(label))
    return found


def confirm(
    path: Path, candidates: Sequence[Specified], labels: Sequence[str], seeds: Iterable[int], play: Play
) -> Iterable[Results]:
    """The results of each seed that had anything missing; the table is complete for it by then."""
    for seed in seeds:
        wanted = missing(path, candidates, labels, seed)
        if not wanted:
            continue
        results = play(Plan("confirmation", tuple(wanted.values()), (seed,), study=STUDY.name))
        rounds = {str(arm): rows for (arm,), rows in results.rounds().group_by("arm", maintain_order=True)}
        tables.add(
            path,
            (
                tables.row(key, rounds[arm.label], empty_slots(results, arm.label).get(seed))
                for key, arm in wanted.items()
                if arm.label in rounds
            ),
        )
        yield results
