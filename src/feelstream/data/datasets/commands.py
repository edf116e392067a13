"""Package managers as programs, which are run for what they print or leave in a folder."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from feelstream.data.datasets.mirrors import MirrorError


def run(
    command: Sequence[str],
    what: str,
    timeout_s: float,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> str:
    """What the program prints; a MirrorError with the last line of its complaint if it fails."""
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8",
            errors="replace", timeout=timeout_s,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MirrorError(f"{what} failed ({type(error).__name__})") from error
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise MirrorError(f"{what} failed ({last})")
    return done.stdout
