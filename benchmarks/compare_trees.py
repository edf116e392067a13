"""Two states of the code on one machine: are the tables of their runs the same, and is the later one as fast?

    python benchmarks/compare_trees.py BEFORE AFTER            some minutes of tables, then some of speed
    python benchmarks/compare_trees.py BEFORE AFTER --quick    fewer cases, and speed only to see that it runs

BEFORE and AFTER are each PYTHON[:SRC], an interpreter in whose environment feelstream is installed and, where given, a
source directory that goes before it (with its compiled kernel in it). Every case of tree_runs.py is run in both, always
into fresh directories: a stored run is known by its version, not by its code. The tables and models must be equal in
every value, NaN and null and the sign of zero included; columns that were added are named. What is refused before must
be refused after, and the sentences that differ are named too.

Speed is CPU time of one thread, in turns (A B B A …), without imports and data; the least of each tree counts. The
exit code is 1 where anything differs or a ratio is below 0.95. Data sets that are not in the cache are fetched.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import tree_runs

SLOWEST = 0.95  # times the speed of before
TURNS = 3
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}
SHOWN = 40  # differences that are printed
EQUAL, DIFFERENT, REFUSED, ERROR = "equal", "different", "refused in both", "with an error"
Answer = tuple[Path, list[str]]  # a run's directory; the sentence that refused it and the traceback it ended with


@dataclass(frozen=True)
class Tree:
    """An interpreter, and the source directory that it imports from first, if any."""

    label: str
    python: str
    source: str

    @classmethod
    def parse(cls, label: str, text: str) -> Tree:
        python, _, source = text.partition(os.pathsep)
        found = shutil.which(python)
        if found is None or (source and not (Path(source) / "feelstream").is_dir()):
            sys.exit(f"{label}: '{text}' must read PYTHON or PYTHON{os.pathsep}SRC, with SRC/feelstream in it")
        return cls(label, os.path.abspath(found), os.path.abspath(source) if source else "")

    def run(self, *words: str, **more: Any) -> subprocess.CompletedProcess[str]:
        """With -P, since the benchmarks' own folder has files like run.py in it."""
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        environment = {**kept, **ONE_THREAD, **({"PYTHONPATH": self.source} if self.source else {})}
        return subprocess.run([self.python, "-P", *words], env=environment, text=True, **more)

    def ask(self, *words: str) -> str:
        return self.run(*words, stdout=subprocess.PIPE, check=True).stdout.strip()


@dataclass
class Found:
    differences: list[str] = field(default_factory=list)
    added: set[str] = field(default_factory=set)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", metavar="BEFORE", help=f"PYTHON[{os.pathsep}SRC]")
    parser.add_argument("after", metavar="AFTER", help=f"PYTHON[{os.pathsep}SRC]")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time, for the tables")
    parser.add_argument("--only", choices=("tables", "speed"))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--case", default="", help="only the cases or workloads whose name has this in it")
    options = parser.parse_args()
    trees = [Tree.parse("before", options.before), Tree.parse("after", options.after)]
    for tree in trees:
        print(f"{tree.label}: {tree.ask('-c', 'import feelstream; print(feelstream.__file__)')}", flush=True)
    fine = True
    if options.only != "speed":
        names = json.loads(trees[0].ask(tree_runs.__file__, "names"))
        chosen = [case for case in tree_runs.cases(names, options.quick) if options.case in case.name]
        fine = tables(trees, chosen, options.jobs)
    if options.only != "tables":
        fine = speeds(trees, options.quick, options.case) and fine
    sys.exit(not fine)


def tables(trees: Sequence[Tree], cases: Sequence[tree_runs.Case], jobs: int) -> bool:
    """Run all cases in both trees, and say what differs."""
    folder = Path(mkdtemp(prefix="trees-"))
    write_inputs(folder)
    numbered, parts = list(enumerate(cases)), max(jobs // 2, 1)
    tasks = [(tree, part, numbered[part::parts]) for part in range(parts) for tree in trees]
    with ThreadPoolExecutor(jobs) as pool:
        answers = list(pool.map(lambda task: played(folder, *task), tasks))
    said = {tree: {} for tree in trees}
    for (tree, _, _), answer in zip(tasks, answers, strict=True):
        said[tree].update(answer)

    found, outcomes = Found(), Counter[str]()
    for number, case in numbered:
        outcome, these = judged(case.name, *(said[tree][number] for tree in trees))
        outcomes[outcome] += 1
        found.differences += these.differences
        found.added |= these.added
    hidden = len(found.differences) - SHOWN
    for line in [*found.differences[:SHOWN], *([f"… and {hidden} more"] if hidden > 0 else [])]:
        print(line)
    print(f"columns added: {', '.join(sorted(found.added)) or 'none'}")
    print(f"{len(cases)} cases: {', '.join(f'{count} {outcome}' for outcome, count in outcomes.items())}")
    if outcomes.keys() <= {EQUAL, REFUSED}:
        shutil.rmtree(folder)
        return bool(cases)
    print(f"the runs are in {folder}")
    return False


def write_inputs(folder: Path) -> None:
    """The files that scenarios of tree_runs.py name, for `tiny`; the processes have this as their directory."""
    rng = np.random.default_rng(0)
    devices, rounds, samples = 10, 8, 600
    by_round = {"round": np.repeat(np.arange(1, rounds + 1), devices), "device": np.tile(np.arange(devices), rounds)}
    made = {
        "frequencies": {**by_round, "f_hz": rng.uniform(2e7, 1.5e9, rounds * devices)},
        "availability": {**by_round, "available": rng.integers(0, 2, rounds * devices)},
        "arrivals": {
            "time": np.sort(rng.uniform(0, 4 * rounds, samples)),
            "device": rng.integers(0, devices, samples),
            "sample": rng.permutation(samples),
        },
        "devices": {"device": np.arange(devices), "priority": rng.uniform(0.5, 2, devices)},
    }
    for name, columns in made.items():
        pl.DataFrame(columns).write_csv(folder / f"{name}.csv")


def played(folder: Path, tree: Tree, part: int, cases: Sequence[tuple[int, tree_runs.Case]]) -> dict[int, Answer]:
    """Run these cases in a process of the tree."""
    (own := folder / f"{tree.label}-{part}").mkdir()
    listed = own / "cases.json"
    listed.write_text(json.dumps([(number, asdict(case)) for number, case in cases]))
    code = tree.run(tree_runs.__file__, "tables", str(listed), str(own), cwd=folder).returncode
    if code:
        print(f"{tree.label}: a process ended with exit code {code}")
    lines = (own / "said.jsonl").read_text().splitlines() if (own / "said.jsonl").exists() else []
    said = {number: (own / str(number), sentences) for number, *sentences in map(json.loads, lines)}
    return {number: said.get(number, (own, ["", "its process ended before it did"])) for number, _ in cases}


def judged(name: str, before: Answer, after: Answer) -> tuple[str, Found]:
    """One of the four outcomes, and what there is to say about it."""
    (refused, failed), (refused_after, failed_after) = before[1], after[1]
    if failed or failed_after:
        return ERROR, Found([f"{name}: before: {failed or 'as it should'}; after: {failed_after or 'as it should'}"])
    if refused and refused_after:
        words = f"note, {name}: refused in other words\n  before: {refused}\n  after:  {refused_after}"
        return REFUSED, Found([words] if refused != refused_after else [])
    if refused or refused_after:
        when = "before" if refused else "after"
        return DIFFERENT, Found([f"{name}: refused {when} only: {refused or refused_after}"])
    found = compared(before[0], after[0])
    found.differences = [f"{name}: {line}" for line in found.differences]
    return (DIFFERENT if found.differences else EQUAL), found


def compared(before: Path, after: Path) -> Found:
    """All tables and arrays of two directories; numbers by their place, so that the order of rows counts."""
    found = Found()
    files = [{path.name: path for path in place.glob("*") if path.suffix in READERS} for place in (before, after)]
    if not files[0]:
        found.differences.append("no table was written before")
    for name in sorted(files[0].keys() | files[1].keys()):
        old, new = (READERS[each[name].suffix](each[name]) if name in each else {} for each in files)
        found.added |= {f"{column} of {name}" for column in new.keys() - old.keys()}
        for column, values in old.items():
            problem = differing(values, new[column], old) if column in new else "is gone"
            if problem:
                found.differences.append(f"{name}, {column}: {problem}")
    return found


def arrays(path: Path) -> dict[str, pl.Series]:
    with np.load(path) as found:
        return {f"{name} {found[name].shape}": pl.Series(found[name].ravel()) for name in found}


READERS = {".parquet": lambda path: pl.read_parquet(path).to_dict(), ".npz": arrays}


def differing(before: pl.Series, after: pl.Series, columns: dict[str, pl.Series]) -> str:
    """Where and how far two columns differ, empty where they do not; columns: of the same table, to name the row."""
    if before.dtype != after.dtype:
        return f"{before.dtype} before, {after.dtype} after"
    if len(before) != len(after):
        return f"{len(before)} rows before, {len(after)} after"
    where = np.flatnonzero(unequal(before, after))
    if not len(where):
        return ""
    first = int(where[0])
    row = ", ".join(f"{key} {columns[key][first]}" for key in ("round", "device") if key in columns) or f"row {first}"
    text = f"{len(where)} of {len(before)} differ, first in {row}: {before[first]} before, {after[first]} after"
    if before.dtype.is_numeric():
        old, new = (values.cast(pl.Float64).to_numpy()[where] for values in (before, after))
        with np.errstate(invalid="ignore", divide="ignore"):
            relative = np.abs(new - old) / np.maximum(np.abs(old), np.abs(new))
        text += f"; at most {np.nanmax(relative, initial=0.0):.2g} of the larger one"
    return text


def unequal(before: pl.Series, after: pl.Series) -> NDArray[np.bool_]:
    """Row by row; NaN equals NaN and null equals null, 0 and −0 differ."""
    differ = before.ne_missing(after).to_numpy()
    if not before.dtype.is_float():
        return differ
    signs = (np.signbit(values.fill_null(0.0).to_numpy()) for values in (before, after))
    return differ | (np.not_equal(*signs) & ~before.fill_null(0.0).is_nan().to_numpy())


def speeds(trees: Sequence[Tree], quick: bool, wanted: str) -> bool:
    """CPU time of every workload in both trees, by turns."""
    print("CPU time in s, least of the turns; ratio: before / after, 1.00 is the same, below 0.95 is too slow")
    fine = True
    for name, workload in ((name, each) for name, each in tree_runs.WORKLOADS.items() if wanted in name):
        taken: dict[Tree, list[float]] = {tree: [] for tree in trees}
        for turn in range(1 if quick else TURNS):
            for tree in trees if turn % 2 == 0 else reversed(trees):
                with TemporaryDirectory() as folder:
                    words = (tree_runs.__file__, "speed", name, folder, *(["quick"] if quick else []))
                    taken[tree].append(float(tree.ask(*words)))
        before, after = (min(taken[tree]) for tree in trees)
        fine &= before / after >= SLOWEST or quick
        print(f"{name:24} {before:8.2f} {after:8.2f}   {before / after:.3f}   {workload.counted}", flush=True)
    return fine


if __name__ == "__main__":
    main()
