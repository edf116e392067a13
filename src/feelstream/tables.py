"""Reading a Parquet file of unknown origin: one wrong byte in it can end the process that reads it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROBE = "import sys, polars; polars.read_parquet(sys.argv[1], glob=False)"


def can_be_read(path: Path) -> bool:
    """Whether a process of its own reads the Parquet file to its end.

    Polars aborts the process on some damaged files, always on the same ones, so what one process survives another will
    too. The files of our own runs need no such test: they are known by their SHA-256.
    """
    # -c would put the working directory, where anything may lie, first among the places to import from.
    command = [sys.executable, "-P", "-c", PROBE, str(path)]
    return subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, check=False).returncode == 0
