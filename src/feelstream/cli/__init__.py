"""The command line. Every error a user can act on is one sentence on standard error and exit code 2."""

from __future__ import annotations

import logging
import os
import sys
import traceback
from contextlib import suppress
from io import TextIOWrapper
from typing import Annotated, Any, NoReturn

import typer
from typer.main import get_command

from feelstream import signals
from feelstream.cli.lazy import LazyGroup
from feelstream.cli.usage import sentence as usage_sentence
from feelstream.errors import FeelstreamError, sentence
from feelstream.terminal.common import err, out
from feelstream.version import __version__

app = typer.Typer(
    help="Dynamic device scheduling for federated edge learning with streaming data.",
    no_args_is_help=True,
    cls=LazyGroup,
    pretty_exceptions_enable=False,
)

UsageError: Any = typer.BadParameter.__base__  # typer shows no other way to it
DEBUG = "--debug"
INTERRUPTED = 130  # what typer makes of a KeyboardInterrupt


def main() -> None:
    """Entry point: user errors become a sentence and exit code 2."""
    log = logging.getLogger("feelstream")
    if not log.handlers:
        log.addHandler(_Log())
    log.setLevel(logging.INFO)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a terminal may know ASCII only, a file's name any bytes
            stream.reconfigure(errors="backslashreplace")
    words = [word for word in sys.argv[1:] if word != DEBUG]  # every command has it, wherever it stands
    try:
        code = get_command(app)(words, prog_name="feelstream", standalone_mode=False)
    except FeelstreamError as problem:
        if DEBUG in sys.argv:
            traceback.print_exception(problem)
        code = _complain(sentence(problem))
    except UsageError as problem:
        code = problem.exit_code
        if problem.format_message().strip():  # no arguments at all: typer has shown the help
            _complain(usage_sentence(problem))
    except MemoryError:
        code = _complain("there is not enough memory for this; make the scenario smaller")
    except KeyboardInterrupt:
        code = INTERRUPTED
    except OSError as problem:  # too many open files, a full disk behind standard output, …
        # Locks of a pool that could not be made go with its frames: left behind, multiprocessing would warn of them.
        traceback.clear_frames(problem.__traceback__)
        _give_up(f"{problem.strerror or problem}{f': {problem.filename}' if problem.filename else ''}")
    except Exception:
        if not signals.received:
            raise
        code = INTERRUPTED  # pydantic, for one, makes an error of its own of an interrupt that comes while it works
    if code == INTERRUPTED:
        _complain(signals.SENTENCE)
        code = 128 + signals.received[0] if signals.received else INTERRUPTED
    try:
        if sys.stdout is not None:  # closed by whoever started this
            sys.stdout.flush()
    except OSError as problem:
        _give_up(f"cannot write the output: {problem.strerror}")
    sys.exit(code)


class _Log(logging.Handler):
    """Log lines on standard error, above a progress bar if there is one."""

    def emit(self, record: logging.LogRecord) -> None:
        style = "yellow" if record.levelno >= logging.WARNING else None
        err.print(record.getMessage(), style=style, soft_wrap=True)


def _give_up(why: str) -> NoReturn:
    """Say why and end at once: what is left in the buffers would only fail again."""
    with suppress(OSError):
        _complain(why)
    os._exit(2)


def _complain(why: str) -> int:
    err.print(f"feelstream: {why}", style="red", soft_wrap=True)
    return 2


def _version(wanted: bool) -> None:
    if wanted:
        out.print(f"feelstream {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    debug: Annotated[bool, typer.Option(DEBUG, help="Show the traceback of an error too; with any command.")] = False,
) -> None: ...
