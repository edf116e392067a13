"""The entry point of the command `feelstream`, which decides what signals do before anything else is imported."""

from __future__ import annotations

import signal
import sys

OWN_WAYS = {"flower", "studio"}  # they have processes or connections to end, and servers that handle signals


def main() -> None:
    """Run the command line."""
    for each in (signal.SIGINT, signal.SIGTERM):  # while modules are imported there is nothing to lose
        signal.signal(each, signal.SIG_DFL)
    from feelstream import signals
    from feelstream.cli import main as command_line

    signals.interrupt(watched=not OWN_WAYS & set(sys.argv[1:2]))
    try:
        command_line()
    except SystemExit as end:
        if signals.received and isinstance(end.code, int):
            signals.exit_with(end.code)
        raise
