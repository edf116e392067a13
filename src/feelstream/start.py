"""The entry point of the command `feelstream`, which decides what signals do before anything else is imported."""

from __future__ import annotations

import os
import signal
import sys

LEAST_ADDRESSES = 2 * 2**30  # bytes; a small run takes 1.2 GB on two cores, and a tenth of it as memory
OWN_WAYS = {"flower", "studio"}  # they have processes or connections to end, and servers that handle signals


def main() -> None:
    """Run the command line."""
    for each in (signal.SIGINT, signal.SIGTERM):  # while modules are imported there is nothing to lose
        signal.signal(each, signal.SIG_DFL)
    _check_addresses()
    # Our matrices are small: BLAS threads that wait for each other made a page of statistics take ten times as long.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported
    from feelstream import signals
    from feelstream.cli import main as command_line

    command = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
    signals.interrupt(watched=command not in OWN_WAYS)
    try:
        command_line()
    except SystemExit as end:
        if signals.received and isinstance(end.code, int):
            signals.exit_with(end.code)
        raise


def _check_addresses() -> None:
    """Refuse a limit on the address space under which the libraries written in Rust would abort without a word."""
    try:
        from resource import RLIM_INFINITY, RLIMIT_AS, getrlimit
    except ImportError:  # there are no such limits on Windows
        return
    most = getrlimit(RLIMIT_AS)[0]
    if most != RLIM_INFINITY and most < LEAST_ADDRESSES:
        print(
            f"feelstream: the limit on the address space (ulimit -v) is {most >> 20} MiB; "
            f"{LEAST_ADDRESSES >> 20} MiB are needed, most of which are reserved and never used",
            file=sys.stderr,
        )
        sys.exit(2)
