"""feelstream against its peers and plain PyTorch on one workload, in turns, and the page docs/speed.md made of it.

    python benchmarks/peers/run.py            # makes the environments (once), measures, writes docs/speed.md
    python benchmarks/peers/run.py --smoke    # seconds: PyTorch and feelstream on synthetic data, nothing written

K = 40 clients share MNIST evenly, n = 2 and 4 random ones a round take 20 SGD steps of 32 images (lr 0.02), and all
10,000 test images are classified after each of 40 rounds. Every contender runs as its users would run it, and once more
in the fastest form that we could find. Times are whole round loops, start-up apart. Wants an idle machine, some
gigabytes of disk and Linux.
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

from machine import machine  # noqa: E402

OURS = [("PyTorch", "with_torch.py"), ("feelstream", "with_feelstream.py")]
LIMIT_S = 400.0
NOISE_SEEDS = range(1, 6)


def stored_data(folder: Path, name: str) -> Path:
    """Our verified copy of the data as an .npz file, so that no contender downloads any."""
    path = folder / f"{name}.npz"
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        data = load(name, samples=800) if name == "synthetic" else load(name)
        np.savez(
            path, x_train=data.train_images, y_train=data.train_labels, x_test=data.test_images, y_test=data.test_labels
        )
    return path


def contenders(folder: Path, smoke: bool, only: list[str]) -> tuple[list[Contender], dict[str, str], dict[str, str]]:
    """Who takes part, the versions of each, and why others do not."""
    found, versions, absent = [], {}, {}
    for name, script in OURS:
        found += [Contender(name, tuned, Path(sys.executable), script) for tuned in (False, True)]
    for peer in [] if smoke else [peer for peer in PEERS if not only or peer.folder in only]:
        try:
            print(f"{peer.name}: environment …", flush=True)
            environment = make(peer, folder)
        except InstallError as reason:
            absent[peer.name] = str(reason)
            continue
        listed = ", ".join(f"{name} {version}" for name, version in environment.versions.items())
        versions[peer.name] = f"{listed} ({peer.note})" if peer.note else listed
        found += [Contender(peer.name, tuned, environment.python, peer.script) for tuned in (False, True)]
    return found, versions, absent


def said(measured: Measured) -> str:
    if measured.failed:
        return f"failed: {measured.failed}"
    return (
        f"{measured.loop_s:7.2f} s, start-up {measured.startup_s:5.1f} s, {measured.memory_mb:5.0f} MB, "
        f"accuracy {measured.accuracy[-1]:.2%}  ({measured.form})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="two rounds on synthetic data, no peers, no page")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--repeats", type=int, default=2, help="turns of each tuned form; the others have one")
    parser.add_argument("--only", nargs="*", default=[], metavar="PEER", help="flower pfl fedlab flgo fluke fedjax")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "peers", help="environments, data, results")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "speed.md")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the contender that plays is ended too
    rounds, sizes, repeats = arguments.rounds, (2, 4), arguments.repeats
    if arguments.smoke:
        rounds, sizes, repeats = 1, (2,), 1
    folder: Path = arguments.folder.resolve()
    data = stored_data(folder, "synthetic" if arguments.smoke else "mnist")
    playing, versions, absent = contenders(folder, arguments.smoke, arguments.only)
    taken: list[dict] = []
    for repeat in range(repeats):
        for size in sizes:
            for contender in playing:
                if repeat and not contender.tuned:
                    continue
                measured = measure(contender, data, size, rounds, seed=0, limit_s=LIMIT_S)
                form = "tuned" if contender.tuned else "as users"
                print(f"n = {size}  {contender.name:18}{form:9}{said(measured)}", flush=True)
                taken.append({"name": contender.name, "tuned": contender.tuned, "size": size, **asdict(measured)})
    noise: dict[int, list[float]] = {}
    ours = next(c for c in playing if c.name == "feelstream" and c.tuned)
    for size in sizes:
        runs = [measure(ours, data, size, rounds, seed, LIMIT_S) for seed in ([] if arguments.smoke else NOISE_SEEDS)]
        noise[size] = [page.settled(run.accuracy) for run in runs]
    results = {"rounds": rounds, "machine": machine(), "versions": versions, "absent": absent, "taken": taken}
    results["noise"] = {str(size): values for size, values in noise.items()}
    tables = page.tables(results)
    print("\n" + tables)
    if arguments.smoke:
        if failed := [run["failed"] for run in taken if run["failed"]]:
            sys.exit(f"a contender failed: {failed[0]}")
        return
    (folder / "results.json").write_text(json.dumps(results, indent=1))
    arguments.page.write_text(page.text(results, tables))
    print(f"written: {arguments.page}")


if __name__ == "__main__":
    main()
