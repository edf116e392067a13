"""feelstream against its peers and plain PyTorch on two workloads, in turns, and docs/speed.csv, .md made of it.

    python benchmarks/peers/run.py            # makes the environments (once), measures, writes the page and its table
    python benchmarks/peers/run.py --workloads cifar    # the second workload; what is known of the first stays
    python benchmarks/peers/run.py --smoke    # seconds: PyTorch and feelstream on synthetic data, nothing written

mnist: K = 40 clients share MNIST evenly, n = 2 and 4 random ones a round take 20 SGD steps of 32 images (lr 0.02), 40
rounds. cifar: K = 100 clients share CIFAR-10 by Dirichlet 0.3, n = 10 take 10 steps of 32 (lr 0.05) on cifar-cnn, 30
rounds. All 10,000 test images are classified after each round. Every contender runs as its users would run it, and
once more in the fastest form that we could find. Times are whole round loops, start-up apart. Wants an idle machine,
some gigabytes of disk and Linux.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np

from feelstream.data.datasets import load

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "benchmarks"))

import page  # noqa: E402
from environments import PEERS, InstallError, make  # noqa: E402
from measuring import Contender, Measured, measure  # noqa: E402
from workload import KINDS, Kind  # noqa: E402

from machine import machine  # noqa: E402

OURS = [("PyTorch", "with_torch.py"), ("feelstream", "with_feelstream.py")]
LIMIT_S = 900.0
SMOKE_SIZE = 2
NOISE_IMAGES, NOISE_TESTS = 20_000, 200  # to try a workload on: enough for the shares of a hundred clients
NOISE_SEEDS = range(1, 6)


def stored_data(folder: Path, kind: Kind, smoke: bool) -> Path:
    """Our verified copy of the data as an .npz file, so that no contender downloads any; noise of its shape to try."""
    path = folder / f"{'noise-' if smoke else ''}{kind.dataset}.npz"
    if path.is_file():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    if smoke:
        rng, shape = np.random.default_rng(0), kind.shape
        data = {
            f"{what}_{part}": rng.integers(0, most, (count, *(shape if what == "x" else ())), dtype=np.uint8)
            for part, count in (("train", NOISE_IMAGES), ("test", NOISE_TESTS))
            for what, most in (("x", 256), ("y", 10))
        }
    else:
        known = load(kind.dataset)
        data = {
            "x_train": known.train_images, "y_train": known.train_labels,
            "x_test": known.test_images, "y_test": known.test_labels,
        }  # fmt: skip
    np.savez(path, **data)  # pyright: ignore[reportArgumentType]
    return path


def contenders(folder: Path, smoke: bool, only: list[str]) -> tuple[list[Contender], dict[str, str], dict[str, str]]:
    """Who takes part, the versions of each, and why others do not."""
    found, versions, absent = [], {}, {}
    for name, script in OURS:
        found += [Contender(name, tuned, Path(sys.executable), script, tuple(KINDS)) for tuned in (False, True)]
    for peer in [] if smoke else [peer for peer in PEERS if not only or peer.folder in only]:
        try:
            print(f"{peer.name}: environment …", flush=True)
            environment = make(peer, folder)
        except InstallError as reason:
            absent[peer.name] = str(reason)
            continue
        listed = ", ".join(f"{name} {version}" for name, version in environment.versions.items())
        versions[peer.name] = f"{listed} ({peer.note})" if peer.note else listed
        found += [
            Contender(peer.name, tuned, environment.python, peer.script, peer.workloads) for tuned in (False, True)
        ]
    return found, versions, absent


def said(measured: Measured) -> str:
    if measured.failed:
        return f"failed: {measured.failed}"
    return (
        f"{measured.loop_s:7.2f} s, start-up {measured.startup_s:5.1f} s, {measured.memory_mb:5.0f} MB, "
        f"accuracy {measured.accuracy[-1]:.2%}  ({measured.form})"
    )


def played(workload: str, playing: list[Contender], data: Path, rounds: int, repeats: int, smoke: bool) -> dict:
    """All turns of one workload, as the page wants them."""
    kind = KINDS[workload]
    sizes, taken = (SMOKE_SIZE,) if smoke else kind.sizes, list[dict]()
    playing = [contender for contender in playing if workload in contender.workloads]
    for repeat in range(repeats):
        for size in sizes:
            for contender in playing:
                if repeat and not contender.tuned:
                    continue
                measured = measure(contender, workload, data, size, rounds, seed=0, limit_s=LIMIT_S)
                form = "tuned" if contender.tuned else "as users"
                print(f"{workload}, n = {size}  {contender.name:18}{form:9}{said(measured)}", flush=True)
                taken.append({"name": contender.name, "tuned": contender.tuned, "size": size, **asdict(measured)})
    ours = next(c for c in playing if c.name == "feelstream" and c.tuned)
    noise: dict[str, list[float]] = {}
    for size in sizes:
        seeds = [] if smoke else NOISE_SEEDS
        runs = [measure(ours, workload, data, size, rounds, seed, LIMIT_S) for seed in seeds]
        noise[str(size)] = [page.settled(run.accuracy) for run in runs]
    return {"rounds": rounds, "taken": taken, "noise": noise}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="two rounds on synthetic data, no peers, no page")
    parser.add_argument("--workloads", nargs="*", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--rounds", type=int, help="default: 40 of mnist, 30 of cifar")
    parser.add_argument("--repeats", type=int, default=2, help="turns of each tuned form; the others have one")
    parser.add_argument("--only", nargs="*", default=[], metavar="PEER", help="flower pfl fedlab flgo fluke fedjax")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "peers", help="environments, data, results")
    parser.add_argument("--docs", type=Path, default=page.DOCS, help="where speed.md and speed.csv are")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the contender that plays is ended too
    folder: Path = arguments.folder.resolve()
    smoke: bool = arguments.smoke
    playing, versions, absent = contenders(folder, smoke, arguments.only)
    store = folder / "results.json"
    results = {"workloads": {}, **(json.loads(store.read_text()) if store.is_file() and not smoke else {})}
    for workload in arguments.workloads:
        kind = KINDS[workload]
        rounds, repeats = (1, 1) if smoke else (arguments.rounds or kind.rounds, arguments.repeats)
        found = played(workload, playing, stored_data(folder, kind, smoke), rounds, repeats, smoke)
        results["workloads"][workload] = {**found, "machine": machine(), "versions": versions, "absent": absent}
        for row in page.rows(workload, results["workloads"][workload]):
            print(f"| {row['simulator']} | {row.get('form', '')} | {row.get('failed') or page.cell(row)} |", flush=True)
        if smoke and (failed := [run["failed"] for run in found["taken"] if run["failed"]]):
            sys.exit(f"a contender failed: {failed[0]}")
        if not smoke:
            store.write_text(json.dumps(results, indent=1))
    if not smoke:
        measured = {workload: results["workloads"][workload] for workload in arguments.workloads}
        print(f"written: {page.write(page.table_of(measured, page.read(arguments.docs)), arguments.docs)}")


if __name__ == "__main__":
    main()
