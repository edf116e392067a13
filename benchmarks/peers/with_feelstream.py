"""feelstream: random scheduling of devices that hold all their data from the start.

As users run it, the run is kept in a directory, checkpoints and rows of every device included. Tuned, its tables stay
in memory and hold one row a round.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import polars as pl
from workload import Diary, Images, Workload, asked

import feelstream as fs

BAND_HZ = fs.preset("paper-iid").radio.bandwidth_hz  # enough for four


def scenario(work: Workload, folder: Path) -> fs.Scenario:
    """The shares are the ones of all contenders; a trace of arrivals says that everything is there at once."""
    arrivals = folder / "arrivals.parquet"
    shares = Images(work).shares
    devices = np.repeat(np.arange(work.clients), [len(share) for share in shares])
    samples = np.concatenate(shares)
    pl.DataFrame({"time": np.zeros(len(samples)), "device": devices, "sample": samples}).write_parquet(arrivals)
    return fs.preset(
        "paper-iid",
        [
            f"system.devices={work.clients}", f"system.rounds={work.played}",
            f"data.dataset={work.data}", "data.arrivals.kind=trace", f"data.arrivals.path={arrivals}",
            "cpu.frequency_hz=[1e9, 1.52e9]",  # fast enough for the deadline: nobody is ruled out
            "policy.name=random", f"policy.size={work.size}", f"learning.model={work.kind.model}",
            f"radio.bandwidth_hz={BAND_HZ * max(work.size, 4) / 4}",  # nobody is dropped either
            f"learning.steps={work.steps}", f"learning.batch={work.batch}", f"learning.lr={work.lr}",
            f"trace.level={'rounds' if work.tuned else 'full'}",
        ],
    )  # fmt: skip


def main() -> None:
    work, diary = asked(), Diary()

    class Noted(fs.Callback):
        def on_round(self, row) -> None:
            diary.tested(row["accuracy"] or 0.0)

    with tempfile.TemporaryDirectory() as folder:
        out = None if work.tuned else Path(folder) / "run"
        fs.simulate(scenario(work, Path(folder)), work.seed, out=out, callbacks=[Noted()])
    diary.finish("one process, all cores, " + ("in memory" if work.tuned else "kept in a directory"))


if __name__ == "__main__":
    main()
