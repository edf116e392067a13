"""The entry point of the command `feelstream`, which decides what signals do before anything else is imported."""

from __future__ import annotations

import sys

from feelstream import signals

OWN_WAYS = {"flower", "studio"}  # they have processes or connections to end, and servers that handle signals


def main() -> None:
    """Run the command line."""
    signals.end_at_once()
    from feelstream.cli import main as command_line

    signals.interrupt(watched=not OWN_WAYS & set(sys.argv[1:2]))
    try:
        command_line()
    except SystemExit as end:
        if signals.received and isinstance(end.code, int):
            signals.exit_with(end.code)
        raise
